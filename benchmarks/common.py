"""What the comparisons of generators share: arms, environments of other packages, tables, and the command line.

Rows of the first table:

- lol-data: `generate_dataset`, from nothing to finished shards, with one thread and with one per CPU. A thread makes
  one unit of 100,000 problems at a time: take an `--n` of many units per CPU.
- bare write: the tables of those shards, in memory beforehand, through the same encoder into files, each with an fsync,
  by one thread. Its files have to be those of lol-data, byte for byte.
- peers: from PyPI, each in an environment of its own under the user's cache folder, made the first time; one process.
  Imports and writing are not counted.

Times of ours are with compiled kernels; what a first call costs is given apart. `--linearity` adds a table of sizes,
each in a process of its own. TMPDIR says on which disk; all that is written there is removed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lol_data.shards.engines import default_workers
from lol_data.shards.generate import generate_dataset
from lol_data.shards.manifest import Manifest, file_sha256
from lol_data.shards.plan import DatasetPlan
from lol_data.shards.reader import open_dataset
from lol_data.shards.writer import ShardEncoder

WARM_UP = 2_000
PIECE = 10_000  # rows of ours that are described


@dataclass(frozen=True, slots=True)
class Peer:
    """A package from PyPI.

    requirements: itself first. script: run by its own python with two arguments, how many problems and an algorithm;
    the last line that it prints is JSON, the fields of a Sample and, where a benchmark describes what is made,
    "digits", a string per problem. algorithms: as it names them. share: one in how many of --peer-n problems it makes.
    """

    requirements: tuple[str, ...]
    script: str
    algorithms: dict[str, str]
    share: int = 1

    @property
    def name(self) -> str:
        """Package and version."""
        return self.requirements[0].replace("==", " ")


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement. bytes: of the files, None where nothing was written. about: what was made, in words."""

    problems: int
    seconds: float
    bytes: int | None
    about: str = ""


Arm = Callable[[], Sample]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A comparison. script: its file. sizes: of `--linearity`. describe: in words what problems, uint8 (N, w), are."""

    script: str
    plan: Callable[[int], DatasetPlan]
    peers: tuple[Peer, ...]
    n: int
    sizes: tuple[int, ...]
    describe: Callable[[NDArray[np.uint8]], str] | None = None


def generate(plan: DatasetPlan, workers: int) -> tuple[Sample, Manifest]:
    """Our data set in a new folder, removed afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        generate_dataset(plan, folder, workers)
        seconds = time.perf_counter() - began
        manifest = open_dataset(folder).manifest
    return Sample(plan.n, seconds, manifest.bytes), manifest


def tables_of(plan: DatasetPlan) -> dict[str, list[Any]]:
    """The rows of every file of a data set, in the pieces in which they were made."""
    tables: dict[str, list[Any]] = {}
    for unit in range(plan.units):
        names = list(plan.file_names(unit).values())
        tables |= {name: [] for name in names}
        for block in plan.blocks(plan.unit_ids(unit)):
            for index, name in enumerate(names):
                tables[name].append(block.traced.take(np.flatnonzero(block.splits == index)))
    return tables


def write_tables(plan: DatasetPlan, tables: dict[str, list[Any]], expected: dict[str, str]) -> Sample:
    """Encode and write every file, and nothing else. expected: the SHA-256 of every file, checked behind the clock."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        for name, parts in tables.items():
            encoder = ShardEncoder(plan.task.schema)
            for traced in parts:
                encoder.add(plan.task.to_batch(traced))
            with open(Path(folder) / name, "wb") as file:
                file.write(encoder.finish())
                file.flush()
                os.fsync(file.fileno())
        seconds = time.perf_counter() - began
        if {path.name: file_sha256(path) for path in Path(folder).iterdir()} != expected:
            sys.exit("the bare write wrote other files than lol-data: the two are not comparable")
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
    return Sample(sum(len(traced) for parts in tables.values() for traced in parts), seconds, size)


def install(peer: Peer) -> Path | None:
    """The python of a peer's environment, which is made if need be; None where it cannot be made."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lol-data" / "peers"
    home = cache / peer.name.replace(" ", "-")
    python, ready = home / "bin" / "python", home / "requirements.txt"
    wanted = "\n".join(peer.requirements)
    if ready.exists() and ready.read_text() == wanted:
        return python
    print(f"installing {peer.name}", file=sys.stderr)
    shutil.rmtree(home, ignore_errors=True)
    pip = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", *peer.requirements]
    try:
        venv.create(home, with_pip=True, symlinks=True)
        subprocess.run(pip, stdout=sys.stderr, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"{peer.name}: {error}", file=sys.stderr)
        return None
    ready.write_text(wanted)
    return python


def run_json(command: list[str], environment: dict[str, str] | None = None) -> dict[str, Any]:
    """The JSON on the last line that a command prints."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **(environment or {})}
    )
    return json.loads(done.stdout.splitlines()[-1])


def peer_arm(command: list[str], describe: Callable[[NDArray[np.uint8]], str] | None) -> Arm:
    """The arm that a command measures."""

    def arm() -> Sample:
        found = run_json(command)
        problems = np.array([list(map(int, text)) for text in found.pop("digits", [])], np.uint8)
        return Sample(**found, about=describe(problems) if describe else "")

    return arm


def measure(arms: dict[str, Arm | None], repeats: int) -> dict[str, list[Sample]]:
    """Samples of every arm, all arms once a round. An arm that fails, or is None, ends up without samples."""
    samples: dict[str, list[Sample]] = {name: [] for name in arms}
    running = {name: arm for name, arm in arms.items() if arm}
    for number in range(repeats):
        for name, arm in list(running.items()):
            print(f"round {number + 1} of {repeats}: {name}", file=sys.stderr)
            try:
                samples[name].append(arm())
            except subprocess.CalledProcessError as error:
                print(f"{name}: exit code {error.returncode}, left out", file=sys.stderr)
                samples[name] = []
                del running[name]
    return samples


def compare(benchmark: Benchmark, n: int, peer_n: int, repeats: int) -> list[str]:
    """The first table: every arm, its rate, its bytes, and its time for a problem against two others."""
    workers, plan, task = default_workers(), benchmark.plan(n), benchmark.plan(n).task
    one, many, bare = "lol-data, 1 thread", f"lol-data, {workers} threads", "bare write, 1 thread"
    manifest = generate(plan, workers)[1]
    tables = tables_of(plan)
    expected = {entry.name: entry.sha256 for entry in manifest.files}
    arms: dict[str, Arm | None] = {one: lambda: generate(plan, 1)[0]}
    if workers > 1:
        arms[many] = lambda: generate(plan, workers)[0]
    arms[bare] = lambda: write_tables(plan, tables, expected)
    for peer in benchmark.peers if peer_n else ():
        python = install(peer)
        if python is None:
            arms[peer.name] = None
            continue
        for label, algorithm in peer.algorithms.items():
            command = [str(python), "-c", peer.script, str(max(1, peer_n // peer.share)), algorithm]
            arms[f"{peer.name}, {label}"] = peer_arm(command, benchmark.describe)
    samples = measure(arms, repeats)

    def times(name: str, other: str) -> str:
        pairs = zip(samples[name], samples[other], strict=True)
        return spread([(a.seconds / a.problems) / (b.seconds / b.problems) for a, b in pairs])

    rows = []
    for name, found in samples.items():
        if not found:
            rows.append([name, "could not be installed or run", "", "", "", ""])
            continue
        rates = [sample.problems / sample.seconds for sample in found]
        traces = spread([rate * len(task.strategies) for rate in rates]) if name in (one, many) else "none"
        size = f"{found[0].bytes / found[0].problems:.0f}" if found[0].bytes is not None else "none"
        rows.append([name, spread(rates), traces, size, times(name, one), times(name, bare)])
    unit = task.problem
    head = ["", f"{unit}s/s", "traces/s", f"bytes/{unit}", f"time a {unit}, lol-data 1 thread = 1", "bare write = 1"]
    if benchmark.describe:
        ours = benchmark.describe(task.problems(task.generate(plan.settings, plan.seed, 0, min(n, PIECE))))
        abouts = {name: found[0].about if found else "" for name, found in samples.items()} | {one: ours, many: ours}
        head.append("what is made")
        rows = [[*row, abouts[row[0]]] for row in rows]
    note = f"Median (least..most) of {repeats}; {n:,} {task.title(plan.settings)}, peers at most {peer_n:,}"
    return [f"{note}; ratios within a round.", "", *markdown(head, rows)]


def child(benchmark: Benchmark, n: int) -> dict[str, float]:
    """What one process needs for n problems, with kernels loaded: seconds, CPU seconds, peak bytes, bytes on disk."""
    workers = default_workers()
    generate(benchmark.plan(min(n, WARM_UP)), workers)
    before = resource.getrusage(resource.RUSAGE_SELF)
    sample, _ = generate(benchmark.plan(n), workers)
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return {"seconds": sample.seconds, "cpu": cpu, "peak": peak_memory(), "bytes": sample.bytes or 0}


def peak_memory() -> int:
    """Bytes that this process has held in memory at most."""
    try:
        # Linux hands ru_maxrss down from the parent, whose tables would count; this one begins anew.
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def linearity(benchmark: Benchmark) -> list[str]:
    """The second table: cost per problem and peak memory over the number of problems."""
    rows, unit = [], benchmark.plan(1).task.problem
    for n in benchmark.sizes:
        print(f"linearity: {n:,}", file=sys.stderr)
        found = run_json([sys.executable, benchmark.script, "--child", str(n)])
        rows.append(
            [
                f"{n:,}",
                f"{benchmark.plan(n).units}",
                f"{found['seconds']:.2f}",
                f"{found['seconds'] / n * 1e6:.2f}",
                f"{found['cpu'] / n * 1e6:.2f}",
                f"{found['peak'] / 1e6:.0f}",
                f"{found['bytes'] / n:.1f}",
            ]
        )
    head = [f"{unit}s", "units", "seconds", f"us/{unit}", f"CPU us/{unit}", "peak memory, MB", f"bytes/{unit}"]
    note = f"One process each, up to {default_workers()} threads; a thread makes one unit at a time."
    return [note, "", *markdown(head, rows)]


def start_up(benchmark: Benchmark) -> str:
    """What the first problem costs a new process, with the compiled kernels at hand and without."""
    command, seconds = [sys.executable, benchmark.script, "--child", "1"], []
    generate(benchmark.plan(1), 1)  # compiles, if nobody did before
    with tempfile.TemporaryDirectory() as empty:
        for environment in ({}, {"NUMBA_CACHE_DIR": empty}):
            began = time.perf_counter()
            run_json(command, environment)
            seconds.append(time.perf_counter() - began)
    return (
        f"A process that makes one {benchmark.plan(1).task.problem}: {seconds[0]:.1f} s with compiled kernels in the "
        f"user's cache folder, {seconds[1]:.1f} s when it has to compile them (once per version)."
    )


def machine() -> str:
    """CPU, cores, system, versions, and how busy the machine was before."""
    cpu = platform.processor() or platform.machine()
    if (info := Path("/proc/cpuinfo")).exists():
        names = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = names[0] if names else cpu
    packages = [f"{name} {version(name)}" for name in ("lol-data", "numpy", "numba", "pyarrow")]
    return (
        f"{cpu}, {default_workers()} CPUs; {platform.system()}, Python {platform.python_version()}, "
        f"{', '.join(packages)}; load average at the start {os.getloadavg()[0]:.2f}."
    )


def spread(values: list[float]) -> str:
    """Median (least..most)."""
    form = ",.0f" if statistics.median(values) >= 20 else ",.2f" if statistics.median(values) >= 0.1 else ",.4f"
    return f"{statistics.median(values):{form}} ({min(values):{form}}..{max(values):{form}})"


def markdown(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    """The lines of a table."""
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def main(benchmark: Benchmark, description: str) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=benchmark.n, help="problems of ours and of the bare write")
    parser.add_argument("--peer-n", type=int, default=2_000, help="problems of each peer; 0 leaves the peers out")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--linearity", action="store_true")
    parser.add_argument("--out", type=Path, help="write the Markdown to this file, too")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        print(json.dumps(child(benchmark, options.child)))
        return
    if options.n < 1 or options.repeats < 1 or options.peer_n < 0:
        parser.error("--n and --repeats must be 1 or more, --peer-n 0 or more")
    lines = [machine(), "", start_up(benchmark), ""]
    lines += compare(benchmark, options.n, options.peer_n, options.repeats)
    if options.linearity:
        lines += ["", *linearity(benchmark)]
    print("\n".join(lines))
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")

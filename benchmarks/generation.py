"""Generating mazes: lol-data, the bare write of the same tables, and other packages, interleaved in one run.

    python benchmarks/generation.py [--n 1000000] [--peer-n 2000] [--repeats 3] [--linearity] [--out FILE.md]

Prints Markdown. The rows of the first table:

- lol-data: `generate_dataset`, from nothing to finished shards, with one thread and with one per CPU. A thread makes
  one unit of 100,000 mazes at a time: take an `--n` of many units per CPU.
- bare write: the tables of those shards, in memory beforehand (0.5 GB a million mazes), through the same encoder into
  files, each with an fsync, by one thread. Its files have to be those of lol-data, byte for byte.
- peers: from PyPI, each in an environment of its own under the user's cache folder, made the first time (0.5 GB); one
  process. They make a tree and the path between two random cells, in memory: no traces, no least length of the path,
  no duplicates looked for. Imports and writing are not counted.

Times of ours are with compiled kernels; what a first call costs is given apart. `--linearity` adds ten thousand to ten
million mazes, each in a process of its own. TMPDIR says on which disk; all that is written there is removed.
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

from lol_data.mazes import MAZE_STRATEGIES, TracedMazes
from lol_data.shards.engines import default_workers
from lol_data.shards.generate import generate_dataset
from lol_data.shards.manifest import Manifest, file_sha256
from lol_data.shards.maze_task import MazeTask
from lol_data.shards.plan import DatasetPlan
from lol_data.shards.reader import open_dataset
from lol_data.shards.writer import ShardEncoder

LINEARITY = (10**4, 10**5, 10**6, 10**7)
WARM_UP = 2_000

# Run by a peer's own python with two arguments, mazes and algorithm; the last line it prints is a Sample in JSON.
_MAZE_DATASET = """
import json, sys, tempfile, time
from pathlib import Path
from maze_dataset import MazeDataset, MazeDatasetConfig
from maze_dataset.generation import LatticeMazeGenerators

def make(n):
    algorithm = getattr(LatticeMazeGenerators, sys.argv[2])
    config = MazeDatasetConfig(name="benchmark", grid_n=8, n_mazes=n, maze_ctor=algorithm)
    return MazeDataset.from_config(config, load_local=False, do_download=False, save_local=False, gen_parallel=False)

make(10)
began = time.perf_counter()
mazes = make(int(sys.argv[1]))
seconds, size = time.perf_counter() - began, None
with tempfile.TemporaryDirectory() as folder:
    try:
        mazes.save(Path(folder) / "mazes.zanj")
        size = (Path(folder) / "mazes.zanj").stat().st_size
    except TypeError:
        pass  # 1.4.2 cannot save 100 or more mazes of its Kruskal generator
print(json.dumps({"mazes": len(mazes), "seconds": seconds, "bytes": size}))
"""
_MAZELIB = """
import importlib, json, sys, time
from mazelib import Maze
from mazelib.solve.BacktrackingSolver import BacktrackingSolver

algorithm = getattr(importlib.import_module("mazelib.generate." + sys.argv[2]), sys.argv[2])

def make():
    maze = Maze()
    maze.generator, maze.solver = algorithm(8, 8), BacktrackingSolver()
    maze.generate()
    maze.generate_entrances(False, False)
    maze.solve()
    assert maze.solutions[0]

Maze.set_seed(0)
make()
began = time.perf_counter()
for _ in range(int(sys.argv[1])):
    make()
print(json.dumps({"mazes": int(sys.argv[1]), "seconds": time.perf_counter() - began, "bytes": None}))
"""


@dataclass(frozen=True, slots=True)
class Peer:
    """A package from PyPI: its requirements, itself first; the script above; the algorithms, as it names them."""

    requirements: tuple[str, ...]
    script: str
    algorithms: dict[str, str]

    @property
    def name(self) -> str:
        """Package and version."""
        return self.requirements[0].replace("==", " ")


PEERS = (
    # Its own bounds admit a muutils with which it cannot be imported, and leave typing_extensions out.
    Peer(
        ("maze-dataset==1.4.2", "muutils==0.8.*", "typing_extensions"),
        _MAZE_DATASET,
        {"Wilson": "gen_wilson", "Kruskal": "gen_kruskal"},
    ),
    Peer(("mazelib==0.9.16",), _MAZELIB, {"Wilson": "Wilsons", "backtracker": "BacktrackingGenerator"}),
)


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement. bytes: of the files, None where nothing was written."""

    mazes: int
    seconds: float
    bytes: int | None


Arm = Callable[[], Sample]


def generate(n: int, workers: int) -> tuple[Sample, Manifest]:
    """Our data set of n mazes in a new folder, removed afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        generate_dataset(DatasetPlan(n), folder, workers)
        seconds = time.perf_counter() - began
        manifest = open_dataset(folder).manifest
    return Sample(n, seconds, manifest.bytes), manifest


def tables_of(plan: DatasetPlan) -> dict[str, list[TracedMazes]]:
    """The rows of every file of a data set, in the pieces in which they were made."""
    tables: dict[str, list[TracedMazes]] = {}
    for unit in range(plan.units):
        names = list(plan.file_names(unit).values())
        tables |= {name: [] for name in names}
        for block in plan.blocks(plan.unit_ids(unit)):
            for index, name in enumerate(names):
                tables[name].append(block.traced.take(np.flatnonzero(block.splits == index)))
    return tables


def write_tables(tables: dict[str, list[TracedMazes]], expected: dict[str, str]) -> Sample:
    """Encode and write every file, and nothing else. expected: the SHA-256 of every file, checked behind the clock."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        for name, parts in tables.items():
            encoder = ShardEncoder()
            for traced in parts:
                encoder.add(MazeTask().to_batch(traced))
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


def peer_arm(command: list[str]) -> Arm:
    """The arm that a command measures."""
    return lambda: Sample(**run_json(command))


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


def compare(n: int, peer_n: int, repeats: int) -> list[str]:
    """The first table: every arm, its rate, its bytes, and its time for a maze against two others."""
    workers = default_workers()
    one, many, bare = "lol-data, 1 thread", f"lol-data, {workers} threads", "bare write, 1 thread"
    manifest = generate(n, workers)[1]
    tables = tables_of(DatasetPlan(n))
    expected = {entry.name: entry.sha256 for entry in manifest.files}
    arms: dict[str, Arm | None] = {one: lambda: generate(n, 1)[0]}
    if workers > 1:
        arms[many] = lambda: generate(n, workers)[0]
    arms[bare] = lambda: write_tables(tables, expected)
    for peer in PEERS if peer_n else ():
        python = install(peer)
        if python is None:
            arms[peer.name] = None
            continue
        for label, algorithm in peer.algorithms.items():
            arms[f"{peer.name}, {label}"] = peer_arm([str(python), "-c", peer.script, str(peer_n), algorithm])
    samples = measure(arms, repeats)

    def times(name: str, other: str) -> str:
        pairs = zip(samples[name], samples[other], strict=True)
        return spread([(a.seconds / a.mazes) / (b.seconds / b.mazes) for a, b in pairs])

    rows = []
    for name, found in samples.items():
        if not found:
            rows.append([name, "could not be installed or run", "", "", "", ""])
            continue
        rates = [sample.mazes / sample.seconds for sample in found]
        traces = spread([rate * len(MAZE_STRATEGIES) for rate in rates]) if name in (one, many) else "none"
        size = f"{found[0].bytes / found[0].mazes:.0f}" if found[0].bytes is not None else "none"
        rows.append([name, spread(rates), traces, size, times(name, one), times(name, bare)])
    head = ["", "mazes/s", "traces/s", "bytes/maze", "time a maze, lol-data 1 thread = 1", "bare write = 1"]
    note = f"Median (least..most) of {repeats}; {n:,} mazes of 8 x 8 cells, peers {peer_n:,}; ratios within a round."
    return [note, "", *markdown(head, rows)]


def child(n: int) -> dict[str, float]:
    """What one process needs for n mazes, with kernels loaded: seconds, CPU seconds, peak bytes, bytes on disk."""
    workers = default_workers()
    generate(min(n, WARM_UP), workers)
    before = resource.getrusage(resource.RUSAGE_SELF)
    sample, _ = generate(n, workers)
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


def linearity() -> list[str]:
    """The second table: cost per maze and peak memory over the number of mazes."""
    rows = []
    for n in LINEARITY:
        print(f"linearity: {n:,}", file=sys.stderr)
        found = run_json([sys.executable, __file__, "--child", str(n)])
        rows.append(
            [
                f"{n:,}",
                f"{DatasetPlan(n).units}",
                f"{found['seconds']:.2f}",
                f"{found['seconds'] / n * 1e6:.2f}",
                f"{found['cpu'] / n * 1e6:.2f}",
                f"{found['peak'] / 1e6:.0f}",
                f"{found['bytes'] / n:.1f}",
            ]
        )
    head = ["mazes", "units", "seconds", "us/maze", "CPU us/maze", "peak memory, MB", "bytes/maze"]
    note = f"One process each, up to {default_workers()} threads; a thread makes one unit at a time."
    return [note, "", *markdown(head, rows)]


def start_up() -> str:
    """What the first maze costs a new process, with the compiled kernels at hand and without."""
    command, seconds = [sys.executable, __file__, "--child", "1"], []
    generate(1, 1)  # compiles, if nobody did before
    with tempfile.TemporaryDirectory() as empty:
        for environment in ({}, {"NUMBA_CACHE_DIR": empty}):
            began = time.perf_counter()
            run_json(command, environment)
            seconds.append(time.perf_counter() - began)
    return (
        f"A process that makes one maze: {seconds[0]:.1f} s with compiled kernels in the user's cache folder, "
        f"{seconds[1]:.1f} s when it has to compile them (once per version)."
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1_000_000, help="mazes of ours and of the bare write")
    parser.add_argument("--peer-n", type=int, default=2_000, help="mazes of each peer; 0 leaves the peers out")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--linearity", action="store_true")
    parser.add_argument("--out", type=Path, help="write the Markdown to this file, too")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        print(json.dumps(child(options.child)))
        return
    if options.n < 1 or options.repeats < 1 or options.peer_n < 0:
        parser.error("--n and --repeats must be 1 or more, --peer-n 0 or more")
    lines = [machine(), "", start_up(), "", *compare(options.n, options.peer_n, options.repeats)]
    if options.linearity:
        lines += ["", *linearity()]
    print("\n".join(lines))
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

"""The command line: a thin shell. Every command imports what it needs when it runs, so that --help is quick."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from lol_data import __version__
from lol_data.errors import DamageError, LolDataError, UsageError

app = typer.Typer(
    name="lol-data",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    help="Checked search traces, Library-of-Layers models, and an evaluation that replays the rules.\n\n"
    "Exit codes: 0 done, 1 failed, 2 usage, 3 damage found, 4 refused (locked, settings changed), 130 interrupted.",
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout instead of text.")]
Seed = Annotated[int, typer.Option(help="Seed; every row is a pure function of settings, seed and its number.")]
DataOption = Annotated[Path | None, typer.Option(help="Data set; by default the newest one under datasets/.")]


def main() -> None:
    """Run the command line; expected errors end in one line and their exit code."""
    # Where other programs use the same cores, OpenMP's threads (libgomp, under torch) would lose their time waiting for
    # each other in a busy loop: 2.2 s a training step against 0.9 s. On a quiet machine it makes no difference.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    try:
        app()
    except LolDataError as error:
        print(f"lol-data: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("lol-data: interrupted; the same command goes on where it stopped", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        print(f"lol-data {__version__}")
        raise typer.Exit


@app.command()
def quickstart(
    out: Annotated[Path, typer.Option(help="Folder of the data set and the run.")] = Path("runs/quickstart"),
    config: Annotated[str, typer.Option(help="Training configuration.")] = "quickstart",
    n: Annotated[int, typer.Option(help="Mazes to generate.")] = 100_000,
    test: Annotated[int, typer.Option(help="Test mazes, each under all five strategies.")] = 200,
) -> None:
    """The whole chain, small, on a CPU: 5x5 mazes, traces, training, forced paths, checked results."""
    from lol_data.quickstart import run_quickstart

    run_quickstart(out, config, n, test)


@app.command()
def gen_maze(
    n: Annotated[int, typer.Option("--n", help="Mazes; exact duplicates are dropped, the manifest says how many.")],
    size: Annotated[int, typer.Option(help="Cells per side, 3 to 15.")] = 8,
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(help="Directory; by default datasets/maze<size>.")] = None,
    min_path: Annotated[
        int | None, typer.Option(help="Least path length in cells; by default floor(1.5 size).")
    ] = None,
    algorithm: Annotated[str, typer.Option(help="How the spanning tree is drawn.")] = "wilson",
    shard_rows: Annotated[int, typer.Option(help="Rows per shard.")] = 100_000,
    validation_share: Annotated[float, typer.Option(help="Share of the validation split.")] = 0.01,
    test_share: Annotated[float, typer.Option(help="Share of the test split.")] = 0.01,
    workers: Annotated[
        int | None, typer.Option(help="Threads; by default one per CPU. Never changes the bytes.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would take, write nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Generate mazes with five strategy traces each into Parquet shards.

    Example: lol-data gen-maze --n 7200000
    """
    from lol_data.generators.maze import MazeSettings
    from lol_data.progress import progress_bar
    from lol_data.shards.estimate import estimate_dataset
    from lol_data.shards.generate import generate_dataset
    from lol_data.shards.plan import DatasetPlan

    settings = MazeSettings(size=size, min_path=min_path, algorithm=algorithm)
    plan = DatasetPlan(n, settings, seed, shard_rows, validation_share, test_share)
    out = out or Path("datasets") / f"maze{size}"
    if dry_run:
        estimate = estimate_dataset(plan, workers)
        values = {
            name: getattr(estimate, name) for name in ("rows", "files", "bytes", "work_bytes", "seconds", "workers")
        }
        text = f"{estimate.rows:,} mazes in {estimate.files:,} files, {estimate.bytes / 1e6:,.1f} MB"
        _answer(
            values, f"{text} (+ {estimate.work_bytes / 1e6:,.1f} MB while working), {estimate.seconds:,.1f} s", as_json
        )
        return
    with progress_bar("maze") as advance:
        result = generate_dataset(plan, out, workers, advance)
    manifest = result.manifest
    splits = {name: entry["rows"] for name, entry in manifest.splits.items()}
    values = {"out": str(out), "status": result.status, "rows": manifest.rows, "splits": splits}
    values |= {
        "bytes": manifest.bytes,
        "duplicates": manifest.duplicates["dropped"],
        "content_hash": manifest.content_hash,
    }
    done = "made" if result.status == "made" else "was complete already"
    text = f"{out}: {manifest.rows:,} mazes {done}, {manifest.bytes / 1e6:,.1f} MB, " + ", ".join(
        f"{rows:,} {name}" for name, rows in splits.items()
    )
    _answer(values, text + f"; {values['duplicates']:,} duplicates dropped", as_json)


@app.command()
def verify(
    directory: Annotated[Path, typer.Argument(help="A data set.")],
    deep: Annotated[bool, typer.Option("--deep", help="Also derive every row again and replay the rules.")] = False,
    as_json: Json = False,
) -> None:
    """Compare every file with its hashes and schema; exit code 3 when something is wrong.

    Example: lol-data verify datasets/maze8 --deep
    """
    from lol_data.progress import progress_bar
    from lol_data.shards.verify import verify_dataset

    rules: Any = None
    if deep:
        from lol_data.evaluators.maze_rules import canonical_rows

        rules = canonical_rows
    with progress_bar("row") as advance:
        report = verify_dataset(directory, deep, rules, advance)
    problems = [str(problem) for problem in report.problems]
    text = f"{directory}: {report.files} files, {report.rows:,} rows, " + ("all good" if report.ok else "DAMAGED")
    values = {"ok": report.ok, "files": report.files, "rows": report.rows, "deep": deep, "problems": problems}
    _answer(values, "\n".join([*problems, text]), as_json)
    if not report.ok:
        raise DamageError(f"{directory}: {len(problems)} problems; make the data set again with the same command")


@app.command()
def solve(
    file: Annotated[Path, typer.Argument(help="JSONL problems; - is standard input.")] = Path("-"),
    task: Annotated[str, typer.Option(help="maze")] = "maze",
    strategy: Annotated[str | None, typer.Option(help="One strategy; by default the line's own, or all.")] = None,
) -> None:
    """Trace other people's problems: one JSON object per problem and strategy.

    Example: lol-data solve mazes.jsonl --strategy bfs
    """
    from lol_data.mazes_jsonl import to_line
    from lol_data.solvers.jsonl import solve_lines

    _only_maze(task)
    with _lines(file) as lines:
        for record in solve_lines(lines, strategy):
            print(to_line(record))


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="JSONL outputs; - is standard input.")] = Path("-"),
    task: Annotated[str, typer.Option(help="maze")] = "maze",
) -> None:
    """Judge other people's traces by the rules: one JSON verdict per line; a bad line gets an error and is passed over.

    Example: lol-data check outputs.jsonl
    """
    from lol_data.evaluators.jsonl import check_lines
    from lol_data.mazes_jsonl import to_line

    _only_maze(task)
    with _lines(file) as lines:
        for record in check_lines(lines):
            print(to_line(record))


@app.command()
def train(
    data: DataOption = None,
    config: Annotated[
        str | None, typer.Option(help="Name or TOML file; by default one that fits this machine.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; by default a new one under runs/.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the newest checkpoint of --out.")] = False,
    settings: Annotated[list[str] | None, typer.Option("--set", help="section.field=value, may be repeated.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; by default the GPU if there is one.")] = None,
    as_json: Json = False,
) -> None:
    """Train a Library-of-Layers model on a data set.

    Example: lol-data train --data datasets/maze8 --set train.steps=5000
    """
    from lol_data import runs

    run, line = runs.train(data, config, out, resume, settings or [], device, _note)
    values = {"run": str(run), **line}
    text = f"{run}: step {line['step']}, loss {line['loss']:.4f}, validation loss {line['validation_loss']:.4f}"
    _answer(values, text + f"\nnext: lol-data eval --run {run} --forced-path", as_json)


@app.command(name="eval")
def evaluate(
    run: Annotated[Path | None, typer.Option(help="Run folder; by default the newest one under runs/.")] = None,
    data: Annotated[Path | None, typer.Option(help="Data set; by default the one the run was trained on.")] = None,
    forced_path: Annotated[bool, typer.Option("--forced-path", help="Short for --protocol forced.")] = False,
    protocol: Annotated[str | None, typer.Option(help="prompted, forced, neutral or all; by default prompted.")] = None,
    template: Annotated[str, typer.Option(help="Kind of path template: selection or probability.")] = "selection",
    n: Annotated[int, typer.Option("--n", help="Test problems, each under all five strategies.")] = 200,
    template_problems: Annotated[int, typer.Option(help="Validation problems behind the templates.")] = 500,
    out: Annotated[Path | None, typer.Option(help="Folder of the results; by default RUN/eval.")] = None,
    batch: Annotated[int, typer.Option(help="Outputs decoded at once.")] = 500,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.")] = None,
    as_json: Json = False,
) -> None:
    """Decode test problems, judge every output by the rules, and print rates with 95 % intervals.

    Example: lol-data eval --forced-path --n 1000
    """
    from lol_data import runs
    from lol_data.evaluators.summary import table as rate_table
    from lol_data.evaluators.summary import template_lines, title
    from lol_data.progress import progress_bar

    if forced_path and protocol not in (None, "forced"):
        raise UsageError(f"--forced-path and --protocol {protocol} exclude each other")
    wanted = "forced" if forced_path else protocol or "prompted"
    with progress_bar("output") as advance:
        summaries, folders = runs.evaluate(
            run, data, wanted, template, n, template_problems, out, batch, device, _note, advance
        )
    text = "\n\n".join(
        "\n".join([title(summary), rate_table(summary), *template_lines(summary), f"saved in {folder}"])
        for summary, folder in zip(summaries, folders, strict=True)
    )
    _answer(summaries[0] if len(summaries) == 1 else {"protocols": summaries}, text, as_json)


def _answer(values: dict[str, Any], text: str, as_json: bool) -> None:
    print(json.dumps(values) if as_json else text)


def _note(text: str) -> None:
    print(text, file=sys.stderr)


def _only_maze(task: str) -> None:
    if task != "maze":
        raise UsageError(f'--task {task}: no such task; use "maze"')


@contextlib.contextmanager
def _lines(file: Path) -> Iterator[Any]:
    if str(file) == "-":
        yield sys.stdin.buffer
        return
    try:
        handle = file.open("rb")
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error
    with handle:
        yield handle


if __name__ == "__main__":
    main()

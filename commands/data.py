"""Commands on data sets: gen-maze, gen-sudoku, verify, stats, show, export."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lol_data.commands.common import Directory, Json, Seed, answer, note, write_text
from lol_data.errors import DamageError, UsageError

if TYPE_CHECKING:
    from lol_data.shards.plan import DatasetPlan


Out = Annotated[Path | None, typer.Option(help="Directory; by default datasets/ and the kind of problems.")]
ShardRows = Annotated[int, typer.Option(help="Rows per shard.")]
ValidationShare = Annotated[float, typer.Option(help="Share of the validation split.")]
TestShare = Annotated[float, typer.Option(help="Share of the test split.")]
Workers = Annotated[int | None, typer.Option(help="Shards made at a time; by default one per CPU. Changes no byte.")]
Engine = Annotated[str, typer.Option(help="local (threads) or ray (a cluster; pip install 'lol-data[ray]').")]
Shards = Annotated[str | None, typer.Option(help="Make only shards A:B, for array jobs; the last job signs.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what it would take, write nothing.")]
Problems = Annotated[int, typer.Option("--n", help="Problems; exact duplicates are dropped, the manifest counts them.")]


def gen_maze(
    n: Problems,
    size: Annotated[int, typer.Option(help="Cells per side, 3 to 15.")] = 8,
    seed: Seed = 0,
    out: Out = None,
    min_path: Annotated[
        int | None, typer.Option(help="Least path length in cells; by default floor(1.5 size).")
    ] = None,
    algorithm: Annotated[
        str, typer.Option(help="How spanning trees are drawn: wilson (uniform), backtracker, kruskal, prim.")
    ] = "wilson",
    loops: Annotated[
        float, typer.Option(help="Probability that a wall is opened after all, 0 to 1; for tests out of distribution.")
    ] = 0.0,
    shard_rows: ShardRows = 100_000,
    validation_share: ValidationShare = 0.01,
    test_share: TestShare = 0.01,
    workers: Workers = None,
    engine: Engine = "local",
    shards: Shards = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Generate mazes with five strategy traces each into Parquet shards.

    Example: lol-data gen-maze --n 7200000
    """
    from lol_data.generators.maze import MazeSettings
    from lol_data.shards.plan import DatasetPlan

    settings = MazeSettings(size=size, min_path=min_path, algorithm=algorithm, loops=loops)
    plan = DatasetPlan(n, settings, seed, shard_rows, validation_share, test_share)
    name = f"maze{size}" + (f"-{algorithm}" if algorithm != "wilson" else "") + (f"-loops{loops:g}" if loops else "")
    _generate(plan, out or Path("datasets") / name, workers, engine, shards, dry_run, as_json)


def gen_sudoku(
    n: Problems,
    clues: Annotated[str, typer.Option(help="Least and most clues; every number between is equally likely.")] = "30:36",
    seed: Seed = 0,
    out: Out = None,
    shard_rows: ShardRows = 100_000,
    validation_share: ValidationShare = 0.01,
    test_share: TestShare = 0.01,
    workers: Workers = None,
    engine: Engine = "local",
    shards: Shards = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Generate sudokus with five strategy traces each into Parquet shards.

    Example: lol-data gen-sudoku --n 4000000
    """
    from lol_data.generators.sudoku import SudokuSettings
    from lol_data.shards.plan import DatasetPlan

    least, _, most = clues.partition(":")
    try:
        settings = SudokuSettings((int(least), int(most or least)))
    except ValueError:
        raise UsageError(f"--clues {clues}: write A:B, the least and the greatest number, such as 30:36") from None
    plan = DatasetPlan(n, settings, seed, shard_rows, validation_share, test_share, "sudoku")
    name = "sudoku" if settings == SudokuSettings() else f"sudoku-{settings.clues[0]}-{settings.clues[1]}"
    _generate(plan, out or Path("datasets") / name, workers, engine, shards, dry_run, as_json)


def _generate(
    plan: DatasetPlan, out: Path, workers: int | None, engine: str, shards: str | None, dry_run: bool, as_json: bool
) -> None:
    from lol_data.progress import progress_bar
    from lol_data.shards.estimate import estimate_dataset
    from lol_data.shards.generate import generate_dataset

    units = None if shards is None else _range(shards, plan.units)
    estimate = estimate_dataset(plan, out, workers, units)
    if dry_run:
        answer(estimate.as_json(), str(estimate), as_json)
        return
    if not estimate.fits:
        note(f"{out}: {estimate}; it may not fit")
    with progress_bar("row") as advance:
        result = generate_dataset(plan, out, workers, advance, engine, units)
    values: dict[str, Any] = {"out": str(out), "status": result.status}
    if result.manifest is None:
        values |= {"shards": shards, "made": result.units_made, "kept": result.units_kept}
        text = f"{out}: shards {shards} of {plan.units} are there, {result.units_made} made now"
        answer(values, text + "; the run that makes the last one signs the data set", as_json)
        return
    manifest = result.manifest
    splits = {name: entry["rows"] for name, entry in manifest.splits.items()}
    duplicates = manifest.duplicates["dropped"]
    values |= {"rows": manifest.rows, "splits": splits, "bytes": manifest.bytes}
    values |= {"duplicates": duplicates, "content_hash": manifest.content_hash}
    done = "made" if result.status == "made" else "was complete already"
    parts = ", ".join(f"{rows:,} {name}" for name, rows in splits.items())
    text = f"{out}: {manifest.rows:,} rows {done}, {manifest.bytes / 1e6:,.1f} MB, {parts}"
    answer(values, f"{text}; {duplicates:,} duplicates dropped", as_json)


def _range(text: str, units: int) -> range:
    """The range A:B of shards; either end may be left out."""
    begin, colon, end = text.partition(":")
    try:
        if not colon:
            raise ValueError
        return range(int(begin or 0), int(end or units))
    except ValueError:
        raise UsageError(f"--shards {text}: write A:B, the first shard and the one after the last, from 0") from None


def verify(
    directory: Directory,
    deep: Annotated[bool, typer.Option("--deep", help="Also derive every row again and replay the rules.")] = False,
    repair: Annotated[bool, typer.Option("--repair", help="Make damaged shards again, and only these.")] = False,
    as_json: Json = False,
) -> None:
    """Compare every file with its hashes and schema; exit code 3 when something is wrong.

    Example: lol-data verify datasets/maze8 --deep
    """
    from lol_data.progress import progress_bar
    from lol_data.shards.repair import repair_dataset
    from lol_data.shards.verify import verify_dataset

    rules: dict[str, Any] = {}
    if deep:
        from lol_data.evaluators.maze_rules import canonical_rows
        from lol_data.evaluators.sudoku_rules import canonical_sudoku_rows

        rules = {"maze": canonical_rows, "sudoku": canonical_sudoku_rows}
    with progress_bar("row") as advance:
        report = verify_dataset(directory, deep, rules, advance)
        found, repaired = [str(problem) for problem in report.problems], []
        if repair and not report.ok:
            repaired = repair_dataset(report, progress=advance)
            report = verify_dataset(directory, deep, rules, advance)
    left = [str(problem) for problem in report.problems]
    state = ("mended" if repaired else "all good") if report.ok else "DAMAGED"
    lines = [*found, *(f"{name}: made again" for name in repaired)] if repaired else left
    text = "\n".join([*lines, f"{directory}: {report.files} files, {report.rows:,} rows, {state}"])
    values = {"ok": report.ok, "files": report.files, "rows": report.rows, "deep": deep}
    answer({**values, "problems": left, "repaired": repaired}, text, as_json)
    if not report.ok:
        advice = "remove what does not belong there" if repair else "mend it with `lol-data verify --repair`"
        raise DamageError(f"{directory}: {len(left)} problems; {advice}, or make it again with the same command")


def stats(
    directory: Directory,
    svg: Annotated[Path | None, typer.Option(help="Also draw the distribution of lengths into this file.")] = None,
    as_json: Json = False,
) -> None:
    """Say what is in a data set: lengths, shapes, equal traces, duplicates, equivalent problems.

    Example: lol-data stats datasets/maze8 --svg lengths.svg
    """
    from lol_data.progress import progress_bar
    from lol_data.shards.reader import open_dataset
    from lol_data.shards.stats import dataset_stats, stats_table
    from lol_data.views.histogram import histogram_svg

    with progress_bar("row") as advance:
        found = dataset_stats(open_dataset(directory), progress=advance)
    if svg is not None:
        title = f"{found.rows:,} problems, {directory.resolve().name}"
        write_text(svg, histogram_svg({name: lengths.counts for name, lengths in found.lengths.items()}, title))
    answer(found.as_json(), stats_table(found), as_json)


def show(
    directory: Directory,
    row: Annotated[int | None, typer.Option(help="Id of the problem; by default the first one.")] = None,
    strategy: Annotated[str | None, typer.Option(help="Number the steps of this strategy; SVG: all.")] = None,
    step: Annotated[int | None, typer.Option(help="Sudoku: the grid before this step, and why the step holds.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Draw into this file.")] = None,
    html: Annotated[Path | None, typer.Option(help="Animate all strategies in this file, for a browser.")] = None,
) -> None:
    """Draw one problem with its answer and a trace: in the terminal, as SVG, as an animation.

    Example: lol-data show datasets/maze8 --row 17 --strategy bfs
    """
    from lol_data.shards.reader import open_dataset
    from lol_data.views.show import drawings

    dataset = open_dataset(directory)
    draw = drawings(dataset.manifest.task, dataset.read_row(row), strategy, step)
    if svg is not None:
        write_text(svg, draw.svg())
    if html is not None:
        write_text(html, draw.html())
    if svg is None and html is None:
        print(draw.text(sys.stdout.isatty() and "NO_COLOR" not in os.environ))


def export(
    directory: Directory,
    format: Annotated[str, typer.Option(help="list (Parquet with lists), jsonl (as `check` reads it), text.")],
    out: Annotated[Path, typer.Option(help="File, or directory for list; - is standard output.")],
    split: Annotated[str | None, typer.Option(help="By default all for list, else train.")] = None,
    limit: Annotated[int | None, typer.Option(help="Problems; by default all.")] = None,
) -> None:
    """Write a data set in a form for other programs and for language models.

    Example: lol-data export datasets/maze8 --format text --out train.jsonl --limit 100000
    """
    from lol_data.progress import progress_bar
    from lol_data.shards.export import export_dataset
    from lol_data.shards.reader import open_dataset

    dataset = open_dataset(directory)
    split = split or (None if format == "list" else "train")
    target = sys.stdout.buffer if str(out) == "-" else out
    with progress_bar("row") as advance:
        result = export_dataset(dataset, format, target, split, limit, advance)
    what = "rows" if format == "list" else "lines"
    note(f"{out}: {result.problems:,} problems of {split or 'all splits'}, {result.records:,} {what}")

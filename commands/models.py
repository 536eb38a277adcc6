"""Commands that train and evaluate: quickstart, train, eval."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lol_data.commands.common import DataOption, Json, answer, note
from lol_data.errors import UsageError


def quickstart(
    out: Annotated[Path, typer.Option(help="Folder of the data set and the run.")] = Path("runs/quickstart"),
    config: Annotated[str, typer.Option(help="Training configuration.")] = "quickstart",
    n: Annotated[int, typer.Option(help="Mazes to generate.")] = 100_000,
    test: Annotated[int, typer.Option(help="Test mazes, each under all five strategies.")] = 200,
) -> None:
    """The whole chain, small, on a CPU: 5x5 mazes, traces, training, forced paths, checked results."""
    from lol_data.quickstart import run_quickstart

    run_quickstart(out, config, n, test)


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

    run, line = runs.train(data, config, out, resume, settings or [], device, note)
    values = {"run": str(run), **line}
    text = f"{run}: step {line['step']}, loss {line['loss']:.4f}, validation loss {line['validation_loss']:.4f}"
    answer(values, text + f"\nnext: lol-data eval --run {run} --forced-path", as_json)


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
            run, data, wanted, template, n, template_problems, out, batch, device, note, advance
        )
    text = "\n\n".join(
        "\n".join([title(summary), rate_table(summary), *template_lines(summary), f"saved in {folder}"])
        for summary, folder in zip(summaries, folders, strict=True)
    )
    answer(summaries[0] if len(summaries) == 1 else {"protocols": summaries}, text, as_json)

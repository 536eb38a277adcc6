"""Commands that train, and pass on what was trained: quickstart, train, publish."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lol_data.commands.common import DataOption, Json, answer, note


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
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with --out; --set train.steps=N changes its length.")
    ] = False,
    settings: Annotated[list[str] | None, typer.Option("--set", help="section.field=value, may be repeated.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; by default the GPU if there is one.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it takes: work, memory, time.")] = False,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Only print the configuration, each field with its meaning.")
    ] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Metrics into OUT/tensorboard, too.")] = False,
    as_json: Json = False,
) -> None:
    """Train a Library of Layers, or one of its rivals, on a data set.

    Example: lol-data train --data datasets/maze8 --set train.steps=5000

    On several GPUs or machines: torchrun --nproc-per-node 8 -m -- lol_data.cli train ... makes the same steps; every
    process takes a part of the micro-batches. Ctrl-C saves, --resume goes on.
    """
    from lol_data import runs

    if print_config:
        resolved = runs.configuration(data, config, settings or [], device)
        answer(resolved.to_json(), resolved.to_toml(), as_json)
        return
    if dry_run:
        from lol_data.training.estimate import describe

        estimated = runs.plan(data, config, settings or [], device, note)
        answer(estimated, describe(estimated), as_json)
        return
    run, line = runs.train(data, config, out, resume, settings or [], device, note, tensorboard)
    values = {"run": str(run), **line}
    text = f"{run}: step {line['step']}, loss {line['loss']:.4f}, validation loss {line['validation_loss']:.4f}"
    answer(values, text + f"\nnext: lol-data eval --run {run} --forced-path", as_json)


def publish(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    out: Annotated[Path, typer.Option(help="New folder; its name is that of the data set, too.")],
    data: Annotated[Path | None, typer.Option(help="The data set of the run, if it is not where it was.")] = None,
    as_json: Json = False,
) -> None:
    """Copy what others need to evaluate a run: weights in bf16, configuration, a part of the metrics.

    Example: lol-data publish runs/quickstart/run --out pretrained/quickstart
    """
    from lol_data.training.publish import publish as write
    from lol_data.training.run_folder import MADE_BY

    found = write(run, data, out, note)
    text = f"{out}: {found['checkpoint']}, {found['bytes'] / 1e6:.1f} MB; its data: {found[MADE_BY]}"
    answer({"out": str(out), **found}, text, as_json)

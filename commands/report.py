"""Commands that look into a run: diagnose, report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lol_data.commands.common import Json, answer, note

Run = Annotated[Path | None, typer.Argument(help="Run folder; by default the newest one under runs/.")]
Data = Annotated[Path | None, typer.Option(help="Data set; by default the one the run was trained on.")]


def diagnose(
    run: Run = None,
    data: Data = None,
    n: Annotated[int, typer.Option("--n", help="Test problems, each under all five strategies.")] = 200,
    template_problems: Annotated[int, typer.Option(help="Validation problems behind the templates.")] = 500,
    batch: Annotated[int, typer.Option(help="Sequences in one pass.")] = 256,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.")] = None,
    as_json: Json = False,
) -> None:
    """Look at a model's paths: reuse, loads, agreement with templates, margins, dilution, order of blocks, probes.

    Example: lol-data diagnose runs/quickstart/run --n 500
    """
    from lol_data.progress import progress_bar
    from lol_data.report.build import diagnose_run

    with progress_bar("part") as advance:
        found, folder = diagnose_run(_run(run), data, n, template_problems, batch, device, note, advance)
    known, flips = found["ways"]["known"], found["flips"]
    reuse = known["reuse"]["all"]
    text = (
        f"{folder}: {found['n']} test problems; {reuse['mean']:.2f} distinct blocks a path (a uniform draw: "
        f"{reuse['uniform']:.2f}); {flips['flips']:,} of {flips['n']:,} choices flip in bf16"
    )
    answer(found, text, as_json)


def report(
    run: Run = None,
    out: Annotated[Path | None, typer.Option(help="HTML file; by default RUN/report.html.")] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Write one self-contained HTML file about a run: results, diagnostics, and its outputs step by step.

    Example: lol-data report runs/quickstart/run --out report.html
    """
    from lol_data.report.build import report_run

    path = report_run(_run(run), data, out, note)
    size = path.stat().st_size
    answer({"report": str(path), "bytes": size}, f"{path}: {size / 1e6:.1f} MB, open it in any browser", as_json)


def _run(run: Path | None) -> Path:
    from lol_data.runs import RUNS, newest

    return run or newest(RUNS, "run.json", "train one with: lol-data train")

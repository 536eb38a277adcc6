"""Commands that try a trained model: eval, intervene, compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from lol_data.commands.common import Json, answer, note
from lol_data.errors import UsageError

Run = Annotated[Path | None, typer.Option(help="Run folder; by default the newest one under runs/.")]
Data = Annotated[Path | None, typer.Option(help="Data set; by default the one the run was trained on.")]
TemplateProblems = Annotated[int, typer.Option(help="Validation problems behind the templates.")]
TemplateData = Annotated[
    Path | None, typer.Option(help="Data set whose validation problems make the templates; by default the run's own.")
]
Out = Annotated[Path | None, typer.Option(help="Folder of the results; by default RUN/eval, or a folder in it.")]
Batch = Annotated[int, typer.Option(help="Outputs decoded at once; no result depends on it.")]
Device = Annotated[str | None, typer.Option(help="cpu or cuda.")]
Depth = Annotated[int | None, typer.Option(help="Core applications; by default as many as trained.")]
Reading = Annotated[str, typer.Option(help="What depths behind the trained ones get: cycle, hold or extrapolate.")]


def evaluate(
    run: Run = None,
    data: Data = None,
    forced_path: Annotated[bool, typer.Option("--forced-path", help="Short for --protocol forced.")] = False,
    protocol: Annotated[
        str | None, typer.Option(help="prompted, forced, neutral, conflict or all; by default prompted.")
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(help="Kind of path template: selection, probability or both; by default selection, both for all."),
    ] = None,
    n: Annotated[int, typer.Option("--n", help="Test problems, each under all five strategies.")] = 200,
    template_problems: TemplateProblems = 500,
    template_data: TemplateData = None,
    out: Out = None,
    batch: Batch = 500,
    device: Device = None,
    depth: Depth = None,
    reading: Reading = "cycle",
    as_json: Json = False,
) -> None:
    """Decode test problems, judge every output by the rules, and print rates with 95 % intervals.

    An interrupted evaluation goes on with the same command. --protocol conflict lays the blocks of one strategy under
    a field that names another, for all pairs. --data takes looped mazes too, and other sizes where the model can read
    them. On several GPUs: torchrun --nproc-per-node 8 -m -- lol_data.cli eval ... decodes with all of them, to the same
    result.

    Example: lol-data eval --forced-path --n 1000
    """
    from lol_data import evaluations
    from lol_data.evaluators.summary import conflict_table, template_lines, title
    from lol_data.evaluators.summary import table as rate_table
    from lol_data.progress import progress_bar

    if forced_path and protocol not in (None, "forced"):
        raise UsageError(f"--forced-path and --protocol {protocol} exclude each other")
    wanted = "forced" if forced_path else protocol or "prompted"
    template = template or ("both" if wanted == "all" else "selection")
    request = evaluations.Request(run, data, n, template_data, template_problems, out, batch, device, depth, reading)
    with progress_bar("output") as advance:
        summaries, folders = evaluations.evaluate(request, wanted, template, note, advance)
    text = "\n\n".join(
        "\n".join(
            [
                title(each),
                rate_table(each),
                *template_lines(each),
                *filter(None, [conflict_table(each)]),
                f"saved in {folder}",
            ]
        )
        for each, folder in zip(summaries, folders, strict=True)
    )
    answer(summaries[0] if len(summaries) == 1 else {"protocols": summaries}, text, as_json)


def intervene(
    run: Run = None,
    data: Data = None,
    arms: Annotated[
        str,
        typer.Option(
            help="Groups of arms with commas: ids-gates, order, swaps, gates, window-only, depths, windows, renamed."
        ),
    ] = "ids-gates,order,swaps,gates,window-only,depths,windows,renamed",
    template: Annotated[str, typer.Option(help="Kind of path template: selection or probability.")] = "selection",
    field: Annotated[str, typer.Option(help="What the strategy field holds: neutral, or prompted.")] = "neutral",
    n: Annotated[int, typer.Option("--n", help="Test problems, each under all five strategies.")] = 100,
    template_problems: TemplateProblems = 500,
    template_data: TemplateData = None,
    seed: Annotated[int, typer.Option(help="Seed of the shuffled orders.")] = 0,
    out: Out = None,
    batch: Batch = 500,
    device: Device = None,
    depth: Depth = None,
    reading: Reading = "cycle",
    as_json: Json = False,
) -> None:
    """Change one part of the path at a time on equal problems, and test each arm against its reference.

    Blocks against gates, order against counts, a factor on all gates, single depths and windows, renamed strategies.

    Example: lol-data intervene --n 200 --arms ids-gates,order
    """
    from lol_data import evaluations
    from lol_data.evaluators.intervene import intervention_table
    from lol_data.progress import progress_bar

    request = evaluations.Request(run, data, n, template_data, template_problems, out, batch, device, depth, reading)
    groups = [name.strip() for name in arms.split(",") if name.strip()]
    with progress_bar("output") as advance:
        summary, folder = evaluations.intervene(request, groups, template, field, seed, note, advance)
    heading = f"{summary['n']} test problems under every strategy, {field} field, {template} template"
    answer(summary, f"{heading}\n{intervention_table(summary)}\nsaved in {folder}", as_json)


def compare(
    paths: Annotated[list[Path], typer.Argument(help="Runs, their eval folders, or single evaluations; two or more.")],
    rate: Annotated[
        list[str] | None,
        typer.Option(help="adherence, legality, answer, joint, format; may be repeated; by default all."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the runs' learning curves into this file: .svg, .png or .pdf.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Set runs side by side: loss against steps, tokens and FLOPs; then their answers to the same problems.

    Every other one is paired with the first, sample by sample: differences with intervals, and McNemar's test.

    Example: lol-data compare runs/a runs/b runs/c --rate joint --plot curves.svg
    """
    from lol_data.evaluators.compare import compare as paired
    from lol_data.evaluators.compare import comparison_table
    from lol_data.evaluators.summary import APART, FORMAT
    from lol_data.report.curves import curve_table, is_run, plot_curves, read_curve, summary

    known = (FORMAT, *APART)
    if unknown := [name for name in rate or () if name not in known]:
        raise UsageError(f"--rate {unknown[0]}: use {', '.join(known)}")
    if len(paths) < 2:
        raise UsageError("compare takes two or more runs")
    curves = [read_curve(path) for path in paths if is_run(path)]
    if plot is not None and len(curves) < len(paths):
        raise UsageError("--plot needs runs, not single evaluations")
    result: dict[str, Any] = {"runs": summary(curves) if curves else [], "pairs": []}
    tables = [curve_table(result["runs"])] if curves else []
    if len({curve.data for curve in curves}) > 1:
        note("the runs were trained on different data: their losses do not compare")
    for other in paths[1:]:
        try:
            result["pairs"].append(paired(paths[0], other))
        except UsageError as error:
            if len(curves) < len(paths):
                raise
            note(f"{error}; only the curves are compared")
        else:
            tables.append(comparison_table(result["pairs"][-1], tuple(rate or ())))
    if plot is not None:
        plot_curves(curves, plot)
        tables.append(f"drawn in {plot}")
    answer(result, "\n\n".join(tables), as_json)

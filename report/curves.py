"""Learning curves of several runs side by side: loss against steps, tokens and FLOPs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lol_data.errors import UsageError
from lol_data.report.material import read_metrics
from lol_data.report.plots import COLOURS, MARKERS, library, thinned
from lol_data.training.run_folder import ABOUT, METRICS, read_run

SMOOTH = 0.02  # share of a run over which its loss is averaged
AXES = {"steps": "steps", "tokens": "tokens", "flops": "training FLOPs, by formula"}


@dataclass(frozen=True)
class Curve:
    """One run. steps, tokens, flops: since the beginning, (N,). loss: of training, smoothed, (N,). seconds: of all
    steps. validation: the last loss of the validation split, if there is one."""

    name: str
    data: str
    steps: NDArray[np.int64]
    tokens: NDArray[np.int64]
    flops: NDArray[np.int64]
    loss: NDArray[np.float64]
    seconds: float
    validation: float | None

    def loss_at(self, flops: float) -> float | None:
        """The loss once so much work was done; None where the run did less."""
        place = int(np.searchsorted(self.flops, flops))
        return float(self.loss[place]) if place < len(self.flops) else None


def is_run(path: Path) -> bool:
    """Whether a path is a run's folder, of which there is a curve."""
    return (path / ABOUT).exists()


def read_curve(run: Path) -> Curve:
    """Raises UsageError for a folder that is no run or has no step yet, DamageError for one that is broken."""
    about, lines = read_run(run), read_metrics(run / METRICS)
    if not lines:
        raise UsageError(f"{run} has no step yet; go on with: lol-data train --out {run} --resume")
    columns = {name: np.array([line[name] for line in lines]) for name in ("step", "tokens", "flops", "loss")}
    width = max(1, round(SMOOTH * len(lines)))
    sums = np.concatenate([[0.0], np.cumsum(columns["loss"].astype(np.float64))])
    ends = np.arange(1, len(lines) + 1)
    starts = np.maximum(0, ends - width)
    validation = [line["validation_loss"] for line in lines if "validation_loss" in line]
    return Curve(
        str(run),
        str(about["data"].get("content_hash", "")),
        columns["step"],
        columns["tokens"],
        np.cumsum(columns["flops"].astype(np.int64)),
        (sums[ends] - sums[starts]) / (ends - starts),
        float(sum(line["seconds"] for line in lines)),
        validation[-1] if validation else None,
    )


def summary(curves: Sequence[Curve]) -> list[dict[str, Any]]:
    """Plain numbers of each run. equal_work: the smoothed training loss where the run that did least ended."""
    least = min(int(curve.flops[-1]) for curve in curves)
    return [
        {
            "run": curve.name,
            "steps": int(curve.steps[-1]),
            "tokens": int(curve.tokens[-1]),
            "flops": int(curve.flops[-1]),
            "seconds": round(curve.seconds, 1),
            "loss": round(float(curve.loss[-1]), 6),
            "validation_loss": curve.validation,
            "equal_work": round(loss, 6) if (loss := curve.loss_at(least)) is not None else None,
        }
        for curve in curves
    ]


def curve_table(numbers: Sequence[dict[str, Any]]) -> str:
    """The same as lines of text."""
    width = max(3, *(len(each["run"]) for each in numbers))
    head = (
        f"{'run':<{width}}{'steps':>9}{'M tokens':>10}{'PFLOP':>9}{'minutes':>9}{'loss':>9}"
        f"{'validation':>12}{'at equal FLOPs':>16}"
    )
    lines = [head, "-" * len(head)]
    for each in numbers:
        validation = f"{each['validation_loss']:.4f}" if each["validation_loss"] is not None else "none"
        lines.append(
            f"{each['run']:<{width}}{each['steps']:>9,}{each['tokens'] / 1e6:>10.2f}{each['flops'] / 1e15:>9.3f}"
            f"{each['seconds'] / 60:>9.1f}{each['loss']:>9.4f}{validation:>12}{each['equal_work']:>16.4f}"
        )
    lines.append(
        f"loss: of training, mean of the last {SMOOTH:.0%} of the steps; FLOPs by formula, forward and backward"
    )
    return "\n".join(lines)


def plot_curves(curves: Sequence[Curve], path: Path) -> None:
    """One picture of three: loss against steps, tokens and FLOPs, all logarithmic upwards. The file's ending says the
    format: .svg, .png or .pdf. Raises UsageError for another one, LolDataError without matplotlib."""
    if path.suffix not in (".svg", ".png", ".pdf"):
        raise UsageError(f"--plot {path}: use a name that ends in .svg, .png or .pdf")
    plt = library()
    ink = {"text.color": "#222222", "legend.labelcolor": "#222222", "axes.titlecolor": "#222222"}
    ink |= dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), "#666666")
    with plt.rc_context({**ink, "grid.color": "#dddddd"}):
        figure, panels = plt.subplots(1, 3, figsize=(13, 4.2), sharey=True, layout="constrained")
        for panel, (name, title) in zip(panels, AXES.items(), strict=True):
            for k, curve in enumerate(curves):
                style = {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k // len(COLOURS) % len(MARKERS)]}
                x, y = thinned(getattr(curve, name), curve.loss)
                panel.plot(x, y, lw=1.3, ms=4, markevery=max(1, len(y) // 8), label=curve.name, **style)
            panel.set(xlabel=title, yscale="log")
            panel.grid(True)
        panels[0].set_ylabel("training loss, smoothed")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper")
        figure.savefig(path)
        plt.close(figure)

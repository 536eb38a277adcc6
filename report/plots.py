"""Plots as SVG for a page that may be light or dark: drawn by matplotlib, coloured by the page's style sheet.

Lines and words are drawn in marker colours, which are then replaced by the page's CSS variables. The same numbers give
the same bytes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lol_data.errors import LolDataError

INK, QUIET, LINE, HEAT, PAGE = "#010203", "#010204", "#010205", "#010206", "#010207"
VARIABLES = {INK: "ink", QUIET: "quiet", LINE: "line", HEAT: "heat", PAGE: "page"}
# After Okabe and Ito, moved to a lightness that stands on white and on black; a marker each, for who sees no colours.
COLOURS = ("#3f7fd6", "#d9822b", "#1f9e77", "#c9559f", "#8568cf", "#8a8f3a", "#b5504a")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
BIN = 500  # points of a curve, at most

Lines = list[dict[str, Any]]


def library() -> Any:
    """matplotlib's pyplot, set up. Raises LolDataError where it is not installed."""
    try:
        import matplotlib
    except ImportError:
        raise LolDataError("a report needs matplotlib; install it with: pip install 'lol-data[report]'") from None
    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcdefaults()
    plt.rcParams.update(
        {
            "svg.hashsalt": "lol-data",
            "svg.fonttype": "none",
            "font.size": 9,
            "axes.titlesize": 9.5,
            "axes.titlelocation": "left",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": QUIET,
            "axes.labelcolor": QUIET,
            "axes.titlecolor": INK,
            "text.color": INK,
            "xtick.color": QUIET,
            "ytick.color": QUIET,
            "grid.color": LINE,
            "grid.linewidth": 0.6,
            "legend.frameon": False,
            "legend.labelcolor": INK,
        }
    )
    return plt


def svg_of(figure: Any, title: str) -> str:
    """A figure as an <svg> element for a page; the figure is closed. title: for screen readers."""
    import matplotlib.pyplot as plt

    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    plt.close(figure)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    width, height = re.findall(r'(?:width|height)="([\d.]+)pt"', text)[:2]
    head = f'<svg viewBox="0 0 {width} {height}" style="--width: {width}" role="img"><title>{escape(title)}</title>'
    text = re.sub(r"<svg[^>]*>", lambda _: head, text, count=1)
    text = re.sub(r"<defs>\s*<style.*?</defs>", "", text, count=1, flags=re.DOTALL)
    text = re.sub(r"font-family: [^;\"]*;? ?", "", text)
    text = re.sub(r' transform="rotate\(-0 [^"]*"', "", text)
    used = set(re.findall(r"#([\w.-]+)", text))
    prefix = re.sub(r"\W+", "-", title)

    def rename(match: re.Match[str]) -> str:
        return f' id="{prefix}-{match[1]}"' if match[1] in used else ""

    text = re.sub(r' id="([^"]*)"', rename, text)
    text = re.sub(r'(?:xlink:)?href="#', f'href="#{prefix}-', text).replace("url(#", f"url(#{prefix}-")
    for colour, name in VARIABLES.items():
        text = text.replace(colour, f"var(--{name})")
    return re.sub(r"\s*\n\s*", " ", text)


def learning_curve(metrics: Lines) -> str:
    """Loss of training (means of neighbouring steps) and validation; depth; the router's health."""
    plt = library()
    from matplotlib.ticker import LogLocator, NullLocator

    names = ("gate", "agreement", "load_entropy")
    routed = any(name in line for name in names for line in metrics)
    figure, panels = plt.subplots(1, 1 + routed, figsize=(9.2, 2.9), layout="constrained", squeeze=False)
    left = panels[0, 0]
    steps = np.array([line["step"] for line in metrics])
    left.plot(*thinned(steps, _column(metrics, "loss")), color=COLOURS[0], linewidth=1.2, label="training")
    checked = [line for line in metrics if line.get("validation_loss") is not None]
    if checked:
        x, y = [line["step"] for line in checked], [line["validation_loss"] for line in checked]
        left.plot(x, y, color=COLOURS[1], marker="o", markersize=3.5, linewidth=1, label="validation")
    left.set_yscale("log")
    left.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    left.yaxis.set_minor_locator(NullLocator())
    left.yaxis.set_major_formatter("{x:g}")
    left.set(title="loss per token", xlabel="step")
    left.legend(loc="upper right", bbox_to_anchor=(1, 0.98))
    depth = _column(metrics, "depth")
    if len(np.unique(depth)) > 1:
        second = left.twinx()
        second.step(steps, depth, where="post", color=QUIET, linewidth=0.9, alpha=0.7)
        second.set_ylabel("core depth (grey)")
        second.spines["right"].set_visible(True)
        second.yaxis.get_major_locator().set_params(integer=True)
    left.grid(axis="y")
    if routed:
        right = panels[0, 1]
        labels = ("mean gate", "choices that are the most probable block", "entropy of loads (1: even)")
        for name, label, colour in zip(names, labels, COLOURS, strict=False):
            if all(name in line for line in metrics):
                right.plot(*thinned(steps, _column(metrics, name)), color=colour, linewidth=1.2, label=label)
        right.set(title="the router", xlabel="step", ylim=(0, 1.02))
        if right.lines:
            right.legend(loc="lower right", fontsize=8)
        right.grid(axis="y")
    return svg_of(figure, "learning curve")


def taken_plot(shares: Sequence[float]) -> str:
    """Share of the tokens by how many of the taking depths took them, from none to all."""
    plt = library()
    figure, axes = plt.subplots(figsize=(4.5, 2.6), layout="constrained")
    axes.bar(np.arange(len(shares)), 100 * np.array(shares), color=COLOURS[0], width=0.7)
    axes.set(xlabel="taking depths that took a token", ylabel="tokens, %", xticks=np.arange(len(shares)))
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    return svg_of(figure, "depths that took a token")


def reuse_plot(ways: dict[str, dict[str, Any]]) -> str:
    """Share of tokens whose path has U distinct blocks, per way, with the bound and the uniform draw."""
    plt = library()
    figure, axes = plt.subplots(figsize=(4.5, 2.9), layout="constrained")
    width, one = 0.8 / len(ways), {}
    for k, (way, figures) in enumerate(ways.items()):
        one = figures["reuse"]["all"]
        share = np.array(one["counts"]) / max(one["n"], 1)
        x = np.arange(1, len(share) + 1) + (k - (len(ways) - 1) / 2) * width
        axes.bar(x, share, width * 0.92, color=COLOURS[k % len(COLOURS)], label=way)
    axes.axvline(one["uniform"], color=INK, linewidth=1, linestyle=(0, (4, 3)))
    axes.text(one["uniform"], 1.01, "uniform draw", transform=axes.get_xaxis_transform(), ha="center", fontsize=8)
    axes.set(
        xlabel=f"distinct blocks on a token's path (at most {one['bounds']['distinct']})", ylabel="share of tokens"
    )
    axes.set_xticks(np.arange(1, len(one["counts"]) + 1))
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    axes.legend(fontsize=8)
    return svg_of(figure, "distinct blocks per path")


def occupancy_plot(ways: dict[str, dict[str, Any]]) -> str:
    """Distinct blocks loaded by one decoding step at each depth, beside a uniform draw."""
    plt = library()
    figure, axes = plt.subplots(figsize=(4.5, 2.9), layout="constrained")
    top = 1.0
    for k, (way, figures) in enumerate(ways.items()):
        found, colour = figures["occupancy"], COLOURS[k % len(COLOURS)]
        levels = np.arange(1, len(found["distinct"]) + 1)
        axes.plot(levels, found["distinct"], color=colour, marker=MARKERS[k % len(MARKERS)], markersize=4, label=way)
        axes.axhline(found["uniform"], color=colour, linewidth=0.9, linestyle=(0, (4, 3)))
        top = max(top, found["uniform"], *found["distinct"])
        axes.set(xticks=levels)
    requests = next(iter(ways.values()))["occupancy"]["requests"]
    axes.set(xlabel="core depth", ylabel=f"distinct blocks, {requests} sequences", ylim=(0, 1.12 * top))
    axes.grid(axis="y")
    axes.legend(fontsize=8, title="dashed: uniform draw", title_fontsize=8)
    return svg_of(figure, "occupancy per decoding step")


def load_plot(loads: NDArray[np.floating], strategies: Sequence[str], title: str) -> str:
    """Heat maps, depth by block, one a strategy; loads (S, D, L) are shares of a depth's windows."""
    some = loads.any(axis=(1, 2), keepdims=True)
    return _heat(np.where(some, loads, np.nan), strategies, "block", "depth", title)


def agreement_plot(counts: NDArray, agreeing: NDArray, strategies: Sequence[str], title: str) -> str:
    """Heat maps, depth by window: share of own choices that are the template's; cells nobody reached stay empty."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return _heat(agreeing / counts, strategies, "window", "depth", title)


def _heat(values: NDArray[np.floating], names: Sequence[str], x: str, y: str, title: str) -> str:
    """Panels of cells shaded by values from 0 to 1, (S, rows, columns); columns count from 0, rows from 1. NaN is left
    out."""
    plt = library()
    count, rows, columns = values.shape
    across = min(count, 3 if columns > 12 else 5)
    down = -(-count // across)
    size = (9.2, down * (0.75 + max(1.1, min(2.8, 0.2 * rows))))
    figure, grid = plt.subplots(
        down, across, figsize=size, layout="constrained", squeeze=False, sharex=True, sharey=True
    )
    written = rows * columns <= 80
    for panel, axes in enumerate(grid.flat):
        if panel >= count:
            axes.set_axis_off()
            continue
        for row, column in np.argwhere(~np.isnan(values[panel])):
            value = float(values[panel, row, column])
            corner = (column - 0.5, row - 0.5)
            axes.add_patch(plt.Rectangle(corner, 1, 1, facecolor=HEAT, alpha=0.06 + 0.84 * value, linewidth=0))
            if written and value >= 0.005:
                colour = PAGE if value > 0.6 else INK
                axes.text(column, row, f"{100 * value:.0f}", ha="center", va="center", fontsize=6.5, color=colour)
        axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5), title=names[panel])
        at = np.arange(0, rows, 1 + rows // 13)
        axes.set_xticks(np.arange(0, columns, 1 + columns // 13))
        axes.set_yticks(at, at + 1)
        axes.tick_params(length=0, labelsize=7.5)
        for spine in axes.spines.values():
            spine.set_visible(False)
        if panel >= (down - 1) * across:
            axes.set_xlabel(x)
        if panel % across == 0:
            axes.set_ylabel(y)
    return svg_of(figure, title)


def pca_plot(
    points: NDArray[np.floating],
    codes: NDArray[np.integer],
    explained: Sequence[float],
    strategies: Sequence[str],
    title: str,
) -> str:
    """Paths on their two main axes; equal ones fall together, and the area of a mark says how many."""
    plt = library()
    figure, axes = plt.subplots(figsize=(4.8, 3.6), layout="constrained")
    for code, name in enumerate(strategies):
        own = np.round(points[codes == code], 6)
        if not len(own):
            continue
        places, times = np.unique(own, axis=0, return_counts=True)
        look = {"color": COLOURS[code % len(COLOURS)], "marker": MARKERS[code % len(MARKERS)]}
        axes.scatter(*places.T, s=14 + 6 * np.sqrt(times), alpha=0.75, linewidth=0, label=name, **look)
    axes.set(xlabel=f"axis 1 ({100 * explained[0]:.0f} % of variance)", ylabel=f"axis 2 ({100 * explained[1]:.0f} %)")
    axes.grid()
    axes.set_axisbelow(True)
    legend = axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1), borderaxespad=0.2)
    for handle in legend.legend_handles:
        handle.set_sizes([28])
    return svg_of(figure, title)


def flips_plot(buckets: Lines) -> str:
    """Share of choices that flip in bf16, per bucket of margins."""
    plt = library()
    figure, axes = plt.subplots(figsize=(4.5, 2.9), layout="constrained")
    share = [100 * bucket["flips"] / bucket["n"] if bucket["n"] else 0 for bucket in buckets]
    places = np.arange(len(buckets)) + 0.5
    axes.bar(places, share, 0.9, color=COLOURS[0])
    for place, value, bucket in zip(places, share, buckets, strict=True):
        axes.text(place, value, f"{bucket['flips']:,}\nof {bucket['n']:,}", ha="center", va="bottom", fontsize=6.5)
    edges = [*(bucket["low"] for bucket in buckets), buckets[-1]["high"]]
    axes.set_xticks(np.arange(len(edges)), [f"{edge:g}" for edge in edges])
    axes.set(xlabel="margin m of the choice in fp32", ylabel="flipped in bf16, %", ylim=(0, 1.25 * max(*share, 0.1)))
    return svg_of(figure, "flips by margin")


def order_plot(order: dict[str, Any]) -> str:
    """What a swap of neighbouring blocks changes, by depth, for gates at several strengths."""
    plt = library()
    figure, axes = plt.subplots(figsize=(4.5, 2.9), layout="constrained")
    values = np.array(order["difference"], float)
    levels = np.arange(1, len(values) + 1)
    for k, factor in enumerate(order["factors"]):
        label = "own gates" if factor == 1 else f"gates × {factor:g}"
        axes.plot(levels, 100 * values[:, k], color=COLOURS[k], marker=MARKERS[k], markersize=4, label=label)
    axes.set(xlabel="depth l, swapped with l + 1", ylabel="change, % of what both do", xticks=levels)
    axes.set_ylim(bottom=0)
    axes.grid(axis="y")
    axes.legend(fontsize=8)
    return svg_of(figure, "order of neighbouring blocks")


def probe_plot(entries: Lines, title: str) -> str:
    """AUROC of every probe, and how far shuffled labels get; one row a label, a mark a form of features."""
    plt = library()
    labels = list(dict.fromkeys(entry["label"] for entry in entries))
    forms = list(dict.fromkeys(entry["features"] for entry in entries))
    figure, axes = plt.subplots(figsize=(4.6, 0.8 + 0.27 * len(labels)), layout="constrained")
    for k, form in enumerate(forms):
        look = {"color": COLOURS[k], "marker": MARKERS[k], "markersize": 5, "linestyle": ""}
        for entry in (entry for entry in entries if entry["features"] == form and entry["auroc"] is not None):
            y = labels.index(entry["label"]) + (k - (len(forms) - 1) / 2) * 0.28
            control = entry["shuffled"]
            if control["mean"] is not None:
                axes.plot([control["mean"], control["max"]], [y, y], color=COLOURS[k], linewidth=3, alpha=0.3)
            axes.plot(entry["auroc"], y, **look)
        axes.plot([], [], label=form, **look)
    axes.axvline(0.5, color=QUIET, linewidth=0.9)
    axes.set_yticks(np.arange(len(labels)), labels)
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.set(ylim=(len(labels) - 0.4, -0.6), xlabel="AUROC on other problems")
    axes.set_xlim(min(0.4, axes.get_xlim()[0]), 1.02)
    axes.grid(axis="x")
    axes.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0)
    return svg_of(figure, title)


def _column(metrics: Lines, name: str) -> NDArray[np.float64]:
    return np.array([line[name] for line in metrics], float)


def thinned(x: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
    """Means over runs of neighbours, so that a curve has at most BIN points."""
    size = -(-len(x) // BIN)
    edges = np.arange(0, len(x), size)
    counts = np.diff([*edges, len(x)])
    return np.add.reduceat(x, edges) / counts, np.add.reduceat(y, edges) / counts

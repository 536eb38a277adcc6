"""No command: the page of `gpu_reference.py`, one JSON and one Markdown file from what its stages left."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import markdown
from reference_page import rates_table

from training import spread

JSON, PAGE = "gpu-reference.json", "gpu-reference.md"
MATMUL_GOAL = 0.40
RATE_GOALS = {"adherence": 0.99, "legality": 0.97, "answer": 0.98}  # adherence: of every strategy


def write(folder: Path, stages: Sequence[str]) -> str:
    """Both files, in the folder; returns the page."""
    found = {name: json.loads((folder / f"{name}.json").read_text()) for name in stages if _there(folder, name)}
    (folder / JSON).write_text(json.dumps(found, indent=1))
    text = page(found)
    (folder / PAGE).write_text(text)
    return text


def _there(folder: Path, name: str) -> bool:
    return (folder / f"{name}.json").exists()


def page(found: dict[str, dict[str, Any]]) -> str:
    """Markdown."""
    parts = ["# What a GPU makes of it", _warning(found)]
    for name, stage in found.items():
        about = stage["machine_is"]
        parts.append(f"## {name}")
        parts.append(f"{about['name']}, torch {about['torch']}, Triton {about['triton']}, Python {about['python']}; "
                     f"{stage['took']:.0f} s.")  # fmt: skip
        if "error" in stage:
            parts.append(f"This stage failed:\n\n```\n{stage['error'].strip()}\n```")
        else:
            parts.append({"kernels": _kernels, "throughput": _throughput}.get(name, _trained)(stage))
    return "\n\n".join(part for part in parts if part) + "\n"


def _warning(found: dict[str, dict[str, Any]]) -> str:
    if not found:
        return "No stage has run."
    if all(stage["machine_is"]["device"] == "cuda" and not stage["toy"] for stage in found.values()):
        return ""
    return (
        "**These are no figures of a GPU.** At least one stage ran without one or at toy size, which shows that the "
        "script works and nothing else."
    )


def _kernels(stage: dict[str, Any]) -> str:
    if not stage["ran"]:
        return f"No kernel ran: {stage['reason']}."
    head = ["kernel", "case", "difference", "allowed", "ms", "plain, ms", "times as fast"]
    rows = []
    for case in stage["cases"]:
        timed = case.get("milliseconds") is not None
        times = [f"{case['milliseconds']:.3f}", f"{case['plain_milliseconds']:.3f}"] if timed else ["", ""]
        ratio = f"{case['plain_milliseconds'] / case['milliseconds']:.2f}" if timed else ""
        wrong = "" if case["difference"] <= case["allowed"] else " **wrong**"
        rows.append([case["kernel"], case["case"], f"{case['difference']:.1e}{wrong}", f"{case['allowed']:.0e}",
                     *times, ratio])  # fmt: skip
    return "\n".join(markdown(head, rows))


def _throughput(stage: dict[str, Any]) -> str:
    head = ["arm", "kernels", "sequences/s", "tokens/s", "of the bf16 matmul rate", "of the first arm"]
    rows = [
        [
            name,
            "yes" if arm["kernels"] else "no",
            spread(arm["sequences_per_second"], ",.0f"),
            spread(arm["tokens_per_second"], ",.0f"),
            spread(arm["share_of_matmul"], ".1%"),
            spread(arm["of_first"], ".2f"),
        ]
        for name, arm in stage["arms"].items()
    ]
    rate = statistics.median(stage["matmul_rate"])
    best = max(statistics.median(arm["share_of_matmul"]) for name, arm in stage["arms"].items() if "LoL" in name)
    reached = "reached" if best >= MATMUL_GOAL else "not reached"
    why = stage["machine"].get("kernels_why", "")
    lines = [
        f"Large bf16 products reach {rate / 1e12:,.1f} TFLOP/s here. LoL trains at {best:.1%} of that; the goal of "
        f"{MATMUL_GOAL:.0%} is {reached}." + (f" Kernels: {why}." if why else ""),
        "",
        *markdown(head, rows),
    ]
    spent = stage["profile"]
    lines += [
        "",
        f"Where a step of `{spent['arm']}` goes, {spent['seconds']:.3f} s under the profiler, in {spent['busy']:.0%} "
        "of which the device computes:",
        "",
        *markdown(["kernel", "calls", "of the step"], [
            [f"`{one['name']}`", f"{one['calls']:,}", f"{one['share']:.1%}"] for one in spent["longest"]
        ]),
    ]  # fmt: skip
    return "\n".join(lines)


def _trained(stage: dict[str, Any]) -> str:
    seconds, last = stage["seconds"], stage["last"]
    took = ", ".join(f"{name} {value:.0f} s" for name, value in seconds.items())
    lines = [
        f"{stage['problems']:,} {stage['task']}s (content hash `{stage['content_hash']}`); {stage['steps']:,} steps, "
        f"{stage['sequences']:,} sequences, {stage['flops'] / 1e15:,.3g} PFLOP by formula, "
        f"{stage['flops'] / max(stage['step_seconds'], 1e-9) / 1e12:,.3g} TFLOP/s. {took}.",
        "",
        f"Validation loss {last['validation_loss']:.4f}, training loss {last['loss']:.4f}.",
        "",
        *markdown(["step", "core depth", "loss", "validation loss"], [
            [f"{line['step']:,}", f"{line['depth']}", f"{line['loss']:.4f}", f"{line['validation_loss']:.4f}"]
            for line in stage["curve"]
        ]),
    ]  # fmt: skip
    for summary in stage["summaries"]:
        lines += ["", f"{summary['protocol']}, {summary['n']} test problems under every strategy, per cent:", ""]
        lines += rates_table(summary)
    lines += ["", _goals(stage)]
    return "\n".join(lines)


def _goals(stage: dict[str, Any]) -> str:
    forced = next(summary for summary in stage["summaries"] if summary["protocol"] == "forced")
    worst = min(rates["adherence"]["rate"] for rates in forced["strategies"].values())
    reached = {"adherence": worst, **{name: forced["overall"][name]["rate"] for name in ("legality", "answer")}}
    said = (
        f"{name} {100 * reached[name]:.1f} ({'reached' if reached[name] >= goal else 'not reached'}: {100 * goal:.0f})"
        for name, goal in RATE_GOALS.items()
    )
    return f"Goals on the forced path, adherence of the worst strategy: {', '.join(said)}."

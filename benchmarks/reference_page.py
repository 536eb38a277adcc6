"""The tables of a trained run's page in docs/results/, in Markdown: data, curve, and what its evaluations found.

    python benchmarks/reference_page.py RUN [--every 1000] [--eval RUN/eval]

A time is what steps took; what came between them (validation, checkpoints) is not in it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from common import markdown

from lol_data.errors import LolDataError, UsageError
from lol_data.evaluators.summary import shown_rates
from lol_data.training.run_folder import LENGTHS, METRICS, read_run

LAST = 100  # steps behind a training loss


def rates_table(summary: dict[str, Any]) -> list[str]:
    """The rates of one protocol, strategy by strategy, per cent with 95 % intervals."""
    rates = shown_rates(summary["overall"])
    rows = [*summary["strategies"].items(), ("all", summary["overall"])]
    return markdown(["strategy", *rates], ([name, *(_rate(found[rate]) for rate in rates)] for name, found in rows))


def _rate(rate: dict[str, Any]) -> str:
    return f"{100 * rate['rate']:.1f} [{100 * rate['low']:.1f}-{100 * rate['high']:.1f}]"


def curve_table(lines: Sequence[dict[str, Any]], every: int) -> list[str]:
    """What the metrics say every so many steps and at the end."""
    head = ["step", "minutes of steps", "tokens", "core depth", f"training loss, last {LAST} steps", "validation loss",
            "mean gate", "load entropy", "own path = template"]  # fmt: skip
    rows, seconds = [], 0.0
    for k, line in enumerate(lines):
        seconds += line["seconds"]
        if "validation_loss" in line and (line["step"] % every == 0 or line is lines[-1]):
            loss = fmean(one["loss"] for one in lines[max(0, k + 1 - LAST) : k + 1])
            rows.append([
                f"{line['step']:,}", f"{seconds / 60:.1f}", f"{line['tokens'] / 1e6:.1f} M", f"{line['depth']}",
                f"{loss:.4f}", f"{line['validation_loss']:.4f}", f"{line['gate']:.2f}", f"{line['load_entropy']:.2f}",
                f"{line['template_selection']:.0%}",
            ])  # fmt: skip
    return markdown(head, rows)


def page(run: Path, evaluations: Path, every: int) -> Iterator[str]:
    """All of it, line by line. Raises LolDataError for what is no run, or none with routes."""
    about = read_run(run)
    lines = [json.loads(line) for line in (run / METRICS).read_text(encoding="utf-8").splitlines()]
    if not lines or "template_selection" not in lines[-1]:
        raise UsageError(f"{run} is no finished run of a model with a router; only those have such a page")
    batch = about["config"]["train"]["batch"]
    yield (
        f"Data: content hash `{about['data']['content_hash']}`; {lines[-1]['step'] * batch:,} sequences seen, "
        f"{lines[-1]['tokens']:,} tokens; {sum(line['flops'] for line in lines) / 1e15:.2f} PFLOP by formula; torch "
        f"{about['versions']['torch']}; {about['machine']}."
    )
    for step, steps in about.get(LENGTHS, []):
        yield f"Up to step {step:,} it was a run of {steps:,} steps."
    yield from ["", *curve_table(lines, every)]
    for file in sorted(evaluations.glob("*/summary.json")):
        summary = json.loads(file.read_text(encoding="utf-8"))
        if "overall" in summary:
            yield from ["", f"{file.parent.name}, n = {summary['n']}:", "", *rates_table(summary)]


def main() -> None:
    """The command line."""
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--every", type=int, default=1000, help="steps between rows of the curve")
    parser.add_argument("--eval", type=Path, help="folder of its evaluations; by default RUN/eval")
    options = parser.parse_args()
    try:
        for line in page(options.run, options.eval or options.run / "eval", options.every):
            print(line)
    except LolDataError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()

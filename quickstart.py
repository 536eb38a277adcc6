"""The whole chain, small: mazes and traces, a data set, a model, forced paths, checked results."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from lol_data import evaluations, runs
from lol_data.commands.common import note
from lol_data.evaluators.summary import comparison, table, template_lines, title
from lol_data.generators.maze import MazeSettings
from lol_data.progress import progress_bar
from lol_data.shards.generate import generate_dataset
from lol_data.shards.plan import DatasetPlan

SIZE = 5


def run_quickstart(out: Path, config: str, n: int, test: int) -> None:
    """Generate `n` 5x5 mazes, train `config` on them, evaluate all protocols on `test` problems, print the tables.

    Everything goes to OUT/data and OUT/run; a second call goes on where the first one stopped.
    """
    started = time.monotonic()

    def step(text: str) -> None:
        print(f"[{time.monotonic() - started:4.0f} s] {text}", flush=True)

    step(f"1/3  {n:,} mazes of {SIZE}x{SIZE} cells, five traces each -> {out / 'data'}")
    plan = DatasetPlan(n, MazeSettings(size=SIZE), validation_share=0.02, test_share=0.02)
    manifest = generate_dataset(plan, out / "data").manifest
    assert manifest is not None  # only a part of the shards would leave it unsigned
    dropped = manifest.duplicates["dropped"]
    step(f"     {manifest.rows:,} mazes, {manifest.bytes / 1e6:.1f} MB, {dropped} duplicates dropped")

    step(f"2/3  training `{config}` -> {out / 'run'}")
    again = (out / "run" / "run.json").exists()
    run, line = runs.train(out / "data", config, out / "run", again, [], None, step)
    step(f"     step {line['step']}: loss {line['loss']:.4f}, validation loss {line['validation_loss']:.4f}")

    step(f"3/3  decoding {test} test mazes under every strategy, judging every output by the rules")
    with progress_bar("output") as advance:
        request = evaluations.Request(run, n=test)
        summaries, folders = evaluations.evaluate(request, "all", "both", note, advance)
    for summary in summaries[:2]:
        print("\n".join(["", title(summary), table(summary), *template_lines(summary)]))
    print("\nIs the wanted strategy the one that the output follows? (chance: 20 %)")
    print(comparison(summaries))
    print(f"\nEvery output with its verdict: {folders[0].parent}/*/samples.parquet; the figures: .../summary.json")
    command = sys.argv[0] if sys.argv[0].endswith("lol-data") else "lol-data"  # as it was called: it may not be on PATH
    step(f"done; train longer with: {command} train --data {out / 'data'} --config cpu")

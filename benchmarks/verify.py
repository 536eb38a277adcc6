"""How fast `verify` looks at a data set, arms interleaved in one run so that a shared machine disturbs all alike.

    python benchmarks/verify.py [--n 1000000] [--size 8] [--workers 1 2] [--rounds 3]

Makes a data set in a temporary folder, then prints a Markdown table: per look and number of workers the rows/s and
traces/s (five a row) of the best round, the microseconds of CPU time a row costs, and the peak memory of the process.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

from lol_data.evaluators.maze_rules import canonical_rows
from lol_data.generators.maze import MazeSettings
from lol_data.mazes import MAZE_STRATEGIES
from lol_data.shards.generate import generate_dataset
from lol_data.shards.plan import DatasetPlan
from lol_data.shards.verify import verify_dataset

LOOKS = {
    "quick": {"deep": False},
    "deep, without the rules": {"deep": True},
    "deep, with the rules": {"deep": True, "rule_checks": {"maze": canonical_rows}},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    best: dict[tuple[str, int], tuple[float, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        warm, data = Path(folder) / "warm", Path(folder) / "data"
        generate_dataset(DatasetPlan(1000, MazeSettings(size=options.size)), warm)
        verify_dataset(warm, deep=True, rule_checks={"maze": canonical_rows})  # compiles
        manifest = generate_dataset(DatasetPlan(options.n, MazeSettings(size=options.size)), data).manifest
        assert manifest is not None
        for _ in range(options.rounds):
            for look, arguments in LOOKS.items():
                for workers in options.workers:
                    started, cpu = time.perf_counter(), time.process_time()
                    report = verify_dataset(data, workers=workers, **arguments)
                    measured = time.perf_counter() - started, time.process_time() - cpu
                    if not report.ok:
                        sys.exit(f"{report.problems[0]}")
                    best[look, workers] = min(best.get((look, workers), measured), measured)
    rows = manifest.rows
    print(f"{rows:,} mazes of {options.size} x {options.size}, best of {options.rounds} rounds\n")
    print("| look | workers | rows/s | traces/s | CPU us/row |")
    print("|---|---:|---:|---:|---:|")
    for (look, workers), (seconds, cpu) in best.items():
        traces = f"{rows * len(MAZE_STRATEGIES) / seconds:,.0f}"
        print(f"| {look} | {workers} | {rows / seconds:,.0f} | {traces} | {cpu / rows * 1e6:.2f} |")
    print(f"\npeak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


if __name__ == "__main__":
    main()

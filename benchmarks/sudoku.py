"""Generating sudokus: lol-data, the bare write of the same tables, and other packages, interleaved in one run.

    python benchmarks/sudoku.py [--n 200000] [--peer-n 2000] [--repeats 3] [--linearity] [--out FILE.md]

Prints Markdown; common.py says what is measured. `--linearity` adds a thousand to a million puzzles.

The peers make a puzzle, in memory: no traces, no duplicates looked for, and none promises that one strategy alone
solves it.

- lib_sudoku (Rust) holds the number of clues, drawn here from 30 to 36, each equally likely.
- dokusan takes a number of attempts to remove clues, 150 by default; 60 leave 30 to 40 clues.
- py-sudoku holds the number of clues and says of most of its puzzles that they have several solutions.

The last column says what came out, by our counter and tracers: "fit" are the puzzles that could be rows of our data
set, with one solution, solved by naked singles alone and by cross-hatching alone, and with a backtracking trace of at
least one undo and at most 256 tries.
"""

from __future__ import annotations

import common
import numpy as np
from numpy.typing import NDArray

from lol_data.generators.sudoku import SudokuSettings
from lol_data.shards.plan import DatasetPlan
from lol_data.solvers.sudoku_count import count_solutions
from lol_data.solvers.sudoku_tracing import trace_sudokus
from lol_data.sudokus import CELLS, MAX_TRIES, UNDO, Sudokus

# The peers' scripts have this frame around `make`, which gives 81 digits, 0 for empty.
_FRAME = """
import json, random, sys, time
{make}
for _ in range(3):
    make(sys.argv[2])
began = time.perf_counter()
digits = [make(sys.argv[2]) for _ in range(int(sys.argv[1]))]
seconds = time.perf_counter() - began
print(json.dumps({{"problems": len(digits), "seconds": seconds, "bytes": None, "digits": digits}}))
"""
_LIB_SUDOKU = """
from lib_sudoku import gen_unsolved

def make(_):
    return "".join(map(str, gen_unsolved(random.randint(30, 36))))
"""
_DOKUSAN = """
from dokusan.generators import random_sudoku

def make(attempts):
    return str(random_sudoku(avg_rank=int(attempts)))
"""
_PY_SUDOKU = """
from sudoku import Sudoku

def make(_):
    # Without a seed every puzzle of a process is the same one.
    removed = random.randint(45, 51)
    puzzle = Sudoku(3, seed=random.getrandbits(60)).difficulty((removed + 0.5) / 81)
    return "".join(str(digit or 0) for row in puzzle.board for digit in row)
"""
PEERS = (
    common.Peer(("lib_sudoku==2.2.0",), _FRAME.format(make=_LIB_SUDOKU), {"30 to 36 clues": ""}),
    common.Peer(
        ("dokusan==0.1.0",),
        _FRAME.format(make=_DOKUSAN),
        {"150 attempts": "150", "60 attempts": "60"},
        share=20,
    ),
    common.Peer(("py-sudoku==2.0.0",), _FRAME.format(make=_PY_SUDOKU), {"30 to 36 clues": ""}),
)


def describe(puzzles: NDArray[np.uint8]) -> str:
    """Clues, and the shares of puzzles, uint8 (N, 81), that have one solution and that are fit for our data set."""
    clues = np.count_nonzero(puzzles, axis=1)
    counts, solutions = count_solutions(puzzles, 2)
    unique = np.flatnonzero(counts == 1)
    traces = trace_sudokus(Sudokus(unique.astype(np.uint64), puzzles[unique], solutions[unique]), MAX_TRIES).traces
    empty = CELLS - clues[unique]
    undos = np.array([np.count_nonzero(trace == UNDO) for trace in traces["backtracking"]], np.int64)
    fit = (traces["naked_single"].lengths == 2 * empty) & (traces["cross_hatching"].lengths == 3 * empty)
    # An undo takes one try back, each of them two symbols; the search was cut off where the grid did not become full.
    fit &= (undos > 0) & (traces["backtracking"].lengths == 2 * (empty + 2 * undos))
    shares = f"{len(unique) / len(puzzles):.1%} with one solution, {fit.sum() / len(puzzles):.1%} fit"
    return f"{clues.min()} to {clues.max()} clues, mean {clues.mean():.1f}; {shares}"


def plan(n: int) -> DatasetPlan:
    """The data set that is made."""
    return DatasetPlan(n, SudokuSettings(), task_name="sudoku")


if __name__ == "__main__":
    sudokus = common.Benchmark(__file__, plan, PEERS, n=200_000, sizes=(10**3, 10**4, 10**5, 10**6), describe=describe)
    common.main(sudokus, __doc__)

"""Sudokus: their problems, their rows on disk, and what their card says."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lol_data.generators.sudoku import SudokuSettings, generate_sudokus
from lol_data.generators.sudoku_fingerprint import sudoku_fingerprint, sudoku_key
from lol_data.jit import njit
from lol_data.ragged import Ragged
from lol_data.shards.arrow import (
    binary,
    column_fault,
    greatest,
    matrix,
    numbers,
    of_equal_width,
    ragged,
    take_columns,
    widths_differ,
)
from lol_data.solvers.sudoku_count import count_solutions
from lol_data.sudokus import CELLS, DIGIT, SUDOKU_STRATEGIES, SYMBOLS, UNDO, UNIT, WAVE, Sudokus, TracedSudokus

SUDOKU_SCHEMA = pa.schema(
    [
        pa.field("id", pa.uint64(), nullable=False),
        pa.field("puzzle", pa.string(), nullable=False),
        pa.field("solution", pa.string(), nullable=False),
        pa.field("clues", pa.uint8(), nullable=False),
        *(pa.field(name, pa.binary(), nullable=False) for name in SUDOKU_STRATEGIES),
    ]
)
PROBLEM_COLUMNS = ("id", "puzzle", "solution", "clues")
_ZERO, _EMPTY = ord("0"), ord(".")
_TRACES = {
    "naked_single": "steps (cell, digit): every other digit stands among the cell's peers",
    "hidden_single": "steps (unit, cell, digit): in that unit the digit fits no other empty cell",
    "cross_hatching": "steps (box, cell, digit): the same, boxes only",
    "propagation": "waves: every (cell, digit) that either rule forces now, then the end of the wave",
    "backtracking": "tries (cell, digit) and undos (undo, cell), depth first; cells with the fewest candidates in the "
    "puzzle first",
}


class SudokuTask:
    """See `task.Task`."""

    name = "sudoku"
    problem = "sudoku"
    promise = "a puzzle with exactly one solution"
    strategies: tuple[str, ...] = SUDOKU_STRATEGIES
    length_unit = "symbols"
    symmetries = "digits renamed; rows, columns, bands and stacks permuted; rows and columns exchanged"
    schema = SUDOKU_SCHEMA

    def fields(self, settings: SudokuSettings) -> dict[str, Any]:
        return {name: list(value) for name, value in asdict(settings).items()}

    def settings_of(self, fields: Mapping[str, Any]) -> SudokuSettings:
        return SudokuSettings(**{name: tuple(value) for name, value in fields.items()})

    def generate(self, settings: SudokuSettings, seed: int, lo: int, hi: int) -> TracedSudokus:
        return generate_sudokus(settings, seed, lo, hi)

    def keys(self, traced: TracedSudokus) -> NDArray[np.uint64]:
        return sudoku_key(traced.sudokus)

    def fingerprints(self, traced: TracedSudokus) -> NDArray[np.uint64]:
        return sudoku_fingerprint(traced.sudokus)

    def problems(self, traced: TracedSudokus) -> NDArray[np.uint8]:
        return traced.sudokus.puzzle

    def sound(self, traced: TracedSudokus, settings: SudokuSettings) -> NDArray[np.bool_]:
        counts, solutions = count_solutions(traced.sudokus.puzzle, 2)
        return (counts == 1) & (solutions == traced.sudokus.solution).all(1)

    def columns(self, traced: TracedSudokus) -> dict[str, Ragged]:
        """Without `clues`, which `check` holds to the puzzle."""
        sudokus = traced.sudokus
        traces = {name: traced.traces[name] for name in SUDOKU_STRATEGIES}
        return {"puzzle": of_equal_width(sudokus.puzzle), "solution": of_equal_width(sudokus.solution), **traces}

    def orders(self, traced: TracedSudokus) -> dict[str, Ragged]:
        """The cells in the order in which the steps name them."""
        return {name: _cells(traced.traces[name]) for name in SUDOKU_STRATEGIES}

    def measures(self, traced: TracedSudokus) -> dict[str, NDArray[np.integer]]:
        return {
            "clues": traced.sudokus.clues,
            "waves": _occurrences(traced.traces["propagation"], WAVE),
            "undos": _occurrences(traced.traces["backtracking"], UNDO),
        }

    def places(self, traced: TracedSudokus) -> dict[str, NDArray[np.int64]]:
        return {"given": np.count_nonzero(traced.sudokus.puzzle, axis=0).reshape(9, 9)}

    def to_batch(self, traced: TracedSudokus) -> pa.RecordBatch:
        sudokus = traced.sudokus
        columns = [
            pa.array(sudokus.id),
            _text(sudokus.puzzle),
            _text(sudokus.solution),
            pa.array(sudokus.clues),
            *(binary(traced.traces[name]) for name in SUDOKU_STRATEGIES),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SUDOKU_SCHEMA)

    def check(self, table: pa.Table, settings: SudokuSettings | None, strategies: Collection[str]) -> str | None:
        fault = column_fault(table, SUDOKU_SCHEMA, (*PROBLEM_COLUMNS, *strategies))
        if fault or not table.num_rows:
            return fault
        for name in ("puzzle", "solution"):
            if widths_differ(table[name], CELLS):
                return f"a {name} has not {CELLS} characters"
        puzzle, solution = (_grid(table[name].chunks) for name in ("puzzle", "solution"))
        if puzzle.max() > 9 or solution.max() > 9 or solution.min() < 1:
            return "a puzzle holds other characters than digits and dots, or a solution other than digits"
        if ((puzzle != 0) & (puzzle != solution)).any():
            return "a puzzle has a digit that its solution has not"
        clues = table["clues"].to_numpy()
        if (np.count_nonzero(puzzle, axis=1) != clues).any():
            return "column clues is not the number of digits of the puzzle"
        if settings is not None and not settings.clues[0] <= clues.min() <= clues.max() <= settings.clues[1]:
            return f"a puzzle has not {settings.clues[0]} to {settings.clues[1]} clues"
        for name in strategies:
            if greatest(table[name]) >= SYMBOLS:
                return f"column {name} holds a symbol beyond {SYMBOLS - 1}"
        return None

    def from_tables(
        self, tables: list[pa.Table], settings: SudokuSettings, strategies: Collection[str], workers: int = 1
    ) -> TracedSudokus:
        readers: dict[str, Any] = {"id": partial(numbers, dtype=np.uint64), "puzzle": _grid, "solution": _grid}
        columns = take_columns(tables, readers | dict.fromkeys(strategies, ragged), workers)
        sudokus = Sudokus(columns["id"], columns["puzzle"], columns["solution"])
        return TracedSudokus(sudokus, {name: columns[name] for name in strategies})

    def title(self, settings: SudokuSettings) -> str:
        return f"sudokus with {settings.clues[0]} to {settings.clues[1]} clues"

    def column_rows(self, settings: SudokuSettings) -> list[tuple[str, str, str]]:
        return [
            ("`id`", "uint64", "number of the row; the row is a pure function of settings, seed and id"),
            ("`puzzle`", "string, 81 characters", "the givens, row by row, `.` for an empty cell"),
            ("`solution`", "string, 81 characters", "the only solution"),
            ("`clues`", "uint8", "number of givens"),
            *((f"`{name}`", "binary", _TRACES[name]) for name in SUDOKU_STRATEGIES),
        ]

    def notes(self, settings: SudokuSettings) -> dict[str, str]:
        return {
            "about": "One row is one problem: a puzzle with exactly one solution, and one canonical trace per "
            "strategy. Cells are numbered `row*9+column`; units 0-8 are the rows, 9-17 the columns, 18-26 the boxes. "
            f"Puzzles whose solutions are equivalent ({self.symmetries}) are always in the same split.",
            "encoding": f"A trace is a string of one-byte symbols: cell c is c, digit d is {DIGIT} + d, unit u is "
            f"{UNIT} + u, {WAVE} ends a wave, {UNDO} is an undo.",
            "use": """symbols = np.frombuffer(row["naked_single"], np.uint8)          # cell, digit, cell, digit, ...
steps = [(int(cell), int(digit) - 80) for cell, digit in symbols.reshape(-1, 2)]""",
        }


def _text(grids: NDArray[np.uint8]) -> pa.StringArray:
    """Grids (B, 81) as strings of 81 characters."""
    characters = np.where(grids == 0, _EMPTY, grids + _ZERO).astype(np.uint8)
    rows = binary(of_equal_width(characters))
    return pa.StringArray.from_buffers(len(rows), *rows.buffers()[1:])


def _grid(chunks: Any) -> NDArray[np.uint8]:
    """Strings of 81 characters as grids (B, 81); what is neither a digit nor a dot is beyond 9."""
    characters = matrix(chunks, CELLS)
    return np.where(characters == _EMPTY, 0, characters - _ZERO).astype(np.uint8)


def _cells(trace: Ragged) -> Ragged:
    values, offsets = np.empty_like(trace.values), np.zeros_like(trace.offsets)
    _keep_cells(trace.values, trace.offsets, values, offsets)
    return Ragged(values[: offsets[-1]], offsets)


def _occurrences(trace: Ragged, symbol: int) -> NDArray[np.int64]:
    """How often a symbol stands in every row, int64 (B,)."""
    found = np.concatenate([[0], np.cumsum(trace.values == symbol)])
    return found[trace.offsets[1:]] - found[trace.offsets[:-1]]


@njit
def _keep_cells(
    values: NDArray[np.uint8], offsets: NDArray[np.int64], out: NDArray[np.uint8], out_offsets: NDArray[np.int64]
) -> None:
    end = 0
    for row in range(len(offsets) - 1):
        for k in range(offsets[row], offsets[row + 1]):
            out[end] = values[k]
            end += values[k] < CELLS
        out_offsets[row + 1] = end

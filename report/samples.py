"""Single outputs for a report's browser: which ones, worst first, and what its script needs to draw them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lol_data.mazes import TracedMazes
from lol_data.sudokus import CELLS, DIGIT, UNDO, UNIT, WAVE, TracedSudokus
from lol_data.views import maze_board, sudoku_board
from lol_data.views.colours import STEPS
from lol_data.views.maze_picture import picture_of
from lol_data.views.sudoku_picture import sudoku_picture_of

if TYPE_CHECKING:  # these bring PyTorch, which a report on lines does without
    from lol_data.model.config import ModelConfig
    from lol_data.report.material import Result
    from lol_data.tokenization.tasks import Traced

WORST, BEST = 10, 2  # outputs per protocol and strategy: failed ones, and ones without a fault
SHADES = 24
FAULTS = ("parsed", "adherent", "legal", "complete", "answer_correct")  # the verdicts that can fail


def choose(samples: pa.Table, worst: int = WORST, best: int = BEST) -> NDArray[np.int64]:
    """Rows of a table of samples, worst first: the `worst` worst faulty ones of each strategy, and `best` good ones.

    The more verdicts fail the worse; among equals, the sooner the first illegal step.
    """
    failed = sum(~samples[name].to_numpy(zero_copy_only=False) for name in FAULTS)
    first = samples["first_illegal_step"].to_numpy().astype(np.int64)
    first = np.where(first < 0, np.iinfo(np.int32).max, first)
    order = np.lexsort((np.arange(len(first)), first, -failed))
    asked = np.array(samples["asked"].cast(pa.string()).to_pylist(), object)
    kept: list[int] = []
    for name in dict.fromkeys(asked.tolist()):
        rows = order[asked[order] == name]
        faulty = rows[failed[rows] > 0]
        kept += faulty[:worst].tolist() + rows[failed[rows] == 0][:best].tolist()
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return np.array(sorted(kept, key=lambda row: place[row]), np.int64)


def browser_data(
    results: Sequence[Result],
    arms: Sequence[Result],
    test: Traced,
    strategies: Sequence[str],
    config: ModelConfig,
    worst: int = WORST,
) -> dict[str, Any]:
    """Everything that the page's script draws from; `test` holds at least the problems of all results.

    Of the arms of interventions, which are many, there is a fifth of the outputs, and none without a fault.

    {"task", "pitch", "shades", "strategies", "protocols", "windows", "blocks", "templates": ids by protocol,
    "boards": {name: {"svg", "right", "columns"}}, "samples": [...], worst first}.
    """
    place = {int(id): row for row, id in enumerate(test.id.tolist())}
    samples: list[dict[str, Any]] = []
    templates: dict[str, Any] = {}
    shares = [(result, worst, BEST) for result in results] + [(arm, max(1, worst // 5), 0) for arm in arms]
    for result, most, best in shares:
        if result.samples is None:
            continue
        rows = result.samples.take(choose(result.samples, most, best)).to_pylist()
        samples += [sample_of(result.name, row, strategies) for row in rows if row["id"] in place]
        if "template" in result.summary:
            templates[result.name] = result.summary["template"]["ids"]
    samples.sort(key=lambda sample: (-sample["faults"], sample["first"] if sample["first"] >= 0 else 10**9))
    boards = {str(id): _board(test, place[id]) for id in dict.fromkeys(sample["id"] for sample in samples)}
    return {
        **browser_frame("sudoku" if isinstance(test, TracedSudokus) else "maze", strategies),
        "protocols": list(dict.fromkeys(result.name for result, *_ in shares if result.samples is not None)),
        "windows": {"window": config.window, "shift": config.shift, "depth": config.depth},
        "blocks": config.blocks,
        "templates": templates,
        "boards": boards,
        "samples": samples,
    }


def browser_frame(task: str, strategies: Sequence[str]) -> dict[str, Any]:
    """What the page's script needs whatever the outputs are."""
    return {
        "task": task,
        "pitch": sudoku_board.CELL if task == "sudoku" else maze_board.CELL,
        "shades": [STEPS.hex(k / (SHADES - 1)) for k in range(SHADES)],
        "strategies": list(strategies),
    }


def sample_of(protocol: str, row: dict[str, Any], strategies: Sequence[str]) -> dict[str, Any]:
    """An output for the script. row: as `evaluate` writes it, of which it may lack what says how it was decoded."""
    sudoku = "backtracking" in strategies
    trace = row["trace"]
    steps, starts = sudoku_steps(trace, row["asked"]) if sudoku else (trace, None)
    sample = {
        "id": row["id"],
        "board": str(row["id"]),
        "protocol": protocol,
        "asked": row["asked"],
        "field": row.get("field") or "",
        "steps": steps,
        "answer": row["answer"],
        "faults": sum(not row[name] for name in FAULTS),
        "first": row["first_illegal_step"],
        "reason": row["illegal_reason"],
        "parse": row["parse_reason"],
        "wrong": row["answer_reason"],
        "identified": row["identified"],
        "tokens": len(row.get("tokens") or b""),
        "blocks": row.get("blocks") or [],
        **{name: bool(row.get(name)) for name in (*FAULTS, "joint", "canonical", "identified_exact", "cut")},
    }
    if row.get("differs_at_token") is not None:
        sample["parts"] = row["differs_at_token"]
    if starts is not None:
        sample["starts"] = starts
    if row.get("fell_back") is not None:
        sample["fell_back"] = bool(row["fell_back"])
    return sample


def sudoku_steps(symbols: Sequence[int], strategy: str) -> tuple[list[list[int]], list[int]]:
    """The steps of any string of symbols, as far as it has the form of a trace, and where each begins.

    A step: [0, cell, digit, unit or -1] places, [1, cell] undoes, [2] ends a wave, [3] and all the rest is no step.
    """
    steps: list[list[int]] = []
    starts: list[int] = []
    i = 0
    with_unit = strategy in ("hidden_single", "cross_hatching")
    while i < len(symbols):
        starts.append(i)
        step, size = _sudoku_step(symbols[i : i + 3], strategy, with_unit)
        steps.append(step)
        if step[0] == 3:
            break
        i += size
    return steps, starts


def _sudoku_step(symbols: Sequence[int], strategy: str, with_unit: bool) -> tuple[list[int], int]:
    if strategy == "propagation" and symbols[0] == WAVE:
        return [2], 1
    if strategy == "backtracking" and symbols[0] == UNDO and len(symbols) > 1 and symbols[1] < CELLS:
        return [1, symbols[1]], 2
    unit = -1
    if with_unit:
        if not UNIT <= symbols[0] < WAVE:
            return [3], 0
        unit, symbols = symbols[0] - UNIT, symbols[1:]
    if len(symbols) < 2 or not 0 <= symbols[0] < CELLS or not 1 <= symbols[1] - DIGIT <= 9:
        return [3], 0
    return [0, symbols[0], symbols[1] - DIGIT, unit], 3 if with_unit else 2


def _board(test: Traced, row: int) -> dict[str, Any]:
    if isinstance(test, TracedSudokus):
        return sudoku_board_of(TracedSudokus(test.sudokus, {}), row)
    return maze_board_of(TracedMazes(test.mazes, test.answer, {}), row)


def maze_board_of(traced: TracedMazes, row: int) -> dict[str, Any]:
    """A maze to draw an output on, with its answer."""
    maze = picture_of(traced, row)
    return {"svg": maze_board.board(maze, None), "right": list(maze.answer), "columns": maze.size}


def sudoku_board_of(traced: TracedSudokus, row: int) -> dict[str, Any]:
    """A sudoku to draw an output on, with its solution."""
    problem = sudoku_picture_of(traced, row)
    return {"svg": sudoku_board.board(problem, None), "right": list(problem.solution), "columns": 9}


def unknown_problems(results: Iterable[Result], test: Traced) -> list[str]:
    """Names of results that are about other problems than `test` holds."""
    known = set(test.id.tolist())
    return [
        result.name
        for result in results
        if result.samples is not None and not known.issuperset(result.samples["id"].to_pylist())
    ]

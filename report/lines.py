"""The report on other people's outputs: what `check` said of a file of lines, as the same kind of page as a run's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from html import escape
from typing import Any, NamedTuple

import numpy as np

from lol_data.jsonl import Record, read_object
from lol_data.mazes import MAZE_STRATEGIES
from lol_data.mazes_jsonl import goal_reachable, read_cells, read_maze, to_mazes
from lol_data.report import tables
from lol_data.report.frame import Section, browser_section, code_hash, note, render
from lol_data.report.line_tally import ERRORS, KeptLine, Tally
from lol_data.report.samples import BEST, browser_frame, maze_board_of, sample_of, sudoku_board_of
from lol_data.solvers.sudoku_count import count_solutions
from lol_data.solvers.tracing import trace_mazes
from lol_data.sudokus import SUDOKU_STRATEGIES, Sudokus, TracedSudokus
from lol_data.sudokus_jsonl import parse_steps, read_sudoku
from lol_data.views.sudoku_picture import plural

Board = dict[str, Any]
REASONS = 12  # per strategy


def _maze(record: Record) -> tuple[Board | None, list[int], list[int]]:
    """A line's maze to draw on, None where no way leads to the goal; its trace and its answer."""
    mazes = to_mazes([read_maze(record)])
    board = maze_board_of(trace_mazes(mazes), 0) if goal_reachable(mazes)[0] else None
    return board, read_cells(record, "trace"), read_cells(record, "answer")


def _sudoku(record: Record) -> tuple[Board | None, list[int], list[int]]:
    """A line's sudoku, None where it has no solution; its trace as symbols, and the digits of its answer."""
    puzzle = np.frombuffer(bytearray(read_sudoku(record).puzzle), np.uint8)[None]
    counts, solutions = count_solutions(puzzle, 1)
    board = None
    if counts[0]:
        board = sudoku_board_of(TracedSudokus(Sudokus(np.zeros(1, np.uint64), puzzle, solutions), {}), 0)
    trace = parse_steps(record["strategy"], record["steps"])
    assert not isinstance(trace, str)  # the line was judged
    return board, trace.tolist(), [int(digit) if digit in "123456789" else 0 for digit in record["answer"]]


class _Task(NamedTuple):
    strategies: tuple[str, ...]
    read: Callable[[Record], tuple[Board | None, list[int], list[int]]]


TASKS = {"maze": _Task(MAZE_STRATEGIES, _maze), "sudoku": _Task(SUDOKU_STRATEGIES, _sudoku)}


def lines_page(tally: Tally, task: str, name: str) -> str:
    """The whole page, below 5 MB, in which whatever a line holds stands as text. name: of the file."""
    strategies = TASKS[task].strategies
    summary = tally.summary(strategies)
    browser, lost = _browser(tally.browser_lines(), task)
    gone = f"Not drawn: {plural(lost, 'output')} on problems without a solution." if lost else ""
    lead = f"{summary['n']:,} outputs under {len(strategies)} strategies, judged by the rules; {tally.errors:,} lines "
    head = tables.facts([("file", name), ("task", task), ("code of this report, sha256", code_hash())])
    sections = [
        _results(summary),
        _confusion(summary),
        _faults(tally, strategies),
        _errors(tally),
        browser_section("every strategy", gone),
    ]
    return render(f"Report on {name}", lead + "that could not be read.", head, sections, browser)


def _results(summary: dict[str, Any]) -> Section:
    html = note(
        "Per cent with 95 % Wilson intervals, a line counting as one output.",
        "Adherent: it follows the strategy that its line names.",
        "Joint: adherent, legal, complete, and the right answer at once.",
    )
    return Section("results", "Results", html + tables.result_table(summary))


def _confusion(summary: dict[str, Any]) -> Section:
    html = note("Which strategy an output follows. <em>ambiguous</em>: several at once; <em>none</em>: no single one.")
    return Section("confusion", "Confusion", html + tables.confusion_table(summary))


def _faults(tally: Tally, strategies: Iterable[str]) -> Section | None:
    """What is wrong, how often."""
    rows = []
    for strategy in strategies:
        found = [(count, what, why) for (name, what, why), count in tally.reasons.items() if name == strategy]
        for count, what, why in sorted(found, key=lambda one: (-one[0], one[1:]))[:REASONS]:
            what = {"illegal": "first illegal step", "parse": "unreadable", "answer": "wrong answer"}[what]
            rows.append([escape(strategy), what, escape(why.replace("_", " ")), f"{count:,}"])
    if not rows:
        return None
    return Section("faults", "What is wrong", tables.table(["strategy", "where", "why", "outputs"], rows))


def _errors(tally: Tally) -> Section | None:
    """Lines that are no outputs."""
    if not tally.errors:
        return None
    html = note(f"They count nowhere. The first {min(ERRORS, tally.errors)} of {tally.errors:,}:")
    rows = [[f"{number:,}", f'<td class="text">{escape(error)}</td>'] for number, error in tally.named]
    return Section("errors", "Lines that could not be read", html + tables.table(["line", "error"], rows))


def _browser(kept: list[KeptLine], task: str) -> tuple[Callable[[int], dict[str, Any]], int]:
    """What the page's script draws from, and how many lines cannot be drawn."""
    strategies, read = TASKS[task]
    lost = 0
    boards: dict[str, Board] = {}
    samples: list[dict[str, Any]] = []
    for one in kept:
        board, trace, answer = read(read_object(one.line.removeprefix(b"\xef\xbb\xbf")))
        if board is None:
            lost += 1
            continue
        number = one.record["line"]
        verdicts = one.record | {"asked": one.record["strategy"], "trace": trace, "answer": answer}
        if verdicts["first_illegal_step"] is None:
            verdicts["first_illegal_step"] = -1
        verdicts["id"] = f"line {number}" if one.record["id"] is None else one.record["id"]
        samples.append(sample_of("lines", verdicts, strategies) | {"board": str(number)})
        boards[str(number)] = board

    def browser(worst: int) -> dict[str, Any]:
        shown: list[dict[str, Any]] = []
        counts: Counter[tuple[str, bool]] = Counter()
        for sample in samples:  # worst first
            group = sample["asked"], sample["faults"] > 0
            if counts[group] < (worst if group[1] else BEST):
                counts[group] += 1
                shown.append(sample)
        used = {sample["board"]: boards[sample["board"]] for sample in shown}
        return browser_frame(task, strategies) | {"protocols": ["lines"], "samples": shown, "boards": used}

    return browser, lost

"""Lines judged by several processes: the same answers in the same order, whatever is on the lines."""

import json
import os
import signal

import pytest

from lol_data.errors import LolDataError
from lol_data.evaluators import maze_jsonl, parallel_lines
from lol_data.evaluators.parallel_lines import judge_lines, nothing
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.jsonl import to_line
from lol_data.mazes import MAZE_STRATEGIES
from lol_data.mazes_jsonl import problem_record

pytestmark = pytest.mark.slow


def outputs(count):
    """Lines of canonical outputs, bad ones among them."""
    traced = generate_mazes(MazeSettings(size=4), 0, 0, 20)
    lines = []
    for k in range(count):
        row, strategy = k % 20, MAZE_STRATEGIES[k % 5]
        record = problem_record(traced.mazes, row) | {"id": k, "strategy": strategy}
        record |= {"trace": traced.traces[strategy][row].tolist(), "answer": traced.answer[row].tolist()}
        lines.append((json.dumps(record) if k % 7 else "not json").encode() + b"\n")
    return [b"\xef\xbb\xbf" + lines[0], b"\n", *lines[1:]]


def test_any_number_of_processes_says_the_same(monkeypatch):
    monkeypatch.setattr(parallel_lines, "GROUP", 100)
    lines = outputs(1500)
    expected = "".join(to_line(record) + "\n" for record in maze_jsonl.check_lines(lines))
    for workers in (1, 2, 3):
        assert (
            "".join(piece.text for piece in judge_lines(maze_jsonl.check_lines, iter(lines), workers, nothing))
            == expected
        )
    numbers = [json.loads(line)["line"] for line in expected.splitlines()]
    assert numbers == [1, *range(3, 1502)]


def killed(lines, first):
    """A check that ends its process."""
    if first > 1:
        os.kill(os.getpid(), signal.SIGKILL)
    yield {"line": first}


def test_a_lost_process_ends_in_one_line():
    with pytest.raises(LolDataError, match="was killed"):
        list(judge_lines(killed, [b"x"] * 300, 2, nothing))

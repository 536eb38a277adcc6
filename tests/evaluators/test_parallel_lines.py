"""Lines judged by several processes: the same answers in the same order, whatever is on the lines."""

import io
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


def texts(lines, workers):
    """What is said of the lines of a file, by so many processes."""
    pieces = judge_lines(maze_jsonl.check_lines, io.BytesIO(b"".join(lines)), workers, nothing)
    return "".join(piece.text for piece in pieces)


def test_any_number_of_processes_says_the_same(monkeypatch):
    monkeypatch.setattr(parallel_lines, "FIRST", 5_000)
    monkeypatch.setattr(parallel_lines, "BLOCK", 20_000)
    lines = outputs(1500)
    expected = "".join(to_line(record) + "\n" for record in maze_jsonl.check_lines(lines))
    for workers in (1, 2, 3):
        assert texts(lines, workers) == expected
    assert texts([*lines[:-1], lines[-1].rstrip(b"\n")], 1) == expected
    numbers = [json.loads(line)["line"] for line in expected.splitlines()]
    assert numbers == [1, *range(3, 1502)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_line_without_end_takes_no_memory_and_stops_nobody(end, monkeypatch):
    monkeypatch.setattr(parallel_lines, "FIRST", 10)
    monkeypatch.setattr(parallel_lines, "BLOCK", 1 << 16)
    good = outputs(2)[-1].rstrip(b"\n") + end
    blocks = []
    judge = parallel_lines._judge
    monkeypatch.setattr(
        parallel_lines, "_judge", lambda check, block, *rest: blocks.append(len(block)) or judge(check, block, *rest)
    )
    found = [json.loads(line) for line in texts([good, b"[" * (1 << 23) + end, good], 1).splitlines()]
    assert [each["line"] for each in found] == [1, 2, 3]
    assert found[0]["legal"] and found[2]["legal"] and found[1]["error"].startswith("the line is longer than")
    assert max(blocks) < (1 << 20) + (1 << 17)


def killed(lines, first):
    """A check that ends its process."""
    if first > 1:
        os.kill(os.getpid(), signal.SIGKILL)
    yield {"line": first}


def test_a_lost_process_ends_in_one_line():
    with pytest.raises(LolDataError, match="was killed"):
        list(judge_lines(killed, io.BytesIO(b"x\n" * 200_000), 2, nothing))

"""The script for a GPU, at toy size on a CPU: every stage runs, and its page claims nothing that was not measured."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "gpu_reference.py"


def run(out, *words, **more):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **more}
    command = [sys.executable, str(SCRIPT), "--toy", "--device", "cpu", "--out", str(out), *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)


@pytest.mark.slow
def test_every_stage_runs_and_the_page_says_what_it_is(tmp_path):
    done = run(tmp_path, "--stages", "kernels", "throughput", "maze", "sudoku", "page")
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads((tmp_path / "gpu-reference.json").read_text())
    assert list(found) == ["kernels", "throughput", "maze", "sudoku"]
    assert {stage["machine_is"]["device"] for stage in found.values()} == {"cpu"}
    assert found["kernels"]["ran"] is False and found["kernels"]["reason"] == "there is no CUDA device"
    arms = found["throughput"]["arms"]
    assert {"LoL", "fixed path", "dense"} <= set(arms)
    assert all(0 < share < 1 for arm in arms.values() for share in arm["share_of_matmul"])
    for task in ("maze", "sudoku"):
        stage = found[task]
        assert stage["last"]["step"] == stage["steps"] and len(stage["content_hash"]) == 16
        assert [summary["protocol"] for summary in stage["summaries"]] == ["prompted", "forced"]
        assert all(summary["n"] == 2 for summary in stage["summaries"])
    page = (tmp_path / "gpu-reference.md").read_text()
    assert done.stdout.strip() == page.strip()
    assert "**These are no figures of a GPU.**" in page and "No kernel ran: there is no CUDA device." in page
    assert "(not reached: 99)" in page and page.count("## ") == 4


@pytest.mark.slow
def test_a_stage_that_fails_stops_no_other(tmp_path):
    done = run(tmp_path, "--stages", "maze", "kernels", "page", "--set", "maze:model.width=33")
    assert done.returncode == 1 and "failed: maze" in done.stderr
    page = (tmp_path / "gpu-reference.md").read_text()
    assert "This stage failed:" in page and "model.width 33 must be" in page and "No kernel ran" in page


@pytest.mark.slow
@pytest.mark.skipif(find_spec("triton") is None, reason="no Triton here")
def test_kernels_are_held_to_the_plain_way(tmp_path):
    done = run(tmp_path, "--stages", "kernels", "page", TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stderr[-2000:]
    cases = json.loads((tmp_path / "kernels.json").read_text())["cases"]
    assert {case["kernel"].split(",")[0] for case in cases} == {"router inputs", "norm and FiLM", "window product"}
    assert all(0 <= case["difference"] <= case["allowed"] for case in cases)
    assert "wrong" not in (tmp_path / "gpu-reference.md").read_text()

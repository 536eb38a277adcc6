"""Learning curves side by side: what was read from the metrics, work made equal, a picture."""

import json

import numpy as np
import pytest

from lol_data.errors import UsageError
from lol_data.report.curves import curve_table, is_run, plot_curves, read_curve, summary


def make_run(folder, steps, flops, start=2.0):
    """A run folder with a loss that falls on a line to half of its start."""
    folder.mkdir()
    about = {"config": {}, "data": {"content_hash": "abc"}, "machine": {}}
    (folder / "run.json").write_text(json.dumps(about))
    lines = [
        {"step": k, "loss": start * (1 - 0.5 * k / steps), "tokens": 100 * k, "flops": flops, "seconds": 0.5}
        for k in range(1, steps + 1)
    ]
    lines[-1]["validation_loss"] = 0.9
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def runs(tmp_path):
    return [make_run(tmp_path / "one", 50, 10), make_run(tmp_path / "two", 200, 10, 4.0)]


def test_a_curve_is_what_the_metrics_say(runs):
    curve = read_curve(runs[0])
    assert curve.steps.tolist() == list(range(1, 51))
    assert curve.tokens[-1] == 5000
    assert curve.flops.tolist() == list(range(10, 510, 10))
    assert np.allclose(curve.loss, 2.0 * (1 - 0.5 * curve.steps / 50))  # one step of 50 is its own mean
    assert (curve.seconds, curve.validation) == (25.0, 0.9)
    assert read_curve(runs[1]).loss[-1] == pytest.approx(4.0 * (1 - 0.5 * 198.5 / 200))  # the mean of the last four


def test_runs_are_compared_where_the_shorter_one_ended(runs):
    one, two = summary([read_curve(run) for run in runs])
    assert one["equal_work"] == one["loss"] == pytest.approx(1.0)
    assert two["equal_work"] == pytest.approx(4.0 * (1 - 0.5 * 48.5 / 200), abs=1e-6)
    assert (two["steps"], two["flops"], two["validation_loss"]) == (200, 2000, 0.9)
    text = curve_table([one, two])
    assert str(runs[0]) in text and "at equal FLOPs" in text
    assert len({len(line) for line in text.splitlines()[:4]}) == 1  # columns stand below each other


@pytest.mark.parametrize("name", ["curves.svg", "curves.png"])
def test_a_picture_of_three(runs, tmp_path, name):
    pytest.importorskip("matplotlib")
    plot_curves([read_curve(run) for run in runs], tmp_path / name)
    data = (tmp_path / name).read_bytes()
    if name.endswith("svg"):
        assert data.count(b"training loss, smoothed") == 1 and b"training FLOPs" in data and b"two" in data
    else:
        assert data.startswith(b"\x89PNG")


def test_what_has_no_curve_is_refused(runs, tmp_path):
    assert is_run(runs[0]) and not is_run(tmp_path)
    (runs[0] / "metrics.jsonl").write_text("")
    with pytest.raises(UsageError, match="has no step yet"):
        read_curve(runs[0])
    with pytest.raises(UsageError, match="ends in"):
        plot_curves([read_curve(runs[1])], tmp_path / "curves.jpg")


def test_the_command_goes_without_evaluations_and_takes_many(run, runs, tmp_path):
    code, out, err = run("compare", *runs, runs[1], "--json")
    assert code == 0, err
    found = json.loads(out)
    assert [each["steps"] for each in found["runs"]] == [50, 200, 200] and found["pairs"] == []
    assert "only the curves are compared" in err
    code, _, err = run("compare", runs[0])
    assert code == 2 and "two or more" in err

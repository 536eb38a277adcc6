"""The page in a browser: it steps, filters and marks, without an exception. Needs Chromium."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

from lol_data.evaluators import maze_jsonl, sudoku_jsonl
from lol_data.generators.maze import MazeSettings
from lol_data.generators.sudoku import SudokuSettings
from lol_data.jsonl import to_line
from lol_data.report.line_tally import Tally
from lol_data.report.lines import lines_page
from lol_data.report.material import read_material
from lol_data.report.page import report_page

from .common import make_data, make_run
from .test_lines import maze_records, sudoku_records

pytest.importorskip("matplotlib")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here"),
    pytest.mark.slow,
]
WATCH = """<script>
window.faults = [];
addEventListener("error", (event) => faults.push(String(event.message)));
addEventListener("unhandledrejection", (event) => faults.push(String(event.reason)));
</script>"""
DRIVE = (Path(__file__).parent / "drive.js").read_text(encoding="utf-8")


# Every step of every output, and then what went wrong.
WALK = """
data.samples.forEach((_, k) => { open(k); for (let s = 0; s <= last(); s++) go(s); });
const seen = { faults, outputs: find("list").children.length, routes: !find("routes").parentNode.hidden };
const textContent = JSON.stringify(seen);
document.body.replaceChildren(Object.assign(document.createElement("pre"), { id: "log", textContent }));
"""


def drive(page, folder, width=1200, script=DRIVE):
    """What the driven page logs."""
    path = folder / "driven.html"
    watched = page.replace("<head>", "<head>" + WATCH)
    path.write_text(watched.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=8000"]
    command += [f"--user-data-dir={folder / 'profile'}", f"--window-size={width},900", "--dump-dom", path.as_uri()]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120)
    match = re.search(r'<pre id="log">(.*?)</pre>', found.stdout, re.DOTALL)
    assert match, found.stderr[-2000:]
    return json.loads(unescape(match[1]))


@pytest.mark.parametrize("task", ["maze", "sudoku"])
@pytest.mark.parametrize("width", [1200, 500])
def test_the_browser_of_outputs_works(task, width, tmp_path):
    settings = MazeSettings(size=4) if task == "maze" else SudokuSettings()
    run, test = make_run(tmp_path / "run", make_data(tmp_path / "data", settings, task), n=4)
    page = report_page(read_material(run), test)
    log = drive(page, tmp_path, width)
    assert log["faults"] == [] and log["visible"] and log["width"] <= 0
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])
    samples = data["samples"]
    assert len(log["all"]) == len(samples)
    illegal = [sample for sample in samples if sample["parsed"] and not sample["legal"]]
    assert log["illegal"] == len(illegal) > 0
    step, reason = illegal[0]["first"] + 1, illegal[0]["reason"].replace("_", " ")
    assert log["caption"].startswith(f"step {step} of") and log["why"] == f"✗ first illegal step: {reason}"
    fault = illegal[0]["steps"][illegal[0]["first"]]
    assert log["back"] == log["caption"] and log["crosses"] == (task == "maze" or fault[0] < 2)
    assert log["begin"] == [f"{len(illegal[0]['steps'])} steps to come", 0]
    good = [sample for sample in samples if sample["joint"]]
    assert log["joint"] == len(good) > 0 and log["end"] == "the answer, right" and log["own"] > 0
    assert log["first"][0].startswith("step 1 of") and log["first"][1:] == ["1", 1]
    assert log["steps"] == len(good[0]["steps"]) and int(log["last"]) == log["steps"] + 1
    needles = [float(place.rstrip("%")) for place in log["needles"]]
    assert 0 < needles[0] < needles[1]
    assert log["levels"] == good[0]["blocks"] and log["right"]
    second = [sample for sample in samples if sample["protocol"] == data["protocols"][1]]
    asked = [sample for sample in second if sample["asked"] == data["strategies"][2]]
    assert log["second"] and all(data["protocols"][1] in text for text in log["second"])
    assert log["differing"] > 0  # the hand-made template says block 0 everywhere
    assert 0 < len(log["asked"]) <= len(asked) and all(text.startswith(data["strategies"][2]) for text in log["asked"])
    assert log["unreadable"][0] == sum(not sample["parsed"] for sample in samples)
    assert "unreadable" in log["unreadable"][1] and log["playing"] >= 2


@pytest.mark.parametrize("task", ["maze", "sudoku"])
def test_so_does_that_of_other_peoples_lines(task, tmp_path):
    records, check = (maze_records, maze_jsonl) if task == "maze" else (sudoku_records, sudoku_jsonl)
    lines = [to_line(record).encode() for record in records(100)]
    tally = Tally.of(list(check.check_lines(lines)), lines, 1)
    log = drive(lines_page(tally, task, "outputs.jsonl"), tmp_path, script=WALK)
    assert log == {"faults": [], "outputs": len(tally.browser_lines()), "routes": False}

"""Remake the pictures of docs/results/report.md from a run that was evaluated: its report in a browser, part by part.

    python docs/screenshots.py RUN [--out docs/results/report]

Needs Chromium and the package's `report` extra.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SHOTS = (
    # name, part of the page, width, height, dark
    ("results", "results", 1200, 1150, False),
    ("samples", "samples", 1200, 1000, False),
    ("samples-dark", "samples", 1200, 1000, True),
    ("samples-narrow", "samples", 500, 1500, False),
    ("interventions", "interventions", 1200, 1200, False),
    ("paths", "paths", 1200, 1300, False),
    ("training", "training", 1200, 700, False),
)
NAMES = "chromium", "chromium-browser", "google-chrome"
# A headless page is not scrolled to the part that its address names; so everything before that part is taken out.
CUT = """<script>
addEventListener("load", () => {
  for (let part = document.querySelector("#PART").previousElementSibling; part; part = part.previousElementSibling) {
    part.hidden = true;
  }
});
</script>"""


def shoot(browser: str, page: str, name: str, part: str, width: int, height: int, dark: bool, out: Path) -> None:
    """One picture, OUT/NAME.png."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        path.write_text(page.replace("</body>", CUT.replace("PART", part) + "</body>"), encoding="utf-8")
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += [f"--user-data-dir={folder}/profile", f"--window-size={width},{height}"]
        command += ["--virtual-time-budget=5000", f"--screenshot={out / name}.png"]
        command += ["--blink-settings=preferredColorScheme=0"] if dark else ["--blink-settings=preferredColorScheme=1"]
        subprocess.run([*command, path.as_uri()], check=True, capture_output=True, timeout=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "report")
    options = parser.parse_args()
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        sys.exit("no Chromium here; install one, for example: apt install chromium")
    subprocess.run([sys.executable, "-m", "lol_data.cli", "report", str(options.run)], check=True)
    page = (options.run / "report.html").read_text(encoding="utf-8")
    options.out.mkdir(parents=True, exist_ok=True)
    for name, part, *look in SHOTS:
        if f'id="{part}"' in page:
            shoot(browser, page, name, part, *look, options.out)
            print(options.out / f"{name}.png")


if __name__ == "__main__":
    main()

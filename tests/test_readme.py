"""The README is held to what it says."""

import re
from pathlib import Path

import pytest
import typer

from lol_data import cli

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
COMMANDS = typer.main.get_command(cli.app).commands


def test_the_drawn_maze_is_what_the_command_draws(run):
    code, out, _ = run("show", ROOT / "datasets/golden/maze8", "--row", 3, "--strategy", "bfs")
    assert code == 0 and f"```\n{out.rstrip()}\n```" in README


def test_commands_that_are_named_exist():
    named = set(re.findall(r"lol-data ([a-z][a-z-]+)", README + (ROOT / "docs/scale.md").read_text()))
    prose = {"generates"}
    assert named - prose <= set(COMMANDS)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "quickstart"])
def test_every_command_has_an_example_and_is_in_the_readme(name):
    assert f"Example: lol-data {name}" in COMMANDS[name].help
    assert f"lol-data {name}" in README


def test_links_lead_somewhere():
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target

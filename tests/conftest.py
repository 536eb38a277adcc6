"""The command line, called as a user calls it."""

import sys

import pytest

from lol_data import cli


@pytest.fixture
def run(monkeypatch, capsys):
    """Call the command line; returns (exit code, stdout, stderr)."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["lol-data", *map(str, arguments)])
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code or 0
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return call

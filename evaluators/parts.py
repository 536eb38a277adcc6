"""Finished parts of an evaluation, kept on disk so that an interrupted one goes on where it stopped.

    FOLDER/settings.json            what the outputs depend on, besides the problem
           part-00000000-0.parquet  a batch of outputs under their keys: problem id, strategy field, path; the last
                                    number is that of the process

Greedy outputs do not depend on the batch they were decoded in, so parts of any size fit together.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from lol_data import distributed
from lol_data.errors import LolDataError, RefusedError
from lol_data.files import whole, write_whole

SETTINGS = "settings.json"


class Decoded(NamedTuple):
    """One output: tokens uint8 (n,), and blocks uint8 (D, K) of the windows behind the prompt."""

    tokens: NDArray[np.uint8]
    blocks: NDArray[np.uint8]


@dataclass(frozen=True)
class Parts:
    """The parts in a folder."""

    folder: Path

    @staticmethod
    def open(folder: Path, settings: dict[str, Any]) -> Parts:
        """Begin, or go on. Raises RefusedError where parts with other settings are, and LolDataError."""
        settings = json.loads(json.dumps(settings))
        path = folder / SETTINGS
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            before = None  # settings are written first: without them no part can be trusted
        if before is not None and before != settings:
            names = sorted(name for name in {*before, *settings} if before.get(name) != settings.get(name))
            change = "; ".join(f"{name} {before.get(name)!r} -> {settings.get(name)!r}" for name in names)
            raise RefusedError(
                f"{folder} holds an unfinished evaluation with other settings ({change}); delete it or "
                "choose another --out"
            )
        if before is None:
            shutil.rmtree(folder, ignore_errors=True)
            try:
                folder.mkdir(parents=True, exist_ok=True)
                write_whole(path, json.dumps(settings))
            except OSError as error:
                raise _unsaved(folder, error) from error
        return Parts(folder)

    def read(self, keys: NDArray[np.int64]) -> list[Decoded | None]:
        """What is finished of the outputs with these keys, int64 (M, 3), else None. A damaged part is none."""
        found: dict[tuple[int, ...], Decoded] = {}
        for path in sorted(self.folder.glob("part-*.parquet")):
            try:
                columns = pq.read_table(path).to_pydict()
            except (OSError, ValueError, pa.ArrowException):
                continue
            rows = zip(*(columns[name] for name in ("id", "field", "path", "tokens", "blocks", "depth")), strict=True)
            for *key, tokens, blocks, depth in rows:
                found[tuple(key)] = Decoded(
                    np.frombuffer(tokens, np.uint8), np.frombuffer(blocks, np.uint8).reshape(depth, -1)
                )
        return [found.get(tuple(key)) for key in keys.tolist()]

    def add(self, keys: NDArray[np.int64], decoded: list[Decoded]) -> None:
        """Keep a batch. Raises LolDataError when it cannot be written."""
        own = distributed.number()
        names = [int(path.stem.split("-")[1]) for path in self.folder.glob(f"part-*-{own}.parquet")]
        table = pa.table(
            {
                **{name: keys[:, column] for column, name in enumerate(("id", "field", "path"))},
                "tokens": pa.array([unit.tokens.tobytes() for unit in decoded], pa.binary()),
                "blocks": pa.array([unit.blocks.tobytes() for unit in decoded], pa.binary()),
                "depth": [len(unit.blocks) for unit in decoded],
            }
        )
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        try:
            with whole(self.folder / f"part-{max(names, default=-1) + 1:08d}-{own}.parquet") as draft:
                draft.write_bytes(sink.getvalue())
        except OSError as error:
            raise _unsaved(self.folder, error) from error

    def remove(self) -> None:
        """Drop all, once the results are saved."""
        shutil.rmtree(self.folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # others' parts may still be there
            self.folder.parent.rmdir()


def _unsaved(folder: Path, error: OSError) -> LolDataError:
    return LolDataError(f"{folder}: the results could not be saved ({error.strerror}); free space or use --out")

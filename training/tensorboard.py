"""Metrics for TensorBoard, where it is installed; nothing of lol-data needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lol_data.errors import UsageError

FOLDER = "tensorboard"


def require_tensorboard() -> None:
    """Raises UsageError where TensorBoard is not installed."""
    try:
        import torch.utils.tensorboard  # noqa: F401
    except ImportError as error:
        raise UsageError("--tensorboard: install it first, with: pip install tensorboard") from error


@contextmanager
def tensorboard_log(run: Path | None, step: int) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that takes lines of metrics into RUN/tensorboard, going on behind `step`; without a run it drops them.

    Numbers are kept under their names, the loads as loads/depth-D/block-M, warnings as text.
    """
    if run is None:
        yield lambda line: None
        return
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(run / FOLDER), purge_step=step + 1) as writer:

        def log(line: dict[str, Any]) -> None:
            for name, value in line.items():
                if isinstance(value, int | float) and name != "step":
                    writer.add_scalar(name, value, line["step"])
            for depth, row in enumerate(line["loads"], start=1):
                for block, share in enumerate(row):
                    writer.add_scalar(f"loads/depth-{depth}/block-{block}", share, line["step"])
            for text in line.get("warnings", []):
                writer.add_text("warnings", text, line["step"])

        yield log

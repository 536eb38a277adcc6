"""Triton kernels for a GPU. Each does what plain PyTorch does elsewhere, and is tested against it.

    windows.py  rows times the weights of the block that their window chose   `grouped.grouped_linear`
    norms.py    RMSNorm and FiLM, equation (9)                                `ops.norm_film`
    means.py    router inputs, equation (5)                      `routing.window_means` and `prefix_means`

Only `load` imports these files, and with them Triton: who does without kernels does without it. Block sizes are chosen
by shape, not by trial, so that results do not hang on timings, and so that the kernels run in Triton's interpreter as
well (TRITON_INTERPRET=1), which needs no GPU.

Decoding takes one token at a time and keeps to the plain way, but for the norm; so do the router inputs of a prefill,
which have to leave their sums behind.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from lol_data.model.kernels.windows import StackedBlocks, Tiles


@dataclass(frozen=True)
class Kernels:
    """What a model calls: `Tiles.of`, `StackedBlocks`, and the functions of the same names."""

    tiles: Callable[..., Tiles]
    stack: Callable[..., StackedBlocks]
    window_linear: Callable[..., Tensor]
    norm_film: Callable[..., Tensor]
    router_inputs: Callable[..., Tensor]


@cache
def load() -> Kernels:
    """The kernels, compiled at their first use with each kind of arguments; ImportError where there is no Triton."""
    from lol_data.model.kernels.means import router_inputs
    from lol_data.model.kernels.norms import norm_film
    from lol_data.model.kernels.windows import StackedBlocks, Tiles, window_linear

    return Kernels(Tiles.of, StackedBlocks, window_linear, norm_film, router_inputs)


def interpreted() -> bool:
    """Whether kernels run in Triton's interpreter, on the CPU. Triton looks when it is imported."""
    return os.environ.get("TRITON_INTERPRET", "").lower() in ("1", "true", "on", "yes", "y")


def why_not(device: torch.device, matmul: torch.dtype) -> str | None:
    """Why kernels cannot compute on a device, with products in the given format; None if they can."""
    if find_spec("triton") is None:
        return "Triton is not installed"
    if interpreted():
        return None if matmul != torch.bfloat16 else "Triton's interpreter cannot multiply bf16"
    return None if device.type == "cuda" else "there is no CUDA device"


def launch(kernel: Any, programs: int, *arguments: Any, **settings: Any) -> None:
    """Start a kernel on the device of its first argument."""
    if programs:
        with torch.cuda.device_of(arguments[0]):
            kernel[(programs,)](*arguments, **settings)

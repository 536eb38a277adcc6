"""No command: the `kernels` stage of `gpu_reference.py`. Every kernel against the plain way, forward and backward."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lol_data.model import kernels
from lol_data.model.grouped import Dispatch, grouped_linear
from lol_data.model.ops import PLAIN
from lol_data.model.routing import prefix_means, window_means

# name: width, hidden, blocks, sequences, widths of the windows
SHAPES = {
    "width 128": (128, 384, 6, 256, (75, 32, 64, 64)),
    "width 384": (384, 1024, 8, 1024, (75, 32, 64, 64)),
    "width 768": (768, 2048, 8, 256, (91, 64, 128, 128, 128, 128)),
}
TOY = {"toy": (32, 48, 3, 3, (20, 8, 16))}
ALLOWED = {torch.float32: 1e-3, torch.bfloat16: 2e-2}  # largest difference against the largest value
TIMES, WARM = 15, 3
Way = Callable[..., Tensor]


@dataclass(frozen=True)
class Rows:
    """Sequences of random lengths, cut into windows, each of which took a random block."""

    slices: list[tuple[int, int]]
    bounds: Tensor
    window: Tensor
    ids: Tensor
    opening: Tensor

    @staticmethod
    def of(widths: Sequence[int], sequences: int, blocks: int, device: torch.device) -> Rows:
        """Every sequence has its whole window 0, and ends anywhere behind it."""
        generator = torch.Generator().manual_seed(0)
        slices = list(itertools.pairwise([0, *itertools.accumulate(widths)]))
        lengths = torch.randint(widths[0], sum(widths) + 1, (sequences,), generator=generator)
        begins, ends = torch.tensor(slices).t()
        counts = (torch.minimum(lengths[:, None], ends) - begins).clamp(min=0)
        bounds = torch.cat([torch.zeros(1, dtype=torch.long), counts.flatten().cumsum(0)])
        window = torch.repeat_interleave(torch.arange(counts.numel()), counts.flatten())
        ids = torch.randint(blocks, counts.shape, generator=generator)
        opening = bounds[:-1].view(counts.shape)[:, 0]
        return Rows(slices, bounds.to(device, torch.int32), window.to(device), ids.to(device), opening.to(device))


def check(device: torch.device, toy: bool) -> dict[str, Any]:
    """{"ran", "cases": [{"kernel", "case", "difference", "allowed", "milliseconds", "plain_milliseconds"}]}."""
    formats = [kind for kind in ALLOWED if kernels.why_not(device, kind) is None]
    if not formats:
        return {"ran": False, "reason": kernels.why_not(device, torch.float32)}
    loaded, cases = kernels.load(), []
    for name, (width, hidden, blocks, sequences, widths) in (TOY if toy else SHAPES).items():
        rows = Rows.of(widths, sequences, blocks, device)
        count, windows = len(rows.window), len(widths)

        def own_inputs(h: Tensor, vector: Tensor, rows: Rows = rows, count: int = count) -> Tensor:
            return loaded.router_inputs(h, rows.bounds, rows.opening, count, vector, 1.0)

        def plain_inputs(h: Tensor, vector: Tensor, rows: Rows = rows, windows: int = windows) -> Tensor:
            means = window_means(h, rows.window, rows.ids.numel()).view(len(rows.ids), windows, -1)
            return prefix_means(means, h[rows.opening], vector, 1.0)

        given = _numbers(device, torch.float32, (count, width), (width,))
        cases.append(_case("router inputs", name, torch.float32, own_inputs, plain_inputs, given))
        for kind in formats:
            label = f"{name}, {str(kind).removeprefix('torch.')}"
            given = _numbers(device, torch.float32, (count, width), (width,), (width,))

            def own_norm(h: Tensor, scale: Tensor, offset: Tensor, kind: torch.dtype = kind) -> Tensor:
                return loaded.norm_film(h, scale, offset, kind)

            def plain_norm(h: Tensor, scale: Tensor, offset: Tensor, kind: torch.dtype = kind) -> Tensor:
                return PLAIN.norm_film(h, scale, offset, kind)

            cases.append(_case("norm and FiLM", label, kind, own_norm, plain_norm, given))
            for product, inner, columns in (("qkv", width, 3 * width), ("down", hidden, width)):
                x, weights = _numbers(device, kind, (count, inner), (blocks, columns, inner))
                given = [x, weights * inner**-0.5]

                def own_product(x: Tensor, weights: Tensor, rows: Rows = rows, count: int = count) -> Tensor:
                    tiles = loaded.tiles(rows.slices, rows.bounds, rows.ids, count, len(weights))
                    return loaded.window_linear(x, tiles, weights)

                def plain_product(x: Tensor, weights: Tensor, rows: Rows = rows) -> Tensor:
                    dispatch = Dispatch.of(rows.ids.flatten()[rows.window], len(weights))
                    return dispatch.unsort(grouped_linear(dispatch.sort(x), dispatch.sizes, weights.unbind()))

                cases.append(_case(f"window product, {product}", label, kind, own_product, plain_product, given))
    return {"ran": True, "cases": cases}


def _numbers(device: torch.device, kind: torch.dtype, *shapes: tuple[int, ...]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(*shape, generator=generator).to(device, kind) for shape in shapes]


def _case(kernel: str, case: str, kind: torch.dtype, own: Way, plain: Way, given: list[Tensor]) -> dict[str, Any]:
    """The largest difference of the result and all gradients, against the largest value of each, and both times."""
    upstream: Tensor | None = None
    results: list[list[Tensor]] = []
    for way in (plain, own):
        leaves = [value.clone().requires_grad_() for value in given]
        out = way(*leaves)
        upstream = torch.randn_like(out) if upstream is None else upstream
        out.backward(upstream)
        results.append([out.detach().float(), *(leaf.grad.float() for leaf in leaves if leaf.grad is not None)])
    difference = max(
        ((one - two).abs().max() / two.abs().max()).item() for one, two in zip(results[1], results[0], strict=True)
    )
    found: dict[str, Any] = {"kernel": kernel, "case": case, "difference": difference, "allowed": ALLOWED[kind]}
    if given[0].device.type == "cuda" and upstream is not None:
        found["milliseconds"] = _milliseconds(own, given, upstream)
        found["plain_milliseconds"] = _milliseconds(plain, given, upstream)
    return found


def _milliseconds(way: Way, given: list[Tensor], upstream: Tensor) -> float:
    """Forward and backward, median of some."""
    leaves, times = [value.clone().requires_grad_() for value in given], []
    for _ in range(WARM + TIMES):
        torch.cuda.synchronize()
        began = time.perf_counter()
        way(*leaves).backward(upstream)
        torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times[WARM:])

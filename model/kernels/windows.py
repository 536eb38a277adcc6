"""Products in which every row meets the weights of the block that its window chose.

A window is a run of rows. It is cut into *strips* of up to 16 rows, and the strips, of which there are few, are sorted
by block on the device; rows are neither moved nor filled up, and the host waits for nothing. A program of a product
takes a *piece*, some strips of one block, which make a tile of matrix units' size whatever the windows' size is. The
gradient of the weights takes longer pieces, so many that a block which all windows chose still occupies the whole GPU;
what each piece gives is written down and added up in a fixed order, so that results repeat bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from lol_data.model.kernels import launch

STRIP = 16  # rows; the least that matrix units take
NAMES = ("qkv", "out", "up", "down")


@dataclass(frozen=True)
class Tiles:
    """The strips of one depth, sorted by block; those without a row, of windows behind a sequence's end, come last.

    start, count: int32 (S,), first row and number of rows of each strip. offsets: int32 (L + 1,), the first strip of
    each block, and the end of the last one's. tokens: rows in all; those behind them lie in no window.
    """

    start: Tensor
    count: Tensor
    offsets: Tensor
    tokens: int
    made: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)

    @staticmethod
    def of(slices: list[tuple[int, int]], bounds: Tensor, ids: Tensor, tokens: int, blocks: int) -> Tiles:
        """slices: [start, end) of each window in slots, the most rows that it may have. bounds: int32 (B K + 1,), the
        first row of each window and the end of the last. ids: int64 (B, K), blocks, of `blocks` in all."""
        widths = tuple(end - start for start, end in slices)
        window, first = _strips(widths, ids.device)
        start = bounds[:-1].view(ids.shape).index_select(1, window) + first
        count = (bounds[1:].view(ids.shape).index_select(1, window) - start).clamp_(0, STRIP).flatten()
        block = ids.index_select(1, window).flatten().masked_fill_(count == 0, blocks)
        block, order = block.sort(stable=True)
        borders = torch.arange(blocks + 1, device=ids.device)
        offsets = torch.searchsorted(block, borders, out_int32=True)
        return Tiles(start.flatten()[order], count[order], offsets, tokens)

    @property
    def blocks(self) -> int:
        """Blocks of the library."""
        return len(self.offsets) - 1

    def pieces(self, size: int) -> tuple[Tensor, Tensor]:
        """Runs of up to `size` strips of one block, and the first run of each block with the end of the last one's.

        int32 (N, 3), block, first strip and end; int32 (L + 1,). N is known without asking the device: the runs that
        are too many hold nothing and come last.
        """
        if size not in self.made:
            runs = (self.offsets.diff() + (size - 1)).div_(size, rounding_mode="floor")
            ends = runs.cumsum(0, dtype=torch.int32)
            number = torch.arange(-(-len(self.start) // size) + self.blocks, device=ends.device, dtype=torch.int32)
            block = torch.searchsorted(ends, number, right=True).clamp_(max=self.blocks - 1)
            first = self.offsets[block] + (number - (ends - runs)[block]) * size
            end = torch.minimum(first + size, self.offsets[block + 1])
            table = torch.stack([block.to(torch.int32), first, end], 1)
            self.made[size] = table, torch.cat([ends.new_zeros(1), ends])
        return self.made[size]


@lru_cache(maxsize=4096)
def _strips(widths: tuple[int, ...], device: torch.device) -> tuple[Tensor, Tensor]:
    """The strips of one sequence with windows of such widths: window and first row in it, int32 (T,) each."""
    strips = [(number, first) for number, width in enumerate(widths) for first in range(0, width, STRIP)]
    with torch.inference_mode(False):
        window, first = torch.tensor(strips, dtype=torch.int32).t().contiguous().to(device)
    return window, first


@triton.jit
def _rows(start, count, first, end, ROWS: tl.constexpr, STRIP: tl.constexpr):
    # The rows of the strips first .. end - 1, so many as fit, int64 (ROWS,), and whether there is one.
    row = tl.arange(0, ROWS)
    strip = first + row // STRIP
    there = strip < end
    begin = tl.load(start + strip, mask=there, other=0)
    held = tl.load(count + strip, mask=there, other=0)
    return (begin + row % STRIP).to(tl.int64), row % STRIP < held


@triton.jit
def _multiply(
    x,
    weights,
    out,
    start,
    count,
    pieces,
    inner,
    columns,
    of_block,
    of_column,
    of_inner,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    INNER: tl.constexpr,
    STRIP: tl.constexpr,
):
    # Programs side by side share their rows.
    across = tl.cdiv(columns, COLUMNS)
    piece = pieces + tl.program_id(0) // across * 3
    first, end = tl.load(piece + 1), tl.load(piece + 2)
    if first >= end:
        return
    row, there = _rows(start, count, first, end, ROWS, STRIP)
    column = tl.program_id(0) % across * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < columns
    weight = weights + tl.load(piece).to(tl.int64) * of_block + column[None, :] * of_column
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for at in range(0, inner, INNER):
        k = at + tl.arange(0, INNER)
        a = tl.load(x + row[:, None] * inner + k[None, :], mask=there[:, None] & (k < inner)[None, :], other=0.0)
        b = tl.load(weight + k[:, None] * of_inner, mask=(k < inner)[:, None] & inside[None, :], other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    at_out = out + row[:, None] * columns + column[None, :]
    tl.store(at_out, total.to(out.dtype.element_ty), mask=there[:, None] & inside[None, :])


@triton.jit
def _weight_parts(
    grad,
    x,
    parts,
    start,
    count,
    pieces,
    outputs,
    inputs,
    ROWS: tl.constexpr,
    OUTPUTS: tl.constexpr,
    INPUTS: tl.constexpr,
    STRIP: tl.constexpr,
):
    across = tl.cdiv(inputs, INPUTS)
    cells = tl.cdiv(outputs, OUTPUTS) * across
    number, cell = tl.program_id(0) // cells, tl.program_id(0) % cells
    first, end = tl.load(pieces + number * 3 + 1), tl.load(pieces + number * 3 + 2)
    if first >= end:
        return
    o = cell // across * OUTPUTS + tl.arange(0, OUTPUTS)
    i = cell % across * INPUTS + tl.arange(0, INPUTS)
    total = tl.zeros((OUTPUTS, INPUTS), tl.float32)
    for strip in range(first, end, ROWS // STRIP):
        row, there = _rows(start, count, strip, end, ROWS, STRIP)
        g = tl.load(grad + row[:, None] * outputs + o[None, :], mask=there[:, None] & (o < outputs)[None, :], other=0.0)
        v = tl.load(x + row[:, None] * inputs + i[None, :], mask=there[:, None] & (i < inputs)[None, :], other=0.0)
        total = tl.dot(tl.trans(g), v, total, input_precision="ieee")
    own = parts + number.to(tl.int64) * outputs * inputs
    mask = (o < outputs)[:, None] & (i < inputs)[None, :]
    tl.store(own + o[:, None] * inputs + i[None, :], total, mask=mask)


@triton.jit
def _add_parts(parts, firsts, out, size, CELLS: tl.constexpr):
    across = tl.cdiv(size, CELLS)
    block = tl.program_id(0) // across
    cell = tl.program_id(0) % across * CELLS + tl.arange(0, CELLS)
    first, end = tl.load(firsts + block), tl.load(firsts + block + 1)
    part = parts + first.to(tl.int64) * size + cell
    total = tl.zeros((CELLS,), tl.float32)
    for _ in range(first, end):
        total += tl.load(part, mask=cell < size, other=0.0)
        part += size
    tl.store(out + block.to(tl.int64) * size + cell, total.to(out.dtype.element_ty), mask=cell < size)


def _fit(size: int, most: int) -> int:
    return min(most, max(STRIP, triton.next_power_of_2(size)))


def _multiply_rows(x: Tensor, weights: Tensor, tiles: Tiles) -> Tensor:
    """x W_b^T: x (M, d_in), weights (L, d_out, d_in) with any strides -> (M, d_out)."""
    _, columns, inner = weights.shape
    out = x.new_empty(len(x), columns)
    out[tiles.tokens :] = 0
    # Tensor cores want large tiles; three stages of these take 96 KiB of shared memory. fp32 has none to feed.
    halves = x.element_size() == 2
    rows = 128 if halves else 64
    sizes = {"ROWS": rows, "COLUMNS": _fit(columns, rows), "INNER": _fit(inner, 64 if halves else 32)}
    pieces, _ = tiles.pieces(rows // STRIP)
    programs = len(pieces) * triton.cdiv(columns, sizes["COLUMNS"])
    shape = inner, columns, weights.stride(0), weights.stride(1), weights.stride(2)
    arguments = x, weights, out, tiles.start, tiles.count, pieces, *shape
    launch(_multiply, programs, *arguments, **sizes, STRIP=STRIP, num_warps=8 if halves else 4, num_stages=3)
    return out


def _weight_gradient(grad: Tensor, x: Tensor, tiles: Tiles) -> Tensor:
    """Of the weights, (L, d_out, d_in), from grad (M, d_out) and x (M, d_in); zeros for a block without rows."""
    outputs, inputs = grad.shape[1], x.shape[1]
    halves = x.element_size() == 2
    most = 128 if halves else 64
    sizes = {"ROWS": most // 2, "OUTPUTS": _fit(outputs, most), "INPUTS": _fit(inputs, most)}
    cells = triton.cdiv(outputs, sizes["OUTPUTS"]) * triton.cdiv(inputs, sizes["INPUTS"])
    # Small matrices need more pieces to occupy the GPU; of large ones the parts would need much memory.
    wanted = 16 if cells <= 64 else 4 if cells <= 256 else 1
    step = sizes["ROWS"] // STRIP
    pieces, firsts = tiles.pieces(triton.cdiv(triton.cdiv(len(tiles.start), wanted), step) * step)
    parts = grad.new_empty(len(pieces), outputs, inputs, dtype=torch.float32)
    arguments = grad, x, parts, tiles.start, tiles.count, pieces, outputs, inputs
    programs = len(pieces) * cells
    launch(_weight_parts, programs, *arguments, **sizes, STRIP=STRIP, num_warps=8 if halves else 4, num_stages=3)
    out = x.new_empty(tiles.blocks, outputs, inputs)
    programs = tiles.blocks * triton.cdiv(outputs * inputs, 1024)
    launch(_add_parts, programs, parts, firsts, out, outputs * inputs, CELLS=1024, num_warps=4)
    return out


class _WindowLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, tiles: Tiles, weights: Tensor) -> Tensor:
        x = x.contiguous()
        ctx.tiles = tiles
        ctx.save_for_backward(x, weights)
        return _multiply_rows(x, weights, tiles)

    @staticmethod
    def backward(ctx, grad: Tensor):
        x, weights = ctx.saved_tensors
        grad = grad.contiguous()
        wanted_x, _, wanted_weights = ctx.needs_input_grad
        grad_x = _multiply_rows(grad, weights.mT, ctx.tiles) if wanted_x else None
        return grad_x, None, _weight_gradient(grad, x, ctx.tiles) if wanted_weights else None


def window_linear(x: Tensor, tiles: Tiles, weights: Tensor) -> Tensor:
    """x W_b^T with the block of each row's window: x (M, d_in), weights (L, d_out, d_in) in its dtype -> (M, d_out).

    Products are added up in fp32. Rows that lie in no window get zeros, so do blocks without rows for a gradient.
    """
    return _WindowLinear.apply(x, tiles, weights)


class _Stack(torch.autograd.Function):
    @staticmethod
    def forward(ctx, used: Tensor, dtype: torch.dtype, *weights: Tensor):
        ctx.used, ctx.dtype = used, weights[0].dtype
        ctx.set_materialize_grads(False)
        blocks = len(used)
        return tuple(torch.stack(weights[at : at + blocks]).to(dtype) for at in range(0, len(weights), blocks))

    @staticmethod
    def backward(ctx, *grads: Tensor | None):
        used = ctx.used.tolist()  # waits for the device, once a pass
        parts: list[Tensor | None] = []
        for grad in grads:
            each = [None] * len(used) if grad is None else grad.to(ctx.dtype).unbind()
            parts += [part if taken else None for part, taken in zip(each, used, strict=True)]
        return None, None, *parts


class StackedBlocks:
    """The matrices of a library in the format of the products, side by side, made once a pass.

    weights: by name, (L, d_out, d_in). As with products of sorted rows, a block that no window chose at any depth gets
    no gradient at all (None, not zeros: Muon would move its weights), for which `note` has to be told the depths.
    """

    def __init__(self, blocks: Iterable[nn.Module], dtype: torch.dtype):
        blocks = list(blocks)
        weights = [getattr(block, name) for name in NAMES for block in blocks]
        self.used = torch.zeros(len(blocks), dtype=torch.bool, device=weights[0].device)
        self.weights = dict(zip(NAMES, _Stack.apply(self.used, dtype, *weights), strict=True))

    def note(self, tiles: Tiles) -> None:
        """Blocks with a row at one more depth, which is to be differentiated."""
        self.used |= tiles.offsets.diff() > 0

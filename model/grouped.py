"""Matrix products, above all those in which every token meets the weights of its own block.

Rows are sorted by block once per depth (`Dispatch`), so that each block's rows lie together; a product is then one
ordinary matmul per block that was chosen. A block that nobody chose gets no gradient at all (None, not zeros): Muon
would move its weights on a zero gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def new_matrix(outputs: int, inputs: int, scale: float = 1.0) -> nn.Parameter:
    """Normal weights (outputs, inputs) that keep the size of what comes in, times a scale."""
    return nn.Parameter(torch.randn(outputs, inputs) * (scale * inputs**-0.5))


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """x W^T in the dtype of x."""
    return F.linear(x, weight.to(x.dtype))


@dataclass(frozen=True)
class Dispatch:
    """Where the rows of an array of N places go in an array of M rows that is made to be multiplied.

    place: int64 (N,), the row of each place; a place that has none points to a row of the filling. source: int64 (M,),
    the place of each row. filling: int64 (F,), the rows that are no place's; they hold zeros. sizes: rows of each
    block, 0 for a block that no row takes; they add up to M.
    """

    place: Tensor
    source: Tensor
    filling: Tensor
    sizes: list[int]

    @staticmethod
    def of(blocks: Tensor, library: int, tile: int = 1) -> Dispatch:
        """A stable sort by block, from the block of each place, int64 (N,), values below `library`.

        Each block's part is filled up to a multiple of `tile`: sizes that repeat spare a CPU's bf16 matmul from
        compiling a kernel for every new number of rows.
        """
        order = torch.argsort(blocks, stable=True)
        counts = torch.bincount(blocks, minlength=library)
        if tile == 1:
            place = torch.empty_like(order)
            place[order] = torch.arange(len(order), device=order.device)
            return Dispatch(place, order, order[:0], counts.tolist())
        sizes = (counts + tile - 1) // tile * tile
        gap = (sizes.cumsum(0) - sizes) - (counts.cumsum(0) - counts)  # filling in front of each block's part
        rows = torch.arange(len(order), device=order.device) + gap[blocks[order]]
        place = torch.empty_like(order)
        place[order] = rows
        per_block = sizes.tolist()
        source = order.new_full((sum(per_block),), -1)
        source[rows] = order
        filling = (source < 0).nonzero()[:, 0]
        return Dispatch(place, source.clamp_(min=0), filling, per_block)

    @staticmethod
    def keep(mask: Tensor, tile: int = 1) -> Dispatch:
        """The places that a mask, bool (N,), keeps, in their order, filled up to a multiple of `tile`; at least one row
        of filling where a place is left out."""
        kept = mask.nonzero()[:, 0]
        used = len(kept)
        rows = rows_for(used, len(mask), tile)
        place = kept.new_full((len(mask),), rows - 1)
        place[kept] = torch.arange(used, device=mask.device)
        source = torch.cat([kept, kept.new_zeros(rows - used)])
        return Dispatch(place, source, torch.arange(used, rows, device=mask.device), [rows])

    def then(self, other: Dispatch) -> Dispatch:
        """Both in one: this one's rows are the other's places."""
        empty = torch.zeros_like(self.source, dtype=torch.bool)
        empty[self.filling] = True
        empty = empty[other.source]
        empty[other.filling] = True
        return Dispatch(other.place[self.place], self.source[other.source], empty.nonzero()[:, 0], other.sizes)

    def sort(self, x: Tensor) -> Tensor:
        """(N, ...) -> (M, ...). Rows of the filling must get no gradient, or it goes to places that have no row."""
        return _Sort.apply(x, self)

    def unsort(self, x: Tensor) -> Tensor:
        """The way back, (M, ...) -> (N, ...); what a place without a row gets is of no use."""
        return _Unsort.apply(x, self)

    def spread(self, x: Tensor) -> Tensor:
        """`sort` without a gradient."""
        return x.index_select(0, self.source).index_fill_(0, self.filling, 0)


def rows_for(kept: int, places: int, tile: int = 1) -> int:
    """Rows that `Dispatch.keep` makes of so many places kept."""
    return -(-(kept + (kept < places)) // tile) * tile


class _Sort(torch.autograd.Function):
    """Built-in indexing would add gradients up row by row; every row has one place, so both ways are plain copies."""

    @staticmethod
    def forward(ctx, x: Tensor, dispatch: Dispatch) -> Tensor:
        ctx.dispatch = dispatch
        return dispatch.spread(x)

    @staticmethod
    def backward(ctx, grad: Tensor):
        return grad.index_select(0, ctx.dispatch.place), None


class _Unsort(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, dispatch: Dispatch) -> Tensor:
        ctx.dispatch = dispatch
        return x.index_select(0, dispatch.place)

    @staticmethod
    def backward(ctx, grad: Tensor):
        return ctx.dispatch.spread(grad), None


class _GroupedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, sizes: list[int], *weights: Tensor) -> Tensor:
        used = [weight.to(x.dtype) if size else None for weight, size in zip(weights, sizes, strict=True)]
        out = x.new_empty(len(x), weights[0].shape[0])
        for rows, part, weight in zip(x.split(sizes), out.split(sizes), used, strict=True):
            if weight is not None:
                torch.mm(rows, weight.t(), out=part)
        ctx.sizes, ctx.used, ctx.dtype = sizes, used, weights[0].dtype
        ctx.save_for_backward(x)
        return out

    @staticmethod
    def backward(ctx, grad: Tensor):
        (x,) = ctx.saved_tensors
        grad = grad.contiguous()
        grad_x = torch.empty_like(x)
        grad_weights: list[Tensor | None] = []
        parts = zip(x.split(ctx.sizes), grad.split(ctx.sizes), grad_x.split(ctx.sizes), ctx.used, strict=True)
        for rows, grad_rows, grad_x_rows, weight in parts:
            if weight is None:
                grad_weights.append(None)
                continue
            torch.mm(grad_rows, weight, out=grad_x_rows)
            grad_weights.append(torch.mm(grad_rows.t(), rows).to(ctx.dtype))
        return grad_x, None, *grad_weights


def grouped_linear(x: Tensor, sizes: list[int], weights: Sequence[Tensor]) -> Tensor:
    """x W_b^T for rows sorted by block: x (N, d_in), `sizes` rows per block, weights L x (d_out, d_in) -> (N, d_out).

    The product is taken in the dtype of x; gradients of the weights come back in the weights' own dtype.
    """
    return _GroupedLinear.apply(x, sizes, *weights)


def grouped_linear_reference(x: Tensor, sizes: list[int], weights: Sequence[Tensor]) -> Tensor:
    """The same, one row at a time, by plain autograd; for tests."""
    blocks = [block for block, size in enumerate(sizes) for _ in range(size)]
    return torch.stack([weights[block].to(x.dtype) @ row for block, row in zip(blocks, x, strict=True)])

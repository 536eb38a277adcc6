"""Matrix products in which every token meets the weights of its own block.

Tokens are sorted by block once per depth (`Dispatch`), so that each block's tokens lie together; a product is then one
ordinary matmul per block that was chosen. A block that nobody chose gets no gradient at all (None, not zeros): Muon
would move its weights on a zero gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Dispatch:
    """A stable sort of tokens by block, each block's part filled up with zero rows to a multiple of a tile.

    place: int64 (N,), the row of each token in the sorted layout. sizes: rows of each block, L integers, 0 for a block
    that no token takes; they add up to M >= N.
    """

    place: Tensor
    sizes: list[int]

    @staticmethod
    def of(blocks: Tensor, library: int, tile: int = 1) -> Dispatch:
        """From the block of each token, int64 (N,), values below `library`.

        tile: sizes that repeat spare a CPU's bf16 matmul from compiling a kernel for every new number of rows.
        """
        order = torch.argsort(blocks, stable=True)
        counts = torch.bincount(blocks, minlength=library)
        sizes = (counts + tile - 1) // tile * tile
        gap = (sizes.cumsum(0) - sizes) - (counts.cumsum(0) - counts)  # filling in front of each block's part
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order), device=order.device)
        return Dispatch(place + gap[blocks], sizes.tolist())

    def sort(self, x: Tensor) -> Tensor:
        """Rows of x, (N, ...), in block order, (M, ...)."""
        return _Sort.apply(x, self.place, sum(self.sizes))

    def unsort(self, x: Tensor) -> Tensor:
        """The inverse of `sort`: (M, ...) -> (N, ...)."""
        return _Unsort.apply(x, self.place)


class _Sort(torch.autograd.Function):
    """Built-in indexing would add gradients up row by row; every row has one place, so both ways are plain copies."""

    @staticmethod
    def forward(ctx, x: Tensor, place: Tensor, rows: int) -> Tensor:
        ctx.place = place
        return x.new_zeros(rows, *x.shape[1:]).index_copy_(0, place, x)

    @staticmethod
    def backward(ctx, grad: Tensor):
        return grad.index_select(0, ctx.place), None, None


class _Unsort(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, place: Tensor) -> Tensor:
        ctx.place, ctx.shape = place, x.shape
        return x.index_select(0, place)

    @staticmethod
    def backward(ctx, grad: Tensor):
        return grad.new_zeros(ctx.shape).index_copy_(0, ctx.place, grad), None


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

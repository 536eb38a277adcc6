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
    """A stable sort of tokens by block.

    order, back: int64 (N,), x[order] is sorted and sorted[back] is x again. sizes: tokens of each block, L integers.
    """

    order: Tensor
    back: Tensor
    sizes: list[int]

    @staticmethod
    def of(blocks: Tensor, library: int) -> Dispatch:
        """From the block of each token, int64 (N,), values below `library`."""
        order = torch.argsort(blocks, stable=True)
        back = torch.empty_like(order)
        back[order] = torch.arange(len(order), device=order.device)
        return Dispatch(order, back, torch.bincount(blocks, minlength=library).tolist())

    def sort(self, x: Tensor) -> Tensor:
        """Rows of x, (N, ...), in block order."""
        return _Permute.apply(x, self.order, self.back)

    def unsort(self, x: Tensor) -> Tensor:
        """The inverse of `sort`."""
        return _Permute.apply(x, self.back, self.order)


class _Permute(torch.autograd.Function):
    """x[order] whose gradient is a gather too; the built-in gradient is a slow scatter-add."""

    @staticmethod
    def forward(ctx, x: Tensor, order: Tensor, back: Tensor) -> Tensor:
        ctx.back = back
        return x.index_select(0, order)

    @staticmethod
    def backward(ctx, grad: Tensor):
        return grad.index_select(0, ctx.back), None, None


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

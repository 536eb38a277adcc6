"""Sparse mixtures of experts in place of feed-forward networks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lol_data.model.grouped import Dispatch, grouped_linear, linear, new_matrix
from lol_data.model.span import Span


class Experts(nn.Module):
    """A sparse mixture of SwiGLUs: every token takes the best `top` of E by probability plus bias.

    Their outputs are weighed by the probabilities, scaled to add up to 1. The bias, (E,), is moved by the trainer's
    sign rule and enters the choice only (Wang et al., arXiv 2408.15664), so there is no auxiliary loss. counts: tokens
    that took each expert since the trainer last looked, (E,); only training adds to them.
    """

    bias: Tensor
    counts: Tensor

    def __init__(self, width: int, hidden: int, experts: int, top: int):
        super().__init__()
        self.top = top
        self.router = nn.Parameter(torch.randn(experts, width) * 0.02)
        self.up = nn.ParameterList(new_matrix(2 * hidden, width) for _ in range(experts))
        self.down = nn.ParameterList(new_matrix(width, hidden, 0.1) for _ in range(experts))
        self.register_buffer("bias", torch.zeros(experts))
        self.register_buffer("counts", torch.zeros(experts, dtype=torch.long), persistent=False)

    def forward(self, u: Tensor, span: Span) -> Tensor:
        """Normed rows u (M, d) -> (M, d)."""
        probabilities = linear(u.float(), self.router).softmax(-1)
        ids = (probabilities.detach() + self.bias).topk(self.top, -1).indices
        if span.tokens:
            ids[span.tokens :] = ids[span.tokens - 1]  # filling must bring no expert into use
        weights = probabilities.gather(1, ids)
        weights = weights / weights.sum(-1, keepdim=True)
        if self.training:
            self.counts += torch.bincount(ids[: span.tokens].flatten(), minlength=len(self.bias))
        dispatch = Dispatch.of(ids.flatten(), len(self.bias), span.tile)
        x = dispatch.sort(u.repeat_interleave(self.top, 0))
        hidden = span.ops.swiglu(grouped_linear(x, dispatch.sizes, list(self.up)))
        out = dispatch.unsort(grouped_linear(hidden, dispatch.sizes, list(self.down)))
        return (out.view(len(u), self.top, -1) * weights[..., None]).sum(1)

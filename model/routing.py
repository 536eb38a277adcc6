"""Which block a window takes: prefix means, probabilities, selection bias, gates, forced paths (equations 5-8, 16)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lol_data.model.config import ModelConfig
from lol_data.model.depths import Taken
from lol_data.model.ops import EPSILON


@dataclass(frozen=True)
class Choice:
    """The route of every window at one depth; K windows.

    ids: int64 (B, K). gates: fp32 (B, K), the raw probability of the block taken, unless a forced path gives it.
    probabilities: fp32 (B, K, L), raw. taken: which tokens the depth took, where it does not take all.
    """

    ids: Tensor
    gates: Tensor
    probabilities: Tensor
    taken: Taken | None = None


@dataclass(frozen=True)
class ForcedPath:
    """A path laid down from outside: the block and the gate of each (row, depth, window).

    ids: int64 (B, D, K) or None, to keep the model's own choice. gates: fp32 (B, D, K) or None, to take the router's
    own probability of the block. A row of 1 serves the whole batch; windows past K take the last one's.
    """

    ids: Tensor | None
    gates: Tensor | None

    def keep(self, rows: Tensor) -> ForcedPath:
        """Only the given rows of the batch."""
        parts = (part if part is None or len(part) == 1 else part[rows] for part in (self.ids, self.gates))
        return ForcedPath(*parts)

    def apply(self, probabilities: Tensor, own_ids: Tensor, depth: int, first_window: int) -> tuple[Tensor, Tensor]:
        """ids and gates (B, K) of the windows first_window, first_window + 1, ... at a depth counted from 1."""
        ids = own_ids if self.ids is None else self._cut(self.ids, own_ids, depth, first_window)
        if self.gates is None:
            return ids, probabilities.gather(2, ids[..., None])[..., 0]
        return ids, self._cut(self.gates, own_ids, depth, first_window)

    @staticmethod
    def _cut(values: Tensor, like: Tensor, depth: int, first_window: int) -> Tensor:
        windows = torch.arange(first_window, first_window + like.shape[1], device=values.device)
        return values[:, depth - 1, windows.clamp(max=values.shape[2] - 1)].expand(like.shape)


class _WindowMeans(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h: Tensor, window: Tensor, count: int) -> Tensor:
        tokens = torch.bincount(window, minlength=count).clamp_(min=1)[:, None].to(h.dtype)
        ctx.window, ctx.tokens, ctx.rows = window, tokens, len(h)
        return h.new_zeros(count, h.shape[1]).index_add_(0, window, h[: len(window)]) / tokens

    @staticmethod
    def backward(ctx, grad: Tensor):
        out = grad.new_zeros(ctx.rows, grad.shape[1])
        torch.index_select(grad / ctx.tokens, 0, ctx.window, out=out[: len(ctx.window)])
        return out, None, None


def window_means(h: Tensor, window: Tensor, count: int) -> Tensor:
    """The mean state of each window, fp32 (count, d); zeros where a window has no token.

    h: rows, fp32 (M, d). window: int64 (N,), N <= M, the window of each of the first rows; the others are filling.
    """
    return _WindowMeans.apply(h, window, count)


def prefix_means(means: Tensor, first: Tensor, depth_vector: Tensor, decay: float = 1.0) -> Tensor:
    """Router inputs r_k of equation (5), (B, K, d): the mean of the means of all earlier windows.

    means: fp32 (B, K, d), of the inputs of this depth. first: (B, d), the state of the first token, for window 0.
    decay: the weight of a window against the next one's. At 1 all weigh the same, whatever their length, and a new
    window moves r by (mu_k - r_k) / (k + 1), equation (16): the longer the prefix, the less. Below 1 old windows fade;
    at 0 only the last complete one counts.
    """
    r = [0.5 * (first + depth_vector)]
    total, weight = torch.zeros_like(first), 0.0
    for mean in means.unbind(1)[:-1]:
        total = torch.add(mean, total, alpha=decay)
        weight = decay * weight + 1
        r.append(total / weight)
    return torch.stack(r, 1)


class Router(nn.Module):
    """Equation (6). Everything is fp32, under autocast and bf16 models too.

    weight: (1, L, d), or (D, L, d) with a router per depth. bias: the selection bias b_m, (L,), a buffer that the
    trainer moves by the sign rule; it enters the choice only, never the gate. So the gradient of the gate, equation
    (7), reaches the logits of all blocks through the softmax, equation (8), and the bias never.
    """

    bias: Tensor

    def __init__(self, width: int, blocks: int, matrices: int, noise: float, segment: int = 1, normed: bool = False):
        """segment: windows behind the prompt that share the choice of the first of them. normed: only the direction of
        the inputs counts."""
        super().__init__()
        self.weight = nn.Parameter(torch.randn(matrices, blocks, width) * 0.02)
        self.register_buffer("bias", torch.zeros(blocks))
        self.noise, self.segment, self.normed = noise, segment, normed

    def forward(
        self,
        r: Tensor,
        depth: int,
        first_window: int = 0,
        forced: ForcedPath | None = None,
        before: Choice | None = None,
    ) -> Choice:
        """Router inputs (B, K, d) of windows first_window, ... at a depth counted from 1 -> their routes.

        before: the choice of the window in front of them, if there is one; its segment may go on.
        """
        probabilities = self.probabilities(r, depth)
        if self.segment > 1:
            probabilities = self._hold(probabilities, first_window, before)
        ids = self.choose(probabilities)
        if forced is not None:
            return Choice(*forced.apply(probabilities, ids, depth, first_window), probabilities)
        return Choice(ids, probabilities.gather(2, ids[..., None])[..., 0], probabilities)

    def probabilities(self, r: Tensor, depth: int) -> Tensor:
        """p, fp32 (B, K, L)."""
        weight = self.weight[min(depth, len(self.weight)) - 1]
        r = F.rms_norm(r.float(), r.shape[-1:], eps=EPSILON) if self.normed else r.float()
        logits = r @ weight.float().t()
        if self.training and self.noise:
            logits = logits + self.noise * torch.randn_like(logits)
        return logits.softmax(-1)

    def choose(self, probabilities: Tensor) -> Tensor:
        """argmax of p + b: (B, K, L) -> int64 (B, K)."""
        return (probabilities + self.bias).argmax(-1)

    def _hold(self, probabilities: Tensor, first_window: int, before: Choice | None) -> Tensor:
        """Give every window the probabilities of the window that opened its segment. The prompt is a segment alone."""
        seen = probabilities if before is None else torch.cat([before.probabilities, probabilities], 1)
        end = first_window + probabilities.shape[1]
        openers = [k and k - (k - 1) % self.segment for k in range(first_window, end)]
        return seen[:, [max(k - (end - seen.shape[1]), 0) for k in openers]]


class FixedRouter(Router):
    """A fixed path through the library, the control of the experiments: depth l takes block (l - 1) mod L, gate 1."""

    def __init__(self, width: int, blocks: int):
        super().__init__(width, blocks, 0, 0.0)
        self.weight.requires_grad_(False)  # it holds nothing

    def probabilities(self, r: Tensor, depth: int) -> Tensor:
        """All on the block of this depth."""
        path = torch.zeros_like(self.bias)
        path[(depth - 1) % len(path)] = 1
        return path.expand(*r.shape[:2], -1)

    def choose(self, probabilities: Tensor) -> Tensor:
        """The bias has no say."""
        return probabilities.argmax(-1)


def make_router(config: ModelConfig) -> Router:
    """The router that a configuration names."""
    if config.router == "fixed":
        return FixedRouter(config.width, config.blocks)
    matrices = config.depth if config.router == "per_depth" else 1
    segment = config.segment if config.router == "per_segment" else 1
    return Router(config.width, config.blocks, matrices, config.noise, segment, config.router_norm)

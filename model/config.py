"""The shape of a Library-of-Layers model."""

from __future__ import annotations

from dataclasses import dataclass

from lol_data.errors import UsageError

# shared       one router matrix for all depths, a choice per (window, depth)
# per_depth    the same with a matrix of its own at every depth
# per_segment  one matrix; the first window of a segment chooses, and the others take its block and gate
# fixed        no choice: depth l takes block (l - 1) mod L with gate 1
ROUTERS = ("shared", "per_depth", "per_segment", "fixed")


@dataclass(frozen=True)
class ModelConfig:
    """Everything that decides which tensors a model has and what it computes.

    The prompt (window 0) is `prompt` positions long, its last `field` positions are the strategy field.
    """

    vocabulary: int
    prompt: int
    field: int = 8
    width: int = 128  # d
    heads: int = 4
    hidden: int = 384  # inner width of the SwiGLU feed-forward network
    prelude: int = 2  # blocks with full causal attention before the core
    blocks: int = 6  # L, blocks in the library
    depth: int = 6  # D, applications of library blocks to every token
    coda: int = 2  # blocks with full causal attention behind the core
    window: int = 64  # W
    shift: int = 32  # S
    router: str = "shared"  # or one of ROUTERS, below
    segment: int = 4  # windows behind the prompt that take one choice together, where the router is "per_segment"
    summary_decay: float = 1.0  # weight of a window's mean against the next one's; 0: only the last one counts
    noise: float = 0.1  # standard deviation of the Gaussian on the router's logits, in training only
    prompt_embedding: bool = True  # a learned vector per prompt position, added to the token's
    rope_base: float = 10000.0

    def validate(self) -> ModelConfig:
        """Returns itself; raises UsageError naming the field that is wrong."""
        counts = ("vocabulary", "prompt", "field", "width", "heads", "hidden", "blocks", "depth", "window", "segment")
        for name in counts:
            if getattr(self, name) < 1:
                raise UsageError(f"model.{name} is {getattr(self, name)}; it must be 1 or more")
        for name in ("prelude", "coda", "shift", "noise"):
            if not getattr(self, name) >= 0:  # NaN too
                raise UsageError(f"model.{name} is {getattr(self, name)}; it must not be negative")
        if self.width % (2 * self.heads):
            raise UsageError(f"model.width {self.width} must be a multiple of 2 x model.heads ({2 * self.heads})")
        if self.field >= self.prompt:
            raise UsageError(f"model.field {self.field} must be shorter than the prompt ({self.prompt})")
        if not 0 <= self.summary_decay <= 1:
            raise UsageError(f"model.summary_decay is {self.summary_decay}; it must lie between 0 and 1")
        if self.router not in ROUTERS:
            raise UsageError(f'model.router is "{self.router}"; use {", ".join(ROUTERS)}')
        return self

"""The shape of a Library-of-Layers model."""

from __future__ import annotations

from dataclasses import dataclass

from lol_data.errors import UsageError


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
    router: str = "shared"  # or "per_depth": one router matrix per depth
    noise: float = 0.1  # standard deviation of the Gaussian on the router's logits, in training only
    prompt_embedding: bool = True  # a learned vector per prompt position, added to the token's
    rope_base: float = 10000.0

    def validate(self) -> ModelConfig:
        """Returns itself; raises UsageError naming the field that is wrong."""
        for name in ("vocabulary", "prompt", "field", "width", "heads", "hidden", "blocks", "depth", "window"):
            if getattr(self, name) < 1:
                raise UsageError(f"model.{name} is {getattr(self, name)}; it must be 1 or more")
        for name in ("prelude", "coda", "shift", "noise"):
            if not getattr(self, name) >= 0:  # NaN too
                raise UsageError(f"model.{name} is {getattr(self, name)}; it must not be negative")
        if self.width % (2 * self.heads):
            raise UsageError(f"model.width {self.width} must be a multiple of 2 x model.heads ({2 * self.heads})")
        if self.field >= self.prompt:
            raise UsageError(f"model.field {self.field} must be shorter than the prompt ({self.prompt})")
        if self.router not in ("shared", "per_depth"):
            raise UsageError(f'model.router is "{self.router}"; use "shared" or "per_depth"')
        return self

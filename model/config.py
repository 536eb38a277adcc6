"""The shape of a model: a Library of Layers, or one of its rivals on a fixed path."""

from __future__ import annotations

from dataclasses import dataclass

from lol_data.errors import UsageError

# shared       one router matrix for all depths, a choice per (window, depth)
# per_depth    the same with a matrix of its own at every depth
# per_segment  one matrix; the first window of a segment chooses, and the others take its block and gate
# fixed        no choice: depth l takes block (l - 1) mod L with gate 1 (`fixed_path.py`)
ROUTERS = ("shared", "per_depth", "per_segment", "fixed")
WORDS = {
    "router": ROUTERS,
    "field_readers": ("router", "all"),
    "attention": ("windows", "sliding", "full"),
    "film": ("depth", "block"),
    "depth_router": ("linear", "mlp"),
    "depth_gate": ("weight", "straight_through"),
    "depth_sampling": ("predictor", "threshold"),
}


@dataclass(frozen=True)
class ModelConfig:
    """Everything that decides which tensors a model has and what it computes.

    The prompt (window 0) is `prompt` positions long, its last `field` positions are the strategy field. What the data
    decides: vocabulary, prompt, cells and first_cell.
    """

    vocabulary: int
    prompt: int
    field: int = 8  # positions of the strategy field
    width: int = 128  # d
    heads: int = 4  # of attention
    hidden: int = 384  # inner width of the SwiGLU feed-forward network
    prelude: int = 2  # blocks with full causal attention before the core
    blocks: int = 6  # L, blocks in the library
    depth: int = 6  # D, applications of library blocks to every token
    coda: int = 2  # blocks with full causal attention behind the core
    window: int = 64  # W
    shift: int = 32  # S
    router: str = "shared"  # who chooses blocks: "shared", "per_depth", "per_segment", or "fixed": nobody
    segment: int = 4  # windows behind the prompt that take one choice together, where the router is "per_segment"
    summary_decay: float = 1.0  # weight of a window's mean against the next one's; 0: only the last one counts
    router_norm: bool = False  # RMSNorm on the router's inputs, whose size grows with the states; the paper has none
    noise: float = 0.1  # standard deviation of the Gaussian on the router's logits, in training only
    prompt_embedding: bool = True  # a learned vector per prompt position, added to the token's
    shared_cells: bool = False  # where a cell of the problem stands, it is the vector of that cell's token in traces
    whole_problem: bool = False  # positions of the problem read all of it, not only what is before them; <bos> does not
    rope_base: float = 10000.0
    field_readers: str = "router"  # who reads the strategy field: the "router" alone, or "all" as ordinary tokens
    experts: int = 1  # feed-forward networks in each prelude and coda layer; of more than one a token takes `top`
    top: int = 2  # experts that a token takes
    expert_hidden: int = (
        0  # inner width of an expert; 0: hidden / top, so that a token meets as many weights as without
    )
    # The fields below are for a fixed path only.
    core_experts: int = 1  # the same in each block of the library
    attention: str = "windows"  # in the core: "windows", "sliding" over the last W positions, or "full"
    film: str = "depth"  # in the core: FiLM at every "depth", or plain gains of every "block"
    inject: bool = False  # a loop: the core starts from noise, and each turn through the library reads the prelude anew
    capacity: float = 1.0  # share of tokens that a depth takes (Mixture-of-Depths); 1: all
    capacity_every: int = 2  # it does so at every so-manieth depth
    depth_router: str = "linear"  # scores of tokens: "linear", or "mlp" with a vector per depth
    depth_gate: str = "weight"  # "weight": the score's sigmoid weighs the update; "straight_through": Gumbel top-k
    depth_dropout: float = 0.0  # of the scores' inputs, in training
    depth_sampling: str = (
        "predictor"  # who decides without knowing the future: a "predictor", or the scores' "threshold"
    )
    cells: int = 0  # of the problem, at the prompt's positions 1, 2, ...
    first_cell: int = 0  # the token of the first one in a trace; the others' follow

    def validate(self) -> ModelConfig:
        """Returns itself; raises UsageError naming the field that is wrong."""
        counts = ("vocabulary", "prompt", "field", "width", "heads", "hidden", "blocks", "depth", "window", "segment")
        for name in (*counts, "experts", "core_experts", "top", "capacity_every"):
            if getattr(self, name) < 1:
                raise UsageError(f"model.{name} is {getattr(self, name)}; it must be 1 or more")
        for name in ("prelude", "coda", "shift", "noise", "expert_hidden"):
            if not getattr(self, name) >= 0:  # NaN too
                raise UsageError(f"model.{name} is {getattr(self, name)}; it must not be negative")
        if self.width % (2 * self.heads):
            raise UsageError(f"model.width {self.width} must be a multiple of 2 x model.heads ({2 * self.heads})")
        if self.field >= self.prompt:
            raise UsageError(f"model.field {self.field} must be shorter than the prompt ({self.prompt})")
        if not 0 <= self.summary_decay <= 1:
            raise UsageError(f"model.summary_decay is {self.summary_decay}; it must lie between 0 and 1")
        if not 0 <= self.depth_dropout < 1:
            raise UsageError(f"model.depth_dropout is {self.depth_dropout}; it must be 0 or more and below 1")
        if not 0 < self.capacity <= 1:
            raise UsageError(f"model.capacity is {self.capacity}; it must be more than 0 and at most 1")
        for name, words in WORDS.items():
            if getattr(self, name) not in words:
                raise UsageError(f'model.{name} is "{getattr(self, name)}"; use {", ".join(words)}')
        for name in ("experts", "core_experts"):
            if 1 < getattr(self, name) < self.top:
                raise UsageError(f"model.{name} is {getattr(self, name)}; a token takes model.top = {self.top} of them")
        if self.router != "fixed":
            for name in ("core_experts", "attention", "film", "inject", "capacity"):
                if getattr(self, name) != getattr(ModelConfig, name):
                    raise UsageError(f'model.{name} is {getattr(self, name)}; that needs model.router = "fixed"')
        if self.shared_cells and not self.prompt_embedding:
            raise UsageError("model.shared_cells needs model.prompt_embedding")
        if self.capacity < 1 and self.whole_problem:
            raise UsageError("model.whole_problem and model.capacity below 1 exclude each other")
        if self.capacity < 1 and (self.attention != "full" or self.field_readers != "all"):
            raise UsageError('model.capacity below 1 needs model.attention = "full" and model.field_readers = "all"')
        return self

    @property
    def expert_width(self) -> int:
        """Inner width of an expert."""
        return self.expert_hidden or self.hidden // self.top

    @property
    def hidden_field(self) -> int:
        """Positions of the strategy field that nothing but the router reads."""
        return self.field if self.field_readers == "router" else 0

    @property
    def own_positions(self) -> int:
        """Prompt positions with a learned vector that is theirs alone."""
        if not self.prompt_embedding:
            return 0
        return self.prompt - self.cells if self.shared_cells else self.prompt

    def takes_some(self, level: int) -> bool:
        """Whether a depth, counted from 1, takes only a share of the tokens."""
        return self.capacity < 1 and level % self.capacity_every == 0

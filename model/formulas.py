"""What the equations say about a model before it runs: attention pairs, reach, reuse, parameters, work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lol_data.model.config import ModelConfig
from lol_data.model.windows import Windows


def attention_pairs(lengths: Iterable[int]) -> int:
    """Equation (3): query-key pairs that causal attention allows in windows of the given lengths."""
    return sum(length * (length + 1) // 2 for length in lengths)


def core_attention_pairs(windows: Windows, length: int, depth: int) -> int:
    """Pairs of the core at one depth, for a sequence of `length` positions.

    Window 0 has as many as its length says, too: a field position reads the problem, which reads no field.
    """
    return attention_pairs(end - start for start, end in windows.slices(length, depth))


def earliest_reachable(windows: Windows, length: int, depth: int) -> list[int]:
    """Equation (4): the earliest position that each position can learn of by the core's attention up to a depth.

    What prelude, coda and routes carry is left out.
    """
    reach = list(range(length))
    for level in range(1, depth + 1):
        for start, end in windows.slices(length, level):
            reach[start:end] = [min(reach[start : i + 1]) for i in range(start, end)]
    return reach


@dataclass(frozen=True)
class Reuse:
    """How a path of D depths uses a library of L blocks."""

    distinct: int  # U
    repeated: int  # applications of a block that was applied before, D - U
    unused: int  # blocks never applied, L - U


def least_reuse(blocks: int, depth: int) -> Reuse:
    """Equation (11): no path has more distinct blocks, or fewer repeated or unused ones."""
    distinct = min(blocks, depth)
    return Reuse(distinct, depth - distinct, blocks - distinct)


def expected_distinct_blocks(blocks: int, draws: int) -> float:
    """Equation (12): E[U] if every draw took a block uniformly and by itself.

    The draws may be a path's depths, or the rows of one decoding step.
    """
    return blocks * (1 - (1 - 1 / blocks) ** draws)


def saved_by_growth(fixed: float, block: float, mean_depth: float, depth: float) -> float:
    """Equation (13): share of training FLOPs saved by a core that grows to `depth` and is `mean_depth` deep on average.

    fixed, block: cost per token of everything but the core, and of one core application, in any one unit.
    """
    return block * (depth - mean_depth) / (fixed + block * depth)


@dataclass(frozen=True)
class Parameters:
    """Numbers of weights. stored: all that a checkpoint holds, but the selection bias. non_embedding: without
    embeddings and head. active: those that one token meets outside the embeddings, a block counted at every use."""

    stored: int
    non_embedding: int
    active: int


def block_parameters(config: ModelConfig) -> int:
    """P_E, one block: qkv and out, 4 d^2, and SwiGLU, 3 d m."""
    return 4 * config.width**2 + 3 * config.width * config.hidden


def count_parameters(config: ModelConfig) -> Parameters:
    """By formula; exact."""
    d, learned = config.width, config.router != "fixed"
    block, matrices = block_parameters(config), config.depth if config.router == "per_depth" else 1
    fixed = (config.prelude + config.coda) * (block + 2 * d)
    film, vectors = config.depth * 4 * d, config.depth * d if learned else 0
    router = matrices * config.blocks * d if learned else 0
    non_embedding = fixed + config.blocks * block + film + vectors + router + d
    head, prompt = config.vocabulary * d, config.prompt * d if config.prompt_embedding else 0
    return Parameters(
        stored=non_embedding + 2 * head + prompt,
        non_embedding=non_embedding,
        active=fixed + config.depth * block + film + d + head,
    )


@dataclass(frozen=True)
class Flops:
    """Floating-point operations of one forward pass over one sequence, a multiply-add counted as two.

    products: of tokens with weights. attention: of queries with keys and of weights with values, allowed pairs only.
    Elementwise work is not counted.
    """

    products: int
    attention: int

    @property
    def forward(self) -> int:
        """Both."""
        return self.products + self.attention

    @property
    def training(self) -> int:
        """Forward and backward: every product comes back as two."""
        return 3 * self.forward


def flops_per_sequence(config: ModelConfig, length: int, depth: int | None = None) -> Flops:
    """Of a sequence of `length` tokens, prompt included, at a core depth, by default the configuration's."""
    depth = config.depth if depth is None else depth
    d, behind, visible = config.width, length - config.prompt, length - config.field
    windows = Windows(config.prompt, config.window, config.shift)
    levels = range(1, depth + 1)
    routed = sum(len(windows.slices(length, level)) for level in levels) if config.router != "fixed" else 0
    uses = (config.prelude + depth) * length + config.coda * visible  # the field is dropped in front of the coda
    products = block_parameters(config) * uses + config.blocks * d * routed + config.vocabulary * d * behind
    field_pairs = core_attention_pairs(windows, config.prompt, 1) - attention_pairs([config.prompt - config.field])
    pairs = (config.prelude + config.coda) * attention_pairs([visible]) + config.prelude * field_pairs
    pairs += sum(core_attention_pairs(windows, length, level) for level in levels)
    return Flops(2 * products, 4 * d * pairs)

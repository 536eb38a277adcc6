"""What the equations say about a model before it runs: attention pairs, reach, reuse, parameters, work."""

from __future__ import annotations

import math
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
    embeddings and head. active: those that one token meets outside the embeddings, a block counted at every use, and
    of a mixture of experts those taken."""

    stored: int
    non_embedding: int
    active: int


def block_parameters(config: ModelConfig, experts: int = 1) -> int:
    """P_E, one block: qkv and out, 4 d^2, and SwiGLU, 3 d m; with more than one expert so many of those, and d a router
    row each."""
    d = config.width
    if experts == 1:
        return 4 * d**2 + 3 * d * config.hidden
    return 4 * d**2 + experts * (3 * d * config.expert_width + d)


def active_block_parameters(config: ModelConfig, experts: int = 1) -> int:
    """Those of them that one token meets."""
    if experts == 1:
        return block_parameters(config)
    d = config.width
    return 4 * d**2 + config.top * 3 * d * config.expert_width + experts * d


def depth_router_parameters(config: ModelConfig) -> int:
    """One router of a Mixture-of-Depths, the predictor included."""
    d = config.width
    mlp = 2 * d * d + d if config.depth_router == "mlp" else 0
    predictor = (d // 2) * (d + 1) if config.depth_sampling == "predictor" else 0
    return d + mlp + predictor


def count_parameters(config: ModelConfig) -> Parameters:
    """By formula; exact but for `active` of a Mixture-of-Depths, which is a mean over tokens."""
    d, routed = config.width, config.router != "fixed"
    matrices = config.depth if config.router == "per_depth" else 1
    outer, levels = config.prelude + config.coda, range(1, config.depth + 1)
    film = 4 * d * config.depth if config.film == "depth" else 2 * d * config.blocks
    turns = -(-config.depth // config.blocks) if config.inject else 0
    some = sum(config.takes_some(level) for level in levels)
    routers = (config.depth + matrices * config.blocks) * d if routed else 0
    routers += some * depth_router_parameters(config)
    non_embedding = outer * (block_parameters(config, config.experts) + 2 * d)
    non_embedding += config.blocks * block_parameters(config, config.core_experts) + film + routers + d
    non_embedding += 2 * d * d * config.inject
    head, prompt = config.vocabulary * d, config.own_positions * d
    applied = sum(config.capacity if config.takes_some(level) else 1 for level in levels)
    active = outer * (active_block_parameters(config, config.experts) + 2 * d) + 2 * d * d * turns
    active += round(applied * active_block_parameters(config, config.core_experts)) + film + d + head
    return Parameters(stored=non_embedding + 2 * head + prompt, non_embedding=non_embedding, active=active)


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


def flops_per_sequence(
    config: ModelConfig, length: int, depth: int | None = None, capacity: float | None = None
) -> Flops:
    """Of a sequence of `length` tokens, prompt included, at a depth and a capacity, by default the configuration's.

    A Mixture-of-Depths is taken to compute its capacity, as in training; its scores count, its last products with a
    vector do not.
    """
    depth = config.depth if depth is None else depth
    capacity = config.capacity if capacity is None else capacity
    d, behind = config.width, length - config.prompt
    hidden = config.hidden_field
    visible, windows = length - hidden, Windows(config.prompt, config.window, config.shift)
    outer, block = (active_block_parameters(config, experts) for experts in (config.experts, config.core_experts))
    problem = config.prompt - hidden
    # A field that only the router reads reads the problem and itself.
    field_pairs = attention_pairs([hidden]) + hidden * problem
    # What the positions of a problem behind <bos> read ahead, if they do.
    ahead = attention_pairs([max(0, problem - 2)]) if config.whole_problem else 0
    full = attention_pairs([visible]) + ahead
    products = outer * (config.prelude * length + config.coda * visible) + config.vocabulary * d * behind
    pairs = config.prelude * (full + field_pairs) + config.coda * full
    for level in range(1, depth + 1):
        if config.router != "fixed":
            products += config.blocks * d * len(windows.slices(length, level))
        if config.inject and (level - 1) % config.blocks == 0:
            products += 2 * d * d * length
        if config.takes_some(level):
            taken = math.ceil(capacity * length - 1e-9)
            products += block * taken + (d * d if config.depth_router == "mlp" else 0) * length
            products += d * (d // 2) * length if config.depth_sampling == "predictor" else 0
            pairs += attention_pairs([taken])
            continue
        products += block * length
        if config.attention == "windows":
            pairs += core_attention_pairs(windows, length, level) + ahead
        elif config.attention == "full":
            pairs += full + field_pairs
        else:
            sliding = [min(slot, config.window) for slot in range(1, visible + 1)]
            if config.whole_problem:
                sliding[1:problem] = [problem] * (problem - 1)
            pairs += sum(sliding) + field_pairs
    return Flops(2 * products, 4 * d * pairs)

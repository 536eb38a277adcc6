"""What the tests of the model share: small models whose routes vary, a plain reference of the whole pass."""

import torch
import torch.nn.functional as F

from lol_data.model.build import make_model
from lol_data.model.config import ModelConfig
from lol_data.model.transformer import Transformer

P, FIELD, W, VOCABULARY = 7, 2, 4, 20
SHARED = {"shared_cells": True, "cells": 3, "first_cell": 12}  # one more token of the problem behind its cells


def random_model(seed=0, **changes) -> Transformer:
    """Every weight random and far from its start, so that each one matters and windows take many routes."""
    shape = {
        "field": FIELD,
        "width": 16,
        "heads": 2,
        "hidden": 24,
        "prelude": 1,
        "blocks": 4,
        "depth": 4,
        "coda": 1,
        "window": W,
        "shift": W // 2,
    }
    generator = torch.Generator().manual_seed(seed)
    model = make_model(ModelConfig(vocabulary=VOCABULARY, prompt=P, **{**shape, **changes}))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if name == "router.weight":
                noise *= 0.1  # no probability close to 0 or 1
            elif parameter.ndim == 1 and "depth_routers" in name:
                noise *= 0.3
            elif parameter.ndim == 2 and "embedding" not in name:
                noise *= 0.8 * parameter.shape[1] ** -0.5
            parameter.copy_(noise + 1 if "norm" in name or name == "film_scale" else noise)
        # A block is chosen where it is likelier than on average: else one block would win nearly every window.
        probabilities = torch.cat([choice.probabilities for choice in model.eval()(random_tokens(16, 3 * W))[1]], 1)
        model.router.bias -= probabilities.mean((0, 1))
    return model


def position_vectors(config, weights):
    """What is added to the prompt's tokens: bos, cells, and what comes behind them."""
    if not config.shared_cells:
        return weights["prompt_embedding"]
    (bos, *others), tokens = weights["prompt_embedding"], weights["embedding.weight"]
    return torch.stack([bos, *(tokens[config.first_cell + cell] for cell in range(config.cells)), *others])


def random_tokens(batch, suffix, seed=0):
    """Tokens, int64 (batch, P + suffix)."""
    return torch.randint(VOCABULARY, (batch, P + suffix), generator=torch.Generator().manual_seed(seed))


def assert_near(actual, expected, tolerance=1e-5):
    """Equal but for rounding: the largest difference against the largest value."""
    assert actual.shape == expected.shape
    if actual.numel():
        worst = (actual - expected).abs().max().item()
        assert worst <= tolerance * max(1.0, expected.abs().max().item()), worst


# Every router and summary that is not the default.
ROUTERS = [
    {"router": "per_depth"},
    {"router": "per_segment", "segment": 2},
    {"router": "per_segment", "segment": 3, "summary_decay": 0.5},
    {"router": "fixed", "blocks": 3},
    {"summary_decay": 0.5},
    {"summary_decay": 0.0},
    {"router_norm": True},
    {"whole_problem": True},
]


@torch.no_grad()
def reference(model, tokens, depth=None, ids=None, gates=None):
    """One sequence by the equations, float64, in text order, with masks for everything: logits of the suffix and, for
    each depth, (block, gate) of every window. ids, gates: a forced path, (D, K) each."""
    config = model.config
    weights = {name: tensor.double() for name, tensor in model.state_dict().items()}
    positions = torch.arange(len(tokens))
    field = (positions >= config.prompt - config.field) & (positions < config.prompt)
    causal = positions[:, None] >= positions
    outside_reads_no_field = ~field | field[:, None]
    problem = positions < config.prompt - config.field
    if config.whole_problem:
        causal |= problem[:, None] & problem & (positions[:, None] > 0)
    visible = causal & outside_reads_no_field

    def norm(h, scale, offset=0.0):
        return h / (h.square().mean(-1, keepdim=True) + 1e-6).sqrt() * scale + offset

    def turn(x):
        half = x.shape[-1] // 2
        angle = positions[:, None] * config.rope_base ** (-torch.arange(half).double() / half)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)

    def update(h, block, scales, offsets, mask):
        heads, size = config.heads, config.width // config.heads
        qkv = norm(h, scales[0], offsets[0]) @ weights[block + "qkv"].T
        q, k, v = qkv.view(len(h), 3, heads, size).permute(1, 2, 0, 3)
        scores = turn(q) @ turn(k).transpose(1, 2) / size**0.5
        mixed = scores.masked_fill(~mask, -torch.inf).softmax(-1) @ v
        attended = mixed.transpose(0, 1).flatten(1) @ weights[block + "out"].T
        a, b = (norm(h + attended, scales[1], offsets[1]) @ weights[block + "up"].T).chunk(2, -1)
        return attended + (F.silu(a) * b) @ weights[block + "down"].T

    def fixed(h, layer):
        gains = weights[layer + "attention_norm"], weights[layer + "feed_forward_norm"]
        return h + update(h, layer + "block.", gains, (0.0, 0.0), visible)

    def probabilities(h, level, means):
        if config.router == "fixed":
            return F.one_hot(torch.tensor((level - 1) % config.blocks), config.blocks).double()
        if means:
            shares = config.summary_decay ** torch.arange(len(means) - 1, -1, -1).double()
            r = (shares[:, None] * torch.stack(means)).sum(0) / shares.sum()
        else:
            r = (h[0] + weights["depth_vector"][level - 1]) / 2
        router, r = weights["router.weight"], norm(r, 1.0) if config.router_norm else r
        return (router[0 if len(router) == 1 else level - 1] @ r).softmax(0)

    h = weights["embedding.weight"][tokens]
    if config.prompt_embedding:
        h[: config.prompt] += position_vectors(config, weights)
    for index in range(config.prelude):
        h = fixed(h, f"prelude.{index}.")
    routes = []
    for level in range(1, (depth or config.depth) + 1):
        delta = (level - 1) * config.shift % config.window
        behind = 1 + (positions - config.prompt + delta) // config.window
        windows = torch.where(positions < config.prompt, 0, behind)
        same = windows[:, None] == windows
        scale, offset = weights["film_scale"][level - 1], weights["film_offset"][level - 1]
        updates = [update(h, f"library.{m}.", scale, offset, visible & same) for m in range(config.blocks)]
        means = [h[windows == k].mean(0) for k in range(int(windows.max()) + 1)]
        new, taken = h.clone(), []
        for k in range(len(means)):
            opener = k if k == 0 or config.router != "per_segment" else 1 + (k - 1) // config.segment * config.segment
            p = probabilities(h, level, means[:opener])
            bias = 0 if config.router == "fixed" else weights["router.bias"]
            block = int((p + bias).argmax() if ids is None else ids[level - 1, k])
            gate = p[block] if gates is None else gates[level - 1, k]
            new[windows == k] += gate * updates[block][windows == k]
            taken.append((block, float(gate)))
        h = new
        routes.append(taken)
    for index in range(config.coda):
        h = fixed(h, f"coda.{index}.")
    return (norm(h, weights["final_norm"]) @ weights["head"].T)[config.prompt :], routes

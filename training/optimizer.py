"""Muon for the matrices of the blocks, AdamW for everything else; a block that no window chose is not moved."""

from __future__ import annotations

import torch
from torch import nn

from lol_data.model.depths import DepthRouter
from lol_data.model.experts import Experts
from lol_data.model.fixed_path import FixedPath
from lol_data.model.layers import Block
from lol_data.model.routing import Router


def build_optimizers(
    model: nn.Module, muon_rate: float, adam_rate: float, router_rate: float, weight_decay: float
) -> list:
    """One torch.optim.Muon and one AdamW that together hold every parameter exactly once.

    Both skip parameters whose gradient is None, which is what an unused block has. Each group keeps its peak learning
    rate under "peak".
    """
    routers = router_parameters(model)
    own = {id(parameter) for parameter in routers}
    blocks = [parameter for parameter in _parameters(model, Block) if id(parameter) not in own]
    if isinstance(model, FixedPath) and model.input is not None:
        blocks.append(model.input)
    own |= {id(parameter) for parameter in blocks}
    others = [parameter for parameter in model.parameters() if id(parameter) not in own]
    assert len(blocks) + len(routers) + len(others) == sum(1 for _ in model.parameters())
    muon = torch.optim.Muon(blocks, lr=muon_rate, weight_decay=weight_decay, momentum=0.95, nesterov=True)
    groups = [{"params": others, "lr": adam_rate}, {"params": routers, "lr": router_rate}]
    adam = torch.optim.AdamW(groups, betas=(0.9, 0.95), eps=1e-10, weight_decay=0.0)
    for optimizer in (muon, adam):
        for group in optimizer.param_groups:
            group["peak"] = group["lr"]
    return [muon, adam]


def router_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Everything that chooses: blocks, experts, tokens. A predictor of choices is none: it may learn as fast as all."""
    experts = [module.router for module in model.modules() if isinstance(module, Experts)]
    tokens = [
        parameter
        for module in model.modules()
        if isinstance(module, DepthRouter)
        for name, parameter in module.named_parameters()
        if not name.startswith("guess")
    ]
    return [*_parameters(model, Router), *tokens, *experts]


def _parameters(model: nn.Module, kind: type[nn.Module]) -> list[nn.Parameter]:
    return [parameter for module in model.modules() if isinstance(module, kind) for parameter in module.parameters()]


def set_learning_rate(optimizers: list, factor: float) -> None:
    """Scale every group's peak rate."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * factor

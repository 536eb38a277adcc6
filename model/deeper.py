"""More depth than a model was trained for: the same library, applied further.

The depth vector, FiLM and a router per depth have trained values for depths 1 .. D only. There are three readings of
what a depth behind D gets, and none is right of itself: whether more depth helps has to be measured.

    cycle        depth l gets what depth 1 + (l - 1) mod D has
    hold         what depth D has
    extrapolate  the least-squares straight line through the trained depths, for every number by itself

Windows keep shifting by equation (2), and a fixed path keeps going round its library, under every reading.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from lol_data.errors import UsageError
from lol_data.model.build import make_model
from lol_data.model.experts import Experts
from lol_data.model.transformer import Transformer

READINGS = ("cycle", "hold", "extrapolate")


def deepen(model: Transformer, depth: int, reading: str = "hold") -> Transformer:
    """A model of another depth, 1 or more, for evaluation; up to the trained depth it computes the same.

    It shares the storage of all weights but those per depth. Raises UsageError for a depth or reading that is none.
    """
    if reading not in READINGS:
        raise UsageError(f'"{reading}" is no reading of depths behind the trained ones; use {", ".join(READINGS)}')
    if model.config.capacity < 1 and depth > model.config.depth:
        raise UsageError("each depth of a Mixture-of-Depths has a router of its own; behind the trained ones is none")
    config = replace(model.config, depth=depth).validate()
    with torch.device("meta"):
        deeper = make_model(config)
    tensors = model.state_dict()
    for name, tensor in deeper.state_dict().items():
        if tensor.shape != tensors[name].shape:  # depth is the only difference
            tensors[name] = _read_on(tensors[name], depth, reading)
    own = deeper.state_dict()
    deeper.load_state_dict({name: tensor for name, tensor in tensors.items() if name in own}, assign=True)
    for module in deeper.modules():
        if isinstance(module, Experts):  # counts are in no state
            module.counts = torch.zeros_like(module.bias, dtype=torch.long)
    deeper.ops, deeper.tile = model.ops, model.tile
    deeper.matmul_dtype, deeper.attention_dtype = model.matmul_dtype, model.attention_dtype
    return deeper.train(model.training)


def _read_on(values: Tensor, depth: int, reading: str) -> Tensor:
    """Values of the trained depths, (D, ...), for `depth` depths."""
    trained = len(values)
    if depth <= trained:
        return values[:depth].clone()
    if reading == "extrapolate":
        levels = torch.arange(depth, dtype=torch.float64, device=values.device)
        known, line = levels[:trained] - levels[:trained].mean(), values.double().flatten(1)
        slope = known @ line / known.square().sum().clamp(min=1)
        behind = line.mean(0) + (levels[trained:, None] - levels[:trained].mean()) * slope
        return torch.cat([values, behind.to(values.dtype).view(-1, *values.shape[1:])])
    levels = torch.arange(depth, device=values.device)
    return values[levels % trained if reading == "cycle" else levels.clamp(max=trained - 1)]

"""What a run will take, before it is started: sizes by formula, memory and time from a few steps of a throwaway run."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor

from lol_data.model.formulas import count_parameters
from lol_data.training.data import step_micro_batches
from lol_data.training.loop import Trainer
from lol_data.training.schedule import depth_at, step_flops, undifferentiated

TIMED = 3  # steps at the least and at the greatest depth, of which the fastest counts


def estimate(trainer: Trainer) -> dict[str, Any]:
    """Parameters, FLOPs, bytes and seconds of a run. The trainer is worn out by it.

    flops_per_token: of training at full depth. memory: weights, gradients, optimiser states, and what one micro-batch
    of the longest sequences keeps for its backward pass; data and libraries come on top.
    """
    train, config = trainer.train, trainer.model.config
    depths = [depth_at(step, train.steps, config.depth, train.growth) for step in range(train.steps)]
    parts = step_micro_batches(trainer.sequences, train, 0)
    lengths = [trainer.sequences.lengths(part) for part in parts]
    tokens = sum(int(part.sum()) for part in lengths)
    cut = undifferentiated(config.depth, train.backward_depth)
    flops = sum(step_flops(config, part, config.depth, cut) for part in lengths)
    activations = _kept_bytes(trainer, parts[-1])
    seconds = {}
    for depth in sorted({depths[0], depths[-1]}):
        seconds[depth] = _step_seconds(trainer, depths.index(depth))
    started = time.perf_counter()
    trainer.validate()
    validation = time.perf_counter() - started
    weights = sum(parameter.nbytes for parameter in trainer.model.parameters())
    counted = count_parameters(config)
    return {
        "parameters": counted.stored,
        "active_parameters": counted.active,
        "flops_per_token": round(flops / tokens),
        "tokens_per_step": tokens,
        "steps": train.steps,
        "epochs": round(train.steps * train.batch / len(trainer.sequences), 2),
        "memory": 2 * weights + _state_bytes(trainer) + activations,
        "seconds_per_step": round(seconds[depths[-1]], 4),
        "seconds": round(
            sum(_between(seconds, depth) for depth in depths) + validation * (train.steps // train.validate_every), 1
        ),
        "machine": trainer.machine,
    }


def describe(values: dict[str, Any]) -> str:
    """The same for a person."""
    minutes = values["seconds"] / 60
    took = f"{minutes / 60:.1f} h" if minutes > 90 else f"{minutes:.1f} min"
    return "\n".join(
        [
            f"parameters   {values['parameters']:,}, of which a token meets {values['active_parameters']:,} "
            "(blocks counted at every use)",
            f"work         {values['flops_per_token'] / 1e6:.1f} MFLOP a token, {values['tokens_per_step']:,} tokens "
            "a step",
            f"steps        {values['steps']:,}, {values['epochs']:g} passes over the training sequences",
            f"memory       {values['memory'] / 2**30:.2f} GiB, data and libraries not counted",
            f"time         {took}, {values['seconds_per_step']:.3g} s a step at full depth, measured now on "
            f"{values['machine']['device']} in {values['machine']['matmul']}",
        ]
    )


def _between(seconds: dict[int, float], depth: int) -> float:
    """A step's time at a depth: a straight line through the measured ones."""
    (low, at_low), (high, at_high) = min(seconds.items()), max(seconds.items())
    return at_low if low == high else at_low + (at_high - at_low) * (depth - low) / (high - low)


def _step_seconds(trainer: Trainer, step: int) -> float:
    taken = []
    for _ in range(1 + TIMED):  # the first one compiles and fills caches
        trainer.step = step
        taken.append(trainer.run_step()["seconds"])
    return min(taken[1:])


def _kept_bytes(trainer: Trainer, samples: Any) -> int:
    """Bytes that a forward pass at full depth keeps for the backward one, weights left out."""
    model, kept = trainer.model, {}
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    model.train()
    model.cut = undifferentiated(model.config.depth, trainer.train.backward_depth)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        batch = trainer.sequences.gather(samples)
        logits, choices = model(batch.tokens, lengths=batch.lengths)
    del logits, choices
    return sum(kept.values())


def _state_bytes(trainer: Trainer) -> int:
    """Optimiser states; there are some only behind a first step."""
    return sum(
        value.nbytes
        for optimizer in trainer.optimizers
        for state in optimizer.state.values()
        for value in state.values()
        if isinstance(value, Tensor)
    )

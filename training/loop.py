"""The training loop: gradient steps, the selection bias, metrics, checkpoints, resume.

Everything a step does follows from (configuration, data, step) and from the state in the checkpoint, so that a resumed
run repeats an unbroken one; on a CPU bit for bit, given as many threads.
"""

from __future__ import annotations

import json
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from lol_data import __version__, distributed
from lol_data.errors import LolDataError, UsageError
from lol_data.model.build import make_model
from lol_data.training.balance import balance_experts, move_bias
from lol_data.training.checkpoint import load_model, load_optimizers, newest_checkpoint, save_checkpoint
from lol_data.training.config import RunConfig
from lol_data.training.data import Batch, Sequences, split_by_length, step_micro_batches
from lol_data.training.depths import DepthStatistics
from lol_data.training.health import PathAgreement, Watch
from lol_data.training.machine import apply, choose, kernels_note
from lol_data.training.optimizer import build_optimizers, router_parameters, set_learning_rate
from lol_data.training.run_folder import DIVERGED, METRICS, cut_metrics, note_divergence, note_length, open_run
from lol_data.training.schedule import (
    bias_step_at,
    learning_rate_factor,
    step_flops,
)
from lol_data.training.step import StepPlan, StepSums, accumulate, suffix_loss
from lol_data.training.tensorboard import tensorboard_log


class DivergedError(LolDataError):
    """The loss or its gradient is not finite. samples: all that the step was trained on."""

    def __init__(self, step: int, loss: float, samples: list[int]):
        first = ", ".join(map(str, samples[:8])) + (", ..." if len(samples) > 8 else "")
        super().__init__(f"step {step}: the loss is {loss}; lower the rates; the batch was samples {first}")
        self.step, self.loss, self.samples = step, loss, samples


class Trainer:
    """One model on one set of sequences."""

    def __init__(
        self,
        config: RunConfig,
        sequences: Sequences,
        validation: Sequences,
        device: torch.device,
        machine: dict[str, Any] | None = None,
    ):
        """machine: how the run was computed before, for a resumed one; by default chosen by measurement."""
        train = config.train
        torch.manual_seed(train.seed)
        self.config, self.train = config, train
        self.sequences, self.validation, self.device = sequences.to(device), validation.to(device), device
        model_config = config.model_config(sequences.layout)
        if train.backward_depth and model_config.router == "fixed" and not model_config.inject:
            raise UsageError(
                "train.backward_depth cuts the prelude off from its gradient on a fixed path without model.inject; "
                "leave it at 0"
            )
        self.model = make_model(model_config).to(device)
        self.optimizers = build_optimizers(
            self.model, train.muon_rate, train.adam_rate, train.router_rate, train.weight_decay
        )
        known = machine is not None and machine["device"] == str(device)
        if machine is None or not known:
            machine = distributed.from_first(
                lambda: {"device": str(device), **choose(device, train, self.model, self._typical_batch)}
            )
        self.machine = machine
        apply(self.machine, self.model)
        self.step = self.tokens_seen = 0
        self.watch = Watch(self.model.config.blocks)
        self.load = [1] * self.model.config.blocks  # windows that took each block in the step before

    def _typical_batch(self) -> Batch:
        """The first step's micro-batch of middling length."""
        train = self.train
        parts = step_micro_batches(self.sequences, train, 0)
        return self.sequences.gather(parts[len(parts) // 2])

    def run_step(self) -> dict[str, Any]:
        """One optimiser step; returns its metrics. Raises DivergedError when the loss is not finite."""
        started = time.perf_counter()
        factor = learning_rate_factor(self.step, self.train.steps, self.train.warmup)
        set_learning_rate(self.optimizers, factor)
        plan = StepPlan.of(self.train, self.model.config, self.sequences, self.step)
        sums = accumulate(self.model, self.sequences, self.train, plan, self.load)
        norm, loss = self._clip(), sums.loss.item()
        if not math.isfinite(loss) or not math.isfinite(norm):
            raise DivergedError(self.step + 1, loss, plan.samples.tolist())
        expert_loads = self._update(sums)
        self.step += 1
        self.tokens_seen += plan.tokens
        line = {
            "step": self.step,
            "loss": round(loss, 6),
            "depth": plan.depth,
            "flops": step_flops(self.model.config, plan.lengths, plan.depth, plan.cut, plan.capacity),
            "rate": round(factor, 5),
            "gradient_norm": round(norm, 4),
            "tokens": self.tokens_seen,
            "seconds": round(time.perf_counter() - started, 4),
            **plan.padding(self.sequences, self.model.tile),
            **(sums.routes.metrics(self.model.router.bias) if self.routed else {}),
            **expert_loads,
            **sums.depths.metrics(),
        }
        if self.routed and self.train.balance == "auxiliary":
            line["auxiliary_loss"] = round(sums.auxiliary.item(), 6)
        if self.routed and (warnings := self.watch.look(line)):
            line["warnings"] = warnings
        return line

    @property
    def routed(self) -> bool:
        """Whether anybody chooses blocks."""
        return self.model.config.router != "fixed"

    def _clip(self) -> float:
        """Hold the gradient to its largest norm; returns the norm before."""
        if self.train.router_clip:
            torch.nn.utils.clip_grad_norm_(router_parameters(self.model), self.train.router_clip)
        return float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.train.clip))

    def _update(self, sums: StepSums) -> dict[str, Any]:
        """Move weights and selection biases; returns how the experts are loaded."""
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        counts = sums.routes.counts.sum(0)
        self.load = counts.tolist()
        if self.routed and self.train.balance == "bias":
            move_bias(self.model.router.bias, counts, self.bias_step())
        return balance_experts(self.model, self.bias_step(self.train.expert_bias_rate))

    def bias_step(self, rate: float | None = None) -> float:
        """The sign rule's step size at the current step; rate: at the start, by default that of blocks."""
        rate = self.train.bias_rate if rate is None else rate
        return bias_step_at(self.step, self.train.steps, rate, self.train.bias_fade)

    def validation_loss(self, depth: int | None = None) -> float:
        """Mean loss per suffix token over the validation problems, all strategies, without noise."""
        return self.validate(depth)["validation_loss"]

    @torch.inference_mode()
    def validate(self, depth: int | None = None) -> dict[str, Any]:
        """The validation loss, and the share of windows whose own route is that of their strategy's template; of a
        Mixture-of-Depths also what it took."""
        self.model.eval()
        windows, blocks = self.model.windows, self.model.config.blocks
        routed = self.routed
        samples = np.arange(len(self.validation))
        lengths, strategies = self.validation.lengths(samples), len(self.validation.layout.strategies)
        tokens_taken = DepthStatistics(self.model.config, depth or self.model.config.depth, self.device)
        paths = PathAgreement(strategies, depth or self.model.config.depth, windows, int(lengths.max()), blocks)
        total = torch.zeros((), device=self.device)
        parts = split_by_length(self.validation, samples, 4 * self.train.micro_batch)
        for part in parts[distributed.number() :: distributed.count()]:
            batch = self.validation.gather(part)
            logits, choices = self.model(batch.tokens, depth, lengths=batch.lengths)
            total += suffix_loss(logits, batch.tokens, self.model.config.prompt)
            if routed:
                paths.add(choices, batch.tokens.shape[1], batch.lengths, part % strategies)
            tokens_taken.add(choices)
        distributed.add_up(total, *paths.tensors(), tokens_taken.sums)
        targets = int((lengths - self.model.config.prompt - 1).sum())
        return {
            "validation_loss": round(total.item() / targets, 6),
            **(paths.metrics() if routed else {}),
            **tokens_taken.metrics("validation_"),
        }

    def about(self, identity: dict[str, Any]) -> dict[str, Any]:
        """What run.json says of a run on this data."""
        versions = {"lol_data": __version__, "torch": torch.__version__}
        return {"config": self.config.to_json(), "data": identity, "machine": self.machine, "versions": versions}

    def save(self, run: Path) -> Path:
        """Write a checkpoint of the current step."""
        state = {"tokens": self.tokens_seen, "load": self.load, "watch": self.watch.state()}
        return save_checkpoint(run, self.step, self.model, self.optimizers, state, self.train.keep)

    def restore(self, folder: Path) -> None:
        """Go on from a checkpoint."""
        state = load_model(folder, self.model)
        load_optimizers(folder, self.model, self.optimizers)
        self.step, self.tokens_seen = state["step"], state["tokens"]
        self.load = state["load"]
        self.watch.restore(state["watch"])


def train_run(
    trainer: Trainer, run: Path, identity: dict[str, Any], resume: bool, say=print, tensorboard: bool = False
) -> dict[str, Any]:
    """Train to the last step, in a run folder; returns the last line of metrics.

    identity: what the data is (path, hash, ...), kept in run.json and compared on resume. An interrupt lets the step
    end and its checkpoint be written, then comes as KeyboardInterrupt. Raises RefusedError for another run's folder.
    """
    with ExitStack() as opened:
        distributed.from_first(lambda: opened.enter_context(open_run(run, trainer.about(identity), resume)))
        if note := kernels_note(trainer.machine):
            say(note)
        line = restore(trainer, run, say) if resume else {}
        return _steps(trainer, run, line, say, tensorboard)


def restore(trainer: Trainer, run: Path, say) -> dict[str, Any]:
    """Load the newest good checkpoint and cut the metrics back to it; returns the last line that still holds."""
    folder = distributed.from_first(lambda: newest_checkpoint(run, say))
    if folder is not None:
        trainer.restore(folder)
    before = distributed.from_first(lambda: note_length(run, trainer.step, trainer.train.steps))
    note = "" if before is None else f", no longer of {before}"
    say(f"{run}: going on from step {trainer.step} of {trainer.train.steps}{note}")
    return distributed.from_first(lambda: cut_metrics(run / METRICS, trainer.step))


def _steps(trainer: Trainer, run: Path, line: dict[str, Any], say, tensorboard: bool) -> dict[str, Any]:
    train, first = trainer.train, distributed.is_first()
    with (
        (run / METRICS if first else Path(os.devnull)).open("a", encoding="utf-8") as log,
        tensorboard_log(run if first and tensorboard else None, trainer.step) as draw,
        tqdm(
            total=train.steps, initial=trainer.step, unit="step", disable=None if first else True, smoothing=0.05
        ) as bar,
        _interrupts_held_back() as interrupted,
    ):
        while trainer.step < train.steps:
            try:
                line = trainer.run_step()
            except DivergedError as error:
                if first:
                    note_divergence(run, error.step, error.loss, error.samples)
                raise LolDataError(f"{run}: {error} (all of them: {run / DIVERGED})") from error
            last = trainer.step == train.steps
            if last or trainer.step % train.validate_every == 0:
                line |= trainer.validate(line["depth"])
            draw(line)
            for text in line.get("warnings", []):
                say(f"warning: {text}")
            log.write(json.dumps(line) + "\n")
            rate = line["tokens"] / max(line["step"], 1) / max(line["seconds"], 1e-9)
            bar.set_postfix_str(f"loss {line['loss']:.4f}, {rate:,.0f} tokens/s")
            bar.update()
            stop = distributed.in_any(interrupted())
            if first and (last or stop or trainer.step % train.checkpoint_every == 0):
                log.flush()
                os.fsync(log.fileno())
                trainer.save(run)
            if stop:
                say(f"{run}: stopped behind step {trainer.step}; go on with: lol-data train --out {run} --resume")
                raise KeyboardInterrupt
    return line


@contextmanager
def _interrupts_held_back() -> Iterator[Callable[[], bool]]:
    """Ctrl-C only sets what the yielded function says, since half a step must not be saved; a second one comes through
    at once. Outside the main thread, which alone is interrupted, nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    came: list[int] = []
    before = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: object) -> None:
        came.append(number)
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(came)
    finally:
        signal.signal(signal.SIGINT, before)

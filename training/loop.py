"""The training loop: gradient steps, the selection bias, metrics, checkpoints, resume.

Everything a step does follows from (configuration, data, step) and from the state in the checkpoint, so that a resumed
run repeats an unbroken one; on a CPU bit for bit, given as many threads.
"""

from __future__ import annotations

import json
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm import tqdm

from lol_data import __version__
from lol_data.errors import LolDataError
from lol_data.model.lol import LibraryOfLayers
from lol_data.tokenization.vocabulary import PAD
from lol_data.training.checkpoint import load_model, load_optimizers, newest_checkpoint, save_checkpoint
from lol_data.training.config import RunConfig
from lol_data.training.data import Sequences, micro_batches, step_samples
from lol_data.training.health import RouteStatistics
from lol_data.training.machine import apply, choose
from lol_data.training.optimizer import build_optimizers, set_learning_rate
from lol_data.training.run_folder import METRICS, cut_metrics, open_run
from lol_data.training.schedule import bias_step_at, depth_at, learning_rate_factor


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
        self.sequences, self.validation, self.device = sequences, validation, device
        model_config = config.model_config(sequences.layout.vocabulary, sequences.layout.prompt_length)
        self.model = LibraryOfLayers(model_config).to(device)
        self.optimizers = build_optimizers(
            self.model, train.muon_rate, train.adam_rate, train.router_rate, train.weight_decay
        )
        known = machine is not None and machine["device"] == str(device)
        self.machine = machine if machine is not None and known else {"device": str(device), **choose(device, train)}
        apply(self.machine, self.model)
        self.step = self.tokens_seen = 0

    def run_step(self) -> dict[str, Any]:
        """One optimiser step; returns its metrics. Raises LolDataError when the loss is not finite."""
        train, model, step = self.train, self.model, self.step
        started = time.perf_counter()
        torch.manual_seed(hash_seed(train.seed, step))  # the router's noise
        factor = learning_rate_factor(step, train.steps, train.warmup)
        set_learning_rate(self.optimizers, factor)
        depth = depth_at(step, train.steps, model.config.depth, train.growth)
        samples = step_samples(len(self.sequences), train.batch, train.seed, step)
        prompt = model.config.prompt
        lengths = self.sequences.lengths(samples)
        targets = int((lengths - prompt - 1).sum())
        statistics = RouteStatistics(depth, model.config.blocks, self.device)
        model.train()
        total = torch.zeros((), device=self.device)
        padded = 0
        for batch in micro_batches(self.sequences, samples, train.micro_batch):
            tokens = torch.from_numpy(batch.tokens).to(self.device)
            padded += tokens.numel()
            logits, choices = model(tokens, depth)
            loss = suffix_loss(logits, tokens, prompt) / targets
            loss.backward()
            total += loss.detach()
            batch_lengths = torch.from_numpy(batch.lengths).to(self.device)
            statistics.add(choices, model.windows, tokens.shape[1], batch_lengths)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), train.clip)
        value = total.item()
        if not math.isfinite(value) or not math.isfinite(norm):
            raise LolDataError(
                f"step {step + 1}: the loss is {value}; samples {samples[:8].tolist()}...; lower the rates"
            )
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        move_bias(model.router.bias, statistics.counts.sum(0), self.bias_step())
        self.step += 1
        self.tokens_seen += int(lengths.sum())
        return {
            "step": self.step,
            "loss": round(value, 6),
            "depth": depth,
            "rate": round(factor, 5),
            "gradient_norm": round(float(norm), 4),
            "tokens": self.tokens_seen,
            "seconds": round(time.perf_counter() - started, 4),
            "padding": round(1 - int(lengths.sum()) / padded, 4),
            **statistics.metrics(model.router.bias),
        }

    def bias_step(self) -> float:
        """The sign rule's step size at the current step."""
        return bias_step_at(self.step, self.train.steps, self.train.bias_rate, self.train.bias_fade)

    @torch.inference_mode()
    def validation_loss(self, depth: int | None = None) -> float:
        """Mean loss per suffix token over the validation problems, all strategies, without noise."""
        self.model.eval()
        samples = torch.arange(len(self.validation)).numpy()
        total, targets = 0.0, 0
        for batch in micro_batches(self.validation, samples, 4 * self.train.micro_batch):
            tokens = torch.from_numpy(batch.tokens).to(self.device)
            logits, _ = self.model(tokens, depth)
            total += suffix_loss(logits, tokens, self.model.config.prompt).item()
            targets += int((batch.lengths - self.model.config.prompt - 1).sum())
        return total / targets

    def about(self, identity: dict[str, Any]) -> dict[str, Any]:
        """What run.json says of a run on this data."""
        versions = {"lol_data": __version__, "torch": torch.__version__}
        return {"config": self.config.to_json(), "data": identity, "machine": self.machine, "versions": versions}

    def save(self, run: Path) -> Path:
        """Write a checkpoint of the current step."""
        state = {"tokens": self.tokens_seen}
        return save_checkpoint(run, self.step, self.model, self.optimizers, state, self.train.keep)

    def restore(self, folder: Path) -> None:
        """Go on from a checkpoint."""
        state = load_model(folder, self.model)
        load_optimizers(folder, self.model, self.optimizers)
        self.step, self.tokens_seen = state["step"], state["tokens"]


def suffix_loss(logits: Tensor, tokens: Tensor, prompt: int) -> Tensor:
    """Summed cross-entropy of every suffix token behind `<trace>`: logits (B, T - P, V), tokens (B, T)."""
    wanted = tokens[:, prompt + 1 :].long()
    real = wanted != PAD
    return F.cross_entropy(logits[:, :-1][real], wanted[real], reduction="sum")


@torch.no_grad()
def move_bias(bias: Tensor, counts: Tensor, step: float) -> None:
    """The sign rule: blocks with less than the mean load gain `step`, the others lose it; the mean is taken out."""
    delta = step * torch.sign(counts.float().mean() - counts.float())
    bias += delta - delta.mean()


def hash_seed(seed: int, step: int) -> int:
    """A seed for one step, unrelated to its neighbours' (SplitMix64's finaliser)."""
    word = (seed * 0x9E3779B97F4A7C15 + step + 1) & (2**64 - 1)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        word = ((word ^ (word >> shift)) * factor) & (2**64 - 1)
    return word ^ (word >> 31)


def train_run(trainer: Trainer, run: Path, identity: dict[str, Any], resume: bool, say=print) -> dict[str, Any]:
    """Train to the last step, in a run folder; returns the last line of metrics.

    identity: what the data is (path, hash, ...), kept in run.json and compared on resume. An interrupt lets the step
    end and its checkpoint be written, then comes as KeyboardInterrupt. Raises RefusedError for another run's folder.
    """
    with open_run(run, trainer.about(identity), resume):
        line = restore(trainer, run, say) if resume else {}
        return _steps(trainer, run, line)


def restore(trainer: Trainer, run: Path, say) -> dict[str, Any]:
    """Load the newest good checkpoint and cut the metrics back to it; returns the last line that still holds."""
    folder = newest_checkpoint(run, say)
    if folder is not None:
        trainer.restore(folder)
    say(f"{run}: going on from step {trainer.step} of {trainer.train.steps}")
    return cut_metrics(run / METRICS, trainer.step)


def _steps(trainer: Trainer, run: Path, line: dict[str, Any]) -> dict[str, Any]:
    train = trainer.train
    with (
        (run / METRICS).open("a", encoding="utf-8") as log,
        tqdm(total=train.steps, initial=trainer.step, unit="step", disable=None, smoothing=0.05) as bar,
        _interrupts_held_back() as interrupted,
    ):
        while trainer.step < train.steps:
            line = trainer.run_step()
            last = trainer.step == train.steps
            if last or trainer.step % train.validate_every == 0:
                line["validation_loss"] = round(trainer.validation_loss(line["depth"]), 6)
            log.write(json.dumps(line) + "\n")
            rate = line["tokens"] / max(line["step"], 1) / max(line["seconds"], 1e-9)
            bar.set_postfix_str(f"loss {line['loss']:.4f}, {rate:,.0f} tokens/s")
            bar.update()
            if last or interrupted() or trainer.step % train.checkpoint_every == 0:
                log.flush()
                trainer.save(run)
            if interrupted():
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

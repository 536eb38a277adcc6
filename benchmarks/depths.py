"""What a Mixture-of-Depths saves: FLOPs, training time and decoding time against the same model that takes every token.

    python benchmarks/depths.py [--depth 12] [--every 1] [--steps 200] [--rounds 5] [--batch 64] [--threads N]

One model of `--depth` layers, all of the core, full attention, at capacities 1, 0.75, 0.5 and 0.25 at every so-manieth
layer. Each first trains for `--steps` steps on 5x5 mazes, so that its predictors know what to take; then all arms take
turns, in training and in decoding, and ratios are of the same round. `taken` is the share of (token, taking layer) that
was computed while decoding, which the capacity only suggests. FLOPs are by formula, of a forward pass over the mean
sequence. The last column is what the article behind this table claims for 32 layers: FLOPs, training, inference.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
import torch
from common import markdown, spread

from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.model.decoding import Decoder
from lol_data.model.formulas import flops_per_sequence
from lol_data.tokenization.tasks import layout_of
from lol_data.tokenization.vocabulary import TRACE
from lol_data.training.config import load_config
from lol_data.training.data import Sequences
from lol_data.training.loop import Trainer
from lol_data.training.machine import pick_device

CLAIMS = {1.0: "1.0, 1.0, 1.0", 0.75: "0.78, 1.3, 1.2", 0.5: "0.55, 1.8, 1.6", 0.25: "0.32, 2.5, 2.1"}
STEPS = 4  # of training, per arm and round
TOKENS = 40  # decoded per arm and round


def trainer_of(capacity: float, options: argparse.Namespace, sequences: Sequences) -> Trainer:
    """A trained arm."""
    shape = {"prelude": 0, "coda": 0, "depth": options.depth, "blocks": options.depth, "capacity": capacity}
    shape |= {"capacity_every": options.every}
    settings = [f"model.{name}={value}" for name, value in shape.items()]
    settings += [f"train.steps={10 * options.steps}", "train.capacity_warmup=0", "train.guess_weight=1.0"]
    trainer = Trainer(load_config("mod", settings), sequences, sequences, pick_device())
    for _ in range(options.steps):
        trainer.run_step()
    return trainer


@torch.inference_mode()
def decode(trainer: Trainer, prompts: torch.Tensor) -> float:
    """Seconds for so many tokens of every row."""
    trainer.model.eval()
    tokens = torch.full((len(prompts),), TRACE, dtype=torch.long, device=prompts.device)
    decoder = Decoder(trainer.model, prompts, TOKENS)
    started = time.perf_counter()
    for _ in range(TOKENS):
        tokens = decoder.step(tokens)[0].argmax(-1)
    return time.perf_counter() - started


@torch.inference_mode()
def share_taken(trainer: Trainer, sequences: Sequences) -> float:
    """Share of (token, taking layer) computed outside of training; 1 where every layer takes all."""
    trainer.model.eval()
    batch = sequences.gather(np.arange(200))
    _, choices = trainer.model(batch.tokens, lengths=batch.lengths)
    taken = [choice.taken.taken for choice in choices if choice.taken]
    return torch.cat(taken).double().mean().item() if taken else 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depth", type=int, default=12)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    mazes = generate_mazes(MazeSettings(size=5), 0, 0, 20_000)
    sequences = Sequences.of(mazes, 8)
    layout = layout_of(mazes, 8)
    strategies = np.arange(options.batch) % len(layout.strategies)
    prompts = torch.from_numpy(layout.prompts(layout.problems(mazes).take(np.arange(options.batch)), strategies))
    arms = {capacity: trainer_of(capacity, options, sequences) for capacity in CLAIMS}
    training: dict[float, list[float]] = {capacity: [] for capacity in arms}
    decoding: dict[float, list[float]] = {capacity: [] for capacity in arms}
    for trainer in arms.values():
        decode(trainer, prompts)
    for _ in range(options.rounds):
        for capacity, trainer in arms.items():
            training[capacity].append(statistics.median(trainer.run_step()["seconds"] for _ in range(STEPS)))
            decoding[capacity].append(decode(trainer, prompts))
    length = round(float(sequences.lengths(np.arange(len(sequences))).mean()))
    whole = flops_per_sequence(arms[1.0].model.config, length).forward
    rows = []
    for capacity, trainer in arms.items():
        rows.append(
            [
                f"{capacity:g}",
                f"{flops_per_sequence(trainer.model.config, length).forward / whole:.2f}",
                spread([a / b for a, b in zip(training[1.0], training[capacity], strict=True)]),
                spread([a / b for a, b in zip(decoding[1.0], decoding[capacity], strict=True)]),
                f"{share_taken(trainer, sequences):.2f}",
                CLAIMS[capacity],
            ]
        )
    print(f"{options.depth} layers, capacity at every {options.every}., {torch.get_num_threads()} threads,")
    print(
        f"batch {options.batch}, mean sequence {length} tokens, {options.rounds} rounds; times faster than capacity 1\n"
    )
    head = ["capacity", "FLOPs", "training, times as fast", "decoding, times as fast", "taken", "claimed"]
    print("\n".join(markdown(head, rows)))


if __name__ == "__main__":
    main()

"""How fast a model decodes, and what its routes cost: cached against recomputed, and the core against the prefix.

    python benchmarks/decoding.py [--run RUN | --config quickstart] [--size 5] [--batches 1 8 64] [--tokens 100]

Prompts are mazes. A trained --run takes its own routes; without one the weights are random and a router that knows
nothing spreads less. Every row decodes greedily to the last token, whatever it says. Three Markdown tables:

1. per batch: tokens/s; time to the first token, prefill included; median and 95th percentile of a step; how many times
   faster than computing the whole prefix anew for every token, both arms interleaved so that a shared machine disturbs
   them alike; different blocks that a step touches at one depth of the core, beside equation (12) for as many uniform
   draws; the core's weight bytes that a step therefore reads if every depth loads its blocks once.
2. the time of a step by prefix length, of the whole model and of the core alone (the same model without its prelude and
   coda, whose attention sees the whole prefix).
3. how far cached logits are from recomputed ones, and whether the greedy tokens of all batches agree.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.model.build import make_model
from lol_data.model.config import ModelConfig
from lol_data.model.decoding import Decoder
from lol_data.model.formulas import block_parameters, expected_distinct_blocks
from lol_data.model.transformer import Transformer
from lol_data.tokenization.tasks import layout_of
from lol_data.tokenization.vocabulary import TRACE
from lol_data.training.config import RunConfig, load_config
from lol_data.training.machine import pick_device
from lol_data.training.run_folder import load_trained, read_run


@dataclass
class Decoded:
    """seconds: of the prefill, then of every step. tokens: int64 (B, n). logits: (B, n, V). distinct: blocks touched,
    (n, D)."""

    seconds: list[float]
    tokens: Tensor
    logits: Tensor
    distinct: np.ndarray


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


@torch.inference_mode()
def decode(model: Transformer, prompts: Tensor, count: int) -> Decoded:
    """`count` greedy tokens of every row with the cache."""
    tokens = torch.full((len(prompts),), TRACE, dtype=torch.long, device=prompts.device)
    seconds, said, all_logits, distinct = [], [], [], []
    started = time.perf_counter()
    decoder = Decoder(model, prompts, count)
    synchronise(model.device)
    seconds.append(time.perf_counter() - started)
    for _ in range(count):
        started = time.perf_counter()
        logits, choices = decoder.step(tokens)
        tokens = logits.argmax(-1)
        synchronise(model.device)
        seconds.append(time.perf_counter() - started)
        said.append(tokens)
        all_logits.append(logits)
        distinct.append([len(choice.ids.unique()) for choice in choices])
    return Decoded(seconds, torch.stack(said, 1), torch.stack(all_logits, 1), np.array(distinct))


@torch.inference_mode()
def recompute(model: Transformer, decoded: Decoded, prompts: Tensor, stride: int) -> tuple[float, float]:
    """Seconds for the same tokens without a cache, and the largest difference of logits.

    Every `stride`-th pass stands for its neighbours.
    """
    first = torch.full((len(prompts), 1), TRACE, dtype=torch.long, device=prompts.device)
    tokens = torch.cat([prompts.long(), first, decoded.tokens], 1)
    seconds, apart = 0.0, 0.0
    count = decoded.tokens.shape[1]
    for n in range(0, count, stride):
        started = time.perf_counter()
        logits = model(tokens[:, : prompts.shape[1] + 1 + n])[0][:, -1]
        synchronise(model.device)
        seconds += (time.perf_counter() - started) * min(stride, count - n)
        apart = max(apart, (logits - decoded.logits[:, n]).abs().max().item())
    return seconds, apart


def core_alone(model: Transformer) -> Transformer:
    """The same embeddings, core and head without fixed layers."""
    config: ModelConfig = replace(model.config, prelude=0, coda=0)
    bare = make_model(config).to(model.device)
    kept = {name: tensor for name, tensor in model.state_dict().items() if not name.startswith(("prelude", "coda"))}
    bare.load_state_dict(kept)
    return bare.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--config", default="quickstart")
    parser.add_argument("--size", type=int, default=5)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stride", type=int, default=8, help="recompute every so-many-th token, for time")
    parser.add_argument("--set", dest="settings", nargs="*", default=[])
    options = parser.parse_args()
    device = pick_device()
    config = RunConfig.from_json(read_run(options.run)["config"]) if options.run else None
    config = config or load_config(options.config, options.settings)
    mazes = generate_mazes(MazeSettings(size=options.size), 1, 0, max(options.batches))
    layout = layout_of(mazes, config.strategy_field)
    if options.run:
        model = load_trained(options.run, layout, device)[0]
    else:
        torch.manual_seed(0)
        model = make_model(config.model_config(layout)).to(device).eval()
    strategies = np.arange(len(mazes)) % len(layout.strategies)
    prompts = torch.from_numpy(layout.prompts(layout.problems(mazes), strategies)).to(device)
    shape = model.config
    block = block_parameters(shape) * model.library[0].qkv.element_size() / 1e6
    print(f"{options.run or options.config} on {device}; {shape.blocks} blocks of {block:.2f} MB, depth {shape.depth},")
    print(f"window {shape.window}, prompt {shape.prompt}; {options.tokens} tokens, {options.rounds} rounds\n")

    bare, results, slower, apart, bare_steps = core_alone(model), {}, {}, 0.0, {}
    decode(model, prompts[:1], 8)
    for _ in range(options.rounds):
        for batch in options.batches:
            rows = prompts[:batch]
            decoded = decode(model, rows, options.tokens)
            seconds, difference = recompute(model, decoded, rows, options.stride)
            results.setdefault(batch, []).append(decoded)
            slower.setdefault(batch, []).append(seconds / sum(decoded.seconds[1:]))
            bare_steps.setdefault(batch, []).append(decode(bare, rows, options.tokens).seconds[1:])
            apart = max(apart, difference)

    head = ["batch", "tokens/s", "first token, ms", "step, ms", "p95, ms", "recomputed / cached"]
    head += ["blocks a step and depth", "uniform draws", "core weights read a step, MB"]
    print("| " + " | ".join(head) + " |\n|" + "---:|" * len(head))
    for batch, rounds in results.items():
        steps = np.array([decoded.seconds[1:] for decoded in rounds])
        first = np.median([sum(decoded.seconds[:2]) for decoded in rounds])
        distinct = rounds[0].distinct
        cells = [
            f"{batch}",
            f"{batch * steps.shape[1] / np.median(steps.sum(1)):,.0f}",
            f"{first * 1e3:.1f}",
            f"{np.median(steps) * 1e3:.2f}",
            f"{np.quantile(steps, 0.95) * 1e3:.2f}",
            f"{np.median(slower[batch]):.1f}",
            f"{distinct.mean():.2f}",
            f"{expected_distinct_blocks(shape.blocks, batch):.2f}",
            f"{distinct.sum(1).mean() * block:.2f}",
        ]
        print("| " + " | ".join(cells) + " |")

    print("\n| tokens behind the prompt | " + " | ".join(f"batch {b}, ms | its core, ms" for b in results) + " |")
    print("|---|" + "---:|" * (2 * len(results)))
    for start in range(0, options.tokens, shape.window):
        part = slice(start, min(start + shape.window, options.tokens))
        cells = [f"{part.start + 1} to {part.stop}"]
        for batch, rounds in results.items():
            for steps in ([decoded.seconds[1:] for decoded in rounds], bare_steps[batch]):
                cells.append(f"{np.median(np.array(steps)[:, part]) * 1e3:.2f}")
        print("| " + " | ".join(cells) + " |")

    most = results[max(results)][0].tokens
    same = all(torch.equal(rounds[0].tokens, most[:batch]) for batch, rounds in results.items())
    print("\n| largest difference of logits | same greedy tokens in all batches |\n|---:|---|")
    print(f"| {apart:.1e} | {'yes' if same else 'no'} |")


if __name__ == "__main__":
    main()

"""A run folder with everything that a report reads, made by hand: canonical outputs, some of them spoilt."""

import json

import numpy as np
import pyarrow as pa

from lol_data.evaluators.diagnostics import diagnose, write_diagnostics
from lol_data.evaluators.evaluate import judge, save
from lol_data.evaluators.protocols import NO_BLOCK, Outputs
from lol_data.evaluators.summary import summarise
from lol_data.ragged import Ragged
from lol_data.shards.generate import generate_dataset
from lol_data.shards.plan import DatasetPlan
from lol_data.shards.reader import open_dataset
from lol_data.tokenization.tasks import layout_of
from lol_data.training.config import load_config

DEPTH, BLOCKS, WINDOW, SHIFT = 3, 4, 8, 4


def make_data(path, settings, task, n=60):
    plan = DatasetPlan(n, settings, 0, 1000, 0.2, 0.4, task)
    generate_dataset(plan, path, 1)
    return open_dataset(path)


def spoil(tokens, row):
    """Tokens of an output with a fault that depends on its number; one in five of each strategy stays as it is."""
    kind = (row + row // 5) % 5
    if kind == 1:
        return tokens[:-1]  # no end
    if kind == 2 and len(tokens) > 6:
        return np.concatenate([tokens[:2], tokens[3:]])  # a step left out
    if kind == 3:
        return tokens[[1, 0, *range(2, len(tokens))]]
    if kind == 4:
        return tokens[-3:]  # the end of the answer alone
    return tokens


def make_outputs(layout, traced, protocol):
    count, suffixes = len(layout.strategies), layout.problem_suffixes(traced)
    rows, asked = np.repeat(np.arange(len(traced)), count), np.tile(np.arange(count), len(traced))
    tokens = Ragged.from_rows([spoil(suffix[1:], row) for row, suffix in enumerate(suffixes)])
    windows = 2 + int(tokens.lengths.max()) // WINDOW
    blocks = np.full((len(rows), DEPTH, windows), NO_BLOCK, np.uint8)
    for row, length in enumerate(tokens.lengths):
        for level in range(DEPTH):
            entered = 1 + (max(length, 1) - 1 + level * SHIFT % WINDOW) // WINDOW
            blocks[row, level, :entered] = (row + level + np.arange(entered)) % BLOCKS
    field = asked if protocol == "prompted" else np.full(len(rows), -1)
    last = np.zeros((len(rows), DEPTH), np.int64)
    return Outputs(rows, asked.astype(np.uint8), tokens, last, layout.longest_suffix, field, blocks)


def make_run(run, dataset, protocols=("prompted", "forced-selection"), n=8, metrics=30):
    """A run folder with results of hand-made outputs; returns (run, the problems)."""
    run.mkdir(parents=True)
    shape = {"window": WINDOW, "shift": SHIFT, "depth": DEPTH, "blocks": BLOCKS, "field": 2}
    shape |= {"width": 16, "heads": 2, "hidden": 24, "prelude": 1, "coda": 1}
    config = load_config("quickstart", [f"model.{name}={value}" for name, value in shape.items()])
    layout = layout_of(dataset.read_split("test", 1), config.strategy_field)
    about = {
        "config": config.to_json(),
        "data": {"path": str(dataset.path), **layout.about, "content_hash": dataset.manifest.content_hash},
        "machine": {"device": "cpu"},
        "versions": {"lol_data": "0"},
    }
    (run / "run.json").write_text(json.dumps(about))
    health = {"gate": 0.5, "agreement": 0.9, "load_entropy": 1}
    lines = [
        {"step": s, "loss": 3 / s, "depth": 1 + s // 12, "tokens": 9 * s, **health}
        | ({"validation_loss": 3.1 / s} if s % 10 == 0 else {})
        for s in range(1, metrics + 1)
    ]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    test = dataset.read_split("test", n)
    for name in protocols:
        protocol = name.split("-")[0]
        outputs = make_outputs(layout, test, protocol)
        verdicts, formats, table = judge(layout, layout.problems(test), outputs)
        summary = {"protocol": protocol, **layout.about, "n": len(test), "checkpoint": "step-00000030"}
        summary["decoding"] = {"cut": 3}
        fell_back = None
        if protocol == "forced":
            fell_back = np.arange(len(verdicts)) % 7 == 0
            ids = np.zeros((len(layout.strategies), DEPTH, 3), int).tolist()
            own = dict.fromkeys(layout.strategies, 0.5)
            summary["template"] = {"kind": "selection", "agreement_with_own_paths": own, "kinds_agree": 0.9, "ids": ids}
            table = table.append_column("fell_back", pa.array(fell_back))
        save(run / "eval" / name, {**summary, **summarise(verdicts, fell_back, formats=formats)}, table)
    return run, test


def add_diagnostics(run, model, validation, test):
    """What `diagnose` says of a model, under the run."""
    write_diagnostics(diagnose(model, validation, test, {}), run / "eval", {"run": str(run)})

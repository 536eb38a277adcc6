"""Health figures by brute force, and runs that are driven into each of the states that are warned of."""

import json

import numpy as np
import pytest
import torch

from lol_data.evaluators.templates import observe_paths
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.model.routing import Choice
from lol_data.model.windows import Windows
from lol_data.training.health import RouteStatistics
from lol_data.training.loop import train_run

from .common import IDENTITY, make_trainer, metrics, one_thread  # noqa: F401


def test_figures_are_those_of_a_plain_loop():
    windows, lengths, longest, blocks = Windows(5, 4, 2), [6, 9, 17], 18, 3
    generator = torch.Generator().manual_seed(0)
    bias = torch.tensor([0.0, 0.3, -0.3])
    statistics = RouteStatistics(2, blocks, torch.device("cpu"))
    choices, rows, counts = [], [], np.zeros((2, blocks))
    for level in (1, 2):
        slices = windows.slices(longest, level)
        p = (6 * torch.randn(3, len(slices), blocks, generator=generator)).softmax(-1)
        ids = (p + bias).argmax(-1)
        choices.append(Choice(ids, p.gather(2, ids[..., None])[..., 0], p))
        for row, length in enumerate(lengths):
            for k, (start, _) in enumerate(slices):
                if start < length:
                    counts[level - 1, ids[row, k]] += 1
                    if k:
                        rows.append((p[row, k].tolist(), int(ids[row, k])))
    statistics.add(choices, windows, longest, torch.tensor(lengths))
    line = statistics.metrics(bias)
    gates = [p[taken] for p, taken in rows]
    assert statistics.counts.tolist() == counts.tolist()
    assert line["loads"] == [[round(value, 4) for value in row] for row in counts / counts.sum(1, keepdims=True)]
    assert line["gate"] == pytest.approx(np.mean(gates), abs=1e-4)
    assert line["gates_closed"] == pytest.approx(np.mean([gate < 0.02 for gate in gates]), abs=1e-4)
    assert line["gates_open"] == pytest.approx(np.mean([gate > 0.98 for gate in gates]), abs=1e-4)
    assert line["agreement"] == pytest.approx(np.mean([p[taken] == max(p) for p, taken in rows]), abs=1e-4)
    assert line["probability_range"] == pytest.approx(np.mean([max(p) - min(p) for p, _ in rows]), abs=1e-4)
    assert line["bias_range"] == pytest.approx(0.6)
    assert 0 < line["agreement"] < 1 and 0 < line["gates_open"] < 1  # neither end, where faults hide


def test_agreement_with_templates_is_that_of_the_evaluation():
    trainer = make_trainer(micro_batch=1)
    for _ in range(3):
        trainer.run_step()
    line = trainer.validate()
    paths = observe_paths(trainer.model, generate_mazes(MazeSettings(size=4), 9, 0, 3))
    for kind in ("selection", "probability"):
        agreeing = np.take_along_axis(paths.chosen, paths.template(kind).ids[..., None], -1)[..., 0]
        assert line[f"template_{kind}"] == pytest.approx(agreeing.sum() / paths.counts.sum(), abs=1e-4)
    assert line["validation_loss"] == trainer.validation_loss()


def overrule(trainer):
    # Unlike "starve", the bias is small: but the probabilities are even closer to each other.
    trainer.model.router.weight.data.mul_(1e-4)
    trainer.model.router.bias.copy_(torch.tensor([0.01, 0.0, -0.01]))


def starve(trainer):
    trainer.model.router.bias.copy_(torch.tensor([0.0, 0.0, -5.0]))


def saturate(trainer):
    trainer.model.router.weight.data.mul_(1e5)


CASES = {
    "the selection bias overrules the probabilities": (overrule, {"noise": 0.005}, {"steps": 90, "router_rate": 1e-9}),
    "block 2 starves": (starve, {"noise": 3.0}, {"steps": 130}),
    "the gates saturate": (saturate, {"noise": 0.0}, {"steps": 165}),
}


@pytest.mark.parametrize("warning", CASES)
def test_a_sick_run_says_so_once(tmp_path, warning):
    harm, model, settings = CASES[warning]
    quick = {"bias_rate": 0.0, "batch": 4, "validate_every": 1000, "checkpoint_every": 100}
    trainer = make_trainer(model, **quick, **settings)
    harm(trainer)
    said = []
    train_run(trainer, tmp_path / "run", IDENTITY, resume=False, say=said.append)
    warnings = [text for text in said if warning in text]
    assert len(warnings) == 1
    kept = [text for line in metrics(tmp_path / "run") for text in line.get("warnings", [])]
    assert [f"warning: {text}" for text in kept] == said
    line = next(line for line in metrics(tmp_path / "run") if any(warning in text for text in line.get("warnings", [])))
    assert f"step {line['step']}: " in warnings[0]
    state = json.loads((tmp_path / "run" / "checkpoints" / f"step-{trainer.step:08d}" / "state.json").read_text())
    assert len(state["watch"]["said"]) == len(said)  # a resumed run does not repeat itself


def test_a_healthy_run_warns_of_nothing_and_a_fixed_path_has_no_router_to_warn_of():
    trainer = make_trainer({"noise": 3.0}, steps=130, batch=4)
    assert not any("warnings" in trainer.run_step() for _ in range(130))
    trainer = make_trainer({"router": "fixed"}, steps=20, batch=4)
    lines = [trainer.run_step() for _ in range(20)]
    assert not any({"warnings", "gates_open"} & set(line) for line in lines)

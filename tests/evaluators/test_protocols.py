"""Decoding under each protocol: what the model was fed and which blocks it took, seen from outside."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lol_data.evaluators.evaluate import evaluate
from lol_data.evaluators.protocols import PROTOCOLS, Outputs, decode
from lol_data.evaluators.templates import observe_paths
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.generators.sudoku import SudokuSettings, generate_sudokus
from lol_data.mazes import MAZE_STRATEGIES
from lol_data.model.config import ModelConfig
from lol_data.model.decoding import generate
from lol_data.model.lol import LibraryOfLayers
from lol_data.ragged import Ragged
from lol_data.tokenization.layout import NEUTRAL_FIELD
from lol_data.tokenization.maze import CELL_BASE, MazeLayout
from lol_data.tokenization.sudoku import SudokuLayout
from lol_data.tokenization.vocabulary import ANSWER, EOS, PARSE_REASONS, TRACE

from .common import maze_model

SIZE, PROBLEMS, S = 3, 3, len(MAZE_STRATEGIES)
LAYOUT = MazeLayout(SIZE, field=2)


@pytest.fixture(scope="module")
def model():
    model = maze_model(SIZE, seed=3)
    with torch.no_grad():
        said = [EOS, ANSWER, *range(CELL_BASE, CELL_BASE + SIZE * SIZE)]  # so that some outputs end
        silent = torch.ones(len(model.head), dtype=torch.bool)
        silent[said] = False
        model.head[silent] = 0
    return model


@pytest.fixture(scope="module")
def traced():
    return generate_mazes(MazeSettings(size=SIZE), 0, 0, PROBLEMS)


@pytest.fixture(scope="module")
def paths(model, traced):
    return observe_paths(model, traced)


def template_for(protocol, paths):
    return paths.template("selection") if protocol == "forced" else None


def alone(model, mazes, problem, field, forced=None):
    """The output of one problem decoded by itself, cut behind `<eos>`, and its routes."""
    prompt = torch.from_numpy(LAYOUT.prompts(mazes.take(np.array([problem])), np.array([field])))
    tokens, routes = generate(model, prompt, TRACE, EOS, LAYOUT.longest_suffix, forced)
    return tokens[0].tolist(), [route[0].tolist() for route in routes]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_problem_under_every_strategy(model, traced, paths, protocol):
    template = template_for(protocol, paths)
    outputs = decode(model, traced.mazes, protocol, template)
    assert outputs.rows.tolist() == [0] * S + [1] * S + [2] * S
    assert outputs.asked.tolist() == list(range(S)) * PROBLEMS
    lengths = set(outputs.tokens.lengths.tolist())
    assert len(lengths) > 1
    for k, (row, asked) in enumerate(zip(outputs.rows, outputs.asked, strict=True)):
        field = asked if protocol == "prompted" else NEUTRAL_FIELD
        forced = template and template.forced(np.array([asked]), model.device)
        tokens, routes = alone(model, traced.mazes, row, field, forced)
        assert outputs.tokens[k].tolist() == tokens
        assert EOS not in tokens[:-1]
        assert tokens[-1] == EOS or len(tokens) == LAYOUT.longest_suffix
        assert outputs.cut[k] == (tokens[-1] != EOS)
        assert outputs.last_windows[k].tolist() == [len(route) for route in routes]


def test_a_forced_path_runs_the_blocks_of_its_strategys_template(model, traced, paths):
    template = paths.template("selection")
    followed = []
    for asked in range(S):
        _, routes = alone(model, traced.mazes, 0, NEUTRAL_FIELD, template.forced(np.array([asked]), model.device))
        for level, route in enumerate(routes):
            last = template.ids.shape[2] - 1
            assert route == [template.ids[asked, level, min(k, last)] for k in range(1, len(route) + 1)]
        followed.append(routes)
    _, free = alone(model, traced.mazes, 0, NEUTRAL_FIELD)
    assert any(routes != free for routes in followed)


def test_neutral_outputs_know_nothing_of_the_strategy(model, traced):
    outputs = decode(model, traced.mazes, "neutral")
    for problem in range(PROBLEMS):
        said = {tuple(outputs.tokens[problem * S + s]) for s in range(S)}
        assert len(said) == 1
    prompted = decode(model, traced.mazes, "prompted")
    assert len({tuple(prompted.tokens[s]) for s in range(S)}) > 1  # where it is asked for, it can tell


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_batches_change_nothing_but_the_progress(model, traced, paths, protocol):
    template = template_for(protocol, paths)
    whole = decode(model, traced.mazes, protocol, template)
    for batch in (1, 4):
        finished = []
        parts = decode(model, traced.mazes, protocol, template, batch, finished.append)
        assert [row.tolist() for row in parts.tokens] == [row.tolist() for row in whole.tokens]
        assert np.array_equal(parts.last_windows, whole.last_windows)
        assert sum(finished) == PROBLEMS * S


@pytest.mark.parametrize("protocol", ["forced", "Prompted", ""])
def test_a_protocol_without_what_it_needs_is_refused(model, traced, protocol):
    with pytest.raises(ValueError, match="protocol"):
        decode(model, traced.mazes, protocol)


def test_a_template_that_would_not_be_used_is_refused(model, traced, paths):
    with pytest.raises(ValueError, match="template 'selection'"):
        decode(model, traced.mazes, "prompted", paths.template("selection"))


@pytest.mark.parametrize("kind", ["selection", "probability"])
def test_an_evaluation_says_of_every_output_what_its_tokens_say(model, traced, paths, kind):
    result = evaluate(model, traced.mazes, "forced", paths, kind)
    assert result.name == f"forced-{kind}"
    template = paths.template(kind)
    outputs = decode(model, traced.mazes, "forced", template)
    parsed = LAYOUT.parse(outputs.tokens)
    samples = result.samples
    assert samples["tokens"].to_pylist() == [row.tobytes() for row in outputs.tokens]
    assert samples["parse_reason"].to_pylist() == [PARSE_REASONS[code] for code in parsed.reason]
    assert samples["trace"].to_pylist() == [row.tolist() for row in parsed.traces]
    assert samples["id"].to_pylist() == [0] * S + [1] * S + [2] * S
    assert samples["asked"].to_pylist() == list(MAZE_STRATEGIES) * PROBLEMS
    fell_back = template.fell_back(outputs.asked, outputs.last_windows)
    assert samples["fell_back"].to_pylist() == fell_back.tolist()
    assert result.summary["overall"]["n"] == PROBLEMS * S
    assert result.summary["overall"]["fallback_rate"] == pytest.approx(fell_back.mean())
    assert result.summary["template"]["ids"] == template.ids.tolist()


TASKS = {
    "maze": (MazeLayout(4, 2), generate_mazes(MazeSettings(size=4), 0, 0, 20)),
    "sudoku": (SudokuLayout(2), generate_sudokus(SudokuSettings(), 0, 0, 20)),
}


@pytest.mark.parametrize("task", TASKS)
def test_canonical_outputs_are_right_in_every_way(monkeypatch, task):
    """The whole way from traces through tokens back to verdicts, with outputs as a perfect model would give them."""
    layout, traced = TASKS[task]
    suffixes = layout.problem_suffixes(traced)
    outputs = Outputs(
        np.repeat(np.arange(len(traced)), S),
        np.tile(np.arange(S, dtype=np.uint8), len(traced)),
        Ragged.from_rows([suffix[1:] for suffix in suffixes]),
        np.ones((len(suffixes), 1), np.int64),
        layout.longest_suffix,
    )
    monkeypatch.setattr("lol_data.evaluators.evaluate.decode", lambda *arguments: outputs)
    model = SimpleNamespace(config=SimpleNamespace(field=2))
    result = evaluate(model, layout.problems(traced), "prompted")
    for rates in (*result.summary["strategies"].values(), result.summary["overall"]):
        for name in ("adherence", "legality", "completeness", "answer", "joint", "canonical"):
            assert rates[name]["rate"] == 1
    assert result.summary["task"] == task
    assert result.summary["decoding"] == {"limit": layout.longest_suffix, "cut": 0}
    assert result.samples["trace"].to_pylist() == [
        traced.traces[name][row].tolist() for row in range(len(traced)) for name in layout.strategies
    ]
    assert result.samples["answer"].to_pylist() == [row.tolist() for row in layout.answers(traced) for _ in range(S)]


def test_sudokus_take_the_same_path_as_mazes(monkeypatch):
    layout, traced = TASKS["sudoku"][0], TASKS["sudoku"][1].take(np.arange(2))
    shape = {"width": 16, "heads": 2, "hidden": 24, "prelude": 1, "blocks": 3, "depth": 2, "coda": 1, "window": 16}
    torch.manual_seed(0)
    model = LibraryOfLayers(ModelConfig(layout.vocabulary, layout.prompt_length, 2, shift=8, **shape)).eval()
    paths = observe_paths(model, traced)
    longest = int(layout.problem_suffixes(traced).lengths.max())
    assert paths.counts.shape == (S, 2, 1 + -(-(longest + 8) // 16))
    assert (paths.counts[:, :, :2] == 2).all() and paths.counts[:, :, -1].sum() < 2 * S * 2
    monkeypatch.setattr(SudokuLayout, "longest_suffix", 40)
    outputs = decode(model, traced.sudokus, "forced", paths.template("selection"))
    assert outputs.rows.tolist() == [0] * S + [1] * S
    assert outputs.tokens.values.max() < layout.vocabulary
    assert (outputs.tokens.lengths <= 40).all()
    assert outputs.cut.tolist() == [len(row) == 40 and row[-1] != EOS for row in outputs.tokens]

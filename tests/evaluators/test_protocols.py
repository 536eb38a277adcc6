"""Decoding under each protocol: what the model was fed and which blocks it took, seen from outside."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lol_data.errors import RefusedError
from lol_data.evaluators.evaluate import evaluate
from lol_data.evaluators.parts import Parts
from lol_data.evaluators.protocols import (
    FORCING,
    NO_BLOCK,
    PROTOCOLS,
    Outputs,
    Requests,
    decode,
    decode_requests,
    window_starts,
)
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
def paths(model):
    return observe_paths(model, generate_mazes(MazeSettings(size=SIZE), 0, 100, 100 + PROBLEMS))


def template_for(protocol, paths):
    return paths.template("selection") if protocol in FORCING else None


def per_problem(protocol):
    """(field, asked) of the outputs of one problem."""
    pairs = {
        "prompted": [(s, s) for s in range(S)],
        "conflict": [(a, b) for a in range(S) for b in range(S) if a != b],
    }
    return pairs.get(protocol, [(NEUTRAL_FIELD, s) for s in range(S)])


def alone(model, mazes, problem, field, forced=None):
    """The output of one problem decoded by itself, cut behind `<eos>`, and its routes."""
    prompt = torch.from_numpy(LAYOUT.prompts(mazes.take(np.array([problem])), np.array([field])))
    tokens, routes = generate(model, prompt, TRACE, EOS, LAYOUT.longest_suffix, forced)
    return tokens[0].tolist(), [route[0].tolist() for route in routes]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_problem_under_every_strategy(model, traced, paths, protocol):
    template = template_for(protocol, paths)
    outputs = decode(model, traced.mazes, protocol, template)
    pairs = per_problem(protocol)
    assert outputs.rows.tolist() == [row for row in range(PROBLEMS) for _ in pairs]
    assert list(zip(outputs.field.tolist(), outputs.asked.tolist(), strict=True)) == pairs * PROBLEMS
    lengths = set(outputs.tokens.lengths.tolist())
    assert len(lengths) > 1
    for k, (row, asked) in enumerate(zip(outputs.rows, outputs.asked, strict=True)):
        field = outputs.field[k]
        paths_of = template and (template.paths.own_gates() if protocol == "conflict" else template.paths)
        forced = paths_of and paths_of.forced(np.array([asked]), model.device)
        tokens, routes = alone(model, traced.mazes, row, field, forced)
        assert outputs.tokens[k].tolist() == tokens
        assert EOS not in tokens[:-1]
        assert tokens[-1] == EOS or len(tokens) == LAYOUT.longest_suffix
        assert outputs.cut[k] == (tokens[-1] != EOS)
        assert outputs.last_windows[k].tolist() == [len(route) for route in routes]
        assert [path[path != NO_BLOCK].tolist() for path in outputs.blocks[k]] == routes


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
        assert np.array_equal(parts.blocks, whole.blocks)
        assert sum(finished) == PROBLEMS * len(per_problem(protocol))


def test_with_blocks_and_gates_forced_the_field_reaches_nothing(model, traced, paths):
    """Why `conflict` leaves the gates to the router: the field speaks to it alone."""
    template, conflict = paths.template("selection"), Requests.of(PROBLEMS, "conflict", S)
    said = {}
    for force, laid in (("both", template.paths), ("blocks", template.paths.own_gates())):
        outputs = decode_requests(model, traced.mazes, conflict, laid)
        for row, path, tokens in zip(outputs.rows, outputs.asked, outputs.tokens, strict=True):
            said.setdefault((force, row, path), set()).add(tuple(tokens))
    assert {len(texts) for (force, *_), texts in said.items() if force == "both"} == {1}
    assert any(len(texts) > 1 for (force, *_), texts in said.items() if force == "blocks")


class Stop(Exception):
    pass


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_interrupted_evaluation_goes_on(model, traced, paths, protocol, tmp_path):
    template, total = template_for(protocol, paths), PROBLEMS * len(per_problem(protocol))
    whole = decode(model, traced.mazes, protocol, template)

    def stop(outputs):
        if outputs:
            raise Stop

    with pytest.raises(Stop):
        decode(model, traced.mazes, protocol, template, 2, stop, Parts.open(tmp_path, {"protocol": protocol}))
    finished = []
    parts = Parts.open(tmp_path, {"protocol": protocol})
    again = decode(model, traced.mazes, protocol, template, 3, finished.append, parts)
    assert finished[0] == (2 * S if protocol == "neutral" else 2) and sum(finished) == total
    assert [row.tolist() for row in again.tokens] == [row.tolist() for row in whole.tokens]
    assert np.array_equal(again.blocks, whole.blocks)
    finished.clear()
    more = decode(model, traced.mazes, protocol, template, 3, finished.append, parts)
    assert finished == [total]
    assert [row.tolist() for row in more.tokens] == [row.tolist() for row in whole.tokens]


def test_finished_parts_are_found_by_sample_not_by_place(model, traced, tmp_path):
    parts = Parts.open(tmp_path, {})
    decode(model, traced.mazes.take(np.array([2])), "prompted", parts=parts)
    finished = []
    outputs = decode(model, traced.mazes, "prompted", progress=finished.append, parts=parts)
    assert finished[0] == S
    assert [row.tolist() for row in outputs.tokens] == [
        row.tolist() for row in decode(model, traced.mazes, "prompted").tokens
    ]


def test_parts_with_other_settings_are_refused_and_damaged_ones_made_again(model, traced, tmp_path):
    parts = Parts.open(tmp_path / "parts", {"checkpoint": "step-1"})
    decode(model, traced.mazes, "prompted", batch=4, parts=parts)
    with pytest.raises(RefusedError, match="checkpoint 'step-1' -> 'step-2'"):
        Parts.open(tmp_path / "parts", {"checkpoint": "step-2"})
    damaged = sorted((tmp_path / "parts").glob("part-*.parquet"))[1]
    damaged.write_bytes(damaged.read_bytes()[:50])
    finished = []
    decode(model, traced.mazes, "prompted", progress=finished.append, parts=parts)
    assert finished == [PROBLEMS * S - 4, 4]
    parts.remove()
    assert not (tmp_path / "parts").exists()


def test_problems_behind_the_templates_are_not_scored(model, traced, paths):
    seen = observe_paths(model, traced.take(np.array([1])))
    with pytest.raises(RefusedError, match="problem 1 is to be scored, but the templates were observed on it"):
        evaluate(model, traced.mazes, "forced", seen)
    evaluate(model, traced.mazes, "forced", paths)


def test_windows_open_in_the_order_of_computation(model):
    starts = window_starts(model.windows, 9, 3)  # windows of 8, shifted by 4 at depth 2
    assert starts == [(0, 1, 1), (0, 2, 1), (0, 3, 1), (4, 2, 2), (8, 1, 2), (8, 3, 2)]


@pytest.mark.parametrize("protocol", ["forced", "conflict", "Prompted", ""])
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
    assert set(samples["field"].to_pylist()) == {"neutral"}
    assert [len(path) for row in samples["blocks"].to_pylist() for path in row] == outputs.last_windows.ravel().tolist()
    fell_back = template.fell_back(outputs.asked, outputs.last_windows)
    assert samples["fell_back"].to_pylist() == fell_back.tolist()
    assert result.summary["overall"]["n"] == PROBLEMS * S
    assert result.summary["overall"]["fallback_rate"] == pytest.approx(fell_back.mean())
    assert result.summary["template"]["ids"] == template.ids.tolist()


def test_a_conflict_is_counted_by_field_and_path(model, traced, paths):
    result = evaluate(model, traced.mazes, "conflict", paths)
    matrix = result.summary["matrix"]
    rows = list(zip(*(result.samples[name].to_pylist() for name in ("field", "asked", "identified")), strict=True))
    assert len(rows) == PROBLEMS * S * (S - 1) == result.summary["overall"]["n"]
    for field in MAZE_STRATEGIES:
        assert set(matrix[field]) == set(MAZE_STRATEGIES) - {field}
        for path, cell in matrix[field].items():
            sets = [identified for named, laid, identified in rows if (named, laid) == (field, path)]
            assert cell["n"] == len(sets) == PROBLEMS
            assert cell["path"]["rate"] == sum(path in names for names in sets) / PROBLEMS
            assert cell["field"]["rate"] == sum(field in names for names in sets) / PROBLEMS
            assert sum(cell["identified"].values()) == PROBLEMS
            assert cell["identified"]["none"] == sum(not names for names in sets)
    assert result.name == "conflict-selection"
    assert result.summary["strategies"]["bfs"]["supported"]["n"] + result.summary["strategies"]["bfs"]["fell_back"][
        "n"
    ] == PROBLEMS * (S - 1)


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
        np.tile(np.arange(S), len(traced)),
        np.zeros((len(suffixes), 1, 1), np.uint8),
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

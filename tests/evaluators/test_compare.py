"""Two evaluations side by side: pairs by sample, whatever the order of the rows, and refusals."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from lol_data.errors import DamageError, RefusedError, UsageError
from lol_data.evaluators.compare import compare, comparison_table, read_evaluations
from lol_data.evaluators.evaluate import Result, evaluate, save, write_result
from lol_data.evaluators.intervals import paired
from lol_data.evaluators.intervene import intervene
from lol_data.evaluators.templates import observe_paths
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.mazes import MAZE_STRATEGIES

from .common import maze_model

PROBLEMS, S = 4, len(MAZE_STRATEGIES)
ABOUT = {"content_hash": "abc", "n": PROBLEMS}


@pytest.fixture(scope="module")
def evaluated():
    """Two models on the same problems, and a third on others; templates, too."""
    mazes = generate_mazes(MazeSettings(size=3), 0, 0, PROBLEMS).mazes
    others = generate_mazes(MazeSettings(size=3), 0, 1, PROBLEMS + 1).mazes
    validation = generate_mazes(MazeSettings(size=3), 0, 100, 102)
    one, two = maze_model(3, seed=1), maze_model(3, seed=2)
    return {
        "one": evaluate(one, mazes, "prompted"),
        "two": evaluate(two, mazes, "prompted"),
        "others": evaluate(one, others, "prompted"),
        "neutral": evaluate(one, mazes, "neutral"),
        "conflict": evaluate(one, mazes, "conflict", observe_paths(one, validation)),
        "arms": intervene(one, mazes, observe_paths(one, validation), groups=["ids-gates"]),
    }


@pytest.fixture
def folders(evaluated, tmp_path):
    """Runs `one` and `two` with an evaluation each; judged by chance, since untrained models are always wrong."""
    rng = np.random.default_rng(0)
    for run in ("one", "two"):
        result = evaluated[run]
        table = result.samples
        for name in ("adherent", "legal", "answer_correct", "joint"):
            chance = rng.random(len(table)) < 0.5
            table = table.set_column(table.column_names.index(name), name, [chance])
        order = np.arange(len(table)) if run == "one" else rng.permutation(len(table))
        write_result(Result(result.summary, table.take(order)), tmp_path / run / "eval", ABOUT)
    return tmp_path


def test_samples_are_paired_by_problem_and_strategy(folders):
    result = compare(folders / "one", folders / "two")
    one, two = (pq.read_table(folders / run / "eval/prompted/samples.parquet").to_pylist() for run in ("one", "two"))
    one, two = ({(row["id"], row["asked"]): row for row in rows} for rows in (one, two))
    comparison = result["comparisons"]["prompted"]
    assert comparison["n"] == PROBLEMS * S
    assert comparison["same_output"] == np.mean([one[key]["tokens"] == two[key]["tokens"] for key in one])
    for rate, column in (("adherence", "adherent"), ("answer", "answer_correct"), ("joint", "joint")):
        for strategy in MAZE_STRATEGIES:
            keys = [key for key in one if key[1] == strategy]
            a, b = (np.array([rows[key][column] for key in keys]) for rows in (one, two))
            assert comparison["strategies"][strategy][rate] == paired(a, b, np.arange(len(keys)))
        a, b = (np.array([rows[key][column] for key in one]) for rows in (one, two))
        assert comparison["overall"][rate] == paired(a, b, np.array([id for id, _ in one]))
    assert json.loads(json.dumps(result, allow_nan=False)) == result


def test_a_run_equals_itself(folders):
    comparison = compare(folders / "one", folders / "one/eval/prompted")["comparisons"]["prompted"]
    assert comparison["same_output"] == 1
    for values in (comparison["overall"], *comparison["strategies"].values()):
        for each in values.values():
            assert (each["won"], each["lost"], each["p_exact"], each["difference"]["rate"]) == (0, 0, 1, 0)
            assert each["difference"]["low"] < 0 < each["difference"]["high"]


def test_the_table_has_a_line_per_strategy_and_rate(folders):
    result = compare(folders / "one", folders / "two")
    with pytest.raises(UsageError, match="--rate format: use adherence, legality, answer, joint"):
        comparison_table(result, ("format",))
    lines = comparison_table(result, ("joint", "answer")).splitlines()
    body = [line.split()[:2] for line in lines[6:-1]]
    assert body == [[strategy, rate] for strategy in (*MAZE_STRATEGIES, "all") for rate in ("joint", "answer")]
    assert len({len(line) for line in lines[6:-1]}) == 1


def test_two_evaluations_may_be_of_two_protocols(folders, evaluated):
    write_result(evaluated["neutral"], folders / "one/eval", ABOUT)
    result = compare(folders / "one/eval/prompted", folders / "one/eval/neutral")
    assert list(result["comparisons"]) == ["prompted : neutral"]
    both = compare(folders / "one", folders / "two")  # neutral is in one of them only
    assert list(both["comparisons"]) == ["prompted"]


def test_a_conflict_is_paired_by_field_too(evaluated, tmp_path):
    for run in ("a", "b"):
        write_result(evaluated["conflict"], tmp_path / run, ABOUT)
    comparison = compare(tmp_path / "a", tmp_path / "b")["comparisons"]["conflict-selection"]
    assert (comparison["n"], comparison["same_output"]) == (PROBLEMS * S * (S - 1), 1)


def test_arms_are_compared_one_by_one(evaluated, tmp_path):
    for run in ("a", "b"):
        save(tmp_path / run / "eval/interventions", {**ABOUT, **evaluated["arms"][0]}, evaluated["arms"][1])
    comparisons = compare(tmp_path / "a", tmp_path / "b")["comparisons"]
    assert list(comparisons) == [f"interventions/{arm}" for arm in ("own", "template", "ids", "gates")]
    assert all(each["n"] == PROBLEMS * S and each["same_output"] == 1 for each in comparisons.values())


def test_other_samples_are_refused(folders, evaluated):
    write_result(evaluated["others"], folders / "others/eval", ABOUT)
    with pytest.raises(RefusedError, match="5 only in the first, 5 only in the second"):
        compare(folders / "one", folders / "others")
    write_result(evaluated["one"], folders / "elsewhere/eval", {**ABOUT, "content_hash": "def"})
    with pytest.raises(RefusedError, match="content_hash abc and def"):
        compare(folders / "one", folders / "elsewhere")


def test_what_is_no_evaluation(folders, evaluated):
    (folders / "empty").mkdir()
    with pytest.raises(UsageError, match="holds no evaluation"):
        compare(folders / "one", folders / "empty")
    for name in ("neutral", "conflict"):
        write_result(evaluated[name], folders / "three/eval", ABOUT)
    with pytest.raises(UsageError, match=r"one has prompted; .*three has conflict-selection, neutral: no evaluation"):
        compare(folders / "one", folders / "three")
    samples = folders / "one/eval/prompted/samples.parquet"
    samples.write_bytes(samples.read_bytes()[:100])
    with pytest.raises(DamageError, match="is not a whole evaluation"):
        read_evaluations(folders / "one")

"""TOML files, overrides, and errors that name what was meant."""

import dataclasses

import pytest

from lol_data.errors import UsageError
from lol_data.model.config import ModelConfig
from lol_data.tokenization.maze import MazeLayout
from lol_data.training.config import CONFIG_DIR, FROM_DATA, RunConfig, TrainConfig, field_comments, load_config


@pytest.fixture
def write(tmp_path):
    def write(text) -> str:
        path = tmp_path / "run.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def test_a_file_sets_some_fields_and_leaves_the_rest(write):
    config = load_config(write("[model]\nwidth = 64\nnoise = 0\n[train]\nsteps = 7\nadam_rate = 1\n"))
    assert config.train == TrainConfig(steps=7, adam_rate=1.0)
    assert config.model == {"width": 64, "noise": 0.0}
    assert isinstance(config.model["noise"], float)
    shape = config.model_config(MazeLayout(8))
    assert (shape.vocabulary, shape.prompt, shape.width, shape.depth) == (252, 75, 64, 6)
    assert (shape.cells, shape.first_cell) == (64, 27)
    assert config.strategy_field == 8
    assert load_config(write("")).train == TrainConfig()


@pytest.mark.parametrize("name", sorted(path.stem for path in CONFIG_DIR.glob("*.toml")))
def test_every_configuration_of_the_project_loads_by_name(name):
    config = load_config(name)
    assert config.model_config(MazeLayout(8, config.strategy_field))
    assert RunConfig.from_json(config.to_json()) == config


@pytest.mark.parametrize("machine", ["cpu", "gpu"])
def test_sudokus_differ_from_mazes_in_windows_field_and_how_they_are_read(machine):
    maze, sudoku = (load_config(name).model for name in (machine, f"sudoku-{machine}"))
    assert (maze["window"], maze["shift"]) == (64, 32)
    reading = {"shared_cells": True, **({"whole_problem": True} if machine == "cpu" else {})}
    assert sudoku == {**maze, "window": 128, "shift": 64, "field": 24, **reading}


def test_overrides_come_on_top(write):
    path = write("[train]\nsteps = 7\nbatch = 9\n")
    config = load_config(
        path,
        [
            "train.steps=20",
            " train.precision = bf16",
            'train.compile="no"',
            "model.prompt_embedding=false",
            "model.noise=0",
        ],
    )
    assert config.train == TrainConfig(steps=20, batch=9, precision="bf16", compile="no")
    assert config.model == {"prompt_embedding": False, "noise": 0.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[train]\nstep = 3", r"train.step: no such field \(did you mean steps\?\)"),
        ("[model]\nwindows = 3", r"model.windows: no such field \(did you mean window\?\)"),
        ("[model]\nprompt = 75", "model.prompt: no such field"),  # the data set decides
        ("[trian]\nsteps = 3", r"unknown section \[trian\] \(did you mean train\?\)"),
        ("[train]\nsteps = 2.5", "train.steps is 2.5; it must be a whole number"),
        ("[train]\nsteps = true", "train.steps is True; it must be a whole number"),
        ('[train]\nsteps = "7"', "train.steps is '7'; it must be a whole number"),
        ('[train]\nclip = "much"', "train.clip is 'much'; it must be a number"),
        ("[train]\nprecision = 16", "train.precision is 16; it must be a word"),
        ("[model]\nprompt_embedding = 1", "model.prompt_embedding is 1; it must be true or false"),
        ("[train]\nsteps = 0", "train.steps is 0; it must be 1 or more"),
        ("[train]\nadam_rate = 0", "train.adam_rate is 0.0; it must be positive"),
        ("[train]\nadam_rate = nan", "train.adam_rate is nan; it must be positive"),
        ("[train]\nweight_decay = -1", "train.weight_decay is -1.0; it must not be negative"),
        ("[train]\nweight_decay = nan", "train.weight_decay is nan; it must not be negative"),
        ("[train]\ngrowth = 1.5", "train.growth is 1.5; it must lie between 0 and 1"),
        ('[train]\nbalance = "sign"', 'train.balance is "sign"; use bias, auxiliary, none'),
        ("[train]\nauxiliary_weight = -1", "train.auxiliary_weight is -1.0; it must not be negative"),
        ("[train]\nbackward_depth = -1", "train.backward_depth is -1; it must not be negative"),
        ('[train]\nprecision = "fp8"', 'train.precision is "fp8"; use auto, fp32, bf16'),
        ("train = 3", r"train is not a section; write \[train\]"),
        ("[train\n", "not a TOML file"),
    ],
)
def test_a_file_that_is_wrong_is_refused_in_one_line(write, text, message):
    with pytest.raises(UsageError, match=message) as caught:
        load_config(write(text))
    assert "\n" not in str(caught.value)
    assert "run.toml" in str(caught.value) or str(caught.value).startswith("train.")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("steps=3", "write it as section.field=value"),
        ("train.steps", "write it as section.field=value"),
        ("train.stpes=3", "did you mean steps"),
        ("train.steps=many", "train.steps is 'many'; it must be a whole number"),
        ("trane.steps=3", "did you mean train"),
        ("train.steps=", "train.steps is ''; it must be a whole number"),
    ],
)
def test_an_override_that_is_wrong_is_refused(write, override, message):
    with pytest.raises(UsageError, match=message):
        load_config(write(""), [override])


def test_an_unknown_name_is_answered_with_the_nearest_and_all_known_ones(monkeypatch, tmp_path):
    monkeypatch.setattr("lol_data.training.config.CONFIG_DIR", tmp_path)
    for name in ("maze", "sudoku"):
        (tmp_path / f"{name}.toml").touch()
    with pytest.raises(UsageError, match=r"no configuration maz \(did you mean maze\?\); known: maze, sudoku"):
        load_config("maz")
    with pytest.raises(UsageError, match=r"no configuration none\.toml"):
        load_config("none.toml")
    assert load_config("maze").train == TrainConfig()


@pytest.mark.parametrize("name", sorted(path.stem for path in CONFIG_DIR.glob("*.toml")))
def test_a_printed_configuration_is_a_file_that_says_the_same(write, name):
    config = load_config(name, ["train.adam_rate=1e-5", "train.balance=none", "model.whole_problem=false"])
    text = config.to_toml()
    again = load_config(write(text))
    assert again.train == config.train
    layout = MazeLayout(8, config.strategy_field)
    assert again.model_config(layout) == config.model_config(layout)
    for kind in (ModelConfig, TrainConfig):
        for item in dataclasses.fields(kind):
            assert (f"\n{item.name} = " in text) == (item.name not in FROM_DATA)


def test_every_field_of_training_has_a_meaning_and_it_is_printed():
    meanings = field_comments(TrainConfig)
    assert set(meanings) == {item.name for item in dataclasses.fields(TrainConfig)}
    text = load_config("cpu").to_toml()
    assert all(f"  # {meaning}\n" in text + "\n" for meaning in meanings.values())
    assert 'balance = "bias"  # "bias" (sign rule), "auxiliary" (a term of the loss) or "none"' in text

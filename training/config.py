"""Run configurations: TOML files with the sections [model] and [train], overridden by `section.field=value`."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import json
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lol_data.errors import UsageError
from lol_data.model.config import ModelConfig
from lol_data.tokenization.tasks import AnyLayout

CONFIG_DIR = Path(__file__).resolve().parent.parent / "configs"
FROM_DATA = ("vocabulary", "prompt", "cells", "first_cell")  # model fields that the data set decides, never a file
WORDS = {
    "precision": ("auto", "fp32", "bf16"),
    "compile": ("auto", "yes", "no"),
    "kernels": ("auto", "yes", "no"),
    "order": ("mixed", "problem"),
    "balance": ("bias", "auxiliary", "none"),
}


@dataclass(frozen=True)
class TrainConfig:
    """How a model is trained. Sizes are in sequences: one problem under one strategy."""

    steps: int = 2000  # optimiser steps
    batch: int = 128  # sequences per step
    micro_batch: int = 64  # sequences per forward pass, for memory; without noise the gradient is the same for any
    muon_rate: float = 0.02  # peak learning rate of Muon, for the matrices of the blocks
    adam_rate: float = 3e-3  # peak learning rate of AdamW, for embeddings, head, norms and vectors
    router_rate: float = 3e-4  # the same for the router; a fast one saturates, and a saturated one learns nothing more
    weight_decay: float = 0.0  # of the blocks' matrices
    warmup: int = 20  # steps of linear warm-up; linear decay to 0 follows
    clip: float = 1.0  # largest gradient norm
    growth: float = 0.0  # share of the run over which the core grows from depth 1 to D; 0: full depth at once
    backward_depth: int = 0  # last core applications that gradients reach, the prompt's window excepted; 0: all
    balance: str = "bias"  # "bias" (sign rule), "auxiliary" (a term of the loss) or "none"
    auxiliary_weight: float = 0.01  # of that term, which is 1 where loads or probabilities are even
    bias_rate: float = 3e-5  # step of the selection bias (sign rule); the bias must stay small against probabilities
    bias_fade: float = 0.5  # last share of the run over which that step fades to 0
    expert_bias_rate: float = 1e-3  # the same for mixtures of experts
    capacity_warmup: float = 0.0  # share of the run in which a Mixture-of-Depths takes all; it comes down as long again
    guess_weight: float = 0.01  # of the loss by which it learns to foretell what it takes
    depth_balance_weight: float = 0.0  # of the squared distance of its mean probability from its capacity
    depth_entropy_weight: float = 0.0  # of its probabilities' entropy, which is rewarded
    router_clip: float = 0.0  # largest gradient norm of all routers, before that of all weights; 0: none of its own
    order: str = "mixed"  # of the sequences: one shuffle, or "problem": those of a problem side by side
    problems: int = 0  # training problems to load, 0 for all
    precision: str = "auto"  # "fp32", "bf16", or bf16 where this machine multiplies faster in it
    compile: str = "auto"  # "yes", "no", or yes where a compiler is at hand and the run is long enough
    kernels: str = "auto"  # Triton kernels: "yes", "no", or yes on a GPU on which they are measured to be faster
    checkpoint_every: int = 500  # steps
    keep: int = 2  # newest checkpoints kept
    validate_every: int = 100  # steps between validation losses
    validation_problems: int = 100  # problems behind each validation loss
    seed: int = 0  # of the weights, the order of the samples and the router's noise

    def validate(self) -> TrainConfig:
        """Returns itself; raises UsageError naming the field that is wrong."""
        sizes = ("steps", "batch", "micro_batch")
        for name in (*sizes, "checkpoint_every", "keep", "validate_every", "validation_problems"):
            if getattr(self, name) < 1:
                raise UsageError(f"train.{name} is {getattr(self, name)}; it must be 1 or more")
        for name in ("muon_rate", "adam_rate", "router_rate", "clip"):
            if not getattr(self, name) > 0:
                raise UsageError(f"train.{name} is {getattr(self, name)}; it must be positive")
        positive = ("weight_decay", "warmup", "backward_depth", "auxiliary_weight", "bias_rate", "expert_bias_rate")
        more = ("guess_weight", "depth_balance_weight", "depth_entropy_weight", "router_clip", "problems", "seed")
        for name in (*positive, *more):
            if not getattr(self, name) >= 0:  # NaN too
                raise UsageError(f"train.{name} is {getattr(self, name)}; it must not be negative")
        for name in ("growth", "bias_fade", "capacity_warmup"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"train.{name} is {getattr(self, name)}; it must lie between 0 and 1")
        for name, choices in WORDS.items():
            if getattr(self, name) not in choices:
                raise UsageError(f'train.{name} is "{getattr(self, name)}"; use {", ".join(choices)}')
        return self


@dataclass(frozen=True)
class RunConfig:
    """A resolved configuration: the model's fields (but the ones the data decides) and how to train it."""

    model: dict[str, Any] = field(default_factory=dict)
    train: TrainConfig = TrainConfig()

    def model_config(self, layout: AnyLayout) -> ModelConfig:
        """The model's shape on sequences of this layout; raises UsageError."""
        return ModelConfig(**shape_of(layout), **self.model).validate()

    @property
    def strategy_field(self) -> int:
        """Positions of the strategy field."""
        return self.model.get("field", ModelConfig.field)

    def to_json(self) -> dict[str, Any]:
        """Plain values, for run.json."""
        return {"model": dict(self.model), "train": dataclasses.asdict(self.train)}

    def to_toml(self) -> str:
        """The whole configuration, defaults included, as a TOML file with every field's meaning beside it."""
        model = {item.name: item.default for item in dataclasses.fields(ModelConfig)}
        sections = {"model": {**model, **self.model}, "train": dataclasses.asdict(self.train)}
        meanings = {"model": field_comments(ModelConfig), "train": field_comments(TrainConfig)}
        lines = []
        for section, values in sections.items():
            lines += ["", f"[{section}]"]
            for name, value in values.items():
                if name not in FROM_DATA:
                    meaning = meanings[section].get(name, "")
                    lines.append(f"{name} = {json.dumps(value)}" + (f"  # {meaning}" if meaning else ""))
        return "\n".join(lines[1:])

    @staticmethod
    def from_json(values: dict[str, Any]) -> RunConfig:
        """The inverse of `to_json`; raises UsageError for unknown or ill-typed fields."""
        return _build(values, "the run's configuration")

    def override(self, overrides: list[str]) -> RunConfig:
        """The same with `a.b=value` on top; raises UsageError as `load_config` does."""
        return _build(_override(self.to_json(), overrides), "the run's configuration")


def shape_of(layout: AnyLayout) -> dict[str, Any]:
    """The model's fields that the data decides."""
    return {
        "vocabulary": layout.vocabulary,
        "prompt": layout.prompt_length,
        "cells": layout.cells,
        "first_cell": layout.trace_alphabet.base,
    }


def field_comments(kind: type) -> dict[str, str]:
    """The comment behind each field of a configuration's dataclass: the only place where its meaning is written."""
    return dict(re.findall(r"^    (\w+): \w+ *(?:=[^#\n]*)?# *(.+)$", inspect.getsource(kind), re.MULTILINE))


def load_config(name: str, overrides: list[str] | None = None) -> RunConfig:
    """A configuration by the name of a file in configs/, or by the path of a TOML file, with `a.b=value` on top.

    Raises UsageError for an unknown name, file, section, field or value, naming the nearest known one.
    """
    path = Path(name) if name.endswith(".toml") else CONFIG_DIR / f"{name}.toml"
    if not path.is_file():
        known = sorted(file.stem for file in CONFIG_DIR.glob("*.toml"))
        raise UsageError(f"no configuration {name}{_nearest(name, known)}; known: {', '.join(known)}, or a .toml file")
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not a TOML file: {error}") from error
    return _build(_override(values, overrides or []), str(path))


def _override(values: dict[str, Any], overrides: list[str]) -> dict[str, Any]:
    for override in overrides:
        key, separator, text = override.partition("=")
        section, dot, name = key.strip().partition(".")
        if not separator or not dot:
            raise UsageError(f'--set {override}: write it as section.field=value, for example "train.steps=20"')
        if not isinstance(values.setdefault(section, {}), dict):
            raise UsageError(f"--set {override}: {section} is not a section")
        values[section][name] = _literal(text.strip())
    return values


def _literal(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text  # a bare word is a string


def _build(values: dict[str, Any], source: str) -> RunConfig:
    sections = {"model": ModelConfig, "train": TrainConfig}
    for section, fields in values.items():
        if section not in sections:
            raise UsageError(f"{source}: unknown section [{section}]{_nearest(section, list(sections))}")
        if not isinstance(fields, dict):
            raise UsageError(f"{source}: {section} is not a section; write [{section}] and its fields below")
    checked = {}
    for section, kind in sections.items():
        types = {item.name: type(item.default) for item in dataclasses.fields(kind) if item.name not in FROM_DATA}
        checked[section] = {
            name: _typed(f"{source}: {section}.{name}", value, types.get(name), _nearest(name, list(types)))
            for name, value in values.get(section, {}).items()
        }
    return RunConfig(checked["model"], TrainConfig(**checked["train"]).validate())


def _typed(name: str, value: Any, kind: type | None, hint: str) -> Any:
    if kind is None:
        raise UsageError(f"{name}: no such field{hint}")
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        words = {bool: "true or false", int: "a whole number", float: "a number", str: "a word"}
        raise UsageError(f"{name} is {value!r}; it must be {words[kind]}")
    return value


def _nearest(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""

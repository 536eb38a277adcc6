"""What holds a Library of Layers back: one setting changed at a time, at equal training FLOPs, on 5x5 mazes.

    python benchmarks/factors.py [--budget 600] [--seeds 3] [--n 200] [--only width-192 ...] [--folder runs/factors]

The first arm is `quickstart`; every other one differs from it in the settings that its name says. How they are trained
and what the columns mean: `equal_flops.py`.
"""

from __future__ import annotations

from equal_flops import Arm, main

FACTORS = {
    "quickstart": (),
    # size
    "width-64": ("model.width=64", "model.hidden=192", "model.heads=2"),
    "width-192": ("model.width=192", "model.hidden=576", "model.heads=6"),
    "hidden-768": ("model.hidden=768",),
    "depth-3": ("model.depth=3",),
    "depth-12": ("model.depth=12",),
    "blocks-3": ("model.blocks=3",),
    "blocks-12": ("model.blocks=12",),
    "prelude-coda-1": ("model.prelude=1", "model.coda=1"),
    "prelude-coda-3": ("model.prelude=3", "model.coda=3"),
    # what a window sees
    "window-32": ("model.window=32", "model.shift=16"),
    "window-128": ("model.window=128", "model.shift=64"),
    "whole-problem": ("model.whole_problem=true",),
    "shared-cells": ("model.shared_cells=true",),
    # the router
    "per-depth": ("model.router=per_depth",),
    "router-norm": ("model.router_norm=true",),
    "per-depth-norm": ("model.router=per_depth", "model.router_norm=true"),
    "noise-0": ("model.noise=0.0",),
    "noise-0.3": ("model.noise=0.3",),
    "bias-3e-5": ("train.bias_rate=3e-5",),
    "router-rate-3e-5": ("train.router_rate=3e-5",),
    "router-rate-3e-3": ("train.router_rate=3e-3",),
    "field-2": ("model.field=2",),
    "field-24": ("model.field=24",),
    # the schedule
    "growth-0": ("train.growth=0",),
    "growth-0.3": ("train.growth=0.3",),
    "muon-0.005": ("train.muon_rate=0.005",),
    "muon-0.02": ("train.muon_rate=0.02",),
    "adam-1e-3": ("train.adam_rate=1e-3",),
    "adam-6e-3": ("train.adam_rate=6e-3",),
    "batch-16": ("train.batch=16", "train.micro_batch=16"),
    "batch-64": ("train.batch=64",),
    "order-problem": ("train.order=problem",),
    "batch-64-muon-0.02": ("train.batch=64", "train.muon_rate=0.02"),
}

if __name__ == "__main__":
    assert __doc__
    arms = [Arm(name, "quickstart", settings) for name, settings in FACTORS.items()]
    main(arms, "runs/factors", __doc__)

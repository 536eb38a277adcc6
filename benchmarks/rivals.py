"""All architectures on the same mazes at the same training FLOPs: a table of losses, rates, sizes and speeds.

    python benchmarks/rivals.py [--budget 600] [--seeds 3] [--n 200] [--only moe mod ...] [--folder runs/rivals]

Each is a configuration of `configs/`; the budget is in steps of `quickstart`, a Library of Layers. How they are trained
and what the columns mean: `equal_flops.py`.
"""

from __future__ import annotations

from equal_flops import Arm, main

NAMES = (
    *("quickstart", "per-depth", "per-segment", "fixed-path", "shifted", "sliding", "full"),
    *("loop-2x3", "loop-3x2", "moe", "lol-moe", "mod", "mod-moe"),
)

if __name__ == "__main__":
    assert __doc__
    main([Arm(name, name) for name in NAMES], "runs/rivals", __doc__)

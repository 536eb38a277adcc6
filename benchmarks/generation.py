"""Generating mazes: lol-data, the bare write of the same tables, and other packages, interleaved in one run.

    python benchmarks/generation.py [--n 1000000] [--peer-n 2000] [--repeats 3] [--linearity] [--out FILE.md]

Prints Markdown; common.py says what is measured. `--linearity` adds ten thousand to ten million mazes.

The peers make a tree and the path between two random cells, in memory: no traces, no least length of the path, no
duplicates looked for.
"""

from __future__ import annotations

import common

from lol_data.shards.plan import DatasetPlan

# Run by a peer's own python with two arguments, mazes and algorithm; see common.Peer.
_MAZE_DATASET = """
import json, sys, tempfile, time
from pathlib import Path
from maze_dataset import MazeDataset, MazeDatasetConfig
from maze_dataset.generation import LatticeMazeGenerators

def make(n):
    algorithm = getattr(LatticeMazeGenerators, sys.argv[2])
    config = MazeDatasetConfig(name="benchmark", grid_n=8, n_mazes=n, maze_ctor=algorithm)
    return MazeDataset.from_config(config, load_local=False, do_download=False, save_local=False, gen_parallel=False)

make(10)
began = time.perf_counter()
mazes = make(int(sys.argv[1]))
seconds, size = time.perf_counter() - began, None
with tempfile.TemporaryDirectory() as folder:
    try:
        mazes.save(Path(folder) / "mazes.zanj")
        size = (Path(folder) / "mazes.zanj").stat().st_size
    except TypeError:
        pass  # 1.4.2 cannot save 100 or more mazes of its Kruskal generator
print(json.dumps({"problems": len(mazes), "seconds": seconds, "bytes": size}))
"""
_MAZELIB = """
import importlib, json, sys, time
from mazelib import Maze
from mazelib.solve.BacktrackingSolver import BacktrackingSolver

algorithm = getattr(importlib.import_module("mazelib.generate." + sys.argv[2]), sys.argv[2])

def make():
    maze = Maze()
    maze.generator, maze.solver = algorithm(8, 8), BacktrackingSolver()
    maze.generate()
    maze.generate_entrances(False, False)
    maze.solve()
    assert maze.solutions[0]

Maze.set_seed(0)
make()
began = time.perf_counter()
for _ in range(int(sys.argv[1])):
    make()
print(json.dumps({"problems": int(sys.argv[1]), "seconds": time.perf_counter() - began, "bytes": None}))
"""

PEERS = (
    # Its own bounds admit a muutils with which it cannot be imported, and leave typing_extensions out.
    common.Peer(
        ("maze-dataset==1.4.2", "muutils==0.8.*", "typing_extensions"),
        _MAZE_DATASET,
        {"Wilson": "gen_wilson", "Kruskal": "gen_kruskal"},
    ),
    common.Peer(("mazelib==0.9.16",), _MAZELIB, {"Wilson": "Wilsons", "backtracker": "BacktrackingGenerator"}),
)

if __name__ == "__main__":
    mazes = common.Benchmark(__file__, DatasetPlan, PEERS, n=1_000_000, sizes=(10**4, 10**5, 10**6, 10**7))
    common.main(mazes, __doc__)

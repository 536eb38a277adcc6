"""What the tests of the shards share: small plans, and ways to look at and harm a directory."""

from pathlib import Path

import pyarrow.parquet as pq

from lol_data.generators.maze import MazeSettings
from lol_data.shards.generate import generate_dataset
from lol_data.shards.kernels import content_hash, row_hashes
from lol_data.shards.maze_task import MazeTask
from lol_data.shards.plan import DatasetPlan
from lol_data.shards.reader import read_rows

SMALL = DatasetPlan(n=400, settings=MazeSettings(size=5), shard_rows=150, validation_share=0.2, test_share=0.1)
TINY_MAZES = DatasetPlan(n=3000, settings=MazeSettings(size=3), shard_rows=700, validation_share=0.2, test_share=0.2)


def hash_of(path: Path) -> str:
    """The content hash of a file of mazes, as a manifest has it."""
    task, rows = MazeTask(), pq.ParquetFile(path).metadata.num_rows
    size = int(pq.read_table(path, columns=["size"])["size"][0].as_py())
    traced = read_rows(task, path, rows, MazeSettings(size))
    return f"{content_hash(row_hashes(traced.id, task.columns(traced))):016x}"


def make(plan: DatasetPlan, out: Path, workers: int = 1) -> Path:
    generate_dataset(plan, out, workers)
    return out


def published(out: Path) -> dict[str, bytes]:
    """Every byte of a data set, without the working files."""
    files = [path for path in out.rglob("*") if path.is_file() and ".work" not in path.parts]
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in files}


def flip_bit(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)

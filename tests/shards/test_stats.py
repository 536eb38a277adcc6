"""Figures of a data set against plain Python, equivalents made by hand, and the table."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lol_data.errors import DamageError
from lol_data.generators.fingerprint import SPLITS
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.mazes import MAZE_STRATEGIES, Mazes, TracedMazes
from lol_data.shards.manifest import FileEntry
from lol_data.shards.maze_task import MAZE_SCHEMA, MazeTask
from lol_data.shards.reader import Dataset, open_dataset
from lol_data.shards.stats import QUANTILES, Distribution, dataset_stats, stats_table
from lol_data.shards.writer import ShardEncoder

from .common import SMALL, TINY_MAZES, flip_bit, make

PLANS = {"all splits": SMALL, "files without rows": replace(SMALL, n=40, shard_rows=4), "duplicates": TINY_MAZES}


@pytest.fixture(scope="module", params=PLANS)
def dataset(request, tmp_path_factory):
    return open_dataset(make(PLANS[request.param], tmp_path_factory.mktemp("stats") / "d"))


def reference_distribution(values):
    values = sorted(values)
    counts = Counter(values)
    return {
        "n": len(values),
        "mean": pytest.approx(sum(values) / len(values)),
        "min": values[0],
        "quantiles": {str(q): values[-(-q * len(values) // 100) - 1] for q in QUANTILES},
        "max": values[-1],
        "counts": [counts[value] for value in range(values[-1] + 1)],
    }


def images(openings, start, goal, size):
    """The 16 equivalent problems, as sets of passages between cells."""
    passages = [
        (cell, cell + step) for cell in range(size * size) for bit, step in ((2, 1), (4, size)) if openings[cell] & bit
    ]
    for flip in (False, True):
        for turns in range(4):

            def move(cell, flip=flip, turns=turns):
                row, column = divmod(cell, size)
                column = size - 1 - column if flip else column
                for _ in range(turns):
                    row, column = column, size - 1 - row
                return row * size + column

            ends = (move(start), move(goal))
            edges = frozenset(frozenset((move(a), move(b))) for a, b in passages)
            yield edges, *ends
            yield edges, *ends[::-1]


def reference_equivalence(splits, size):
    seen = {}
    for split, traced in splits.items():
        mazes = traced.mazes
        for row in range(len(mazes)):
            problem = next(images(mazes.openings[row], int(mazes.start[row]), int(mazes.goal[row]), size))
            known = seen.get(problem)
            if known is None:
                known = []
                for image in images(mazes.openings[row], int(mazes.start[row]), int(mazes.goal[row]), size):
                    seen[image] = known
            known.append(split)
    groups = {id(group): group for group in seen.values()}.values()
    counts = [Counter(group) for group in groups]
    return {
        "distinct": len(counts),
        "sharing_rows": sum(rows for count in counts for rows in count.values() if rows > 1),
        "across_splits": sum(len(count) > 1 for count in counts),
    }


def test_every_figure_is_that_of_plain_python(dataset):
    stats = json.loads(json.dumps(dataset_stats(dataset, workers=3).as_json()))
    size = dataset.settings.size
    splits = {split: dataset.read_split(split) for split in SPLITS}
    rows = [(traced, row) for traced in splits.values() for row in range(len(traced))]
    for name in MAZE_STRATEGIES:
        assert stats["lengths"][name] == reference_distribution([len(t.traces[name][row]) for t, row in rows])
    assert stats["lengths"]["answer"] == reference_distribution([len(t.answer[row]) for t, row in rows])
    exits = [[bin(cell).count("1") for cell in t.mazes.openings[row]] for t, row in rows]
    ends = [(divmod(int(t.mazes.start[row]), size), divmod(int(t.mazes.goal[row]), size)) for t, row in rows]
    assert stats["features"] == {
        "dead_ends": reference_distribution([sum(count == 1 for count in maze) for maze in exits]),
        "junctions": reference_distribution([sum(count >= 3 for count in maze) for maze in exits]),
        "manhattan_distance": reference_distribution([abs(a - c) + abs(b - d) for (a, b), (c, d) in ends]),
    }
    for k, name in enumerate(("start", "goal")):
        counts = Counter(pair[k] for pair in ends)
        assert stats["places"][name] == [[counts[row, column] for column in range(size)] for row in range(size)]
    assert stats["rows"] == len(rows) and stats["splits"] == {split: len(rows) for split, rows in splits.items()}
    for pair, found in stats["equal_orders"].items():
        one, other = pair.split("=")
        orders = [[list(dict.fromkeys(t.traces[name][row].tolist())) for name in (one, other)] for t, row in rows]
        equal = sum(mine == theirs for mine, theirs in orders)
        assert found == {"rows": equal, "share": pytest.approx(equal / len(rows))}
    assert stats["duplicates"] == dataset.manifest.n - len(rows)
    assert stats["equivalence"] == reference_equivalence(splits, size)


def test_slices_and_workers_change_nothing(dataset):
    whole = dataset_stats(dataset, workers=1).as_json()
    for slice_rows in (1000, 350):
        assert dataset_stats(dataset, workers=2, slice_rows=slice_rows).as_json() == whole


def test_a_generated_set_has_equivalents_but_none_across_splits(tmp_path):
    found = dataset_stats(open_dataset(make(TINY_MAZES, tmp_path / "d"))).equivalence
    assert found.sharing_rows > 0 and found.across_splits == 0


def turned(traced: TracedMazes) -> TracedMazes:
    """The same problems, a quarter turn clockwise, with start and goal exchanged."""
    mazes, size = traced.mazes, traced.mazes.size
    to = np.array([column * size + size - 1 - row for row in range(size) for column in range(size)], np.uint8)
    openings = np.empty_like(mazes.openings)
    openings[:, to] = (mazes.openings << 1 | mazes.openings >> 3) & 15
    image = Mazes(size, mazes.id + np.uint64(10**6), openings, to[mazes.goal], to[mazes.start])
    return TracedMazes(image, traced.answer, traced.traces)


def dataset_of(path, parts: list[tuple[str, TracedMazes]]) -> Dataset:
    """A data set, put together by hand, with one file for each part."""
    template = open_dataset(make(SMALL, path)).manifest
    files = []
    for k, (split, traced) in enumerate(parts):
        encoder = ShardEncoder(MAZE_SCHEMA)
        encoder.add(MazeTask().to_batch(traced))
        data = encoder.finish()
        name = f"{split}-hand-{k}.parquet"
        (path / "data" / name).write_bytes(data)
        files.append(FileEntry(name, split, len(traced), data.size, "", ""))
    return Dataset(path, replace(template, rows=sum(entry.rows for entry in files), files=files))


def test_equivalents_made_by_hand_are_counted(tmp_path):
    traced = generate_mazes(MazeSettings(size=5), 1, 0, 20)
    one, two, three = (traced.take(np.array(rows)) for rows in ([0, 1, 2, 3], [4, 5, 6], [7, 8]))
    parts = [("train", one), ("train", turned(one).take(np.array([0, 2]))), ("test", two), ("validation", three)]
    found = dataset_stats(dataset_of(tmp_path / "a", parts)).equivalence
    assert (found.distinct, found.sharing_rows, found.across_splits) == (9, 4, 0)
    parts += [("test", turned(three)), ("validation", turned(turned(three)).take(np.array([0])))]
    found = dataset_stats(dataset_of(tmp_path / "b", parts), slice_rows=3).equivalence
    assert (found.distinct, found.sharing_rows, found.across_splits) == (9, 6, 2)
    assert "            2  in more than one split" in stats_table(dataset_stats(dataset_of(tmp_path / "c", parts)))


@given(st.lists(st.integers(0, 30)))
def test_a_distribution_is_its_values(values):
    found = Distribution(np.bincount(np.array(values, np.int64)))
    if values:
        assert found.as_json() == reference_distribution(values)
    else:
        assert found.as_json() | {"counts": []} == {
            "n": 0,
            "mean": None,
            "min": None,
            "quantiles": {str(percent): None for percent in QUANTILES},
            "max": None,
            "counts": [],
        }


def test_progress_counts_every_row_of_every_slice(dataset):
    calls = []
    dataset_stats(dataset, progress=lambda done, total: calls.append((done, total)), slice_rows=dataset.manifest.rows)
    assert calls[-1] == (dataset.manifest.rows,) * 2
    dataset_stats(dataset, progress=lambda done, total: calls.append((done, total)), slice_rows=350)
    assert calls[-1][0] == calls[-1][1] >= dataset.manifest.rows


def test_the_table_says_the_same(dataset):
    stats = dataset_stats(dataset)
    lines = stats_table(stats).splitlines()
    assert max(len(line) for line in lines[1:]) <= 100
    for name, values in {**stats.lengths, **stats.features}.items():
        line = next(line for line in lines if line.startswith(name))
        words = line.split()
        figures = [values.quantile(percent) for percent in (0, *QUANTILES, 100)]
        assert words[1 : 2 + len(figures)] == [f"{values.mean:.1f}", *map(str, figures)]
        assert "█" in line
    assert f"{stats.rows:,} mazes of" in lines[1]


def test_a_data_set_without_rows(tmp_path):
    stats = dataset_stats(open_dataset(make(replace(SMALL, n=0), tmp_path / "d")))
    assert stats.as_json()["lengths"]["bfs"]["n"] == 0
    assert stats.places["start"].shape == (5, 5)
    assert (stats.equivalence.distinct, stats.equivalence.across_splits) == (0, 0)
    assert "0 mazes of 5 x 5 cells" in stats_table(stats)


def test_damage_is_raised(tmp_path):
    dataset = open_dataset(make(SMALL, tmp_path / "d"))
    flip_bit(tmp_path / "d" / "data" / "train-00001-of-00003.parquet", 9001)
    with pytest.raises(DamageError, match="train-00001"):
        dataset_stats(dataset)

"""What is in a data set: lengths of traces and paths, shapes of problems, equivalent problems; and their table.

One pass, file by file: only counts are kept, and one 64-bit fingerprint a row. Fingerprints are equal for equivalent
problems, so that sorting them shows over the whole set how many problems are images of each other, and that none has
an image in another split. Where that would take too much memory the pass is repeated, a slice of the range of
fingerprints at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lol_data.shards.engines import Progress, default_workers, run_threads
from lol_data.shards.manifest import FileEntry
from lol_data.shards.reader import Dataset, read_rows
from lol_data.shards.task import Task
from lol_data.shards.unit import Stopped, data_dir
from lol_data.tokenization.layout import MARKS
from lol_data.tokenization.tasks import layout_of

QUANTILES = (5, 25, 50, 75, 95)  # per cent
SLICE_ROWS = 2**26  # fingerprints sorted at a time, 1.1 GB
KINDS = ("lengths", "tokens", "features", "places")
FIELD = 8  # positions of the strategy field when sequences are counted in tokens, as a model has them by default
BARS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Distribution:
    """How often every value occurs. counts: int64 (greatest value + 1,), counts[k] rows have the value k."""

    counts: NDArray[np.int64]

    @property
    def n(self) -> int:
        """Rows."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float | None:
        """None without rows."""
        return float(self.counts @ np.arange(len(self.counts))) / self.n if self.n else None

    def quantile(self, percent: int) -> int | None:
        """The least value that at least `percent` per cent of the rows do not exceed; None without rows."""
        # In integers: a share of a float would now and then be one row off.
        reached = 100 * np.cumsum(self.counts) >= max(1, percent * self.n)
        return int(np.argmax(reached)) if self.n else None

    def as_json(self) -> dict[str, Any]:
        """n, mean, min, quantiles by per cent, max, and the counts of 0, 1, 2, ..."""
        return {
            "n": self.n,
            "mean": self.mean,
            "min": self.quantile(0),
            "quantiles": {str(percent): self.quantile(percent) for percent in QUANTILES},
            "max": self.quantile(100),
            "counts": self.counts.tolist(),
        }


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Problems that are images of each other, by fingerprint.

    distinct: different fingerprints. sharing_rows: rows with the fingerprint of another row of their split.
    across_splits: fingerprints that occur in more than one split.
    """

    distinct: int
    sharing_rows: int
    across_splits: int


@dataclass(frozen=True, slots=True)
class DatasetStats:
    """Figures of a whole data set.

    splits: rows of each. lengths: of the trace of every strategy, and of the answer where its length varies, in
    `unit`. tokens: of the whole sequence, prompt included, per strategy. features: of the problems, see
    `Task.measures`. places: int64, a grid per name, see `Task.places`. duplicates: exact ones that were left out.
    equal_orders: rows that two strategies search in the same order of cells, per pair "bfs=dfs".
    """

    path: str
    task: str
    title: str
    unit: str
    symmetries: str
    rows: int
    bytes: int
    splits: dict[str, int]
    lengths: dict[str, Distribution]
    tokens: dict[str, Distribution]
    features: dict[str, Distribution]
    places: dict[str, NDArray[np.int64]]
    duplicates: int
    equal_orders: dict[str, int]
    equivalence: Equivalence

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain objects."""
        return {
            "path": self.path,
            "task": self.task,
            "title": self.title,
            "unit": self.unit,
            "rows": self.rows,
            "bytes": self.bytes,
            "splits": self.splits,
            "lengths": {name: values.as_json() for name, values in self.lengths.items()},
            "tokens": {name: values.as_json() for name, values in self.tokens.items()},
            "features": {name: values.as_json() for name, values in self.features.items()},
            "places": {name: counts.tolist() for name, counts in self.places.items()},
            "duplicates": self.duplicates,
            "equal_orders": {
                pair: {"rows": count, "share": count / self.rows if self.rows else None}
                for pair, count in self.equal_orders.items()
            },
            "equivalence": {
                "distinct": self.equivalence.distinct,
                "sharing_rows": self.equivalence.sharing_rows,
                "across_splits": self.equivalence.across_splits,
            },
        }


def dataset_stats(
    dataset: Dataset, workers: int | None = None, progress: Progress | None = None, slice_rows: int = SLICE_ROWS
) -> DatasetStats:
    """Read every row of a data set and count.

    slice_rows: fingerprints held at a time, about; sorting them takes 17 bytes each. Raises DamageError for a file
    that is not what the manifest says.
    """
    manifest, task = dataset.manifest, dataset.task
    slices = max(1, -(-manifest.rows // slice_rows))
    tally = _Tally(dataset, manifest.rows * slices, progress or (lambda done, total: None))
    parts = []
    for low, high in pairwise([index * 2**64 // slices for index in range(slices + 1)]):
        tally.read_slice(low, high, workers or default_workers())
        parts.append(_equivalence(tally.take_keys()))
    lengths, tokens, features, places = (tally.counts[kind] for kind in KINDS)
    return DatasetStats(
        path=str(dataset.path),
        task=manifest.task,
        title=task.title(dataset.settings),
        unit=task.length_unit,
        symmetries=task.symmetries,
        rows=manifest.rows,
        bytes=manifest.bytes,
        splits={split: dataset.rows(split) for split in dataset.splits},
        lengths={name: Distribution(counts) for name, counts in lengths.items()},
        tokens={name: Distribution(counts) for name, counts in tokens.items()},
        features={name: Distribution(counts) for name, counts in features.items()},
        places=places,
        duplicates=manifest.duplicates["dropped"],
        equal_orders=dict(manifest.equal_orders),
        equivalence=Equivalence(
            sum(part.distinct for part in parts),
            sum(part.sharing_rows for part in parts),
            sum(part.across_splits for part in parts),
        ),
    )


def _equivalence(splits: Iterable[NDArray[np.uint64]]) -> Equivalence:
    """Count equal fingerprints, given as one array uint64 (rows,) per split, which is sorted in place."""
    distinct, sharing = [np.empty(0, np.uint64)], 0
    for keys in splits:
        keys.sort()
        first = np.ones(len(keys) + 1, bool)  # of its equals; one more, behind the end
        first[1:-1] = keys[1:] != keys[:-1]
        sharing += len(keys) - int((first[:-1] & first[1:]).sum())
        distinct.append(keys[first[:-1]])
    everywhere = np.concatenate(distinct)
    distinct.clear()
    everywhere.sort()
    again = everywhere[1:] == everywhere[:-1]
    across = np.unique(everywhere[1:][again])
    return Equivalence(len(everywhere) - int(again.sum()), sharing, len(across))


class _Tally:
    """Counts of all files read so far, and the fingerprints of a slice per split; files come from many threads."""

    def __init__(self, dataset: Dataset, total: int, progress: Progress) -> None:
        self.counts: dict[str, dict[str, NDArray[np.int64]]] = {}
        self._keys: dict[str, list[NDArray[np.uint64]]] = {}
        self._dataset, self._task, self._settings = dataset, dataset.task, dataset.settings
        self._done, self._total, self._progress = 0, total, progress
        self._stop, self._lock = threading.Event(), threading.Lock()

    def read_slice(self, low: int, high: int, workers: int) -> None:
        """Read all files for the fingerprints from low to high - 1; the first time, everything else is counted too."""
        first = not self.counts
        self._keys = {split: [np.empty(0, np.uint64)] for split in self._dataset.splits}

        def look(entry: FileEntry) -> None:
            if self._stop.is_set():
                raise Stopped
            path = data_dir(self._dataset.path) / entry.name
            traced = read_rows(self._task, path, entry.rows, self._settings)
            keys = self._task.fingerprints(traced)
            counts = _count(self._task, traced) if first else {}
            with self._lock:
                inside = (keys >= np.uint64(low)) & (keys <= np.uint64(high - 1))
                self._keys[entry.split].append(keys[inside])
                for kind, found in counts.items():
                    whole = self.counts.setdefault(kind, {})
                    for name, values in found.items():
                        whole[name] = _sum(whole[name], values) if name in whole else values
                self._done += entry.rows

        run_threads(look, self._dataset.manifest.files, workers, self._stop, self._tick)

    def take_keys(self) -> Iterator[NDArray[np.uint64]]:
        """The fingerprints of each split, given away: what is kept of them here is let go."""
        while self._keys:
            yield np.concatenate(self._keys.pop(next(iter(self._keys))))

    def _tick(self) -> None:
        self._progress(self._done, self._total)


def _count(task: Task, traced: Any) -> dict[str, dict[str, NDArray[np.int64]]]:
    """How often every value occurs in the rows, per kind and quantity."""
    columns = task.columns(traced)
    lengths = {name: columns[name].lengths for name in (*task.strategies, "answer") if name in columns}
    layout = layout_of(traced, FIELD)
    besides = layout.prompt_length + MARKS + layout.answers(traced).lengths
    return {
        "lengths": {name: np.bincount(values) for name, values in lengths.items()},
        "tokens": {name: np.bincount(besides + lengths[name]) for name in task.strategies},
        "features": {name: np.bincount(values) for name, values in task.measures(traced).items()},
        "places": task.places(traced),
    }


def _sum(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    if a.ndim > 1:
        return a + b
    total = np.zeros(max(len(a), len(b)), np.int64)
    total[: len(a)] += a
    total[: len(b)] += b
    return total


def stats_table(stats: DatasetStats) -> str:
    """The figures for a terminal, at most 100 columns."""
    rows, same = stats.rows, stats.equivalence
    splits = ", ".join(f"{count:,} {split}" for split, count in stats.splits.items())
    equal = [f"{count:>13,}  {pair} ({_share(count, rows)})" for pair, count in stats.equal_orders.items() if count]
    return "\n".join(
        [
            stats.path,
            f"{rows:,} {stats.title}, {stats.bytes / 1e6:,.1f} MB: {splits}",
            "",
            *_distribution_lines(f"length in {stats.unit}", stats.lengths),
            "",
            *_distribution_lines("length in tokens", stats.tokens),
            "",
            *_distribution_lines("of a problem", stats.features),
            *(_place_line(name, counts) for name, counts in stats.places.items() if rows),
            "",
            "problems that two strategies search in the same order",
            *(equal or [f"{0:>13}  of any two"]),
            "",
            f"equivalent problems ({stats.symmetries})",
            f"{stats.duplicates:>13,}  exact duplicates left out",
            f"{same.distinct:>13,}  problems, equivalent ones counted once",
            f"{same.sharing_rows:>13,}  equivalent to another one of their split ({_share(same.sharing_rows, rows)})",
            f"{same.across_splits:>13,}  in more than one split",
        ]
    )


def _distribution_lines(title: str, distributions: Mapping[str, Distribution], width: int = 36) -> list[str]:
    """A heading and a line per distribution; the bars of all share one axis from 0."""
    values_shown = max(1, *(len(values.counts) for values in distributions.values()))
    bin_width = -(-values_shown // width)
    bins = -(-values_shown // bin_width)
    columns = ("min", *(f"{percent}%" for percent in QUANTILES), "max")
    heading = f"{title:<19}{'mean':>7}" + "".join(f"{name:>5}" for name in columns)
    lines = [f"{heading}  0{bin_width * bins - 1:>{bins - 1}}"]
    for name, values in distributions.items():
        figures = [values.quantile(percent) for percent in (0, *QUANTILES, 100)]
        cells = "".join(f"{'-' if figure is None else figure:>5}" for figure in figures)
        mean = "-" if values.mean is None else f"{values.mean:.1f}"
        lines.append(f"{name:<19}{mean:>7}{cells}  {_bars(values.counts, bin_width, bins)}".rstrip())
    return lines


def _place_line(name: str, counts: NDArray[np.int64]) -> str:
    least, most = counts.min() / counts.mean(), counts.max() / counts.mean()
    return f"{name:<19}every cell at {least:.2f} to {most:.2f} times an even share"


def _bars(counts: NDArray[np.int64], bin_width: int, bins: int) -> str:
    """A bar per bin, the highest one full; a bin that is not empty is never blank."""
    heights = _sum(counts, np.zeros(bins * bin_width, np.int64)).reshape(bins, bin_width).sum(axis=1)
    top = max(1, int(heights.max(initial=0)))
    return "".join(BARS[-(-int(height) * (len(BARS) - 1) // top)] for height in heights)


def _share(count: int, total: int) -> str:
    return f"{100 * count / total:.3g} %" if total else "-"

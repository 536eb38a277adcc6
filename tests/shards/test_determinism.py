"""Bytes depend on the plan alone: not on workers, threads, engines, the hash seed, the compile cache or the order."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lol_data.shards.generate import generate_dataset

from .common import SMALL, make, published

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
from lol_data.shards.generate import generate_dataset
from tests.shards.common import SMALL
generate_dataset(SMALL, sys.argv[1], int(sys.argv[2]), engine=sys.argv[3])
"""


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return published(make(SMALL, tmp_path_factory.mktemp("reference") / "d"))


def make_elsewhere(out, workers=2, engine="local", **environment):
    """Make SMALL in a new process with more environment variables."""
    command = [sys.executable, "-c", SCRIPT, str(out), str(workers), engine]
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, **environment})
    return published(out)


@pytest.mark.parametrize("seed", ["0", "1"])
def test_python_hash_seed(tmp_path, reference, seed):
    assert make_elsewhere(tmp_path / "d", PYTHONHASHSEED=seed) == reference


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 2, 0]])
def test_order_of_shards(tmp_path, reference, order):
    for unit in order:
        generate_dataset(SMALL, tmp_path / "d", units=range(unit, unit + 1))
    assert published(tmp_path / "d") == reference


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("engine", ["local", "ray"])
def test_workers_threads_engines(tmp_path, reference, workers, threads, engine):
    if engine == "ray":
        pytest.importorskip("ray")
        if (workers, threads) not in ((1, "2"), (2, "1")):
            pytest.skip("a cluster takes seconds to start: two are enough")
    made = make_elsewhere(tmp_path / "d", workers, engine, NUMBA_NUM_THREADS=threads, OMP_NUM_THREADS=threads)
    assert made == reference


@pytest.mark.slow
def test_cold_warm_damaged_and_no_compile_cache(tmp_path, reference):
    cache = tmp_path / "cache"
    for state in ("cold", "warm"):
        assert make_elsewhere(tmp_path / state, XDG_CACHE_HOME=str(cache)) == reference
    kernels = [path for path in cache.rglob("*") if path.suffix in (".nbi", ".nbc")]
    assert kernels
    shutil.rmtree(cache)
    cache.write_text("no folder")  # falls back to another one
    assert make_elsewhere(tmp_path / "none", XDG_CACHE_HOME=str(cache), TMPDIR=str(tmp_path)) == reference


@pytest.mark.slow
def test_two_processes_compile_at_the_same_time(tmp_path, reference):
    command = [sys.executable, "-c", SCRIPT]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    children = [
        subprocess.Popen([*command, str(tmp_path / name), "2", "local"], cwd=ROOT, env=environment) for name in "ab"
    ]
    assert [child.wait() for child in children] == [0, 0]
    assert published(tmp_path / "a") == published(tmp_path / "b") == reference

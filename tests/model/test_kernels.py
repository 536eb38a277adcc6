"""The checks of `kernel_checks.py`, in the interpreter and on a GPU, each in a process of its own: Triton decides where
kernels run when it is imported, which other tests may have done before."""

import os
import subprocess
import sys
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton")
CHECKS = Path(__file__).with_name("kernel_checks.py")
QUICK = [
    "test_norm_film",
    "test_products",
    "test_products_of_widths_that_are_no_powers_of_two",
    "test_gradients_of_weights_repeat_bit_for_bit_and_are_none_for_idle_blocks",
    "test_router_inputs",
    "test_a_model_with_kernels_is_the_same_model",
    "test_without_padding_and_without_a_suffix",
    "test_truncated_backpropagation",
    "test_blocks_that_a_forced_path_leaves_out_have_no_gradient",
    "test_prefill_and_decoding_are_as_before",
    "test_steps_are_those_of_a_run_without_kernels",
    "test_a_block_that_no_window_takes_is_not_moved",
    "test_kernels_are_measured_against_the_plain_way",
    "test_kernels_that_fail_or_err_are_not_used",
]
SLOW = ["test_together_with_compiled_operations"]
ON_GPU = ["test_norm_film_of_many_rows", "test_products_of_a_large_batch", "test_a_model_of_full_size"]


def run_checks(folder, interpreted, marks):
    """What went wrong in each check, "" where nothing did; None where it was skipped."""
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", CHECKS, "-m", marks, f"--junitxml={report}", "-p", "no:cacheprovider"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TRITON_INTERPRET": str(int(interpreted))}
    done = subprocess.run(command, env=environment, cwd=CHECKS.parents[2], capture_output=True, text=True, timeout=900)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = defaultdict(list)
    for case in ElementTree.parse(report).iter("testcase"):
        wrong = [f"{case.get('name')}\n{part.text}" for kind in ("failure", "error") for part in case.iter(kind)]
        skipped = case.find("skipped") is not None
        found[case.get("name").partition("[")[0]].append(None if skipped else "".join(wrong))
    return {name: None if None in said else "".join(said) for name, said in found.items()}


@pytest.fixture(scope="module")
def in_the_interpreter(tmp_path_factory):
    return run_checks(tmp_path_factory.mktemp("interpreter"), True, "not slow")


@pytest.fixture(scope="module")
def on_a_gpu(tmp_path_factory):
    return run_checks(tmp_path_factory.mktemp("gpu"), False, "")


def judge(found, name):
    if found[name] is None:
        pytest.skip("needs a GPU, a compiler, or an interpreter that works")
    if found[name]:
        pytest.fail(found[name], pytrace=False)


@pytest.mark.parametrize("name", QUICK)
def test_in_the_interpreter(in_the_interpreter, name):
    judge(in_the_interpreter, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_in_the_interpreter_and_slow(tmp_path, name):
    judge(run_checks(tmp_path, True, "slow"), name)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", QUICK + SLOW + ON_GPU)
def test_on_a_gpu(on_a_gpu, name):
    judge(on_a_gpu, name)


def test_no_check_is_left_out(in_the_interpreter):
    assert in_the_interpreter.keys() == {*QUICK, *ON_GPU}

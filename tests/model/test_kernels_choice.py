"""When kernels are used: as a run says, where they can be had; and nobody needs Triton who does not use them."""

import subprocess
import sys

import pytest
import torch

from lol_data.errors import UsageError
from lol_data.model import kernels
from lol_data.training.machine import apply, kernels_note

from ..training.common import make_trainer

pytestmark = pytest.mark.skipif(kernels.interpreted(), reason="the interpreter has kernels on a CPU")
CPU = torch.device("cpu")


@pytest.mark.parametrize("word", ["auto", "no"])
def test_a_cpu_does_without(word):
    trainer = make_trainer(kernels=word)
    assert trainer.machine == {"device": "cpu", "matmul": "float32", "compiled": False, "kernels": False}
    assert trainer.model.kernels is None and kernels_note(trainer.machine) is None


def test_kernels_that_are_asked_for_but_cannot_be_had():
    with pytest.raises(UsageError, match=r"^there are no Triton kernels here: there is no CUDA device; set train\.k"):
        make_trainer(kernels="yes")


def test_a_run_of_an_earlier_version_says_nothing_of_kernels():
    trainer = make_trainer(machine={"device": "cpu", "matmul": "float32", "compiled": False})
    assert trainer.model.kernels is None


def test_what_was_measured_is_told():
    values = {"kernels": True, "kernels_why": "0.1000 s forward and backward, 0.2000 s without"}
    assert kernels_note(values) == "Triton kernels: in use, 0.1000 s forward and backward, 0.2000 s without"
    assert kernels_note({**values, "kernels": False}).startswith("Triton kernels: not used, ")


def test_a_machine_without_kernels_gets_its_plain_operations_back():
    model = make_trainer().model
    model.kernels = model.ops = "what a comparison left behind"
    apply({"matmul": "float32", "compiled": False, "kernels": False}, model)
    assert model.kernels is None and type(model.ops).__name__ == "Ops"


def test_the_reasons_against(monkeypatch):
    assert kernels.why_not(torch.device("cuda"), torch.bfloat16) is None
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert kernels.why_not(CPU, torch.float32) is None
    assert kernels.why_not(CPU, torch.bfloat16) == "Triton's interpreter cannot multiply bf16"
    monkeypatch.setattr(kernels, "find_spec", lambda name: None)
    assert kernels.why_not(torch.device("cuda"), torch.float32) == "Triton is not installed"


def test_models_run_where_there_is_no_triton():
    script = """
import sys
sys.modules["triton"] = None
import torch
from lol_data.model import kernels
from lol_data.model.build import make_model
from lol_data.model.config import ModelConfig
import lol_data.training.loop
shape = dict(field=2, width=16, heads=2, hidden=24, prelude=1, blocks=2, depth=2, coda=1, window=4, shift=2)
model = make_model(ModelConfig(vocabulary=9, prompt=4, **shape))
model(torch.zeros(2, 9, dtype=torch.long))[0].sum().backward()
print(kernels.why_not(torch.device("cuda"), torch.float32))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.stdout == "Triton is not installed\n", done.stderr

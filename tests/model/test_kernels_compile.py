"""Every kernel as it would be started on a GPU is compiled for some, which needs none: types that do not fit, and more
shared memory than there is, are what the interpreter cannot see."""

import pytest
import torch

triton = pytest.importorskip("triton")

from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402
from triton.runtime import JITFunction  # noqa: E402

from lol_data.model import kernels  # noqa: E402

SHARED = 99 * 1024  # bytes that a program may have on any GPU since 2020
TYPES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.int32: "i32", torch.int64: "i64"}

pytestmark = pytest.mark.skipif(kernels.interpreted(), reason="the interpreter compiles nothing")


def started(monkeypatch, matmul, width, hidden):
    """Kernel, arguments and settings of all that is started, forward and backward, instead of starting it."""
    calls = []

    def note(kernel, *arguments, grid, warmup, **settings):
        calls.append((kernel, arguments, settings))

    monkeypatch.setattr(JITFunction, "run", note)
    loaded = kernels.load()
    slices, batch = [(0, 99), (99, 163), (163, 200)], 16
    tokens = batch * 200
    starts = torch.arange(batch)[:, None] * 200 + torch.tensor([start for start, _ in slices])
    bounds = torch.cat([starts.flatten(), torch.tensor([tokens])]).int()
    tiles = loaded.tiles(slices, bounds, torch.zeros(batch, 3, dtype=torch.long), tokens, 8)
    for outputs, inputs in ((3 * width, width), (width, hidden)):
        x = torch.zeros(tokens, inputs, dtype=matmul, requires_grad=True)
        weights = torch.zeros(8, outputs, inputs, dtype=matmul, requires_grad=True)
        loaded.window_linear(x, tiles, weights).sum().backward()
    h = torch.zeros(tokens, width, requires_grad=True)
    for offset in (torch.zeros(width, requires_grad=True), None):
        loaded.norm_film(h, torch.zeros(width, requires_grad=True), offset, matmul).sum().backward()
    for windows in (3, 1):
        own = bounds if windows == 3 else bounds[::3]
        inputs = loaded.router_inputs(h, own, own[:-1:windows].long(), tokens, torch.zeros(width), 0.9)
        inputs.sum().backward()
    return calls


def source(kernel, arguments, settings):
    """What Triton makes of such a call: the types, what is known when compiling, what is divisible by 16."""
    given = {**dict(zip(kernel.arg_names, arguments, strict=False)), **settings}
    signature, constants, attributes = {}, {}, {}
    for number, parameter in enumerate(kernel.params):
        name, value = parameter.name, given[parameter.name]
        if parameter.is_constexpr or value is None or (isinstance(value, int) and value == 1):
            signature[name], constants[name] = "constexpr", value
        elif isinstance(value, torch.Tensor):
            signature[name], aligned = "*" + TYPES[value.dtype], True
        else:
            signature[name], aligned = ("fp32", False) if isinstance(value, float) else ("i32", value % 16 == 0)
        if name not in constants and aligned:
            attributes[number,] = [["tt.divisibility", 16]]
    options = {name: value for name, value in settings.items() if name not in kernel.arg_names}
    return ASTSource(kernel, signature, constants, attributes), options


@pytest.mark.parametrize(
    "capability", [80, 90, *(pytest.param(other, marks=pytest.mark.slow) for other in (86, 89, 100, 120))]
)
@pytest.mark.parametrize(
    ("matmul", "width", "hidden"), [(torch.bfloat16, 384, 1024), (torch.float32, 384, 1024), (torch.float32, 20, 33)]
)
def test_kernels_compile_and_fit(monkeypatch, tmp_path, capability, matmul, width, hidden):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    calls = started(monkeypatch, matmul, width, hidden)
    names = {"_multiply", "_weight_parts", "_add_parts", "_norm", "_norm_gradient", "_prefix", "_prefix_gradient"}
    assert {kernel.fn.__name__ for kernel, _, _ in calls} == names
    seen = set()
    for call in calls:
        made, options = source(*call)
        key = made.hash(), made.name
        if key in seen:
            continue
        seen.add(key)
        compiled = triton.compile(made, target=GPUTarget("cuda", capability, 32), options=options)
        assert compiled.metadata.shared <= SHARED, made.name
        if made.name in ("_multiply", "_weight_parts") and matmul == torch.bfloat16:
            unit = {90: "wgmma", 100: "tcgen05"}.get(capability, "mma.sync")
            assert unit in compiled.asm["ptx"], "not on matrix units"

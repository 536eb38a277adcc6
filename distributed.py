"""Several processes work on one thing, where torchrun started them; without it everything here is a no-op.

    torchrun --nproc-per-node N -m -- lol_data.cli train ...
    torchrun --nproc-per-node N -m -- lol_data.cli eval ...

All hold the whole model. In training each takes every n-th micro-batch of a step, then their sums are added up: the
update is that of one process with N times the micro-batches, and nothing but gradients, losses and counts is exchanged,
once a step, so blocks that some process did not use need no care. In decoding each takes every n-th batch. Only the
first process speaks and writes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from lol_data.errors import LolDataError

T = TypeVar("T")


@contextmanager
def processes() -> Iterator[None]:
    """Join the processes that torchrun started, if it did; behind the block only the first one goes on.

    The others end there, silently, with the exit code of the error that all of them met, if there was one.
    """
    if not dist.is_torchelastic_launched() or int(os.environ["WORLD_SIZE"]) == 1:
        yield
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
    first, code = is_first(), 0
    try:
        yield
    except LolDataError as error:
        if first:
            raise
        code = error.exit_code
    except KeyboardInterrupt:
        if first:
            raise
        code = 130
    finally:
        dist.destroy_process_group()
    if not first:
        # At once: the interpreter's own end races with threads of the communication library, which then may abort it.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def count() -> int:
    """Processes at work."""
    return dist.get_world_size() if dist.is_initialized() else 1


def number() -> int:
    """This process, counted from 0."""
    return dist.get_rank() if dist.is_initialized() else 0


def is_first() -> bool:
    """Whether this process is the one that speaks and writes."""
    return number() == 0


def only_first(speak: Callable[..., None]) -> Callable[..., None]:
    """A function that speaks or shows progress, for the first process; one that does nothing for the others."""
    return speak if is_first() else lambda *_: None


def from_first(make: Callable[[], T]) -> T:
    """What `make` gives in the first process, alone to call it, for all; so is a LolDataError it raises."""
    if count() == 1:
        return make()
    box: list[Any] = [None, None]
    if is_first():
        try:
            box[0] = make()
        except LolDataError as error:
            box[1] = error
    dist.broadcast_object_list(box)
    if box[1] is not None:
        raise box[1]
    return box[0]


def from_all(value: T) -> list[T]:
    """What each process has, in their order."""
    if count() == 1:
        return [value]
    box: list[Any] = [None] * count()
    dist.all_gather_object(box, value)
    return box


def in_any(flag: bool) -> bool:
    """Whether a flag is set in any process."""
    if count() == 1:
        return flag
    flags = torch.tensor([flag], dtype=torch.int32)
    dist.all_reduce(flags, dist.ReduceOp.MAX)
    return bool(flags.item())


def add_up(*tensors: Tensor) -> None:
    """Replace each tensor by its sum over all processes."""
    if count() > 1:
        for tensor in tensors:
            dist.all_reduce(tensor)


def add_up_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Replace gradients by their sums over all processes; a gradient that is None in all of them stays None."""
    if count() == 1:
        return
    parameters = list(parameters)
    used = torch.tensor([parameter.grad is not None for parameter in parameters], dtype=torch.int32)
    dist.all_reduce(used)
    shared = [parameter for parameter, uses in zip(parameters, used.tolist(), strict=True) if uses]
    gradients = [torch.zeros_like(parameter) if parameter.grad is None else parameter.grad for parameter in shared]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    parts = flat.split([parameter.numel() for parameter in shared])
    for parameter, part in zip(shared, parts, strict=True):
        parameter.grad = part.view_as(parameter)

"""The Numba decorators of the project.

Numba's on-disk cache does not notice an edit in a helper of another file, and needs a writable folder. The cache
folder is therefore named after the hash of all our sources, under the user's cache folder or, if that cannot be
written, a temporary one.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

import numba
from numba.core.cpu import CPUTargetOptions

JIT_ROOMS = ("generators", "solvers", "evaluators", "tokenization", "shards")


def _source_hash() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    root = Path(__file__).parent
    for path in sorted([*root.glob("*.py"), *(p for room in JIT_ROOMS for p in (root / room).glob("*.py"))]):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _cache_dir() -> str:
    base = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    for parent in (base, Path(tempfile.gettempdir())):
        folder = parent / "lol-data" / "numba" / _source_hash()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return str(folder)
    return tempfile.mkdtemp(prefix="lol-data-numba-")


if not os.environ.get("NUMBA_CACHE_DIR"):
    numba.config.CACHE_DIR = _cache_dir()  # type: ignore[attr-defined]

njit = numba.njit(cache=True, nogil=True)

# For kernels that allocate nothing. Numba counts references to arrays and slices with atomic operations, a tenth of the
# time of a maze; an option without a promise to stay turns that off.
_UNCOUNTED = {"_nrt": False} if hasattr(CPUTargetOptions, "_nrt") else {}
njit_uncounted = numba.njit(cache=True, nogil=True, **_UNCOUNTED)  # type: ignore[call-overload]

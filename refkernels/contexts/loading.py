"""Kernels from source text: written into the cache folder, compiled and kept like other kernels.

Numba keeps compiled code beside the name, size and time of a source file, so the text is written
to a file that is named after its contents, once. Where nothing can be written, the kernel is
compiled in memory.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import types
from pathlib import Path
from typing import Any

from refkernels.arithmetic import jit
from refkernels.records.files import write_whole

_HEADER = '''"""Written by refkernels.contexts."""  # {title!r}

import math

import numpy as np

from refkernels.arithmetic.vectors import distinct, full_width
from refkernels.contexts import ball_functions as functions
from refkernels.contexts.ball_rules import *

'''


@functools.cache
def kernel(title: str, body: str) -> Any:
    """The function `kernel` that the body defines, compiled when first called; it releases the GIL.

    The body finds NumPy, the rules of `ball_rules` and those of `ball_functions` as `functions`.
    """
    source = _HEADER.format(title=title) + body
    name = f"refkernels.contexts.kernel_{hashlib.sha256(source.encode()).hexdigest()[:20]}"
    path = _written(name, source)
    module = types.ModuleType(name)
    sys.modules[name] = module  # Numba imports it when it loads a kept kernel
    exec(compile(source, str(path or f"<{name}>"), "exec"), module.__dict__)
    options = {} if path else {"cache": False}
    return jit.njit(module.__dict__["kernel"], nogil=True, **options)


def _written(name: str, source: str) -> Path | None:
    """The file that holds the source, whole; None where it cannot be written."""
    folder = jit.cache_folder(name)
    if folder is None:
        return None
    path = folder / "sources" / f"{name.rpartition('.')[2]}.py"
    try:
        if path.read_text(encoding="utf-8") == source:
            return path
    except (OSError, UnicodeDecodeError):
        pass
    try:
        return write_whole(path, source)
    except OSError:
        return None

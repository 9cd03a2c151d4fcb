"""Imports this package's modules in the default floating-point mode.

At import, Python folds constants and modules fill tables; __pycache__ and the kernels' cache store
them. In a thread that flushes subnormals, 2.0**-1074 is 0, and a cached 0 would be wrong in every
later process.
"""

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from refkernels.arithmetic.mode import imported, with_default_fenv

_OURS = "refkernels."


class _Finder:
    """Delegates to the other finders, such as pytest's, which rewrites asserts."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        imported(name)
        if not name.startswith(_OURS):
            return None
        for finder in sys.meta_path:
            usable = finder is not _Finder and hasattr(finder, "find_spec")
            if usable and (spec := finder.find_spec(name, path, target)) is not None:
                _guard(spec.loader)
                return spec
        return None


def _guard(loader: Any) -> None:
    """Makes a loader run this package's modules in the default mode. Some loaders, such as
    zipimport's and pytest's, also load modules of other packages."""
    if loader is None or "exec_module" in vars(loader):
        return
    unguarded = loader.exec_module
    guarded = with_default_fenv(unguarded)

    def exec_module(module: ModuleType) -> None:
        (guarded if module.__name__.startswith(_OURS) else unguarded)(module)

    loader.exec_module = exec_module


def install() -> None:
    """Put this finder before all others."""
    sys.meta_path[:] = [_Finder, *(finder for finder in sys.meta_path if finder is not _Finder)]

"""Runs this package's modules in the default floating-point mode when they are imported.

Python folds constants and modules fill tables at import; __pycache__ and the kernels' cache keep
them: 2.0**-1074 is 0 to a thread that flushes subnormals, and then to every later process.
"""

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from refkernels.arithmetic.mode import in_default_mode

_OURS = "refkernels."


class _Finder:
    """Finds what the other finders find, pytest's that rewrites asserts among them."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith(_OURS):
            return None
        for finder in sys.meta_path:
            if finder is not _Finder and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    _guard(spec.loader)
                    return spec
        return None


def _guard(loader: Any) -> None:
    """Makes a loader run our modules in the default mode. Some, zipimport's and pytest's, load many
    modules, and others' too."""
    if loader is None or "exec_module" in vars(loader):
        return
    as_it_is = loader.exec_module
    guarded = in_default_mode(as_it_is)

    def exec_module(module: ModuleType) -> None:
        (guarded if module.__name__.startswith(_OURS) else as_it_is)(module)

    loader.exec_module = exec_module


def install() -> None:
    """From here on, before all other finders."""
    if _Finder in sys.meta_path:
        sys.meta_path.remove(_Finder)
    sys.meta_path.insert(0, _Finder)

"""Runs this package's modules in the default floating-point mode when they are imported.

Python folds constants and modules fill tables at import; __pycache__ and the kernels' cache keep
them: 2.0**-1074 is 0 to a thread that flushes subnormals, and then to every later process.
"""

import sys
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

from refkernels.arithmetic.mode import in_default_mode


class _Finder:
    """Finds what PathFinder finds, before it does."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith("refkernels."):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            loader.exec_module = in_default_mode(loader.exec_module)
        return spec


def install() -> None:
    """From here on."""
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(sys.meta_path.index(PathFinder), _Finder)

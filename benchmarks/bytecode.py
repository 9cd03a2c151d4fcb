"""Bytecode, as in an installed package: without it a process compiles every module it imports."""

import compileall
import os
from pathlib import Path


def keep() -> None:
    """Compile the package's modules, as pip does, and let later processes keep theirs too."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    compileall.compile_dir(Path(__file__).parent.parent / "refkernels", quiet=2)

"""Bytecode, as in an installed package: without it a process compiles every module it imports."""

import compileall
import os
from pathlib import Path

HERE = Path(__file__).parent.parent / "refkernels"


def keep(*packages: Path) -> None:
    """Compile the packages' modules, as pip does, and let later processes keep theirs too."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for package in packages or (HERE,):
        compileall.compile_dir(package, quiet=2)

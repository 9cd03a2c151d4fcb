"""A framework or a compiler that is not there: a skip that says why, or a failure where it is
required."""

import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

from refkernels.frameworks import environments
from refkernels.frameworks.environments import Interpreter


def missing(spec: str, reason: object) -> NoReturn:
    """End the test. `spec`: a framework, perhaps with a version; REFKERNELS_REQUIRE lists those
    whose absence is a failure."""
    framework = spec.partition("==")[0]
    if framework in environments.required():
        pytest.fail(f"REFKERNELS_REQUIRE lists {framework}: {reason}", pytrace=False)
    pytest.skip(str(reason))


def interpreter_of(spec: str) -> Interpreter:
    """The interpreter of a framework; where it is not installed, the test ends."""
    try:
        return environments.find(spec)
    except environments.NotInstalled as error:
        missing(spec, error)


def compiled(source: str, folder: Path) -> Path:
    """A library of C functions."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler (cc) here")
    (folder / "mine.c").write_text(source, encoding="utf-8")
    library = folder / "libmine.so"
    command = ["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(folder / "mine.c")]
    subprocess.run(command, check=True)
    return library

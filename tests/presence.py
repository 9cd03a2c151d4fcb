"""A framework that is not there: a skip that says why, or a failure where it is required."""

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

"""A misuse of an assertion is named in a sentence."""

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from refkernels.testing import assert_kernel

X = np.linspace(0.25, 1.75, 6, dtype=np.float32).reshape(2, 3)
Y = np.sin(X)


@pytest.mark.parametrize(
    ("stated", "error", "words"),
    [
        ({"op": None}, TypeError, "Give an op's name, not a NoneType"),
        ({"inputs": None}, ValueError, "sin forward needs 'x' among its inputs"),
        ({"outputs": None}, ValueError, "sin forward gives y, but none of them was given"),
        ({"params": [1]}, TypeError, "params must map names to values, and is of type list"),
        ({"max_ulp": "4"}, TypeError, "max_ulp is of type str: it must be a number >= 0"),
        ({"max_ulp": -1}, ValueError, "max_ulp is -1: it must be a number >= 0"),
        ({"max_over_plain": math.nan}, ValueError, "max_over_plain is nan"),
        ({"max_over_plain": 0.0}, ValueError, "max_over_plain is 0: it must be a number > 0"),
        ({"max_over_baseline": (Y, 0)}, ValueError, "factor is 0: it must be a number > 0"),
        ({"max_over_baseline": Y}, TypeError, r"max_over_baseline is \(outputs, factor\)"),
        ({"max_over_baseline": (Y, True)}, TypeError, "max_over_baseline's factor is of type bool"),
        ({"max_over_baseline": (Y[:1], 2)}, ValueError, r"baseline's y has shape \(1, 3\)"),
        ({"direction": Y}, ValueError, "give 'forward' or 'backward'"),
        ({"verdict": None}, ValueError, "verdict is of type NoneType: ask for 'rounding'"),
        ({"outputs": Y.astype(ml_dtypes.float8_e5m2)}, TypeError, "y has dtype float8_e5m2"),
        ({"outputs": Y.astype(np.int8)}, TypeError, "y has dtype int8"),
        ({"inputs": {"x": X.astype(complex)}}, TypeError, "x has dtype complex128"),
    ],
)
def test_what_is_wrong_is_named(stated: dict[str, Any], error: type, words: str) -> None:
    kernel = {"op": "sin", "inputs": {"x": X}, "outputs": Y}
    with pytest.raises(error, match=words):
        assert_kernel(**{**kernel, **stated})

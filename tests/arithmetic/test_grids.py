"""Rounding to narrow formats, against ml_dtypes' tables and against exact fractions."""

from fractions import Fraction
from typing import Any, get_args

import ml_dtypes
import numpy as np
import pytest

from refkernels.arithmetic.grids import Ties, grid

FLOATS = (
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e3m4",
    "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "float16",
)  # fmt: skip
EVERY = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float64)
FINITE = EVERY[np.isfinite(EVERY)]


@pytest.mark.parametrize("to", FLOATS)
def test_every_float16_and_its_neighbours_round_as_ml_dtypes_rounds_them(to: str) -> None:
    own, kind = grid(to), np.dtype(getattr(ml_dtypes, to, to))
    near = [np.nextafter(FINITE.astype("f4"), np.float32(end)) for end in (-np.inf, np.inf)]
    x = np.concatenate([FINITE.astype("f4"), *near])
    x = x[np.abs(x) <= own.largest]
    with np.errstate(all="ignore"):
        expected = x.astype(kind).astype(np.float64)
    rounded = own(x.astype(np.float64))
    assert np.array_equal(rounded, expected)
    assert np.array_equal(np.signbit(rounded), np.signbit(expected))
    assert len(np.unique(rounded)) == len(np.unique(expected)) > 8


@pytest.mark.parametrize("to", ["", "int8", "uint4", "float4_e2m1fn", "float8_e8m0fnu", "bfloat16"])
@pytest.mark.parametrize("ties", get_args(Ties))
def test_floats_and_fractions_round_alike_and_never_decrease(to: str, ties: Ties) -> None:
    own, rng = grid(to, ties), np.random.default_rng(5)
    x = np.sort([*FINITE[::97] / 8, *(rng.integers(-600, 600, 200) / 4), *rng.normal(0, 9, 200)])
    rounded = own(x)
    assert np.all(np.diff(rounded) >= 0)
    assert [Fraction(y) for y in rounded] == [own.of_rational(Fraction(z)) for z in x]
    inside = (rounded > own.least) & (rounded < own.largest)
    assert np.array_equal(own(rounded[inside]), rounded[inside])


@pytest.mark.parametrize("wrong", [("float9", "even"), ("int8", "odd"), ("complex64", "even")])
def test_other_names_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"is no format|must be one of"):
        grid(*wrong)

"""Rotary embedding whose cosines and sines are numbers of a narrower format, told from the output
alone, whatever units in the last place a kernel's own functions are off by."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import refkernels
from refkernels.arithmetic import formats

RNG = np.random.default_rng(20261126)
PLACES = np.random.default_rng(1).permutation(3000)[:40] + 1
X = {kind: RNG.standard_normal((40, 16)).astype(kind) for kind in ("float32", "float64")}


def angles(kind: Any = np.float64) -> np.ndarray:
    frequency = (10000.0 ** (-np.arange(0, 16, 2) / 16)).astype(kind)
    return np.asarray(PLACES[:, None].astype(kind) * frequency, np.float64)


def inexact(table: np.ndarray) -> np.ndarray:
    """A table, two fifths of whose numbers are replaced by a neighbour."""
    towards = np.where(RNG.random(table.shape) < 0.5, -2, 2).astype(table.dtype)
    chosen = RNG.random(table.shape) < 0.4
    return np.where(chosen, np.nextafter(table, towards), table).astype(table.dtype)


def turned(x: np.ndarray, cosine: np.ndarray, sine: np.ndarray) -> np.ndarray:
    a, b = x[:, :8], x[:, 8:]
    cosine, sine = cosine.astype(x.dtype), sine.astype(x.dtype)
    return np.concatenate([a * cosine - b * sine, b * cosine + a * sine], axis=1)


def explained(x: np.ndarray, cosine: np.ndarray, sine: np.ndarray, direction: Any) -> Any:
    inputs, output = {"x": x, "position": PLACES}, "y"
    if direction == "backward":
        inputs, output, sine = {"dy": x, **inputs}, "dx", -sine
    got = {output: turned(x, cosine, sine)}
    return refkernels.explain("rotary", inputs, got, direction=direction)


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize(
    ("wide", "narrow"),
    [("float64", "float32"), ("float32", "float16"), ("float32", "bfloat16")],
)
def test_inexact_cosines_in_a_narrow_format_are_named(
    wide: str, narrow: str, direction: Any
) -> None:
    kind = formats.get(narrow).storage
    tables = (inexact(f(angles()).astype(kind)) for f in (np.cos, np.sin))
    answer = explained(X[wide], *tables, direction)
    assert (answer.cause, answer.confidence) == ("narrow_cosines", "proven")
    assert answer.candidates[0].details == {"format": narrow}


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_inexact_cosines_of_float32_angles_are_named(direction: Any) -> None:
    tables = (inexact(f(angles(np.float32)).astype(np.float32)) for f in (np.cos, np.sin))
    answer = explained(X["float64"], *tables, direction)
    assert (answer.cause, answer.confidence) == ("angles_in_float32", "proven")


@pytest.mark.parametrize("wide", ["float32", "float64"])
def test_a_right_kernel_and_wrong_angles_have_no_narrow_cosines(wide: str) -> None:
    for place in (angles(), angles() + 1e-3):
        answer = explained(X[wide], np.cos(place), np.sin(place), "forward")
        assert answer.cause not in ("narrow_cosines", "angles_in_float32", "angles_in_bfloat16")


def test_an_output_that_is_not_rotated_has_no_angles() -> None:
    """c = 1 and s = 0 everywhere, which every format holds."""
    answer = explained(X["float32"], np.ones((40, 8)), np.zeros((40, 8)), "forward")
    causes = {found.cause for found in answer.candidates if not found.ruled_out}
    assert causes <= {"other_input"}  # x in place of the result


@pytest.mark.parametrize("leading", [(1, 4), (2, 1, 3), ()])
def test_positions_that_broadcast_are_those_of_every_row(leading: tuple[int, ...]) -> None:
    x = RNG.standard_normal((*leading, 40, 16)).astype(np.float32)
    cosine, sine = (inexact(f(angles()).astype(ml_dtypes.bfloat16)) for f in (np.cos, np.sin))
    y = np.stack([turned(row, cosine, sine) for row in x.reshape(-1, 40, 16)]).reshape(x.shape)
    answer = refkernels.explain("rotary", {"x": x, "position": PLACES}, {"y": y})
    assert (answer.cause, answer.confidence) == ("narrow_cosines", "proven")


def test_numbers_that_are_no_cosines_prove_nothing() -> None:
    """Any numbers of a narrow format fit; naming them costs more bits than the format saves."""
    tables = (RNG.uniform(-1, 1, (40, 8)).astype(ml_dtypes.bfloat16) for _ in range(2))
    answer = explained(X["float32"], *tables, "forward")
    assert answer.cause is None


def test_the_narrowest_format_is_named() -> None:
    """Every bfloat16 number here is one of float16 too."""
    tables = (inexact(f(angles()).astype(ml_dtypes.bfloat16)) for f in (np.cos, np.sin))
    answer = explained(X["float32"], *tables, "forward")
    assert answer.candidates[0].details == {"format": "bfloat16"}


def test_zeros_and_special_values_are_left_to_others() -> None:
    x = X["float64"].copy()
    x[3, 0] = np.inf
    x[5] = 0.0
    tables = [f(angles()).astype(np.float32) for f in (np.cos, np.sin)]
    with np.errstate(invalid="ignore"):
        answer = explained(x, *tables, "forward")
    assert answer.verdict in ("exceeds_bound", "special_value_mismatch")

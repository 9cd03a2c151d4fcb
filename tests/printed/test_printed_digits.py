"""Every number lies in the interval that its digits leave open."""

import re

import numpy as np
import pytest
from hunting import HUNT
from hypothesis import example, given, settings
from hypothesis import strategies as st

from refkernels.arithmetic import formats
from refkernels.printed import digits, text

DTYPES = ("float16", "float32", "float64")


def holds(printed: str, array: np.ndarray) -> None:
    (tensor,) = text.tensors(printed)
    intervals = digits.intervals(tensor)
    wide = array.astype(np.float64)
    assert intervals.low.shape == array.shape
    same = np.isnan(wide) & np.isnan(intervals.low)
    assert (same | ((intervals.low <= wide) & (wide <= intervals.high))).all(), (printed, wide)


@settings(max_examples=150 * HUNT, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from(DTYPES),
    precision=st.integers(0, 17),
    floatmode=st.sampled_from(["maxprec", "maxprec_equal", "fixed", "unique"]),
    spread=st.integers(0, 12),
    bare=st.booleans(),
)
def test_numpy_prints_inside_the_interval_at_any_precision(
    seed: int, dtype: str, precision: int, floatmode: str, spread: int, bare: bool
) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 4, rng.integers(1, 4)))
    with np.errstate(over="ignore"):
        array = rng.standard_normal(shape) * 10.0 ** rng.integers(
            -spread // 2, spread // 2 + 1, shape
        )
        array = np.where(rng.random(shape) < 0.3, np.round(array, int(rng.integers(0, 3))), array)
        array = np.where(rng.random(shape) < 0.05, np.inf, array).astype(dtype)
    with np.printoptions(precision=precision, floatmode=floatmode):
        # A bare print does not say its dtype, which is then float32 or, by its digits, float64.
        if bare and dtype == "float32":
            holds(f"x:\n{array}", array)
        else:
            printed = re.sub(r", dtype=\w+\)|\)$", "", repr(array))
            holds(f"x = {printed}, dtype={dtype})", array)


@settings(max_examples=100 * HUNT, deadline=None)
@given(
    number=st.floats(allow_nan=False, allow_infinity=False, width=32),
    decimals=st.integers(0, 12),
    scientific=st.booleans(),
)
@example(number=float(np.finfo(np.float32).max), decimals=3, scientific=True)
@example(number=-float(np.finfo(np.float32).max), decimals=0, scientific=True)
def test_a_rounded_number_lies_inside(number: float, decimals: int, scientific: bool) -> None:
    shown = f"{number:.{decimals}{'e' if scientific else 'f'}}"
    shown += "" if "." in shown or scientific else "."
    if len(shown) < 400:
        whole = shown.endswith(".")  # of torch this says that the number is whole
        printed = f"array([{shown}], dtype=float32)" if whole else f"tensor([{shown}])"
        holds(printed, np.array([number], np.float32))


def test_a_number_beyond_float32_is_one_of_float64_or_refused() -> None:
    (tensor,) = text.tensors("tensor([1.0e+300, 2.0])")
    assert digits.intervals(tensor).format is formats.BINARY64
    (tensor,) = text.tensors("tensor([7.12e+04, 2.0], dtype=torch.float16)")
    with pytest.raises(ValueError, match=r"holds 7\.12e\+04, but float16 ends at 65504"):
        digits.intervals(tensor)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_ends_are_floats_of_the_format_inside_the_digits(dtype: str) -> None:
    (tensor,) = text.tensors(f"tensor([0.7211, -1.0e-05, 3.1416], dtype=torch.{dtype})")
    intervals = digits.intervals(tensor)
    format = formats.get(dtype)
    for end in (intervals.low, intervals.high):
        assert (end.astype(format.storage).astype(np.float64) == end).all()
    below = np.array([0.72105, -1.05e-05, 3.14155])
    above = np.array([0.72115, -0.95e-05, 3.14165])
    nearest = np.array([0.7211, -1.0e-05, 3.1416]).astype(format.storage).astype(np.float64)
    assert ((intervals.low >= below) | (intervals.low == nearest)).all()
    assert ((intervals.high <= above) | (intervals.high == nearest)).all()


def test_whole_numbers_of_torch_are_exact_and_rounded_ones_are_not() -> None:
    (whole,) = text.tensors("tensor([1., -3.])")
    (rounded,) = text.tensors("tensor([1.0000, -3.0000])")
    assert not digits.intervals(whole).radius.any()
    assert (digits.intervals(rounded).radius > 4e-5).all()


def test_zeros_that_numpy_cut_are_digits() -> None:
    (tensor,) = text.tensors("[[1.         0.33333333]]")
    assert (digits.intervals(tensor).radius < 1e-7).all()


def test_typed_numbers_are_exact_up_to_their_rounding() -> None:
    (tensor,) = text.tensors("x = np.array([0.1, 0.5])")
    intervals = digits.intervals(tensor)
    assert intervals.low[0] == 0.1
    assert intervals.high[0] == float(np.float32(0.1))
    assert intervals.low[1] == intervals.high[1] == 0.5


@pytest.mark.parametrize(
    ("printed", "sentence"),
    [
        ("tensor([0.5, ..., 2.5])", r"printed with \.\.\."),
        ("tensor([1e99999])", "exponent 99999"),
        ("tensor([1e-999999999999])", "exponent"),
        ("tensor([99999999999999999999999])", "no 64-bit integer"),
    ],
)
def test_numbers_that_cannot_be_read_are_refused(printed: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        digits.intervals(text.tensors(printed)[0])

"""Numbers are short, and rounding never flatters."""

import math

import ml_dtypes
import numpy as np
import pytest

from refkernels.reporting.words import numerals
from refkernels.reporting.words.numerals import figure, joined, lost, ratio, share, ulp_figure, ulps


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"), (0.0, "0"), (0.6, "0.60"), (27.13, "27.1"), (230.0, "230"),
        (70188.4, "70,188"), (419180.0, "4.2e5"), (0.0030, "0.0030"), (1.2207e-4, "1.2e−4"),
        (math.inf, "∞"), (-math.inf, "−∞"), (math.nan, "NaN"), (-0.5, "−0.50"),
    ],
)  # fmt: skip
def test_a_figure_has_two_or_three_digits(value, text):
    assert figure(value) == text


def test_a_ratio_beside_one_says_on_which_side_it_lies():
    assert [ratio(x) for x in (0.9999, 1.0, 1.0001)] == ["<1.00", "1.00", ">1.00"]


def test_a_share_is_all_only_when_nothing_is_missing():
    assert share(10**6, 10**6) == "100 %"
    assert share(10**6 - 1, 10**6) == "99.99 %"
    assert share(1, 10**6) == "<0.1 %"
    assert share(0, 10**6) == "0 %"
    assert share(0, 0) == "–"
    assert share(817, 1000) == "81.7 %"


def test_words_are_joined_as_in_speech():
    assert joined(["a"]) == "a"
    assert joined(["a", "b", "c"]) == "a, b and c"


@pytest.mark.parametrize(
    ("dtype", "bits"), [("float16", 11), ("bfloat16", 8), ("float32", 24), ("float64", 53)]
)
def test_from_a_quarter_of_the_value_on_no_digit_is_right(dtype, bits):
    most = 2.0 ** (bits - 2)
    assert not lost(most * 0.99, dtype)
    assert ulps(most * 0.99, dtype) == f"{figure(most * 0.99)} ulp"
    for value in (most, 1e300, math.inf):
        assert ulps(value, dtype) == "no digit is right"
        assert ulp_figure(value, dtype) == "no digit"
        assert ulps(value, dtype, "zh") == "没有一位数字正确"
    assert ulp_figure(None, dtype) == "–"
    assert ulp_figure(1e30, "a format of its own") == "1.0e30"


@pytest.mark.parametrize(
    ("error", "dtype", "left"),
    [
        (0.5, "float64", (16, 16)),
        (1.0, "float32", (7, 7)),
        (2.0, "float32", (6, 7)),  # 23 bits are 6.9 digits
        (2.8e8, "float64", (7, 16)),
        (2.0**22, "float32", (0, 7)),
        (math.inf, "float16", (0, 3)),
        (math.nan, "float32", None),
        (1.0, "float8", None),
    ],
)
def test_digits_that_an_error_leaves(error, dtype, left):
    assert numerals.digits(error, dtype) == left


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_ranges_are_those_of_the_formats(dtype):
    info = ml_dtypes.finfo(dtype) if dtype == "bfloat16" else np.finfo(dtype)
    least, beyond = numerals.normal_range(dtype)
    assert least == float(info.tiny)
    assert beyond > float(info.max)
    edge = numerals.squares_from(dtype)
    assert math.isinf(edge * edge) or edge * edge == beyond
    below = math.nextafter(edge, 0.0)
    assert below * below < beyond

"""Numbers are short, and never rounded to a better fate."""

import math

import pytest

from refkernels.reporting.numerals import figure, joined, ratio, share


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

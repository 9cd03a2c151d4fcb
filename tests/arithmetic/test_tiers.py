"""The tally of tiers."""

import pytest

from refkernels.arithmetic import tiers


def test_a_tally_adds_up_what_each_tier_answered() -> None:
    with tiers.counted() as tally:
        tiers.answered("float64", 7)
        tiers.answered("float64", -2)
        tiers.answered("exact", 2)
    assert tally == {"float64": 5, "exact": 2}


def test_a_tier_whose_answers_were_all_taken_over_is_left_out() -> None:
    with tiers.counted() as tally:
        tiers.answered("float64", 3)
        tiers.answered("float64", -3)
        tiers.answered("slices", 3)
    assert tally == {"slices": 3}


def test_an_inner_tally_keeps_its_counts_to_itself() -> None:
    with tiers.counted() as outer:
        tiers.answered("float64", 1)
        with tiers.counted() as inner:
            tiers.answered("exact", 4)
    assert (outer, inner) == ({"float64": 1}, {"exact": 4})


def test_counting_without_a_tally_is_allowed_and_unknown_tiers_are_not() -> None:
    tiers.answered("float64", 1)
    with tiers.counted(), pytest.raises(ValueError, match="no tier 'float32'"):
        tiers.answered("float32", 1)

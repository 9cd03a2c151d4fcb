"""The tally of tiers."""

import pytest

from refkernels.arithmetic import tiers


def test_a_tally_adds_up_what_each_tier_answered_inside_its_block_alone() -> None:
    tiers.answered("float64", 1)
    with tiers.counted() as outer:
        tiers.answered("float64", 7)
        tiers.answered("float64", -2)
        tiers.answered("slices", 3)
        with tiers.counted() as inner:
            tiers.answered("exact", 4)
        tiers.answered("slices", -3)  # all taken over
        with pytest.raises(ValueError, match="no tier 'float32'"):
            tiers.answered("float32", 1)
    assert (outer, inner) == ({"float64": 5}, {"exact": 4})

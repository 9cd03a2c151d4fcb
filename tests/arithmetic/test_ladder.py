"""Questions to an oracle, drafts of its answers, and the tiers that refine them."""

import math
from typing import Any

import numpy as np
import pytest

from refkernels.arithmetic import formats, tiers
from refkernels.arithmetic.enclosure import PARTS, Enclosure
from refkernels.arithmetic.ladder import Draft, Open, climb
from refkernels.arithmetic.question import Question


def test_a_draft_gives_parts_room_only_when_needed() -> None:
    draft = Draft(np.arange(6.0).reshape(3, 2), 0.0, np.array([[1.0], [2.0], [3.0]]))
    whole = draft.enclosure().reshape(3, 1, 2, 1)
    assert (whole.radius.strides[2], whole.lo.strides) == (0, (0, 0, 0, 0))
    at = (np.array([1]), np.array([0]))
    draft.put(at, Enclosure(np.array([9.0]), 0.0, 2.0))
    assert draft.enclosure().radius.strides[1] == 0, "a row of this radius holds it already"
    draft.put(at, Enclosure(np.array([9.0]), 0.5, 0.0, 3))
    whole = draft.enclosure()
    np.testing.assert_array_equal(whole.hi.ravel(), [0, 1, 9, 3, 4, 5])
    np.testing.assert_array_equal(whole.lo.ravel(), [0, 0, 0.5, 0, 0, 0])
    np.testing.assert_array_equal(whole.radius.ravel(), [1, 1, 0, 2, 3, 3])
    np.testing.assert_array_equal(whole.scale.ravel(), [0, 0, 3, 0, 0, 0])


def test_an_enclosure_that_a_draft_is_made_of_stays_as_it_is() -> None:
    known = Enclosure(np.arange(4.0), np.zeros(4), np.ones(4), np.zeros(4, np.int64))
    draft = Draft.of(known)
    draft.put(np.array([2]), Enclosure(np.array([7.0]), 0.25, 0.5, -3))
    for name, before in zip(PARTS, (2.0, 0.0, 1.0, 0), strict=True):
        assert getattr(known, name)[2] == before
        assert getattr(draft.enclosure(), name)[2] != before
        assert getattr(draft.enclosure(), name)[1] == getattr(known, name)[1]


def test_zeros_keep_their_signs() -> None:
    signs = np.array([True, False, True, False])
    known = Enclosure(np.where(signs, -0.0, 0.0), 0.0, np.array([0.0, 0.0, 1.0, 1.0]))
    draft = Draft.of(known)
    draft.put(np.array([3]), Enclosure(np.array([-0.0])))
    assert np.signbit(draft.enclosure().hi).tolist() == [True, False, True, True]


@pytest.mark.parametrize(("open_", "second"), [([1, 5], [5]), ([0], []), ([], None)])
def test_each_tier_gets_what_the_one_before_leaves(
    open_: list[int], second: list[int] | None
) -> None:
    """The second tier decides all but element 5; the last tier counts all that it got."""
    batches: list[list[int]] = []

    def step(left: Open) -> dict[str, Enclosure]:
        at = left["y"]
        batches.append(at.tolist())
        wide = np.where(at == 5, 1.0, 0.0)
        return {"y": Enclosure(10.0 * len(batches) + at, 0.0, wide)}

    draft = Draft(np.zeros((2, 3)), 0.0, 1.0)
    left = {"y": np.array(open_, np.intp), "z": np.empty(0, np.intp)}
    asked = Question.parse(("ulp", "float32", 0.5))
    steps = [("double_double", step), ("exact", step)]
    with tiers.counted() as tally:
        climb({"y": draft, "z": Draft(np.zeros(2))}, left, "float64", steps, asked.undecided)
    assert batches == [indices for indices in (open_, second) if indices]
    expected = np.zeros(6)
    expected[open_] = 10.0 + np.array(open_)
    expected[second or []] = 20.0 + np.array(second or [])
    np.testing.assert_array_equal(draft.enclosure().hi.ravel(), expected)
    by_tier = {
        "float64": 8 - len(open_),
        "double_double": len(open_) - len(second or []),
        "exact": len(second or []),
    }
    assert tally == {tier: number for tier, number in by_tier.items() if number}


def test_the_three_questions_are_understood() -> None:
    assert Question.parse("enclosure").kind == "enclosure"
    assert Question.parse(("rounding", "bfloat16")) == Question("rounding", formats.BFLOAT16)
    assert Question.parse(("ulp", np.float32, 0.01)) == Question("ulp", formats.BINARY32, 0.01)
    parsed = Question.parse(("ulp", "float64", 1))
    assert Question.parse(parsed) is parsed


@pytest.mark.parametrize(
    "unknown",
    ["exact", ("rounding",), ("ulp", "float32"), ("ulp", "float32", 0.0), ("ulp", "float32", -1),
     None, ("rounding", "int8"), 3, ("rounding", None), ("rounding", np.ones(3)),
     (np.ones(2), "f4"), ("ulp", "float32", math.nan),
     np.array(["rounding", "float32"])],
    ids=repr,
)  # fmt: skip
def test_other_questions_are_refused(unknown: Any) -> None:
    with pytest.raises(ValueError, match=r"question|format"):
        Question.parse(unknown)


@pytest.mark.parametrize("uncertainty", [True, "1", 1j, None, np.ones(1)], ids=repr)
def test_an_uncertainty_is_a_real_number(uncertainty: Any) -> None:
    with pytest.raises(TypeError, match=r"uncertainty is .* real number"):
        Question.parse(("ulp", "float32", uncertainty))
    with pytest.raises(ValueError, match=r"uncertainty is .* float64 does not hold"):
        Question.parse(("ulp", "float32", 10**400))


def test_undecided_are_the_elements_too_wide_for_the_question() -> None:
    enclosure = Enclosure(
        np.array([1.0, 1.0 + 2.0**-24, 1.5, 0.0]), 0.0, np.array([2.0**-60, 2.0**-60, 0.0, np.inf])
    )
    assert Question.parse("enclosure").undecided(enclosure).tolist() == [False] * 4
    rounding = Question.parse(("rounding", "float32"))
    assert rounding.undecided(enclosure).tolist() == [False, True, False, True]
    # The first interval reaches below 1, where an ulp is 2^-24.
    ulp = Question.parse(("ulp", "float32", 2.0**-36))
    assert ulp.undecided(enclosure).tolist() == [False, False, False, True]
    assert Question.parse(("ulp", "float64", 1e-3)).undecided(enclosure).tolist() == [
        True, True, False, True,
    ]  # fmt: skip


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

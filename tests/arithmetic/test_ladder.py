"""A draft of an answer, and the tiers that refine it."""

import numpy as np
import pytest

from refkernels.arithmetic import tiers
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

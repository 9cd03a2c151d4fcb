"""`boundaries` finds every change between neighbours; bisection needs few versions."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refkernels.runs.bisection import boundaries

ROWS = st.lists(st.one_of(st.none(), st.integers(0, 3)), min_size=1, max_size=12)


@given(ROWS)
def test_one_by_one_finds_all_changes_between_usable_neighbours(row: list[int | None]) -> None:
    names = [str(at) for at in range(len(row))]
    changes = list(boundaries(names, lambda v: row[int(v)] is not None, differs(row), every=True))
    usable = [name for name in names if row[int(name)] is not None]
    pairs = itertools.pairwise(usable)
    assert changes == [(a, b) for a, b in pairs if row[int(a)] != row[int(b)]]


SORTED = st.lists(st.integers(0, 5), min_size=1, max_size=12).map(sorted)


@given(SORTED, st.sets(st.integers(0, 11)))
def test_halves_find_all_changes_that_do_not_come_back(row: list[int], broken: set[int]) -> None:
    answers = [None if at in broken else value for at, value in enumerate(row)]
    names = [str(at) for at in range(len(row))]
    halved, whole = (
        list(boundaries(names, lambda v: answers[int(v)] is not None, differs(answers), every))
        for every in (False, True)
    )
    assert halved == whole


@pytest.mark.parametrize("n", [2, 3, 7, 64])
def test_one_change_takes_few_versions(n: int) -> None:
    questions: list[str] = []

    def usable(version: str) -> bool:
        questions.append(version)
        return True

    row = [0] * (n - 1) + [1]
    changes = list(boundaries([str(at) for at in range(n)], usable, differs(row)))
    assert changes == [(str(n - 2), str(n - 1))]
    assert len(questions) == len(set(questions)) <= 2 + math.ceil(math.log2(n))


def differs(row):  # type: ignore[no-untyped-def]
    return lambda a, b: row[int(a)] != row[int(b)]

"""Canonical questions that are asked again: `explain` reads hundreds of formulas on one question.

An array is known by its identity, so questions are kept only inside `questions_kept()`, where
nobody changes an array in place. Only the latest few are kept, and only small ones.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from refkernels.ops.canonical import Canonical

_MOST = 16  # questions
_LARGEST = 1 << 16  # elements of one
_Kept = dict[Hashable, tuple[Canonical, tuple[Any, ...]]]
_kept: ContextVar[_Kept | None] = ContextVar("kept", default=None)


@contextlib.contextmanager
def questions_kept() -> Iterator[None]:
    """Inside the block, this thread keeps its latest questions. No array may change in place."""
    current = _kept.get()
    token = _kept.set({} if current is None else current)
    try:
        yield
    finally:
        _kept.reset(token)


def canonical_once(
    find: Callable[[], Canonical],
    about: tuple[Hashable, ...],
    inputs: Mapping[str, Any],
    params: Mapping[str, Any],
) -> Canonical:
    """`find()`, or what it returned for the same op, direction (`about`), arrays and params."""
    questions = _kept.get()
    if questions is None or not all(map(_shows_its_value, params.values())):
        return find()
    key = (
        about,
        tuple((name, id(value)) for name, value in inputs.items()),
        tuple((name, type(value), repr(value)) for name, value in params.items()),
    )
    # While the arrays live, no id is used again.
    known = key in questions
    question, arrays = questions.pop(key) if known else (find(), tuple(inputs.values()))
    if question.elements <= _LARGEST:
        questions[key] = question, arrays
        if len(questions) > _MOST:
            del questions[next(iter(questions))]
    return question


def _shows_its_value(param: Any) -> bool:
    """Whether params with equal texts are equal; for long arrays they need not be."""
    if isinstance(param, list | tuple):
        return all(map(_shows_its_value, param))
    return param is None or isinstance(param, bool | int | float | str)

"""Ranges of terms that reductions leave out, or count twice: a tail, a block, a part of any length.

Of n terms there are n² / 2 ranges. What the outputs would be without each of some equal parts says
by how much each part changes them, and the change by a range is nearly the sum of those of its
parts: the ranges whose sums point in the direction of the kernel's error are read, and their ends
are moved, by smaller and smaller steps, to where they come nearest.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.contexts.graph import Node
from refkernels.diagnosis.edits.catalogue import Edit, Program
from refkernels.diagnosis.edits.reductions import is_mean, length_of, over_one_length, with_terms
from refkernels.diagnosis.edits.screen import CHANGE, Observation, Screen

_PARTS = (64, 1024)  # at least, as far as readings are affordable, and at most
_BUDGET = 1.0  # for all reductions
_NEAREST = 3  # ranges of one reduction that are read
_FIRST_STEP = 4  # parts, by which an end is moved: what a maximum leaves out has plateaus
_FINER = 8  # parts of a part, at each end
_ALIKE = 0.8  # cosine of the angle between errors
_ELEMENTS = 1024  # whose errors are compared
Doubles = npt.NDArray[np.float64]


def number(program: Program) -> int:
    """How many ranges all reductions have."""
    return sum(length_of(nodes[0]) ** 2 for nodes in over_one_length(program))


def nearest(screen: Screen, outputs: Collection[str]) -> Iterator[Edit]:
    """The nearest ranges of every reduction, one after the other."""
    reductions = list(over_one_length(screen.program))
    least, most = _PARTS
    parts = min(max(screen.affordable // (4 * len(reductions) + 1), least), most)
    keys = [("range", *map(screen.key_of.of_node, nodes)) for nodes in reductions]
    untried = [key not in screen.missed for key in keys]
    left = itertools.compress(zip(keys, reductions, strict=True), untried)
    end = screen.spent + _BUDGET
    for key, nodes in itertools.takewhile(lambda _: screen.spent < end, left):
        found = [
            edit
            for counted in ((True, False) if is_mean(nodes) else (True,))
            for edit in _of_reduction(screen, outputs, nodes, counted, parts)
        ]
        yield from found
        screen.missed |= set() if found else {key}


def _of_reduction(
    screen: Screen, outputs: Collection[str], nodes: list[Node], counted: bool, most: int
) -> Iterator[Edit]:
    @functools.cache
    def read(start: int, stop: int, twice: bool = False) -> Any:
        changes = with_terms(nodes, start, stop, counted, twice)[0] if start < stop else {}
        return screen.predicted(changes)

    n = length_of(nodes[0])
    ends = [*range(0, n, -(-n // most)), n]
    base = read(0, 0)
    if base is None or any(read(*part) is None for part in itertools.pairwise(ends)):
        return
    found = dict[tuple[int, int, bool], None]()
    for name, seen in ((name, screen.observed[name]) for name in outputs):
        part: Any = partial(lambda name, *part, **how: read(*part, **how)[name], name)
        for start, stop, twice in _alike(seen.got, base[name], part, ends):
            width = ends[1]
            while width > 1:  # the ends, by smaller and smaller parts
                width = -(-width // _FINER)
                steps = [width * k for k in range(-_FINER, _FINER + 1)]
                near = {min(max(end + step, 0), n) for end in (start, stop) for step in steps}
                nearer = _alike(seen.got, base[name], part, sorted(near))
                start, stop, _ = next(nearer, (start, stop, twice))
            moved = _moved(seen, partial(part, twice=twice), start, stop, n, _FIRST_STEP * ends[1])
            found[(*moved, twice)] = None
    for start, stop, twice in found:
        changes, details = with_terms(nodes, start, stop, counted, twice)
        kind = "terms_twice" if twice else "terms_left_out"
        yield Edit(kind, "reduction", nodes[0], changes, details)


def _alike(
    got: Doubles, base: Doubles, part: Callable[..., Doubles], ends: list[int]
) -> Iterator[tuple[int, int, bool]]:
    """The ranges of parts whose changes point in the direction of the error; or against it, where
    they are counted twice."""
    error = got - base
    changes = np.array([part(*both) for both in itertools.pairwise(ends)]) - base
    usable = np.flatnonzero(np.isfinite(error) & np.isfinite(changes).all(axis=0))
    off = np.abs(error[usable]) > CHANGE * np.abs(got[usable])
    halves = usable[off], usable[~off]  # at most so many of each
    usable = np.concatenate([half[:: -(-2 * half.size // _ELEMENTS) or 1] for half in halves])
    unit = np.abs(got[usable]) + np.max(np.abs(changes[:, usable]), axis=0, initial=0.0)
    unit = np.where(unit > 0.0, unit, 1.0)
    error = error[usable] / unit
    sums = np.cumsum(np.vstack([np.zeros(usable.size), changes[:, usable] / unit]), axis=0)
    products, along = sums @ sums.T, sums @ error
    squares = np.diag(products)
    length = np.sqrt(np.maximum(squares[:, None] + squares - 2.0 * products, 0.0))
    cosine = (along - along[:, None]) / (length * np.linalg.norm(error))
    cosine = np.triu(np.where(np.isfinite(cosine), cosine, 0.0), 1)
    for place in np.argsort(-np.abs(cosine), axis=None)[: min(_NEAREST, cosine.size - 1)]:
        first, last = np.unravel_index(place, cosine.shape)
        if abs(cosine[first, last]) >= _ALIKE:
            yield ends[first], ends[last], bool(cosine[first, last] < 0.0)


def _moved(
    seen: Observation, part: Callable[..., Doubles], start: int, stop: int, n: int, step: int
) -> tuple[int, int]:
    """The range whose ends, moved by halved steps, come nearest."""

    def at(start: int, stop: int) -> float:
        inside = 0 < stop - start < n
        return float(np.sum(seen.bits(part(start, stop)))) if inside else np.inf

    while step:
        moves = (0, 0), (-step, 0), (step, 0), (0, -step), (0, step)
        others = ((start + first, stop + last) for first, last in moves)
        nearest = min((e for e in others if 0 <= e[0] < e[1] <= n), key=lambda ends: at(*ends))
        step = step // 2 if nearest == (start, stop) else step
        start, stop = nearest
    # A tail, unless something tells it from one.
    return (start, n) if stop < n and at(start, n) <= at(start, stop) else nearest

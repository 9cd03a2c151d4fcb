"""Views: the op of inputs that are read otherwise, as the user gave them.

A formula gets rows, patches or repeated heads, whose graph no longer shows the axes of the arrays
that they come from: so the movements of `indices` are also tried on the arrays themselves, and on
two of them at once, such as keys and values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from refkernels.diagnosis.edits.indices import changes_of
from refkernels.diagnosis.edits.names import named
from refkernels.diagnosis.edits.screen import Screen
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Array, Arrays, Problem

_LARGEST = 1 << 17  # elements of all inputs
_ROUNDING = 2.0  # bits of an element that is merely rounded, at most on average


class View(NamedTuple):
    """Inputs that are read otherwise, and how."""

    inputs: Mapping[str, Array]
    details: Mapping[str, Any]


def other_views(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The view that comes nearest to each wrong output, where what it leaves is mere rounding."""
    if problem.op.definition is None or problem.size > _LARGEST or not outputs:
        return
    screen = Screen(problem, outputs)
    if not screen.has_a_program:
        return
    views = list(itertools.islice(_views(problem.inputs), screen.affordable))
    seen = [(view, screen.distances_of(view.inputs)) for view in views]
    for name in screen.names:
        near = [(distances[name], k) for k, (_, distances) in enumerate(seen) if distances]
        distance, nearest = min(near, default=(math.inf, 0))
        if distance <= _ROUNDING * screen.observed[name].got.size:
            view = views[nearest]
            where = {"op": problem.op.name, "direction": problem.direction, "pass": "forward"}
            cause, details = named("index_differs", view.details, where)
            yield Variant(cause, details, problem.ask(inputs=view.inputs), trials=len(views))


def _views(inputs: Arrays) -> Iterator[View]:
    floats = {name: array for name, array in inputs.items() if array.dtype.kind not in "iub"}
    for name, array in floats.items():
        for how, axis, change in changes_of(array.shape):
            yield View({name: _as_it_is(change, array)}, {"part": name, "how": how, "axis": axis})
    for first, second in itertools.combinations(floats, 2):
        alike = dict.fromkeys(changes_of(floats[first].shape))
        for how, axis, change in alike if floats[first].ndim == floats[second].ndim else ():
            if floats[first].shape[axis] == floats[second].shape[axis]:
                moved = {name: _as_it_is(change, floats[name]) for name in (first, second)}
                yield View(moved, {"part": f"{first}, {second}", "how": how, "axis": axis})


def _as_it_is(change: Any, array: Array) -> Array:
    return np.ascontiguousarray(change(array))

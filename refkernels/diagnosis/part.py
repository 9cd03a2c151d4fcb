"""A part of a large question: some elements of the outputs, and all that they depend on.

Hundreds of hypotheses are read on the part. An axis of an output is cut where its elements depend
on one element each along some axes of the inputs, which are cut alike, and on the others' axes all
in the same way. A part is asked only if its right answer is the whole's there: what depends on an
element's place, as a causal mask does, is not cut.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.diagnosis.problem import Array, Arrays, Problem
from refkernels.diagnosis.wrong import wrong_elements
from refkernels.ops.letters import Argument, Signature

LARGEST = 1 << 16  # elements of all inputs: larger questions are cut
_MOST = 1 << 15  # elements of a part's inputs; of a function, which says as much, an eighth
_FEWEST = 16  # indices that are left of the axes that are cut, of all together

Axis = tuple[str, int]  # an array and one of its axes
Indices = npt.NDArray[np.intp]


def of(problem: Problem, outputs: Arrays) -> tuple[Problem, Arrays] | None:
    """The part, and the outputs there; None where the question cannot be cut."""
    if any(isinstance(value, list | tuple) for value in problem.inputs.values()):
        return None
    asked = problem.direction, problem.inputs, problem.params
    signature = problem.definition.question(*asked).signature
    rows = {name: _rows(signature.gives[name], got.shape) for name, got in outputs.items()}
    links = {
        name: dict(_followed(problem, signature, name, rows[name], got))
        for name, got in outputs.items()
    }
    names = {n: {name for axes in by.values() for name, _ in axes} for n, by in links.items()}
    leading = {  # or those that all arrays have, such as heads
        n: {k: a for k, a in by.items() if k < rows[n] or {name for name, _ in a} == names[n]}
        for n, by in links.items()
    }
    few = ((leading, fewest) for fewest in (_FEWEST, _FEWEST // 4, 1))
    for tried, fewest in ((links, _FEWEST), *few):
        cuts = _cuts(problem, outputs, tried, fewest)
        with suppress(ValueError, TypeError):  # of shapes that do not fit
            inputs = {name: _cut(array, name, cuts) for name, array in problem.inputs.items()}
            part = replace(problem, inputs=inputs)
            alike = [name for name in outputs if _same(problem, part, name, cuts)]
            if 2 * part.size < problem.size and alike:
                return part, {name: _cut(outputs[name], name, cuts) for name in alike}
    return None


def _same(problem: Problem, part: Problem, output: str, cuts: Mapping[Axis, Indices]) -> bool:
    """Whether the part's right answer is the whole's, as far as both can be rounded."""
    format = problem.format_of(output)
    whole, own = (asked.truth.reference[output].round(format) for asked in (problem, part))
    exact, sure = (_cut(array, output, cuts) for array in whole)
    if exact.shape != own[0].shape:
        return False
    alike = (exact == own[0]) | (np.isnan(exact) & np.isnan(own[0]))
    return bool(np.all(alike | ~(sure & own[1])))


def _rows(argument: Argument, shape: tuple[int, ...]) -> int:
    """How many axes of an array are rows, before those that have a letter."""
    return max(len(shape) - len(argument.own), 0) if argument.rows else 0


def _followed(
    problem: Problem, signature: Signature, output: str, rows: int, got: Array
) -> Iterator[tuple[int, set[Axis]]]:
    """The axes of inputs along which an element is read at its own index along an output's axis."""
    takes = signature.takes

    def read(index: tuple[int, ...]) -> Mapping[str, tuple[Indices, ...]]:
        asked = problem.direction, output, index, problem.inputs, problem.params
        dependencies = problem.definition.dependencies(*asked)
        arrays = {n: problem.inputs[n] for n in dependencies if problem.inputs[n].ndim}
        return {n: np.unravel_index(dependencies[n], array.shape) for n, array in arrays.items()}

    first = read((0,) * got.ndim)
    for axis, length in enumerate(got.shape):
        if length < 4:
            continue
        last = read(tuple((length - 1) * (k == axis) for k in range(got.ndim)))
        found = {
            (name, own)
            for name, places in last.items()
            for own, (here, there) in enumerate(zip(first[name], places, strict=True))
            if problem.inputs[name].shape[own] == length
            and not here.any()
            and np.all(there == length - 1)
        }
        for name in takes.keys() & problem.inputs.keys() - last.keys():  # whole numbers, by rows
            shape = problem.inputs[name].shape
            leading = _rows(takes[name], shape)
            own = axis - rows + leading
            if 0 <= own < leading and shape[own] == length:
                found.add((name, own))
        yield axis, found


def _cuts(
    problem: Problem, outputs: Arrays, links: Mapping[str, Mapping[int, set[Axis]]], fewest: int
) -> dict[Axis, Indices]:
    """The indices that are left of each axis that is cut, in inputs and outputs."""
    (first, got), *others = outputs.items()
    wrong = wrong_elements(problem, first, got)
    counts = {
        axis: np.count_nonzero(wrong, axis=tuple(k for k in range(got.ndim) if k != axis))
        for axis, found in links[first].items()
        if found
    }
    lengths = {axis: count.size for axis, count in counts.items() if not _is_block(count > 0)}

    def size(halved: int = -1) -> int:
        left = {o: n >> (k == halved) for k, n in lengths.items() for o in links[first][k]}
        return sum(
            math.prod(left.get((name, k), n) for k, n in enumerate(array.shape))
            for name, array in problem.inputs.items()
        )

    while size() > _MOST >> 3 * problem.op.function and math.prod(lengths.values()) > fewest:
        if not (long := [axis for axis, length in lengths.items() if length > min(fewest, 3)]):
            break
        lengths[min(long, key=size)] >>= 1
    cuts: dict[Axis, Indices] = {}
    for axis, left in lengths.items():
        if left < got.shape[axis]:
            alike = [(first, axis), *links[first][axis]]
            cuts |= dict.fromkeys(alike, _chosen(counts[axis], left))
    for name, _ in others:
        for axis, found in links[name].items():
            for own in found & cuts.keys():
                cuts[name, axis] = cuts[own]
    return cuts


def _is_block(wrong: Array) -> bool:
    """Whether the wrong indices are a block of all: where it is in the whole says more."""
    return bool(wrong.any() and not wrong.all() and np.count_nonzero(np.diff(wrong)) <= 2)


def _chosen(wrong: Indices, most: int) -> Indices:
    """The first indices, and those with most wrong elements."""
    first = np.arange(most // 2)
    worst = np.argsort(-wrong, kind="stable")
    others = worst[~np.isin(worst, first)][: most - first.size]
    return np.sort(np.concatenate([first, others]))


def _cut(array: Any, name: str, cuts: Mapping[Axis, Indices]) -> Array:
    for axis in range(array.ndim):
        if (name, axis) in cuts:
            array = np.take(array, cuts[name, axis], axis)
    return np.ascontiguousarray(array)

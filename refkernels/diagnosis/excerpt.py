"""The part of a problem that fits into a script.

Small inputs are written whole; of larger ones, only the values that the shown elements depend on.
The script fills arrays of the same shapes with zeros elsewhere. Kernels choose their order of
summation by shape, so an element that keeps all its terms keeps its bits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis.problem import Array, Arrays, Problem
from refkernels.metrology.worst import exact_text, text
from refkernels.records.codec import storable

WHOLE = 512  # elements of an input that is written out whole
MOST = 4096  # elements of an excerpt: a script has to be read and pasted
PLACES = 3

Place = tuple[str, tuple[int, ...]]
Index = tuple[Any, ...]


def question(problem: Problem, answers: Mapping[str, Arrays], places: Iterable[Place]) -> Any:
    """The question as strict JSON: params, shapes, inputs as hex, the elements with their exact
    values and each kernel's answer.

    Of each input: dtype, shape and `parts`, each an index (":" for a whole axis) and the bytes of
    its elements, little endian, as hex. `inputs` is None where even the excerpt is too large.
    """
    names = [name for name in problem.op.takes(problem.direction) if name in problem.inputs]
    whole = all(problem.inputs[name].size <= WHOLE for name in names)
    chosen = list(dict.fromkeys(places))[: PLACES if whole else 1]
    inputs = {name: _input(problem, name, chosen) for name in names}
    return {
        "op": problem.op.name,
        "direction": problem.direction,
        "format": problem.format.name,
        "params": storable(problem.params),
        "usual": [n for n, v in problem.params.items() if v == problem.op.params.get(n, ...)],
        "shapes": {name: list(problem.inputs[name].shape) for name in inputs},
        "kinds": {name: kind for name, kind in problem.op.kinds.items() if name in inputs},
        "leaves": [name for name in problem.op.differentiated if name in inputs],
        "whole": whole,
        "inputs": inputs if all(part is not None for part in inputs.values()) else None,
        "elements": [_element(problem, answers, place) for place in chosen],
    }


def worst_places(
    problem: Problem, answers: Mapping[str, Arrays], worst: Mapping[str, Mapping[str, Any]]
) -> list[Place]:
    """The elements worth showing, in order: what lies beyond its bound, then where two kernels are
    furthest apart, then each kernel's worst (`worst`: judge's records by kernel and output)."""
    candidates: list[tuple[float, Place]] = []
    for records in worst.values():
        elements = [(name, record["worst"]) for name, record in records.items() if record["worst"]]
        if elements:
            name, element = max(elements, key=lambda pair: _size(pair[1]["error_over_bound"]))
            candidates.append((_size(element["error_over_bound"]), (name, tuple(element["index"]))))
    for a, b in itertools.combinations(answers.values(), 2):
        output = next((name for name in a if name in b and a[name].size), None)
        if output is not None and a[output].tobytes() != b[output].tobytes():
            candidates.append((1.0, (output, _furthest(a[output], b[output]))))
            break
    return [place for _, place in sorted(candidates, key=lambda pair: -pair[0])]


def _size(value: Any) -> float:
    size = math.inf if value is None else float(value)
    return math.inf if math.isnan(size) else size


def _furthest(a: Array, b: Array) -> tuple[int, ...]:
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(to_float64(a) - to_float64(b))
    distance = np.where(np.isnan(distance), 0.0, distance)
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(distance)), a.shape))


def _input(problem: Problem, name: str, places: Iterable[Place]) -> dict[str, Any] | None:
    array = problem.inputs[name]
    indices: list[Index] = [(":",) * array.ndim]
    if array.size > WHOLE:
        indices = list(dict.fromkeys(_index(problem, name, place) for place in places))
    chosen = [array[tuple(np.s_[:] if k == ":" else k for k in index)] for index in indices]
    if sum(values.size for values in chosen) > MOST:
        return None
    return {
        "dtype": array.dtype.name,
        "shape": list(array.shape),
        "parts": [
            {"index": list(index), "hex": _hex(values)}
            for index, values in zip(indices, chosen, strict=True)
        ],
    }


def _index(problem: Problem, name: str, place: Place) -> Index:
    """The elements of an input that an output's element depends on; all if the op does not say."""
    output, index = place
    shape = problem.inputs[name].shape
    if (formulas := problem.op.definition) is not None:
        arguments = (problem.direction, output, index, problem.inputs, problem.params)
        return _box(formulas.dependencies(*arguments).get(name), shape)
    return index if problem.op.elementwise else (":",) * len(shape)


def _box(flat: Array | None, shape: tuple[int, ...]) -> Index:
    """The box around some elements of an array: whole axes, except where all share one index."""
    if flat is None or not flat.size or not shape:
        return (":",) * len(shape)
    axes = np.unravel_index(flat, shape)
    return tuple(int(axis[0]) if np.all(axis == axis[0]) else ":" for axis in axes)


def _hex(values: Array) -> str:
    integral = values.dtype.kind in "iub"
    bits = np.ascontiguousarray(values)
    bits = bits if integral else bits.view(f"u{values.dtype.itemsize}")
    return bits.astype(bits.dtype.newbyteorder("<")).tobytes().hex()


def _element(problem: Problem, answers: Mapping[str, Arrays], place: Place) -> dict[str, Any]:
    output, index = place
    reference = problem.truth.reference[output]
    return {
        "output": output,
        "index": list(index),
        "exact": exact_text(reference, index),
        "got": {n: text(a[output][index]) for n, a in answers.items() if output in a},
    }

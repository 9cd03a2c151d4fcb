"""Variants of axes: the same op along another one, and an output whose axes are exchanged."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Answer, Array, Arrays, Problem


def other_axis(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Every other axis of x that gives outputs of the same shapes. Along an axis of length 1 an op
    gives a constant or x itself, for which there are other reasons."""
    axis, x = {**problem.op.params, **problem.params}.get("axis"), problem.inputs.get("x")
    if problem.op.formulas is None or x is None or not isinstance(axis, int | np.integer):
        return
    names = problem.op.names("forward") if problem.direction == "forward" else ("dy",)
    arrays = outputs if problem.direction == "forward" else problem.inputs
    keeps = all(arrays[name].shape == x.shape for name in names if name in arrays)
    reduced = [x.shape[:k] + x.shape[k + 1 :] for k in range(x.ndim)]
    for alternative, length in enumerate(x.shape):
        fits = keeps or reduced[alternative] == reduced[axis]
        if alternative != axis % x.ndim and length > 1 and fits:
            yield Variant(
                "wrong_axes", {"axes": [alternative]}, problem.ask(params={"axis": alternative})
            )


def exchanged_axes(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Two axes of an output exchanged, in an array of its own shape: a transposition too many, or a
    reshape in its place, as where heads are merged."""
    for name, got in outputs.items():
        pairs = list(itertools.combinations(range(got.ndim), 2))
        if got.shape != problem.truth.reference[name].shape:
            continue
        for pair in pairs:
            if min(got.shape[axis] for axis in pair) > 1:
                answer = _exchanged(problem, name, got.shape, pair)
                details = {"axes": list(pair)}
                yield Variant("axes_exchanged", details, answer, trials=len(pairs))


def _exchanged(
    problem: Problem, output: str, shape: tuple[int, ...], pair: tuple[int, int]
) -> Answer:
    order = np.arange(int(np.prod(shape))).reshape(shape).swapaxes(*pair).reshape(-1)
    truth = problem.truth

    def moved(array: Array) -> Array:
        return array.reshape(-1)[order].reshape(shape)

    return Answer(
        {output: truth.reference[output].reshape(-1)[order].reshape(shape)},
        {output: moved(truth.bound[output])},
        {output: moved(truth.plain[output])},
        invariant=False,
    )

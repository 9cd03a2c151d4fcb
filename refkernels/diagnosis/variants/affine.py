"""Variants of ops with a weight and a bias: gradients swapped, a bias left out, a transposition."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Answer, Arrays, Problem


def swapped_gradients(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """dweight and dbias swapped."""
    pair = ("dweight", "dbias")
    if problem.direction == "forward" or not set(pair) & set(outputs):
        return
    truth = problem.truth
    if not set(pair) <= set(truth.reference):
        return
    shapes = {truth.reference[name].shape for name in pair}
    if len(shapes) == 1:
        yield Variant("swapped_weight_bias_grad", {}, _swapped(truth, *pair))


def _swapped(answer: Answer, first: str, second: str) -> Answer:
    return Answer(
        {first: answer.reference[second], second: answer.reference[first]},
        {first: answer.bound[second], second: answer.bound[first]},
        {first: answer.plain[second], second: answer.plain[first]},
    )


def wrong_bias(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The bias left out, and added twice."""
    bias = problem.inputs.get("bias")
    if problem.direction == "backward" or bias is None or not np.any(bias):
        return
    yield Variant("missing_bias", {}, problem.ask({"bias": None}))  # type: ignore[dict-item]
    with np.errstate(over="ignore"):
        twice = bias + bias
    if np.isfinite(twice).all():
        yield Variant("doubled_bias", {}, problem.ask({"bias": twice}))


def transposed(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """A product's second factor, a square matrix, transposed."""
    product = problem.op.sums.get(problem.op.outputs[0])
    if product is None:
        return
    name = next(
        name
        for name, letters in product.terms.items()
        if len(letters) > 1 and name not in problem.op.row_inputs
    )
    weight = problem.inputs[name]
    if weight.ndim < 2 or weight.shape[-1] != weight.shape[-2]:
        return
    transpose = np.ascontiguousarray(np.swapaxes(weight, -1, -2))
    if not np.array_equal(transpose, weight):
        yield Variant("transposed_weight", {"input": name}, problem.ask({name: transpose}))

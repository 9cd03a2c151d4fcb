"""Variants of ops with a weight and a bias: gradients or inputs swapped, a bias left out, a
transposition, a ReLU that follows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis.hypothesis import Variant, moved
from refkernels.diagnosis.problem import Answer, Arrays, Problem
from refkernels.op import Op

SWAPPED_GRADIENTS = ("dweight", "dbias")
_PAIRS = (
    ("weight", "bias"), ("a", "b"), ("x", "exponent"), ("q", "k"), ("k", "v"), ("m", "v"),
    ("param", "grad"),
)  # fmt: skip
_EXCHANGED = ("arguments_exchanged", "gate_swapped")  # an op's own names for it
_FLOAT64 = 2.0**-52  # relative: the truth is rounded to float64 here


def swapped_gradients(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """dweight and dbias swapped."""
    pair = SWAPPED_GRADIENTS
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


def exchangeable(op: Op) -> tuple[tuple[str, str], ...]:
    """The pairs of inputs that a caller may exchange; none if the op names this itself."""
    faults = op.formulas.faults if op.formulas is not None else ()
    return () if any(fault.cause in _EXCHANGED for fault in faults) else _PAIRS


def exchanged_inputs(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Two inputs of one shape, each in the other's place."""
    if problem.direction == "backward":
        return
    for first, second in exchangeable(problem.op):
        a, b = problem.inputs.get(first), problem.inputs.get(second)
        if a is None or b is None or a.shape != b.shape or np.array_equal(a, b, equal_nan=True):
            continue
        answer = problem.ask({first: b, second: a})
        shapes = {name: enclosure.shape for name, enclosure in answer.reference.items()}
        if all(shapes[name] == got.shape for name, got in outputs.items()):
            yield Variant("inputs_exchanged", {"inputs": f"{first} and {second}"}, answer)


def fused_relu(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """A ReLU on the result of a product or a norm."""
    output = problem.op.outputs[0]
    reference = problem.truth.reference.get(output)
    has_weight = "weight" in problem.op.inputs or problem.op.sums
    if problem.direction == "backward" or reference is None or not has_weight:
        return
    right = np.asarray(reference)
    if output in outputs and not np.any(to_float64(outputs[output]) < 0.0) and np.any(right < 0.0):
        values = np.maximum(right, 0.0)
        radius = np.ldexp(reference.radius, reference.scale) + np.abs(values) * _FLOAT64
        yield Variant("fused_relu", {}, moved(problem, output, values, radius))


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


def second_factor(op: Op) -> str | None:
    """The name of a product's second factor, a matrix; None if the op is no product."""
    product = op.sums.get(op.outputs[0])
    if product is None:
        return None
    return next(
        name
        for name, letters in product.terms.items()
        if len(letters) > 1 and name not in op.row_inputs
    )


def transposed(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """A product's second factor, a square matrix, transposed."""
    name = second_factor(problem.op)
    if name is None:
        return
    weight = problem.inputs[name]
    if weight.ndim < 2 or weight.shape[-1] != weight.shape[-2]:
        return
    transpose = np.ascontiguousarray(np.swapaxes(weight, -1, -2))
    if not np.array_equal(transpose, weight):
        yield Variant("transposed_weight", {"input": name}, problem.ask({name: transpose}))

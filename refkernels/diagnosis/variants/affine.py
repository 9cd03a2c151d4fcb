"""Outputs in each other's place, and the inputs that a caller may confuse."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from refkernels.diagnosis.edits import names
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Answer, Arrays, Problem
from refkernels.op import Op

SWAPPED_GRADIENTS = ("dweight", "dbias")
_NAMED: dict[Any, tuple[str, Any]] = {SWAPPED_GRADIENTS: ("swapped_weight_bias_grad", {})}
_PAIRS = (
    ("weight", "bias"), ("a", "b"), ("x", "exponent"), ("q", "k"), ("k", "v"), ("m", "v"),
    ("param", "grad"),
)  # fmt: skip
_EXCHANGED = ("arguments_exchanged", "gate_swapped")  # an op's own names for it


def exchanged_outputs(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Two outputs of one shape and format in each other's place, each with a bound somewhere."""
    truth = problem.truth
    bounded = [name for name in truth.reference if (truth.bound[name] < math.inf).any()]
    for pair in itertools.combinations(bounded, 2):
        kinds = {(truth.reference[name].shape, problem.format_of(name)) for name in pair}
        if len(kinds) == 1 and set(pair) & set(outputs):
            unnamed = "outputs_exchanged", {"outputs": ", ".join(pair)}
            cause, details = _NAMED.get(pair, unnamed)
            yield Variant(cause, details, _swapped(truth, *pair))


def _swapped(answer: Answer, first: str, second: str) -> Answer:
    whole: Any = (answer.reference, answer.bound, answer.plain)
    exchanged: Any = ({first: part[second], second: part[first]} for part in whole)
    return Answer(*exchanged)


def exchangeable(op: Op) -> tuple[tuple[str, str], ...]:
    """The pairs of inputs that a caller may exchange; none if the op has a name for this."""
    faults = op.formulas.faults if op.formulas is not None else ()
    named = {entry["cause"] for entry in names.usual({"op": op.name})}
    named |= {fault.cause for fault in faults}
    return () if named.intersection(_EXCHANGED) else _PAIRS


def second_factor(op: Op) -> str | None:
    """The name of a product's second factor, a matrix; None if the op is no product."""
    product = op.sums.get(op.outputs[0])
    terms = {} if product is None else product.terms
    matrices = (name for name, letters in terms.items() if len(letters) > 1)
    return next((name for name in matrices if name not in op.row_inputs), None)

"""Variants of functions of one variable: the other GELU."""

from __future__ import annotations

from collections.abc import Iterator

from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Arrays, Problem

_OTHER = {"gelu": ("tanh_gelu", "gelu_tanh"), "gelu_tanh": ("erf_gelu", "gelu")}


def other_gelu(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """x Phi(x) for its approximation by tanh, and the other way round."""
    if problem.op.name in _OTHER:
        cause, op = _OTHER[problem.op.name]
        yield Variant(cause, {}, problem.ask(op=op))

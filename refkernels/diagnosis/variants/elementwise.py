"""Variants of functions of one variable: the other GELU, an argument in a narrower format."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Arrays, Problem
from refkernels.diagnosis.variants.precision import all_in

_NARROWED = {"float32": "float32_cast", "float16": "fp16_inputs", "bfloat16": "bf16_inputs"}
_OTHER = {"gelu": ("tanh_gelu", "gelu_tanh"), "gelu_tanh": ("erf_gelu", "gelu")}


def other_gelu(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """x Phi(x) for its approximation by tanh, and the other way round."""
    if problem.op.name in _OTHER:
        cause, op = _OTHER[problem.op.name]
        yield Variant(cause, {}, problem.ask(op=op))


def narrow_argument(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """x cast to a narrower format before the call."""
    if not problem.op.elementwise:
        return
    x = problem.inputs["x"]
    normal = x[np.abs(to_float64(x)) >= problem.format.min_normal]  # the others may be flushed
    for format in (formats.BINARY32, formats.BINARY16, formats.BFLOAT16):
        if format.p >= problem.format.p or all_in(normal, format):
            continue
        with np.errstate(over="ignore"):
            narrow = x.astype(format.storage).astype(x.dtype)
        yield Variant(_NARROWED[format.name], {"format": format.name}, problem.ask({"x": narrow}))

"""Knowledge of single ops: only here does diagnosis know an op by its name.

It holds the models of frameworks' own algorithms, and the faults of single ops that are not
formulas. Faults that are formulas are in the op's oracle (`ops.Fault`). Code for a kind of op (sums
of products, functions of one variable, formulas) asks the `Op` instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import Algorithms, Candidate, Claim, Questions
from refkernels.diagnosis.models import circular, clipping, slopes, smoothing
from refkernels.diagnosis.models.layernorm import algorithms as layernorm
from refkernels.diagnosis.problem import Array, Problem
from refkernels.op import Op


@dataclass(frozen=True)
class Known:
    """Sources of hypotheses for one op, and a way to run its models again.

    questions       other questions that its kernels have answered
    algorithms      models of its algorithms
    rounded         those that merely round, if badly: not asked where errors are larger (`reach`)
    errors          claims from the places and sizes of an output's errors (elementwise ops)
    run             the bits that a candidate's model gives, in the shape of an output
    rows            the number of rows to which a probe extends a smaller matrix
    """

    questions: tuple[Questions, ...] = ()
    algorithms: tuple[Algorithms, ...] = ()
    rounded: tuple[Algorithms, ...] = ()
    errors: Callable[[Problem, str, Array, Fit], list[Claim]] | None = None
    run: Callable[[Problem, Candidate, Array], Array | None] | None = None
    rows: int = 0


_OF_OPS: dict[str, Known] = {
    **dict.fromkeys(("sin", "cos", "tan"), Known((circular.reductions,), errors=circular.errors)),
    "clip_by_norm": Known(questions=(clipping.by_groups,)),
    "clip_by_global_norm": Known(questions=(clipping.by_groups, clipping.by_other_tensors)),
    "cross_entropy": Known(questions=(smoothing.in_float32,)),
    # Cores earn 8 bits each.
    "layernorm": Known(rounded=(layernorm.find,), run=layernorm.run, rows=32),
    **dict.fromkeys(slopes.GRADIENTS, Known(algorithms=(slopes.find,))),
}


def of(op: Op) -> Known:
    """The knowledge of an op; empty for most."""
    return _OF_OPS.get(op.name, Known())

"""Knowledge of single ops: only here does diagnosis know an op by its name.

It holds the models of frameworks' own algorithms, and the faults of single ops that are not
formulas. Faults that are formulas are in the op's oracle (`ops.Fault`). Code for a kind of op (sums
of products, functions of one variable, formulas) asks the `Op` instead.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import Algorithms, Candidate, Claim, Questions
from refkernels.diagnosis.models import slopes
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


# Of `Known`'s fields, by op: functions of the modules beside this one.
_SOURCES: dict[tuple[str, ...], dict[str, Any]] = {
    ("sin", "cos", "tan"): {
        "questions": "circular.reductions circular.other_units",
        "errors": "circular.errors",
    },
    ("clip_by_norm",): {"questions": "clipping.by_groups"},
    ("clip_by_global_norm",): {"questions": "clipping.by_groups clipping.by_other_tensors"},
    ("cross_entropy",): {"questions": "smoothing.in_float32"},
    ("rotary",): {"questions": "rotation.narrow_tables"},
    ("layernorm",): {
        "rounded": "layernorm.algorithms.find",
        "run": "layernorm.algorithms.run",
        "rows": 32,  # cores earn 8 bits each
    },
    tuple(slopes.GRADIENTS): {"algorithms": "slopes.find"},
}


def of(op: Op) -> Known:
    """The knowledge of an op; empty for most."""
    return _of(op.name)


@functools.cache
def _of(name: str) -> Known:
    given = next((sources for ops, sources in _SOURCES.items() if name in ops), {})
    found: dict[str, Any] = {
        field: tuple(map(_function, names.split()))
        if field in ("questions", "algorithms", "rounded")
        else (_function(names) if isinstance(names, str) else names)
        for field, names in given.items()
    }
    return Known(**found)


def _function(name: str) -> Any:
    module, _, function = name.rpartition(".")
    return getattr(importlib.import_module(f"{__package__}.{module}"), function)

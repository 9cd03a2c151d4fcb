"""Knowledge of single ops: only here does diagnosis know an op by its name.

It holds the models of frameworks' own algorithms, and the faults of single ops that are not
formulas. Faults that are formulas are in the op's oracle (`ops.Fault`). Code for a kind of op (sums
of products, functions of one variable, formulas) asks the `Op` instead.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from refkernels.diagnosis.models import slopes
from refkernels.diagnosis.models.known import Known
from refkernels.op import Op

_SOURCES = {  # of `Known`'s fields, by op: functions of the modules beside this one
    ("sin", "cos", "tan"): {
        "questions": "circular.reductions circular.other_units",
        "errors": "circular.errors",
    },
    ("gelu", "gelu_tanh"): {
        "questions": "gelu.other",
        "errors": "gelu.errors",
        "run": "gelu.run",
    },
    ("clip_by_norm",): {"questions": "clipping.by_groups"},
    ("clip_by_global_norm",): {"questions": "clipping.by_groups clipping.by_other_tensors"},
    ("cross_entropy",): {"questions": "smoothing.in_float32"},
    ("rotary",): {"questions": "rotation.narrow_tables"},
    tuple(slopes.GRADIENTS): {"algorithms": "slopes.find"},
    ("softmax", "log_softmax"): {"questions": "softmax_axes.of_gradients"},
}


def of(op: Op) -> Known:
    """The knowledge of an op; empty for most."""
    return _of(op.name)


@functools.cache
def _of(name: str) -> Known:
    if name == "layernorm":
        from refkernels.diagnosis.models.layernorm.known import KNOWN

        return KNOWN
    given = next((sources for ops, sources in _SOURCES.items() if name in ops), {})
    found: dict[str, Any] = {
        field: tuple(map(_function, names.split()))
        if field in ("questions", "algorithms")
        else _function(names)
        for field, names in given.items()
    }
    return Known(**found)


def _function(name: str) -> Any:
    module, _, function = name.partition(".")
    return getattr(importlib.import_module(f"{__package__}.{module}"), function)

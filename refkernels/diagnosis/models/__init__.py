"""Knowledge of single ops: only here does diagnosis know an op by its name.

It holds the models of frameworks' own algorithms, and the faults of single ops that are not
formulas. Faults that are formulas are in the op's oracle (`ops.Fault`). Code for a kind of op (sums
of products, functions of one variable, formulas) asks the `Op` instead.
"""

from __future__ import annotations

import functools

from refkernels.diagnosis.models import intermediates, other_functions, slopes
from refkernels.diagnosis.models.known import Known
from refkernels.op import Op


def of(op: Op) -> Known:
    """The knowledge of an op; empty for most."""
    return _of(op.name)


@functools.cache
def _of(name: str) -> Known:
    if name == "layernorm":
        from refkernels.diagnosis.models.layernorm.known import KNOWN

        return KNOWN
    overflowing = intermediates.OF.get(name, {})
    if name in ("sin", "cos", "tan"):
        from refkernels.diagnosis.models import circular

        sources = (circular.reductions, circular.other_units)
        return Known(sources, (), circular.errors, overflowing)
    if name in ("gelu", "gelu_tanh"):
        from refkernels.diagnosis.models import gelu, gelu_constants

        sources = (gelu.other, gelu_constants.other_constants)
        return Known(sources, (), gelu.errors, overflowing, run=gelu.run)
    if name in ("clip_by_global_norm", "clip_by_norm"):
        from refkernels.diagnosis.models import clipping

        tensors = (clipping.by_other_tensors,) if name == "clip_by_global_norm" else ()
        return Known((clipping.by_groups, *tensors), intermediates=overflowing)
    if name == "cross_entropy":
        from refkernels.diagnosis.models import smoothing

        return Known(smoothing.QUESTIONS, intermediates=overflowing)
    if name == "rms_norm":
        from refkernels.diagnosis.models import rms

        return Known((rms.narrow_factor,), intermediates=overflowing)
    if name == "group_norm":
        from refkernels.diagnosis.models import groups

        return Known((groups.other_numbers,), intermediates=overflowing)
    if name == "rotary":
        from refkernels.diagnosis.models import rotation

        return Known((rotation.narrow_tables,), intermediates=overflowing)
    if name in slopes.GRADIENTS:
        return Known((), (slopes.find,), intermediates=overflowing)
    if name in ("softmax", "log_softmax"):
        from refkernels.diagnosis.models import log_sums, softmax_axes

        rows = (log_sums.off_by_rows,) if name == "log_softmax" else ()
        return Known((softmax_axes.of_gradients,), rows, intermediates=overflowing)
    if name in ("exp", "log"):
        return Known((), (other_functions.of_function,), intermediates=overflowing)
    if name == "swiglu":
        from refkernels.diagnosis.models import gated

        return Known(specials=gated.specials)
    return Known(intermediates=overflowing)

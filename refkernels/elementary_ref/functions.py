"""The elementary functions as `Function` records."""

from functools import partial

from refkernels.elementary_ref import conditions, forms, gradients
from refkernels.elementary_ref.cases import cases_of
from refkernels.elementary_ref.invariants import INVARIANTS
from refkernels.elementwise.function import Function
from refkernels.kernels.functions import FUNCTIONS as KNOWN

_LOWEST = {"log": 0.0, "log2": 0.0, "log10": 0.0, "log1p": -1.0, "sqrt": 0.0, "rsqrt": 0.0}


def _function(name: str) -> Function:
    return Function(
        **vars(KNOWN[name]),
        condition=conditions.FORWARD[name],
        slope_condition=conditions.SLOPE[name],
        cases=partial(cases_of, name),
        invariants=INVARIANTS[name],
        forms=forms.FORMS.get(name, ()),
        slope_forms=forms.SLOPE_FORMS[name],
        primitives=forms.PRIMITIVES,
        truth=gradients.TRUTHS.get(name),
        gradient=gradients.GRADIENTS.get(name),
        domain=(_LOWEST.get(name, -float("inf")), float("inf")),
        ends=gradients.ENDS.get(name, ()),
    )


FUNCTIONS = tuple(map(_function, INVARIANTS))

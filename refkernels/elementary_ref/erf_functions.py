"""erf, erfc and the two gelus as `Function` records, and by their names.

All take x of any shape, float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`), and
raise TypeError for other dtypes and ValueError for an unknown question. The stated radius is that
of the double-double tier; the float64 tier, for inputs of 32 bits and fewer, has 2^-44 or less.
Tails below exp(-1400) have 2^-71; a tail below 2^-10^8 is enclosed between zero and that number.
"""

from functools import partial
from typing import Any

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.fast import Fast
from refkernels.arithmetic.question import Certify
from refkernels.elementary_ref import erf_conditions, erf_exact, forms
from refkernels.elementary_ref.definitions import DEFINITIONS
from refkernels.elementary_ref.erf_cases import INVARIANTS, cases_of
from refkernels.elementwise import oracle
from refkernels.elementwise.function import Function
from refkernels.kernels.elementary import erf as erf_kernels
from refkernels.kernels.elementary import gelu as gelu_kernels
from refkernels.kernels.elementary import gelu_tanh as gelu_tanh_kernels

_KERNELS: dict[str, tuple[Any, float]] = {  # the module, and the bound of its fast kernel
    "erf": (erf_kernels, erf_kernels.FAST_ERF_BOUND),
    "erfc": (erf_kernels, erf_kernels.FAST_ERFC_BOUND),
    "gelu": (gelu_kernels, gelu_kernels.FAST_GELU_BOUND),
    "gelu_tanh": (gelu_tanh_kernels, gelu_tanh_kernels.FAST_GELU_TANH_BOUND),
}


def _function(name: str) -> Function:
    kernels, error = _KERNELS[name]
    return Function(
        name=name,
        values=getattr(kernels, f"{name}_values"),
        slopes=getattr(kernels, f"{name}_slopes"),
        exact_value=partial(erf_exact.ball, erf_exact.VALUES[name]),
        exact_slope=partial(erf_exact.ball, erf_exact.SLOPES[name]),
        condition=erf_conditions.FORWARD[name],
        slope_condition=erf_conditions.SLOPE[name],
        cases=partial(cases_of, name),
        invariants=INVARIANTS[name],
        fast=Fast(getattr(kernels, f"{name}_fast"), error),
        slope_forms=forms.SLOPE_FORMS[name],
        primitives=forms.PRIMITIVES,
        definition=DEFINITIONS.get(name),
        **forms.held_to(name),
    )


FUNCTIONS = tuple(_function(name) for name in _KERNELS)
_BY_NAME = {function.name: function for function in FUNCTIONS}


def erf(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = 2/√π times the integral of e^(-t²) from 0 to x.

    Relative radius <= 2^-101 for float64, 2^-44 for narrower inputs; erf(±0) = ±0, erf(±inf) = ±1.
    Otherwise as `exp`. Source: NIST DLMF, equation 7.2.1.
    """
    return oracle.forward(_BY_NAME["erf"], x, certify)


def erfc(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = 1 - erf(x), accurate however small it is.

    Relative radius <= 2^-100 for float64, 2^-44 for narrower inputs;
    erfc(±0) = 1, erfc(inf) = 0, erfc(-inf) = 2. Otherwise as `exp`.
    Source: NIST DLMF, equation 7.2.2.
    """
    return oracle.forward(_BY_NAME["erfc"], x, certify)


def gelu(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = x Φ(x) = x erfc(-x / √2) / 2, Φ the distribution function of the normal distribution.

    Relative radius <= 2^-100 for float64, 2^-44 for narrower inputs;
    gelu(±0) = ±0, gelu(-inf) = -0, its limit from below. Otherwise as `exp`.
    Source: Hendrycks and Gimpel (2016), arXiv:1606.08415.
    """
    return oracle.forward(_BY_NAME["gelu"], x, certify)


def gelu_tanh(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))), gelu's usual approximation, as a function of
    its own: √(2/π) is the real number and 0.044715 the decimal fraction, not their floats.

    Relative radius <= 2^-92 for float64, 2^-44 for narrower inputs;
    gelu_tanh(±0) = ±0, gelu_tanh(-inf) = -0, its limit from below. Otherwise as `exp`.
    Source: Hendrycks and Gimpel (2016), arXiv:1606.08415.
    """
    return oracle.forward(_BY_NAME["gelu_tanh"], x, certify)

"""Intermediates of elementwise functions that may overflow: their binary logarithms, by op."""

from __future__ import annotations

import math

import numpy as np

from refkernels.diagnosis.overflow import Logarithms
from refkernels.diagnosis.problem import Doubles

LOG2_E = math.log2(math.e)

_EXP: Logarithms = {
    "exp(x)": lambda x: x * LOG2_E,
    "exp(-x)": lambda x: -x * LOG2_E,
    "exp(|x|)": lambda x: np.abs(x) * LOG2_E,
    "exp(2x)": lambda x: 2 * x * LOG2_E,
    "exp(-2x)": lambda x: -2 * x * LOG2_E,
    "exp(2|x|)": lambda x: 2 * np.abs(x) * LOG2_E,
    "cosh(x)²": lambda x: 2 * np.abs(x) * LOG2_E - 2,
}
_SQUARE: Logarithms = {
    "x²": lambda x: 2 * np.log2(np.abs(x)),
    "exp(x²)": lambda x: x * x * LOG2_E,
}
OF: dict[str, Logarithms] = {
    **dict.fromkeys(("sinh", "cosh", "tanh", "sigmoid", "softplus", "expm1"), _EXP),
    "silu": {**_EXP, "x exp(x)": lambda x: x * LOG2_E + np.log2(np.abs(x))},
    **dict.fromkeys(("erf", "erfc", "gelu"), _SQUARE),
    "gelu_tanh": {
        "x³": lambda x: 3 * np.log2(np.abs(x)),
        "exp(2z)": lambda x: 2 * _z(x) * LOG2_E,
        "exp(-2z)": lambda x: -2 * _z(x) * LOG2_E,
    },
    "atan": {"x²": _SQUARE["x²"]},  # the gradient's
    "rsqrt": {"1/x": lambda x: -np.log2(np.abs(x))},
    "sinpi": {"pi x": lambda x: math.log2(math.pi) + np.log2(np.abs(x))},
    "cospi": {"pi x": lambda x: math.log2(math.pi) + np.log2(np.abs(x))},
}


def _z(x: Doubles) -> Doubles:
    """The argument of tanh in the approximation of GELU."""
    result: Doubles = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    return result

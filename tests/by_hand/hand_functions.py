"""Functions of one or two numbers, by their definitions."""

from typing import Any

from hand_numbers import MinusZero, decimal, number
from mpmath import mp


def sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def hardswish(x: Any) -> Any:
    return x * min(max(x + 3, 0), 6) / 6


def elu(x: Any, alpha: float = 1.0) -> Any:
    return x if x > 0 else number(alpha) * mp.expm1(x)


def selu(x: Any) -> Any:
    scale = decimal("1.0507009873554804934193349852946")
    alpha = decimal("1.6732632423543772848170429916717")
    return scale * (x if x > 0 else alpha * mp.expm1(x))


def softplus(x: Any) -> Any:
    return max(x, 0) + mp.log1p(mp.exp(-abs(x)))


def gelu(x: Any) -> Any:
    return x * mp.erfc(-x / mp.sqrt(2)) / 2


def tanh(x: Any) -> Any:
    """mpmath's own is -1 far below 0 in either rounding, and would hide what it loses."""
    return mp.expm1(2 * x) / (mp.exp(2 * x) + 1)


def gelu_tanh(x: Any) -> Any:
    return x / 2 * (1 + tanh(mp.sqrt(2 / mp.pi) * (x + decimal("0.044715") * x**3)))


def dropout(x: Any, mask: Any = None, p: float = 0.5, mode: str = "upscale_in_train") -> Any:
    keep = 1 - number(p)
    if mask is None:
        return x if mode == "upscale_in_train" else x * keep
    if not mask or (keep == 0 and mode == "upscale_in_train"):
        return x * 0
    return x / keep if mode == "upscale_in_train" else x


def atan2(a: Any, b: Any) -> Any:
    """The angle of the point (b, a); the sign of a zero says from which side it comes."""
    if a:
        return mp.atan2(a, b)
    angle = mp.pi * 1 if b < 0 or isinstance(b, MinusZero) else mp.mpf(0)
    return -angle if isinstance(a, MinusZero) else angle


ACTIVATIONS = {
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "relu": lambda x: max(x, 0),
}
FUNCTIONS = {
    "glu": lambda a, b, activation="sigmoid": ACTIVATIONS[activation](a) * b,
    "hardswish": hardswish,
    "mish": lambda x: x * tanh(softplus(x)),
    "hardsigmoid": lambda x: min(max(x + 3, 0), 6) / 6,
    "elu": elu,
    "selu": selu,
    "softsign": lambda x: x / (1 + abs(x)),
    "log_sigmoid": lambda x: -softplus(-x),
    "swiglu": lambda a, b: a * sigmoid(a) * b,
    "pow": lambda x, exponent: mp.power(x, exponent),
    "atan2": atan2,
    "hypot": lambda a, b: mp.sqrt(a * a + b * b),
    "dropout": dropout,
    "exp": mp.exp,
    "exp2": lambda x: mp.power(2, x),
    "expm1": mp.expm1,
    "log": mp.log,
    "log2": lambda x: mp.log(x) / mp.log(2),
    "log10": lambda x: mp.log(x) / mp.log(10),
    "log1p": mp.log1p,
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "tanh": tanh,
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "softplus": softplus,
    "sqrt": mp.sqrt,
    "rsqrt": lambda x: 1 / mp.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "erf": lambda x: mp.erf(x),
    "erfc": lambda x: mp.erfc(x),
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "asin": mp.asin,
    "acos": mp.acos,
    "atan": mp.atan,
    "sinpi": lambda x: mp.sin(mp.pi * x),
    "cospi": lambda x: mp.cos(mp.pi * x),
}

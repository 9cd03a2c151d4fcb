"""Operators of ATen on numbers, element by element. One line each: the primitives of `xp`.

Conventions off which nothing is said of gradients: at a tie of two numbers, at 0 of an absolute
value, and at the ends of a clamp, any slope between both sides' is right; a comparison has none.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from refkernels.contexts.value import Mask, Value
from refkernels.programs.calls import Low, apart, cast, equal, numbers

Rule = Callable[..., Any]


def times(c: Any, x: Any, factor: Any) -> Any:
    return x if factor == 1 else x * c.scalar(factor)


def sigmoid(c: Any, x: Any) -> Any:
    """Also as PyTorch computes it: 0 where e^-x overflows."""
    e = c.exp(-abs(x))
    return c.either(c.where(x < 0, e, c.number(1)) / (1 + e), lambda: 1 / (1 + c.exp(-x)))


def gelu(c: Any, x: Any, approximate: str = "none") -> Any:
    if approximate == "tanh":
        return c.function(f"gelu_{approximate}", x)
    half, t = c.number(Fraction(1, 2)), x / c.sqrt(c.number(2))
    return c.either(half * x * c.erfc(-t), lambda: half * x * (1 + c.erf(t)))


def elu(c: Any, x: Any, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    low = c.expm1(times(c, c.minimum(x, c.number(0)), input_scale))
    return times(c, c.where(x > 0, x, times(c, low, alpha)), scale)


def real_power(c: Any, x: Any, exponent: Any, *_: Any) -> Any:
    """x^y: by products where y is a small integer, else by roots and logarithms of |x|; y = 0 gives
    1, and of x < 0 only whole y give a number, odd ones a negative one."""
    x = c.plain(x)
    if isinstance(exponent, int | float):
        if float(exponent).is_integer() and abs(exponent) <= 64:
            return c.square(x) if exponent == 2 else c.power(x, int(exponent))
        special = {0.5: c.sqrt, -0.5: c.rsqrt, 1.5: lambda a: a * c.sqrt(a)}
        if exponent in special:
            return special[exponent](x)
    y = c.plain(exponent)
    quarter = c.number(Fraction(1, 4))  # which decides a quotient of 2 that is not exact
    whole, even = equal(c, y, c.round(y)), abs(y - 2 * c.floor(y / 2 + quarter)) < quarter
    size = c.where((y < 0) | (y > 0), c.real_power(abs(x), y), c.number(1))
    return c.where(x < 0, c.where(whole, c.where(even, size, -size), c.log(x)), size)


def lerp(c: Any, x: Any, y: Any, t: Any, moved: Any = None) -> Any:
    """x + t (y - x), or two products. `moved`: the first product, where it is computed already."""
    moved = t * (y - x) if moved is None else moved
    return c.either(x + moved, lambda: (1 - t) * x + t * y)


def clamp(c: Any, x: Any, low: Any = None, high: Any = None) -> Any:
    low, high = (None if isinstance(e, float) and np.isinf(e) else e for e in (low, high))
    x = x if low is None else c.maximum(x, c.value(low))
    return x if high is None else c.minimum(x, c.value(high))


def divide(c: Any, a: Any, b: Any, rounding_mode: Any = None) -> Any:
    if rounding_mode is None:
        return a / b
    ties = {"floor": "down", "trunc": "zero"}[rounding_mode]
    if isinstance(a, np.ndarray):
        return a // b if ties == "down" else np.trunc(a / b)
    return c.round(c.quotient(a, b), ties=ties)


def remainder(c: Any, a: Any, b: Any, rounding_mode: str = "floor") -> Any:
    if isinstance(a, np.ndarray):
        return np.remainder(a, b) if rounding_mode == "floor" else np.fmod(a, b)
    rest = a - b * divide(c, a, b, rounding_mode)
    endless = infinite(b) & ~infinite(a)  # whose multiple by 0 is no number
    other = ((a < 0) & (b > 0)) | ((a > 0) & (b < 0))
    return c.where(endless, c.where(other, b, a) if rounding_mode == "floor" else a, rest)


def infinite(x: Any) -> Any:
    return ~(0 * x < 1) & ((x < 1) | (-x < 1))


def compared(rule: Rule, c: Any, a: Any, b: Any) -> Any:
    """Beside an infinite scalar, numbers count as 0 and infinities as 2 and -2."""
    if isinstance(b, float) and np.isinf(b) and not isinstance(a, np.ndarray):
        low = a.low if isinstance(a, Low) else np.zeros((), bool)
        a, b = a.value if isinstance(a, Low) else c.plain(a), 2 if b > 0 else -2
        a = c.where(infinite(a), c.where(a < 0, c.number(-2), c.number(2)), 0 * a)
        a = c.where(low, c.number(-2), a) if low.any() else a
    return numbers(rule)(c, a, b)


def where(c: Any, condition: Any, a: Any, b: Any) -> Any:
    """-inf that a known condition chooses is a mask."""
    if all(isinstance(item, np.ndarray | int) for item in (condition, a, b)):
        return np.where(condition, a, b)
    choice = condition.astype(bool) if isinstance(condition, np.ndarray) else condition
    sides = [_lowered(c, a), _lowered(c, b)]
    if not any(isinstance(side, Low) for side in sides):
        return c.xp.where(choice, *sides)
    values, lows = apart(*sides)
    if isinstance(choice, Mask):  # of a mask that is a buffer of floats
        if not np.all(choice.decided):
            raise c.refuse("chooses -inf by a condition that is computed from floats")
        choice = np.asarray(choice.yes)
    low = np.broadcast_to(np.where(choice, *lows), c.shape)
    return Low(c.broadcast(c.xp.where(choice, *values), c.shape), low)


def _lowered(c: Any, given: Any) -> Any:
    """A value, or what is -inf everywhere, or an array's -inf."""
    if isinstance(given, float) and given == -np.inf:
        return Low(c.number(0), np.ones((), bool))
    return c.value(given)


def added(c: Any, a: Any, b: Any, alpha: Any = 1) -> Any:
    """-inf plus a number is -inf."""
    if not isinstance(a, Low) and not isinstance(b, Low):
        return numbers(lambda c, a, b: a + times(c, b, alpha))(c, a, b)
    if alpha != 1:
        raise c.refuse("multiplies a masked -inf")
    values, lows = apart(c.value(a), c.value(b))
    return Low(values[0] + values[1], np.broadcast_to(lows[0] | lows[1], c.shape))


def scaled(rule: Rule, c: Any, a: Any, factor: Any, *given: Any) -> Any:
    """-inf times a positive number is -inf."""
    if isinstance(a, Low) and isinstance(factor, int | float) and factor > 0:
        return Low(rule(c, a.value, c.scalar(factor)), a.low)
    return numbers(rule)(c, a, factor, *given)


def limited(rule: Rule, c: Any, x: Any) -> Any:
    """A function whose limit at -inf is 0."""
    if isinstance(x, Low):
        return c.xp.where(x.low, c.number(0), rule(c, x.value))
    return numbers(rule)(c, x)


def logical(rule: Rule, c: Any, *given: Any) -> Any:
    sides = [c.truth(item) for item in given]
    if any(isinstance(side, Mask) for side in sides):
        sides = [s if isinstance(s, Mask) else Mask(s, ~s) for s in sides]
    return rule(*sides)


def _bits(rule: Rule, c: Any, *given: Any) -> Any:
    if c.tensor.dtype == "bool":
        return logical(rule, c, *given)
    return rule(*(c.index(item) if not isinstance(item, int) else item for item in given))


def _differ(a: Any, b: Any) -> Any:
    return (a & ~b) | (~a & b)


def _and(c: Any, a: Any, b: Any) -> Any:
    """The lowest bits of a whole number that is computed are a remainder."""
    if isinstance(a, Value) and isinstance(b, int) and b >= 0 == b & (b + 1):
        return remainder(c, a, c.number(b + 1))
    return _bits(operator.and_, c, a, b)


def _asinh(c: Any, x: Any) -> Any:
    value = c.log1p(abs(x) + c.square(x) / (1 + c.sqrt(1 + c.square(x))))
    return c.where(x < 0, -value, value)


def _angle(c: Any, y: Any, x: Any) -> Any:
    """Of the point (x, y): by the half angle, whose tangent is y / (r + x) or (r - x) / y."""
    r = c.sqrt(c.square(x) + c.square(y))
    right = c.atan(y / c.where(x < 0, c.number(1), r + x))
    left = c.atan((r - x) / c.where(x < 0, y, c.number(1)))
    return 2 * c.where(x < 0, left, right)


BITS: dict[str, Rule] = {
    "and": _and, "or": partial(_bits, operator.or_), "xor": partial(_bits, _differ),
}  # fmt: skip
KINDS = ("Tensor", "Scalar")
PRIMITIVES = "maximum", "minimum", "floor", "round"
FUNCTIONS = """acos asin atan cos cosh erf erfc exp2 expm1 log log10 log1p log2 reciprocal rsqrt sin
sinh sqrt tan tanh"""
NUMBERS: dict[str, Rule] = {
    **dict.fromkeys(("sub.Tensor", "sub.Scalar"), lambda c, a, b, k=1: a - times(c, b, k)),
    "mul.Scalar": lambda c, a, b: a * b,
    **dict.fromkeys(("div.Scalar", "div.Tensor_mode", "div.Scalar_mode"), divide),
    "neg.default": lambda c, x: -x,
    "abs.default": lambda c, x: abs(x),
    **{f"{f}.default": lambda c, x, f=f: c.function(f, x) for f in FUNCTIONS.split()},
    **{f"{f}.default": lambda c, *x, f=f: getattr(c, f)(*x) for f in PRIMITIVES},
    "asinh.default": _asinh,
    "acosh.default": lambda c, x: c.log1p((x - 1) + c.sqrt((x - 1) * (x + 1))),
    "atanh.default": lambda c, x: c.log1p(2 * x / (1 - x)) / 2,
    "hypot.default": lambda c, a, b: c.sqrt(c.square(a) + c.square(b)),
    "isnan.default": lambda c, x: ~((x < 1) | (-x < 1)),  # of which no real number has neither
    "isinf.default": lambda c, x: infinite(x),
    "atan2.default": _angle,
    "sign.default": lambda c, x: c.where(x < 0, c.number(-1), c.where(x > 0, c.number(1), 0 * x)),
    "ceil.default": lambda c, x: -c.floor(-x),
    "trunc.default": lambda c, x: c.round(x, ties="zero"),
    # activations
    "mish.default": lambda c, x: x * c.tanh(c.maximum(x, c.number(0)) + c.log1p(c.exp(-abs(x)))),
    "leaky_relu.default": lambda c, x, s: c.where(x > 0, x, x * s),
    **{f"remainder.{kind}": remainder for kind in KINDS},
    **{f"fmod.{kind}": partial(remainder, rounding_mode="trunc") for kind in KINDS},
}  # fmt: skip
ONE: dict[str, Rule] = {
    "gelu.default": gelu,
    "elu.default": elu,
    **dict.fromkeys(("clamp.default", "clamp.Tensor", "hardtanh.default"), clamp),
}
RAW: dict[str, Rule] = {
    **dict.fromkeys(("add.Tensor", "add.Scalar"), added),
    "mul.Tensor": partial(scaled, lambda c, a, b: a * b),
    "div.Tensor": partial(scaled, divide),
    "exp.default": partial(limited, lambda c, x: c.exp(x)),
    "relu.default": partial(limited, lambda c, x: c.maximum(x, c.number(0))),
    "sigmoid.default": partial(limited, sigmoid),
    "pow.Tensor_Scalar": real_power,
    "pow.Tensor_Tensor": real_power,
    "pow.Scalar": real_power,
    "where.self": where,
    **{
        f"{name}.{kind}": partial(compared, rule)
        for kind in KINDS
        for name, rule in {
            "lt": lambda c, a, b: a < b,
            "gt": lambda c, a, b: b < a,
            "le": lambda c, a, b: ~(b < a),
            "ge": lambda c, a, b: ~(a < b),
            "eq": equal,
            "ne": lambda c, a, b: ~equal(c, a, b),
        }.items()
    },
    "logical_and.default": partial(logical, operator.and_),
    "logical_or.default": partial(logical, operator.or_),
    "logical_not.default": partial(logical, operator.invert),
    "logical_xor.default": partial(logical, _differ),
    **{f"bitwise_{name}.{kind}": rule for kind in KINDS for name, rule in BITS.items()},
    "bitwise_not.default": partial(_bits, operator.invert),
    **dict.fromkeys(("_to_copy.default", "to.dtype"), lambda c, x, *_: cast(c, x, c.tensor.dtype)),
}


RULES: dict[str, Rule] = {
    **{f"aten.{name}": numbers(rule) for name, rule in NUMBERS.items()},
    **{f"aten.{name}": numbers(rule, 1) for name, rule in ONE.items()},
    **dict.fromkeys(("aten.lerp.Tensor", "aten.lerp.Scalar"), numbers(lerp, 4)),
    **{f"aten.{name}": rule for name, rule in RAW.items()},
}

"""The formulas of activations, of their gradients, and wrong ways to compute them.

    mish         x tanh(s(x)),  s(x) = log(1 + e^x)
    hardsigmoid  0 for x <= -3, 1 for x >= 3, (x + 3) / 6 between
    elu          x for x > 0, α (e^x - 1) else                slope 1, α e^x
    selu         λ times that, λ = 1.0507009873554804934193349852946 and
                 α = 1.6732632423543772848170429916717
    softsign     x / (1 + |x|)                                slope 1 / (1 + |x|)²
    log_sigmoid  -s(-x) = min(x, 0) - log(1 + e^-|x|)         slope σ(-x)
    swiglu       a σ(a) b,  σ(a) = 1 / (1 + e^-a)
    prelu        x for x > 0, weight x else

With e = e^-|x| nothing overflows. mish is x n / d, its slope (n + 4 x (1 + e) m / d) / d,

    x >= 0       n = 1 + 2 e,     d = n + 2 e²,  m = e²
    x < 0        n = e (e + 2),   d = n + 2,     m = e

At an infinity a value is the limit: `limits` puts the largest number of the format in its place.

Sources: Misra (2019), arXiv:1908.08681; Courbariaux, Bengio and David (2015), arXiv:1511.00363, the
hard sigmoid, with these constants Howard et al. (2019), arXiv:1905.02244; Clevert, Unterthiner and
Hochreiter (2015), arXiv:1511.07289; Klambauer et al. (2017), arXiv:1706.02515, whose code gives
selu's constants in these digits, as do PyTorch, Paddle and OneFlow; Shazeer (2020),
arXiv:2002.05202, SwiGLU.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.op import Direction
from refkernels.ops import Fault, Mask, Prepared
from refkernels.ops.axes import along, axes_of
from refkernels.ops.formula import COMPUTED_IN_FLOAT32

SELU = Fraction("1.0507009873554804934193349852946"), Fraction("1.6732632423543772848170429916717")


fault = partial(Fault, derived=True)


def limits(
    inputs: dict[str, Any],
    params: dict[str, Any],
    direction: Direction,
    below: str = "",
    above: str = "",
) -> Prepared:
    """The inputs with infinities replaced, so that values are limits. `below`: the inputs in which
    the format's lowest number replaces -inf; `above`: those in which its largest replaces +inf."""
    shapes = {name: array.shape for name, array in inputs.items()}
    if len({*shapes.values()}) > 1:
        raise ValueError(f"The arrays have shapes {shapes}: they must be equal.")
    clipped = dict(inputs)
    for name in {*below, *above} & {*inputs}:
        x = inputs[name]
        largest = np.asarray(formats.of(x).max).astype(x.dtype)
        clipped[name] = np.clip(
            x, -largest if name in below else -np.inf, largest if name in above else np.inf
        ).astype(x.dtype)
    return Prepared(clipped, params)


def sigmoid(xp: Any, x: Any) -> Any:
    e = xp.exp(-abs(x))
    return xp.where(x < 0, e, xp.number(1)) / (1 + e)


def _log1p_exp(xp: Any, x: Any) -> Any:
    """log(1 + e^-|x|)."""
    return xp.log1p(xp.exp(-abs(x)))


def softplus(xp: Any, x: Any) -> Any:
    """max(x, 0) + log(1 + e^-|x|), or log1p(e^x) where x < 40."""
    apart = xp.where(x < 0, xp.number(0), x) + _log1p_exp(xp, x)
    direct = xp.log1p(xp.exp(xp.minimum(x, xp.number(40))))
    return xp.either(apart, xp.where(x < 40, direct, apart))


# --- mish --------------------------------------------------------------------------------------


def _parts(xp: Any, x: Any) -> tuple[Any, Any, Any]:
    """e, n and d."""
    e = xp.exp(-abs(x))
    n = xp.where(x < 0, e * (e + 2), 1 + 2 * e)
    return e, n, n + 2 * xp.where(x < 0, xp.number(1), xp.square(e))


def mish(xp: Any, x: Any) -> Any:
    _, n, d = _parts(xp, x)
    return xp.either(x * (n / d), x * n / d)


def mish_softplus(xp: Any, x: Any) -> Any:
    return x * xp.tanh(softplus(xp, x))


def mish_stored(xp: Any, x: Any) -> Any:
    """By ops that store each result in the storage format."""
    return x * xp.store(xp.tanh(xp.store(softplus(xp, x))))


def mish_slope(xp: Any, dy: Any, x: Any) -> Any:
    e, n, d = _parts(xp, x)
    product = xp.where(x < 0, e, xp.square(e)) * (1 + e)
    return dy * ((n + x * (4 * product) / d) / d)


def mish_softplus_slope(xp: Any, dy: Any, x: Any) -> Any:
    s = softplus(xp, x)
    t = xp.tanh(s)
    sech2 = 1 - xp.square(t)
    gate = xp.either(sigmoid(xp, x), 1 - xp.exp(-s))
    return dy * xp.either(t + x * gate * sech2, t + x * (gate * sech2))


# --- hardsigmoid -------------------------------------------------------------------------------


def hardsigmoid(xp: Any, x: Any) -> Any:
    beyond = xp.where(x < 0, xp.number(0), xp.where(x > 0, xp.number(1), x))  # NaN stays
    return xp.where(abs(x) < 3, (x + 3) / 6, beyond)


def hardsigmoid_clipped(xp: Any, x: Any) -> Any:
    return xp.clip(x + 3, 0, 6) / 6


def hardsigmoid_scaled(xp: Any, x: Any, sixth: Any = Fraction(1, 6)) -> Any:
    part = x * xp.number(sixth)
    part = xp.either(x / 6, part) if 6 * sixth == 1 else part
    return xp.clip(part + xp.number(Fraction(1, 2)), 0, 1)


def hardsigmoid_multiplied(xp: Any, x: Any) -> Any:
    return xp.clip(x + 3, 0, 6) * xp.number(Fraction(1, 6))


def hardsigmoid_slope(xp: Any, dy: Any, x: Any) -> Any:
    beyond = xp.where(abs(x) < 4, xp.number(0), 0 * xp.clip(x, -4, 4))  # NaN stays
    return xp.where(abs(x) < 3, dy / 6, dy * beyond)


def hardsigmoid_slope_of_either_side(xp: Any, dy: Any, x: Any) -> Any:
    """The slope of either side at ±3, also where x ± 3 may round to 0."""
    gate = abs(x) - 3
    inside = Mask((abs(x) < 3).yes & (gate < 0).yes, (abs(x) > 3).yes & (gate > 0).yes)
    return xp.where(inside, dy * xp.number(Fraction(1, 6)), 0 * dy)


def _scaled_slope(xp: Any, dy: Any, x: Any, sixth: Fraction) -> Any:
    within = abs(x) < xp.number(3 if abs(6 * sixth - 1) < Fraction(1, 1000) else 1 / (2 * sixth))
    return xp.where(within, dy * xp.number(sixth), 0 * dy)


# --- elu, selu ---------------------------------------------------------------------------------


def elu(xp: Any, x: Any, alpha: Any, exp: str = "expm1") -> Any:
    low = xp.minimum(x, xp.number(0))
    return xp.where(x > 0, x, alpha * (xp.expm1(low) if exp == "expm1" else xp.exp(low) - 1))


def _either_side(x: Any) -> Mask:
    return Mask((x > 0).yes, (x < 0).yes)


def elu_slope(xp: Any, dy: Any, x: Any, alpha: Any) -> Any:
    e = xp.exp(xp.minimum(x, xp.number(0)))
    return xp.where(x > 0, dy, xp.either(dy * (alpha * e), dy * alpha * e))


def elu_slope_of_either_side(xp: Any, dy: Any, x: Any, alpha: Any) -> Any:
    return xp.where(_either_side(x), dy, elu_slope(xp, dy, xp.minimum(x, xp.number(0)), alpha))


def elu_slope_of_output(xp: Any, dy: Any, x: Any, alpha: Any) -> Any:
    y = xp.saved(elu(xp, xp.minimum(x, xp.number(0)), alpha))
    return xp.where(x > 0, dy, dy * (y + alpha))


def selu(xp: Any, x: Any, exp: str = "expm1") -> Any:
    scale, alpha = map(xp.number, SELU)
    low = xp.minimum(x, xp.number(0))
    e = xp.expm1(low) if exp == "expm1" else xp.exp(low) - 1
    return xp.where(x > 0, scale * x, xp.either(scale * alpha * e, scale * (alpha * e)))


def selu_slope(xp: Any, dy: Any, x: Any) -> Any:
    scale, alpha = map(xp.number, SELU)
    e = xp.exp(xp.minimum(x, xp.number(0)))
    low = xp.either(dy * (scale * alpha * e), dy * (scale * alpha) * e)
    return xp.where(x > 0, dy * scale, low)


def selu_slope_of_either_side(xp: Any, dy: Any, x: Any) -> Any:
    scale, _ = map(xp.number, SELU)
    low = selu_slope(xp, dy, xp.minimum(x, xp.number(0)))
    return xp.where(_either_side(x), dy * scale, low)


def selu_slope_of_output(xp: Any, dy: Any, x: Any) -> Any:
    scale, alpha = map(xp.number, SELU)
    y = xp.saved(selu(xp, xp.minimum(x, xp.number(0))))
    return xp.where(x > 0, dy * scale, dy * (y + scale * alpha))


def _elu_slope_of_output(xp: Any, dy: Any, x: Any) -> Any:
    scale, _ = map(xp.number, SELU)
    y = xp.saved(selu(xp, xp.minimum(x, xp.number(0))))
    return xp.where(x > 0, dy * scale, dy * (scale * (y + 1)))


# --- softsign ----------------------------------------------------------------------------------


def softsign(xp: Any, x: Any) -> Any:
    return x / (1 + abs(x))


def softsign_slope(xp: Any, dy: Any, x: Any) -> Any:
    d = 1 + abs(x)
    return xp.either(dy * xp.square(1 / d), dy / d / d)


# --- log_sigmoid -------------------------------------------------------------------------------


def log_sigmoid(xp: Any, x: Any) -> Any:
    return xp.where(x < 0, x, xp.number(0)) - _log1p_exp(xp, x)


def log_sigmoid_softplus(xp: Any, x: Any) -> Any:
    return -softplus(xp, -x)


def log_sigmoid_slope(xp: Any, dy: Any, x: Any) -> Any:
    return dy * sigmoid(xp, -x)


def log_sigmoid_slope_of_saved(xp: Any, dy: Any, x: Any) -> Any:
    """The slope by the exponential that the forward pass kept."""
    e = xp.saved(xp.exp(-abs(x)))
    part = e / (1 + e)
    return dy * xp.where(x < 0, 1 - part, part)


def log_sigmoid_slope_of_output(xp: Any, dy: Any, x: Any) -> Any:
    """1 - e^y cancels where x is large: its error is absolute."""
    return dy * (1 - xp.exp(log_sigmoid(xp, x)))


# --- swiglu ------------------------------------------------------------------------------------


def silu(xp: Any, a: Any) -> Any:
    e = xp.exp(-abs(a))
    gate = xp.where(a < 0, e, xp.number(1))
    apart = xp.either(a * (gate / (1 + e)), a * gate / (1 + e))
    divided = a / (1 + xp.exp(-xp.maximum(a, xp.number(-80))))
    return xp.either(apart, xp.where(a > -80, divided, apart))


def swiglu(xp: Any, a: Any, b: Any) -> Any:
    return silu(xp, a) * b


def swiglu_stored(xp: Any, a: Any, b: Any) -> Any:
    return xp.store(silu(xp, a)) * b


def silu_slope(xp: Any, a: Any) -> Any:
    gate = sigmoid(xp, a)
    return gate * (1 + a * xp.either(sigmoid(xp, -a), 1 - gate))


def swiglu_slope(xp: Any, dy: Any, a: Any, b: Any) -> Any:
    slope = silu_slope(xp, a)
    return xp.either(dy * b * slope, dy * (b * slope)), dy * silu(xp, a)


def swiglu_slope_stored(xp: Any, dy: Any, a: Any, b: Any) -> Any:
    return xp.store(dy * b) * silu_slope(xp, a), dy * xp.store(silu(xp, a))


# --- prelu -------------------------------------------------------------------------------------


def by_channel(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """The axis of the weights last; with one weight, all of x on an axis of rows."""
    weight, shape = inputs["weight"], inputs["x"].shape
    axes_of(params["axis"], shape, several=False)
    one = weight.size == 1
    whole = {
        name: array.reshape(-1, 1) if one else array
        for name, array in inputs.items()
        if name != "weight"
    }
    moved, back = along(whole, -1 if one else params["axis"], whole, several=False)

    def restore(name: str, array: Any) -> Any:
        own = name == "dweight"
        return array.reshape(weight.shape) if own else back(name, array).reshape(shape)

    return Prepared({**moved, "weight": weight.reshape(-1) if one else weight}, {}, restore)


def prelu(xp: Any, x: Any, weight: Any) -> Any:
    return xp.where(x > 0, x, weight * x)


def prelu_gradient(xp: Any, dy: Any, x: Any, weight: Any) -> Any:
    below = xp.where(x > 0, xp.number(0), dy * x)
    return xp.where(x > 0, dy, weight * dy), xp.sum(below, axis=0)


# --- wrong ways --------------------------------------------------------------------------------


def _quotient_rule(xp: Any, dy: Any, x: Any) -> Any:
    """dy / d - dy (|x| / d) / d by ops that store their results in the storage format."""
    d = xp.store(1 + abs(x))
    through = xp.store(dy * xp.store(xp.store(abs(x) / d) / d))
    return xp.store(dy / d) - through


def _mish_by_square(xp: Any, x: Any) -> Any:
    """x (w - 1) / (w + 1) with w = (1 + e^x)²."""
    w = xp.square(1 + xp.exp(x))
    return x * ((w - 1) / (w + 1))


def _mish_by_exponentials(xp: Any, x: Any) -> Any:
    """x tanh(s), s = log(1 + e^x), tanh from e^s and e^-s."""
    s = xp.log(1 + xp.exp(x))
    up, down = xp.exp(s), xp.exp(-s)
    return x * ((up - down) / (up + down))


def _selu_of(scale: Fraction, alpha: Fraction) -> Any:
    return lambda xp, x: xp.number(scale) * elu(xp, x, alpha=xp.number(alpha))


def _selu_by_exponential(scale: Fraction, alpha: Fraction) -> Any:
    """λ (α e^x - α) for x <= 0, which cancels near 0."""

    def formula(xp: Any, x: Any) -> Any:
        a = xp.number(alpha)
        e = xp.exp(xp.minimum(x, xp.number(0)))
        return xp.number(scale) * xp.where(x > 0, x, xp.either(a * e - a, a * (e - 1)))

    return formula


def _selu_by_float32(scale: Fraction, alpha: Fraction) -> Any:
    """λ α expm1(x) with the function in float32."""

    def formula(xp: Any, x: Any) -> Any:
        low = xp.narrow(xp.minimum(x, xp.number(0)), "float32")
        e = xp.narrow(xp.expm1(low), "float32")
        return xp.where(x > 0, xp.number(scale) * x, xp.number(scale) * xp.number(alpha) * e)

    return formula


_NARROW_SELU = tuple(Fraction(float(np.float32(constant))) for constant in SELU)


def _slope_of_log(xp: Any, dy: Any, x: Any) -> Any:
    """(dy / s) (s (1 - s)): 0 / 0 where s underflows."""
    s = 1 / (1 + xp.exp(-x))
    return dy / s * (s * (1 - s))


_unstable = partial(Fault, unstable=True)
FAULTS: dict[str, tuple[Fault, ...]] = {
    "mish": (
        fault("silu_gate", lambda xp, x: x * sigmoid(xp, x)),
        fault("tanh_of_exponential", lambda xp, x: x * xp.tanh(xp.exp(x))),
        _unstable("log_of_one_plus", lambda xp, x: x * xp.tanh(xp.log(1 + xp.exp(x)))),
        _unstable("unguarded_square", _mish_by_square),
        _unstable("tanh_by_exponentials", _mish_by_exponentials),
        Fault("constant_gate", backward=lambda xp, dy, x: mish(xp, x) / x * dy),
    ),
    "hardsigmoid": (
        *(
            Fault(
                cause,
                partial(hardsigmoid_scaled, sixth=slope),
                partial(_scaled_slope, sixth=slope),
                right_in=COMPUTED_IN_FLOAT32 if cause == "float32_constants" else (),
            )
            for cause, slope in (
                ("rounded_sixth", Fraction("0.1666667")),
                ("rounded_sixth", Fraction(float(np.float32(0.1666667)))),
                ("float32_constants", Fraction(float(np.float32(1 / 6)))),
                ("slope_of_a_fifth", Fraction(1, 5)),
            )
        ),
        fault("sigmoid_instead", sigmoid),
    ),
    "elu": (
        _unstable("exponential_minus_one", partial(elu, exp="exp")),
        fault("selu_instead", lambda xp, x, alpha: selu(xp, x)),
    ),
    "selu": (
        _unstable("exponential_minus_one", partial(selu, exp="exp")),
        Fault("elu_slope_of_result", backward=_elu_slope_of_output),
        *(
            replace(
                fault("rounded_constants", _selu_of(Fraction(scale), Fraction(alpha))),
                details={"constants": f"{scale}, {alpha}"},
            )
            for scale, alpha in (("1.0507", "1.6733"), ("1.05070098", "1.67326324"))
        ),
        Fault(
            "rounded_constants",
            _selu_by_float32(Fraction("1.05070098"), Fraction("1.67326324")),
            details={"constants": "1.05070098, 1.67326324", "with": "float32_functions"},
        ),
        fault("float32_constants", _selu_of(*_NARROW_SELU)),
        Fault(
            "float32_constants",
            _selu_by_exponential(*_NARROW_SELU),
            details={"with": "exponential_minus_one"},
        ),
    ),
    "softsign": (
        fault("root_of_square", lambda xp, x: x / xp.sqrt(1 + xp.square(x))),
        fault("tanh_instead", lambda xp, x: xp.tanh(x)),
        _unstable("quotient_rule", backward=_quotient_rule),
    ),
    "log_sigmoid": (
        _unstable("log_of_sigmoid", lambda xp, x: xp.log(sigmoid(xp, x))),
        _unstable("log_of_sigmoid", lambda xp, x: xp.log(1 / (1 + xp.exp(-x))), _slope_of_log),
        _unstable(
            "slope_from_result",
            backward=lambda xp, dy, x: dy * (1 - 1 / (1 + xp.exp(-x))),
            details={"formula": "dy (1 - σ(x))"},
        ),
        _unstable(
            "log_of_one_plus",
            lambda xp, x: xp.minimum(x, xp.number(0)) - xp.log(1 + xp.exp(-abs(x))),
        ),
        _unstable("unguarded_softplus", lambda xp, x: -xp.log(1 + xp.exp(-x))),
    ),
    "prelu": (),
    "swiglu": (
        fault("gelu_gate", lambda xp, a, b: _gelu(xp, a) * b),
        fault("gelu_gate", lambda xp, a, b: _gelu_tanh(xp, a) * b),
        fault("quick_gelu_gate", lambda xp, a, b: a * sigmoid(xp, _quick(xp, a)) * b),
        fault("relu_gate", lambda xp, a, b: xp.maximum(a, xp.number(0)) * b),
    ),
}


def _gelu_tanh(xp: Any, a: Any) -> Any:
    inner = xp.sqrt(2 / xp.pi()) * (a + xp.number(0.044715) * a * xp.square(a))
    return a * (1 + xp.tanh(inner)) / 2


def _quick(xp: Any, a: Any) -> Any:
    return xp.number(1.702) * a


def _gelu(xp: Any, a: Any) -> Any:
    return a * xp.erfc(-a / xp.sqrt(xp.number(2))) / 2

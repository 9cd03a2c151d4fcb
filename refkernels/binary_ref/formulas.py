"""The formulas of pow, atan2 and hypot, of their gradients, and wrong ways to compute them.

    pow      ± |x|^e                dx = dy e x^(e - 1),      dexponent = dy x^e log x
    atan2    ± θ, or ±(π - θ) for b < 0;  θ = atan(|a| / |b|), π/2 - atan(|b| / |a|) for |a| > |b|
                                    da = dy b / (a² + b²),    db = -dy a / (a² + b²)
    hypot    h √(1 + (l / h)²)      da = dy a / y,            db = dy b / y
             h and l being the larger and the smaller of |a| and |b|

The special values are those of C (ISO/IEC 9899:2018, F.10.4.4, F.10.1.4, F.10.4.3). `prepare` gives
the value, or replaces such arguments by others with the same value. `value_bare` is the value of
dy e x^(e - 1) without a rule for e = 0: NaN at x = 0; `value_log_above` is 0 unless x > 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.arrays import to_float64
from refkernels.op import Direction
from refkernels.ops import Fault, Prepared

Doubles = npt.NDArray[np.float64]
LIMITS = {"pow": 16, "atan2": 6, "hypot": 4}
"""In ulp of the working format, for x86's and ARM's C libraries as for GPUs': OpenCL's full profile
(The OpenCL C Specification, section "Relative Error as ULPs")."""


def _alike(inputs: dict[str, Any]) -> list[Doubles]:
    """The arrays without a cotangent. Raises ValueError where shapes differ."""
    shapes = {name: array.shape for name, array in inputs.items()}
    if len({*shapes.values()}) > 1:
        raise ValueError(f"The arrays have shapes {shapes}: they must be equal.")
    return [to_float64(array) for name, array in inputs.items() if name != "dy"]


# --- pow ---------------------------------------------------------------------------------------


def special_power(x: Doubles, y: Doubles, negative: Any) -> Doubles:
    """x^y where x is 0 or one of them is not finite, or x < 0 and y no integer; `negative`: where x
    has a sign and y is odd."""
    a, inf, sign = np.abs(x), np.inf, np.where(negative, -1.0, 1.0)
    rules: tuple[tuple[Any, Any], ...] = (
        ((y == 0.0) | (x == 1.0), 1.0),
        (np.isnan(x) | np.isnan(y), np.nan),
        (np.isinf(y) & (a == 1.0), 1.0),
        (np.isinf(y), np.where((a > 1.0) == (y > 0.0), inf, 0.0)),
        (a == 0.0, sign * np.where(y > 0.0, 0.0, inf)),
        (a == inf, sign * np.where(y > 0.0, inf, 0.0)),
    )
    values = np.full(x.shape, np.nan)
    for condition, value in reversed(rules):
        values = np.where(condition, value, values)
    return values


def prepare_pow(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """`value` is the result where it is `special`, and x and the exponent are 1 there."""
    x, e = _alike(inputs)
    with np.errstate(all="ignore"):
        special = ~(np.isfinite(x) & np.isfinite(e)) | (x == 0.0) | ((x < 0.0) & (np.rint(e) != e))
        odd, even = (
            np.signbit(x) & (np.remainder(e, 2.0) == remainder) for remainder in (1.0, 0.0)
        )
        value = special_power(x, e, odd)
        arrays = {"special": special, "value": np.where(special, value, 0.0), "negative": odd}
        if direction == "backward":
            dy = to_float64(inputs["dy"])
            bare = dy * e * special_power(x, e - 1.0, even)
            slope = np.where((x == 0.0) & (e == 0.0), 0.0, bare)
            logarithm = np.where((x == 0.0) & (e > 0.0), 0.0, dy * value * np.log(x))
            arrays |= {"value": np.where(special, slope, 0.0), "negative_below": even}
            arrays |= {"value_bare": np.where(special, bare, 0.0)}
            arrays |= {"undefined": special | (x < 0.0)}
            arrays |= {"value_log": np.where(arrays["undefined"], logarithm, 0.0)}
            arrays |= {"value_log_above": np.where(x > 0.0, arrays["value_log"], 0.0)}
    for name in ("x", "exponent"):
        arrays[name] = np.where(special, np.ones_like(inputs[name]), inputs[name])
    return Prepared({**inputs, **arrays}, params)


def _signed_power(xp: Any, x: Any, exponent: Any, negative: Any) -> Any:
    size = xp.real_power(abs(x), exponent)
    return xp.where(negative, -size, size)


def _power_below(xp: Any, x: Any, exponent: Any, negative: Any) -> Any:
    return _signed_power(xp, x, exponent - 1, negative)


def pow(xp: Any, x: Any, exponent: Any, special: Any, value: Any, negative: Any, **_: Any) -> Any:
    power = xp.library(_signed_power, LIMITS["pow"], (x, exponent), negative)
    return xp.where(special, value, power)


def pow_by_logarithm(
    xp: Any, x: Any, exponent: Any, special: Any, value: Any, negative: Any
) -> Any:
    size = xp.exp(exponent * xp.log(abs(x)))
    return xp.where(special, value, xp.where(negative, -size, size))


def pow_slopes(
    xp: Any, dy: Any, x: Any, exponent: Any, special: Any, value: Any, negative: Any,
    negative_below: Any, undefined: Any, value_log: Any, rounded: bool = False,
    stored: bool = False, **_: Any,
) -> Any:  # fmt: skip
    """The gradients. `rounded`: for kernels that round e - 1, which moves the power by |log x|
    times as much; `stored`: for kernels made of ops that store each result in the storage
    format."""
    store = xp.store if stored else lambda value: value
    below = xp.library(_power_below, LIMITS["pow"], (x, exponent), negative_below)
    logarithm = xp.log(abs(x))
    if rounded:
        lower = store(exponent - 1)
        below = below * xp.exp((lower - lower) * logarithm)
    power = store(xp.library(_signed_power, LIMITS["pow"], (x, exponent), negative))
    below, logarithm = store(below), store(logarithm)
    dx = xp.either(dy * store(exponent * below), store(dy * exponent) * below)
    dlog = xp.either(dy * store(power * logarithm), store(dy * power) * logarithm)
    return xp.where(special, value, dx), xp.where(undefined, value_log, dlog)


# --- atan2 -------------------------------------------------------------------------------------


def prepare_atan2(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """Infinities become 1, and finite numbers beside them 0; for two zeros b becomes 1."""
    a, b = _alike(inputs)
    arrays = dict(inputs)
    steep = np.abs(a) > np.abs(b)
    if direction == "forward":
        beyond, nan = np.isinf(a) | np.isinf(b), np.isnan(a) | np.isnan(b)
        for name, values in (("a", a), ("b", b)):
            finite = np.where(np.isinf(values), 1.0, 0.0).astype(inputs[name].dtype)
            arrays[name] = np.where(beyond & ~nan, np.copysign(finite, inputs[name]), inputs[name])
        nowhere = (a == 0.0) & (b == 0.0)
        arrays["b"] = np.where(nowhere, np.ones_like(inputs["b"]), arrays["b"])
        steep = np.abs(to_float64(arrays["a"])) > np.abs(to_float64(arrays["b"]))
    return Prepared(
        arrays | {"steep": steep, "left": np.signbit(b), "below": np.signbit(a)}, params
    )


def _atan2(xp: Any, a: Any, b: Any, steep: Any, left: Any, below: Any) -> Any:
    rise, run = abs(a), abs(b)
    part = xp.atan(xp.where(steep, run, rise) / xp.where(steep, rise, run))
    part = xp.where(steep, xp.pi() / 2 - part, part)
    part = xp.where(left, xp.pi() - part, part)
    return xp.where(below, -part, part)


def atan2(xp: Any, a: Any, b: Any, **beside: Any) -> Any:
    return xp.library(_atan2, LIMITS["atan2"], (a, b), *beside.values())


def atan2_composed(xp: Any, a: Any, b: Any, **beside: Any) -> Any:
    return _atan2(xp, a, b, *beside.values())


def atan2_slopes(xp: Any, dy: Any, a: Any, b: Any, **_: Any) -> Any:
    square = xp.square(a) + xp.square(b)
    return dy * b / square, -dy * a / square


def atan2_slopes_by_reciprocal(xp: Any, dy: Any, a: Any, b: Any, **_: Any) -> Any:
    r = 1 / (xp.square(a) + xp.square(b))
    return tuple(xp.either(dy * (leg * r), dy * leg * r) for leg in (b, -a))


def atan2_slopes_stored(xp: Any, dy: Any, a: Any, b: Any, **_: Any) -> Any:
    """As `by_reciprocal`, by ops that store each result in the storage format."""
    squares = xp.store(xp.square(a)), xp.store(xp.square(b))
    r = xp.store(1 / xp.store(squares[0] + squares[1]))
    return tuple(dy * xp.store(leg * r) for leg in (b, -a))


# --- hypot -------------------------------------------------------------------------------------


def prepare_hypot(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """The number beside an infinity or NaN becomes 0."""
    a, b = _alike(inputs)
    arrays = dict(inputs)
    if direction == "forward":
        for name, vain in (("a", np.isinf(b) & ~np.isinf(a)), ("b", np.isinf(a))):
            arrays[name] = np.where(vain, np.zeros_like(inputs[name]), inputs[name])
    a, b = (to_float64(arrays[name]) for name in ("a", "b"))
    arrays |= {"steep": np.abs(a) > np.abs(b), "nowhere": (a == 0.0) & (b == 0.0)}
    return Prepared(arrays, params)


def _hypot(xp: Any, a: Any, b: Any, steep: Any, nowhere: Any) -> Any:
    high, low = xp.where(steep, abs(a), abs(b)), xp.where(steep, abs(b), abs(a))
    ratio = low / xp.where(nowhere, xp.number(1), high)
    return high * xp.sqrt(1 + xp.square(ratio))


def hypot(xp: Any, a: Any, b: Any, steep: Any, nowhere: Any) -> Any:
    return xp.library(_hypot, LIMITS["hypot"], (a, b), steep, nowhere)


def hypot_slopes(xp: Any, dy: Any, a: Any, b: Any, steep: Any, nowhere: Any) -> Any:
    y = hypot(xp, a, b, steep, nowhere)
    return tuple(xp.either(dy * (leg / y), dy * leg / y) for leg in (a, b))


def hypot_slopes_stored(xp: Any, dy: Any, a: Any, b: Any, steep: Any, nowhere: Any) -> Any:
    """From the result and a quotient that were stored in the storage format."""
    y = xp.saved(hypot(xp, a, b, steep, nowhere))
    return tuple(dy * xp.store(leg / y) for leg in (a, b))


# --- wrong ways --------------------------------------------------------------------------------


def _unscaled(xp: Any, a: Any, b: Any, **_: Any) -> Any:
    return xp.sqrt(xp.square(a) + xp.square(b))


def _exchanged(xp: Any, a: Any, b: Any, steep: Any, left: Any, below: Any) -> Any:
    """π/2 - θ, which is an angle of its own beyond π: where both are negative."""
    angle = xp.pi() / 2 - atan2(xp, a, b, steep=steep, left=left, below=below)
    return xp.where(left & below, angle - 2 * xp.pi(), angle)


def _quadrants_folded(xp: Any, a: Any, b: Any, **_: Any) -> Any:
    return xp.atan(a / b)


FAULTS: dict[str, tuple[Fault, ...]] = {
    "pow": (
        Fault("power_by_logarithm", pow_by_logarithm, unstable=True),
        Fault("magnitude_of_base", lambda xp, negative, **arguments: pow(
            xp, negative=np.zeros_like(negative), **arguments
        )),
        Fault("exponent_not_lowered", backward=lambda xp, dy, exponent, **arguments: (
            dy * exponent * pow(xp, exponent=exponent, **_forward(arguments)),
            pow_slopes(xp, dy=dy, exponent=exponent, **arguments)[1],
        ), outputs=("dx",)),
        Fault("zero_times_infinity", backward=lambda xp, value, value_bare, **arguments: pow_slopes(
            xp, value=value_bare, **arguments
        ), outputs=("dx",)),
        Fault("negative_base_ignored", backward=lambda xp, value_log, value_log_above, **others: (
            pow_slopes(xp, value_log=value_log_above, **others)
        ), outputs=("dexponent",)),
    ),
    "atan2": (
        Fault("quadrants_folded", _quadrants_folded),
        Fault("arguments_exchanged", _exchanged),
        Fault("sign_of_abscissa_gradient", backward=lambda xp, dy, a, b, **_: (
            atan2_slopes(xp, dy, a, b)[0], -atan2_slopes(xp, dy, a, b)[1]
        ), outputs=("db",)),
    ),
    "hypot": (
        Fault("unscaled_squares", _unscaled, unstable=True, derived=True),
        Fault("sum_of_magnitudes", lambda xp, a, b, **_: abs(a) + abs(b)),
    ),
}  # fmt: skip


def _forward(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: arguments[name] for name in ("x", "special", "value", "negative")}

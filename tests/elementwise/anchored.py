"""The truth as a small distance from a known value: f(x) = anchor + delta, to test bounds.

The anchor is a rational; delta is Arb's ball, with its unbounded exponents and a relative accuracy
that grows until a comparison is certain. So gelu(x) = x - tiny is known to lie below x, however
tiny. Shares no code with the oracles, and uses other formulas where there are some.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint

from refkernels.arithmetic.enclosure import Enclosure

Truth = tuple[Fraction, Any]
_LAST = 1 << 16  # bits
_FAR = 20_000  # exponents beside which an anchor need not be subtracted exactly


def _decay(x: Any) -> Any:
    """1 - sigmoid(x)."""
    return 1 / (1 + x.exp())


def _sigmoid(x: Any) -> Any:
    return x.exp() / (1 + x.exp()) if x < 0 else 1 / (1 + (-x).exp())


def _normal_tail(x: Any) -> Any:
    """erfc(x / sqrt 2) / 2 for x > 0; far out by its bounds exp(-x^2/2) / (x sqrt(2 pi)), and
    1 - 1/x^2 of that, for Arb knows no more of an inexact argument than its size."""
    if x < 2**16:
        return (x / flint.arb(2).sqrt()).erfc() / 2
    lost = 1 / (2 * x * x)
    return _density(x) / x * (1 - lost + flint.arb(0, lost.upper()))


def _density(x: Any) -> Any:
    return (-x * x / 2).exp() / (2 * flint.arb.pi()).sqrt()


def _twice(x: Any) -> tuple[Any, Any]:
    """v = 2 sqrt(2/pi) (x + 0.044715 x^3) and v'."""
    c, k = 2 * (2 / flint.arb.pi()).sqrt(), flint.arb(44715) / 1000000
    return c * x * (1 + k * x * x), c * (1 + 3 * k * x * x)


def _bell(x: Any) -> Any:
    return 2 * (-x * x).exp() / flint.arb.pi().sqrt()


def _cosh_slope(x: Any) -> Any:
    """1 / cosh(x)^2."""
    f = (-2 * abs(x)).exp()
    return 4 * f / (1 + f) ** 2


def _root(q: Fraction) -> Fraction | None:
    top, bottom = math.isqrt(q.numerator), math.isqrt(q.denominator)
    return Fraction(top, bottom) if Fraction(top, bottom) ** 2 == q else None


def _of_root(scaled: Callable[[Fraction], Fraction], irrational: Callable[[Any], Any]) -> Any:
    """Rational where the root of x is."""

    def at(x: Any, q: Fraction) -> Truth:
        root = _root(q)
        return (Fraction(0), irrational(x)) if root is None else (scaled(root), flint.arb(0))

    return at


def _rational(of: Callable[[Fraction], Fraction]) -> Any:
    return lambda x, q: (of(q), flint.arb(0))


def _beside(small: Any, low: Any, high: Any, at: float = 1.0) -> Any:
    """One (anchor, delta) for |x| <= at, one for x < 0, one for x > 0."""

    def choose(x: Any, q: Fraction) -> Truth:
        anchor, delta = small if abs(q) <= at else high if q > 0 else low
        return Fraction(anchor(q) if callable(anchor) else anchor), delta(x)

    return choose


def _plain(delta: Any) -> Any:
    return lambda x, q: (Fraction(0), delta(x))


def _same(q: Fraction) -> Fraction:
    return q


def _halved(q: Fraction) -> Fraction:
    return q / 2


def _tiny(delta: Any, anchor: Any = _same) -> Any:
    """Beside the anchor for |x| <= 2^-10."""
    difference = (anchor, (lambda x: delta(x) - x) if anchor is _same else delta)
    return _beside(difference, (0, delta), (0, delta), 2.0**-10)


def _exp2(x: Any, q: Fraction) -> Truth:
    if q.denominator == 1:
        return Fraction(0), flint.arb((1, int(q)))
    y = x * flint.arb(2).log()
    return (Fraction(1), y.expm1()) if abs(q) < 1 else (Fraction(0), y.exp())


def _log2(x: Any, q: Fraction) -> Truth:
    top, bottom = q.numerator, q.denominator
    if top & (top - 1) == 0 and bottom & (bottom - 1) == 0:
        return Fraction(top.bit_length() - bottom.bit_length()), flint.arb(0)
    return Fraction(0), x.log() / flint.arb(2).log()


def _log10(x: Any, q: Fraction) -> Truth:
    digits = len(str(q.numerator)) - 1
    if q == 10**digits:
        return Fraction(digits), flint.arb(0)
    return Fraction(0), x.log() / flint.arb(10).log()


def _turned(of: str, quarter: int) -> Any:
    """sin(pi x) or cos(pi x): 0 and ±1 at multiples of 1/2."""

    def at(x: Any, q: Fraction) -> Truth:
        if (2 * q).denominator == 1:
            n = (int(2 * q) + quarter) % 4
            return Fraction((0, 1, 0, -1)[n]), flint.arb(0)
        if quarter and abs(q) < 2.0**-10:
            return Fraction(1), -2 * (x / 2).sin_pi() ** 2
        return Fraction(0), getattr(x, of)()

    return at


def _pi_times(turned: Any, sign: int) -> Any:
    def at(x: Any, q: Fraction) -> Truth:
        anchor, delta = turned(x, q)
        whole = flint.arb(anchor.numerator) / anchor.denominator + delta
        return Fraction(0), sign * flint.arb.pi() * whole

    return at


def _gelu_rise(x: Any) -> Any:
    """gelu'(x) - 1/2."""
    return (x / flint.arb(2).sqrt()).erf() / 2 + x * _density(x)


def _silu_rise(x: Any) -> Any:
    return (x / 2).tanh() / 2 + x * _sigmoid(x) * _decay(x)


def _tanh_rise(x: Any) -> Any:
    v, slope = _twice(x)
    return (v / 2).tanh() / 2 + x * slope * _sigmoid(v) * _decay(v)


def _tanh_above(x: Any) -> Any:
    v, slope = _twice(x)
    return _decay(v) * (x * slope * _sigmoid(v) - 1)


def _tanh_below(x: Any) -> Any:
    v, slope = _twice(x)
    return _sigmoid(v) * (1 + x * slope * _decay(v))


_COSH = (1, lambda x: 2 * (x / 2).sinh() ** 2)
_SINE = _tiny(lambda x: x.sin())
_COSINE = _beside((1, lambda x: -2 * (x / 2).sin() ** 2), *[(0, lambda x: x.cos())] * 2, 2.0**-10)
_EXP = _beside((1, lambda x: x.expm1()), (0, lambda x: x.exp()), (0, lambda x: x.exp()))
_SINH = _tiny(lambda x: x.sinh())
_COSH_ = _beside(_COSH, (0, lambda x: x.cosh()), (0, lambda x: x.cosh()))
_LOGISTIC = _beside(
    (Fraction(1, 2), lambda x: (x / 2).tanh() / 2), (0, _sigmoid), (1, lambda x: -_decay(x))
)
_SINPI, _COSPI = _turned("sin_pi", 0), _turned("cos_pi", 1)


def _minus(of: Any) -> Any:
    def at(x: Any, q: Fraction) -> Truth:
        anchor, delta = of(x, q)
        return -anchor, -delta

    return at


VALUES: dict[str, Any] = {
    "exp": _EXP,
    "exp2": _exp2,
    "expm1": _beside(
        (_same, lambda x: x.expm1() - x), (-1, lambda x: x.exp()), (0, lambda x: x.expm1())
    ),
    "log": _plain(lambda x: x.log()),
    "log2": _log2,
    "log10": _log10,
    "log1p": _tiny(lambda x: x.log1p()),
    "sinh": _SINH,
    "cosh": _COSH_,
    "tanh": _beside(
        (_same, lambda x: x.tanh() - x),
        (-1, lambda x: 2 * _decay(-2 * x)),
        (1, lambda x: -2 * _decay(2 * x)),
    ),
    "sigmoid": _LOGISTIC,
    "silu": _beside(
        (_halved, lambda x: x * (x / 2).tanh() / 2),
        (0, lambda x: x * _sigmoid(x)),
        (_same, lambda x: -x * _decay(x)),
    ),
    "softplus": _beside(
        (0, lambda x: x.exp().log1p()),
        (0, lambda x: x.exp().log1p()),
        (_same, lambda x: (-x).exp().log1p()),
    ),
    "sqrt": _of_root(lambda r: r, lambda x: x.sqrt()),
    "rsqrt": _of_root(lambda r: 1 / r, lambda x: 1 / x.sqrt()),
    "reciprocal": _rational(lambda q: 1 / q),
    "erf": _beside((0, lambda x: x.erf()), (-1, lambda x: (-x).erfc()), (1, lambda x: -x.erfc())),
    "erfc": _beside((1, lambda x: -x.erf()), (2, lambda x: -(-x).erfc()), (0, lambda x: x.erfc())),
    "gelu": _beside(
        (_halved, lambda x: x * (x / flint.arb(2).sqrt()).erf() / 2),
        (0, lambda x: x * _normal_tail(-x)),
        (_same, lambda x: -x * _normal_tail(x)),
    ),
    "gelu_tanh": _beside(
        (_halved, lambda x: x * (_twice(x)[0] / 2).tanh() / 2),
        (0, lambda x: x * _sigmoid(_twice(x)[0])),
        (_same, lambda x: -x * _decay(_twice(x)[0])),
    ),
    "sin": _SINE,
    "cos": _COSINE,
    "tan": _tiny(lambda x: x.tan()),
    "asin": _tiny(lambda x: x.asin()),
    "acos": _plain(lambda x: x.acos()),
    "atan": _tiny(lambda x: x.atan()),
    "sinpi": _SINPI,
    "cospi": _COSPI,
}
_CURVE = (1, lambda x: x * x / ((1 - x * x).sqrt() * (1 + (1 - x * x).sqrt())))
_ASIN = _beside(_CURVE, *[(0, lambda x: 1 / (1 - x * x).sqrt())] * 2, 0.5)
SLOPES: dict[str, Any] = {
    "exp": _EXP,
    "exp2": _plain(lambda x: (x * flint.arb(2).log()).exp() * flint.arb(2).log()),
    "expm1": _EXP,
    "log": _rational(lambda q: 1 / q),
    "log2": _plain(lambda x: 1 / (x * flint.arb(2).log())),
    "log10": _plain(lambda x: 1 / (x * flint.arb(10).log())),
    "log1p": _rational(lambda q: 1 / (1 + q)),
    "sinh": _COSH_,
    "cosh": _SINH,
    "tanh": _beside((1, lambda x: -(x.tanh() ** 2)), (0, _cosh_slope), (0, _cosh_slope)),
    "sigmoid": _beside(
        (Fraction(1, 4), lambda x: -((x / 2).tanh() ** 2) / 4),
        (0, lambda x: _cosh_slope(x / 2) / 4),
        (0, lambda x: _cosh_slope(x / 2) / 4),
    ),
    "silu": _beside(
        (Fraction(1, 2), _silu_rise),
        (0, lambda x: _sigmoid(x) * (1 + x * _decay(x))),
        (1, lambda x: _decay(x) * (x * _sigmoid(x) - 1)),
    ),
    "softplus": _LOGISTIC,
    "sqrt": _of_root(lambda r: 1 / (2 * r), lambda x: 1 / (2 * x.sqrt())),
    "rsqrt": _of_root(lambda r: -1 / (2 * r**3), lambda x: -1 / (2 * x * x.sqrt())),
    "reciprocal": _rational(lambda q: -1 / q**2),
    "erf": _plain(_bell),
    "erfc": _plain(lambda x: -_bell(x)),
    "gelu": _beside(
        (Fraction(1, 2), _gelu_rise),
        (0, lambda x: _normal_tail(-x) + x * _density(x)),
        (1, lambda x: x * _density(x) - _normal_tail(x)),
    ),
    "gelu_tanh": _beside((Fraction(1, 2), _tanh_rise), (0, _tanh_below), (1, _tanh_above)),
    "sin": _COSINE,
    "cos": _minus(_SINE),
    "tan": _beside((1, lambda x: x.tan() ** 2), *[(0, lambda x: 1 / x.cos() ** 2)] * 2, 0.5),
    "asin": _ASIN,
    "acos": _minus(_ASIN),
    "atan": _rational(lambda q: 1 / (1 + q * q)),
    "sinpi": _pi_times(_COSPI, 1),
    "cospi": _pi_times(_SINPI, -1),
}


class Exact:
    """dy f'(x), or f(x) where dy is None, for finite x inside the domain."""

    def __init__(self, name: str, x: float, dy: float | None = None) -> None:
        self.of = (VALUES if dy is None else SLOPES)[name]
        self.told = f"{name}({x.hex()})" if dy is None else f"{dy.hex()} {name}'({x.hex()})"
        self.x, self.q = x, Fraction(x)
        self.factor = Fraction(1 if dy is None else dy)
        reach = abs(math.frexp(x)[1])
        self._at(300 + 3 * reach if x else 300)

    def _at(self, bits: int) -> None:
        self.bits = bits
        with flint.ctx.workprec(bits):
            anchor, delta = self.of(flint.arb(self.x), self.q)
            top, bottom = self.factor.as_integer_ratio()
            self.anchor, self.delta = anchor * self.factor, delta * top / bottom

    def escape(self, enclosure: Enclosure, i: int = 0) -> float:
        """|f - (hi + lo)| / radius, rounded up: above 1 the value escapes."""
        with flint.ctx.workprec(self.bits + 200):
            unit = flint.arb(2) ** int(enclosure.scale[i])
            parts = (enclosure.hi, enclosure.lo, enclosure.radius)
            hi, lo, radius = (flint.arb(float(part[i])) * unit for part in parts)
            anchor = flint.arb(self.anchor.numerator) / self.anchor.denominator
            error = abs(anchor - hi - lo + self.delta)
            if radius == 0:
                return 0.0 if error.contains(0) else math.inf
            return float((error / radius).upper())

    def side_of(self, numerator: int, exponent: int) -> int:
        """The sign of f - numerator 2^exponent."""
        while self.bits <= _LAST:
            with flint.ctx.workprec(self.bits + numerator.bit_length()):
                if self.anchor == 0 or abs(exponent) > _FAR:
                    offset = flint.arb((numerator, exponent)) - flint.arb(self.anchor.numerator) / (
                        self.anchor.denominator
                    )
                else:
                    exact = numerator * Fraction(2) ** exponent - self.anchor
                    offset = flint.arb(exact.numerator) / exact.denominator
                if self.delta > offset:
                    return 1
                if self.delta < offset:
                    return -1
                if self.delta.is_exact() and offset.is_exact() and self.delta == offset:
                    return 0
            self._at(2 * self.bits)
        raise ArithmeticError(f"No bits tell {self.told} from {numerator} * 2^{exponent}.")


def worst_escape(name: str, x: Any, enclosure: Enclosure, dy: float | None = None) -> float:
    """The largest `escape` of f(x), or of dy f'(x)."""
    assert enclosure.size == len(x) > 0
    return max(Exact(name, float(v), dy).escape(enclosure, i) for i, v in enumerate(x))

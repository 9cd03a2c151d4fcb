"""Emulated kernels: rounded arithmetic with all that a right kernel of a form may do otherwise."""

from fractions import Fraction
from typing import Any

import flint
import numpy as np
from context_rules import arb_of

from refkernels.arithmetic import formats
from refkernels.contexts import Arb, Bound, RoundedArithmetic
from refkernels.contexts import functions as proven
from refkernels.contexts.bound_value import BoundValue
from refkernels.contexts.working import data

LOG2E = 1.4426950408889634


class Kernel(RoundedArithmetic):
    """Functions off by up to `limit` ulp, powers by random products, means by the reciprocal, exp
    by exp2 without FMA, and pivots of another run of the scores, where asked for."""

    def __init__(
        self,
        *arguments: Any,
        seed: int = 0,
        limit: float = 0.0,
        exp2: bool = False,
        reciprocal: bool = False,
        pivots: list[Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, seed=seed, **options)
        self.rng = np.random.default_rng(seed)
        self.limit, self.exp2, self.reciprocal = limit, exp2, reciprocal
        self.found: list[Any] = []
        self.pivots = pivots

    def function(self, name: str, a: Any) -> Any:
        if name == "sqrt":
            return super().function(name, a)
        x = data(a).astype(np.float64)
        with np.errstate(all="ignore"):
            if name == "exp" and self.exp2:
                exact = np.exp2(data(a * self.value(LOG2E)).astype(np.float64))
            else:
                exact = self.exact(name, x)
            # An ulp of the exact value, which may be just below a power of two.
            _, exponent = np.frexp(np.maximum(np.abs(exact) * (1 - 2.0**-30), 2.0**-1074))
            ulp = np.ldexp(1.0, np.maximum(exponent - 1, self.format.emin) - self.format.p + 1)
            room = max(self.limit - 1.25, 0.0)  # it is rounded to the format
            off = self.rng.choice([-1.0, 1.0, 0.0, 0.6], exact.shape) * room * ulp
            return self.value(exact + np.where(np.isfinite(ulp), off, 0.0))

    def exact(self, name: str, x: Any) -> Any:
        """f(x) in float64, nearly."""
        return proven.value(name, x)[0]

    def power(self, a: Any, exponent: int) -> Any:
        if exponent < 0:
            one = self.number(1)
            if self.reciprocal:
                return self.power(self.divide(one, a), -exponent)
            return self.divide(one, self.power(a, -exponent))
        if exponent < 2:
            return super().power(a, exponent)
        first = int(self.rng.integers(1, exponent))
        return self.power(a, first) * self.power(a, exponent - first)

    def mean(self, a: Any, axis: int = -1) -> Any:
        if self.reciprocal:
            return self.sum(a, axis) * (self.number(1) / self.number(a.shape[axis]))
        return super().mean(a, axis)

    def pivot(self, a: Any, axis: int = -1) -> Any:
        largest = self.max(a, axis)
        self.found.append(data(largest))
        return largest if self.pivots is None else self.value(self.pivots.pop(0))


def delivered(result: Any, working: str, storage: str | None = None) -> Any:
    """A result as its kernel hands it over."""
    with np.errstate(over="ignore"):
        values = data(result).astype(formats.get(working).storage)
        return values.astype(formats.get(storage or working).storage)


def kernel_of(option: dict[str, Any], working: str, **more: Any) -> Kernel:
    return Kernel(**{"format": working, **option, **more})


def kernels(working: str, storage: str | None, exp2: bool, limit: float) -> list[dict[str, Any]]:
    """Options of the kernels that a form's bound covers."""
    options: list[dict[str, Any]] = []
    for order in ("sequential", "reversed", "pairwise", "random"):
        for fma in (False, True):
            kept = storage if fma or order == "random" else None  # narrow, or not at all
            options.append({"order": order, "fma": fma, "storage": kept, "seed": len(options)})
    for option in options[1::2]:
        option |= {"limit": limit, "reciprocal": True}
    for option in options[::3]:
        option["exp2"] = exp2
    if working != "float64":  # in a wider format, rounded to the working one at the end
        options.append({"format": "float64", "storage": None, "limit": limit})
        options.append({"format": "float64", "storage": storage, "fma": True, "order": "pairwise"})
    return options


def exceeds(got: Any, truth: Any, bound: Any) -> tuple[list[int], float]:
    """The places where a kernel is certainly beyond the bound, and the largest error / bound."""
    places, largest = [], 0.0
    for i, (value, z, r) in enumerate(zip(got.flat, truth.data.flat, bound.flat, strict=True)):
        if not np.isfinite(r):
            continue
        if not np.isfinite(value):
            places.append(i)
            continue
        off = abs(flint.arb(float(value)) - z)
        if off > flint.arb(float(r)):
            places.append(i)
        if r > 0.0:
            largest = max(largest, float((off / flint.arb(float(r))).mid()))
    return places, largest


def inputs_of_rules(rng: np.random.Generator, format: str, shape: tuple[int, ...]) -> Any:
    """What a kernel holds, in the format; the exact numbers that it should; a ball around each of
    those, and how far they are apart at most."""
    target, n = formats.get(format), int(np.prod(shape))
    low, high = max(target.emin - target.p, -1074), target.emax
    kinds = [
        rng.normal(0, 1, n),
        rng.normal(0, 1, n) * 2.0 ** rng.integers(-9, 9, n),
        rng.normal(0, 1, n) * 2.0 ** rng.integers(low, high // 3, n),
        rng.integers(-4, 5, n).astype(float),
        rng.integers(-9, 10, n) * target.min_subnormal,
        rng.normal(0, 1, n) * 2.0 ** rng.integers(high // 2, high, n),
    ]
    used = len(kinds) - int(rng.random() < 0.7)  # the last leaves the range in most rules
    with np.errstate(all="ignore"):
        stored = np.choose(rng.integers(0, used, n), kinds).astype(target.dtype)
        stored = np.where(np.isfinite(stored), stored, 1.0).astype(target.dtype)
    wide = stored.astype(np.float64)
    sizes = [np.zeros(n), np.abs(wide) * 2.0 ** rng.integers(-30, -1, n), np.full(n, 2.0**-20)]
    error = np.choose(rng.integers(0, len(sizes), n), sizes)
    sides = rng.choice([-1.0, 1.0, 0.5, 0.0], n).tolist()
    exact = [
        Fraction(x) + Fraction(t) * Fraction(r)
        for x, t, r in zip(wide.tolist(), sides, error.tolist(), strict=True)
    ]
    mid = np.array([float(z) for z in exact])
    mid = np.where(rng.random(n) < 0.5, mid, mid + rng.normal(0, 1, n) * error)
    off = [abs(z - Fraction(m)) for z, m in zip(exact, mid.tolist(), strict=True)]
    radius = np.array([np.nextafter(float(d), np.inf) if d else 0.0 for d in off])
    return tuple(part.reshape(shape) for part in (stored, mid, radius, error)), exact


def attacked(
    rule: Any, arity: int, format: str, rng: np.random.Generator, shape: tuple[int, ...]
) -> int:
    """How many answers of kernels to inexact arguments have a finite bound: none exceeds it."""
    reading = Bound(format)
    stored, exact, bounds, compared = [], [], [], 0
    for _ in range(arity):
        (x, mid, radius, error), z = inputs_of_rules(rng, format, shape)
        stored.append(x)
        exact.append(z)
        bounds.append(BoundValue(reading, reading.ball.value(mid, radius), error))
    bound = rule(reading, *bounds)
    with Arb(2000 if format == "float64" else 700) as arb:
        truth = rule(arb, *(arb_of(z, shape, arb) for z in exact))
        for option in kernels(format, None, False, reading.limit):
            kernel = kernel_of(option, format)
            got = rule(kernel, *(kernel.array(x) for x in stored))
            places, _ = exceeds(delivered(got, format), truth, bound.error)
            assert places == [], (option, places[:5])
            compared += int(np.isfinite(bound.error).sum())
    return compared

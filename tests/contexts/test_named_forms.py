"""The bounds of functions composed of others: every named form is the function, no emulated
kernel of a form exceeds its bound, and the bounds are those of `Bound`.

REFKERNELS_HUNT multiplies the number of attacks.
"""

import math
from typing import Any

import flint
import numpy as np
import pytest
from context_kernels import Kernel, delivered, kernels
from hunting import HUNT
from underflow_attack import error_over_bound, numbers

from refkernels import elementary_ref, trig_ref
from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.contexts import Arb, Bound
from refkernels.contexts.context import FUNCTIONS
from refkernels.contexts.working import data
from refkernels.elementwise import bounds
from refkernels.elementwise.running import Running
from refkernels.metrology.ulp_errors import ulp

FORMATS = ("float16", "bfloat16", "float32", "float64")
OPS = {op.name: op for op in (*elementary_ref.OPS, *trig_ref.OPS)}
RECORDS = {name: op.real_function for name, op in OPS.items()}
FORMS = [
    (name, direction, form)
    for name, record in RECORDS.items()
    for direction, forms in (("forward", record.forms), ("backward", record.slope_forms))
    for form in forms
]
INSIDE = {  # of which the formulas of the others are made
    "asin": 1.0,
    "acos": 1.0,
}
POSITIVE = ("log", "log2", "log10", "sqrt", "rsqrt")


class AnyKernel(Kernel):
    """A kernel with all functions that the oracles know, of which tanh and erf saturate, and with
    the one or the other of two ways, but for one that overflows."""

    def exact(self, name: str, x: Any) -> Any:
        return np.asarray(OPS[name].forward(x))

    def function(self, name: str, a: Any) -> Any:
        limit, self.limit = self.limit, min(self.limit, 2.0 if name == "rsqrt" else self.limit)
        result = super().function(name, a)
        self.limit = limit
        if name not in ("tanh", "erf", "erfc"):
            return result
        x = data(a).astype(np.float64)
        return self.value(np.where(np.abs(x) > 64.0, self.exact(name, x), data(result)))

    def store(self, a: Any) -> Any:
        """That the storage format overflows on the way is no excuse."""
        kept = super().store(a)
        return self.where(np.isfinite(data(kept)), kept, a)

    def either(self, a: Any, b: Any) -> Any:
        first, second = (a, b) if self.rng.random() < 0.5 else (b, a)
        return self.where(np.isfinite(data(first)), first, second)


def drawn(rng: np.random.Generator, name: str, format: Any, n: int) -> tuple[Any, Any]:
    """dy and x from where the functions have their tails, cancel or underflow, or from anywhere."""
    width = rng.choice([1.0, 6.0, 14.0, 95.0, 750.0])
    x = formats.round_to(rng.uniform(-width, width, n), format)
    x = x if rng.random() < 0.8 else numbers(rng, n, format)
    dy = (
        numbers(rng, n, format)
        if rng.random() < 0.5
        else formats.round_to(rng.normal(0, 1, n), format)
    )
    if name in INSIDE:
        x = formats.round_to(rng.uniform(-1, 1, n) ** rng.choice([1, 3]), format)
    if name == "log1p":
        x = np.where(x <= -1, -x, x).astype(x.dtype)
    return dy, np.abs(x) + (x == 0).astype(x.dtype) if name in POSITIVE else x


def arguments(direction: str, dy: Any, x: Any) -> tuple[Any, ...]:
    return (x,) if direction == "forward" else (dy, x)


def truth(name: str, direction: str, inputs: tuple[Any, ...]) -> Any:
    return getattr(OPS[name], direction)(*inputs)


def in_range(form: Any, inputs: tuple[Any, ...], name: str, format: Any) -> Any:
    """Where the form stays in the format's range: elsewhere other forms give its bound, which its
    own answer, NaN or infinite, may miss."""
    xp = Running(format, RECORDS[name].primitives)
    with np.errstate(all="ignore"):
        return np.isfinite(xp.bound(form.formula(xp, *(xp.array(to_float64(x)) for x in inputs))))


@pytest.mark.parametrize("format", FORMATS)
def test_no_kernel_of_a_named_form_exceeds_its_bound(format: str) -> None:
    target = formats.get(format)
    working = formats.working_format(target).name
    largest: dict[tuple[str, str, str], float] = {}
    for seed in range(3 * HUNT):
        rng = np.random.default_rng(seed)
        option = dict(rng.choice(kernels(working, format, False, 4.0)))
        option.pop("order", None)
        for name, direction, form in FORMS:
            dy, x = drawn(rng, name, target, 24)
            inputs = arguments(direction, dy, x)
            kernel = AnyKernel(**{"format": working, **option, "seed": seed})
            got = form.formula(kernel, *(kernel.array(array) for array in inputs))
            with np.errstate(all="ignore"):
                got = delivered(got, working, format)
            bound = bounds.form_bounds(RECORDS[name], *inputs, format=format)[form.name]
            exact = truth(name, direction, inputs)
            overflowed = (
                np.isfinite(bound) & ~np.isfinite(got) & ~in_range(form, inputs, name, target)
            )
            got = np.where(overflowed, np.asarray(exact), got)
            ratio = error_over_bound(got, exact, bound)
            assert ratio <= 1.0, (name, direction, form.name, f"seed {seed}: {ratio:.4g}")
            key = name, direction, form.name
            largest[key] = max(largest.get(key, 0.0), ratio)
    assert len(largest) == len(FORMS)
    if HUNT > 1:
        for key, ratio in sorted(largest.items(), key=lambda item: -item[1]):
            print(format, *key, f"{ratio:.3f}")


FLINT: dict[str, Any] = {
    "exp2": lambda x: (x * flint.arb.const_log2()).exp(),
    "sinpi": lambda x: x.sin_pi(),
    "cospi": lambda x: x.cos_pi(),
}


class AnyArb(Arb):
    def function(self, name: str, a: Any) -> Any:
        return self.each(FLINT.get(name, lambda x: getattr(x, name)()), a)


def test_a_stable_gelu_that_reaches_195_ulp_is_inside_its_bound() -> None:
    """0.5 x erfc(-x / sqrt 2) in float32, erfc correctly rounded: its argument is rounded."""
    x = np.linspace(-13, -9, 20000).astype(np.float32)
    kernel = AnyKernel("float32")
    form = RECORDS["gelu"].forms[0]
    got = delivered(form.formula(kernel, kernel.array(x)), "float32")
    exact = elementary_ref.gelu(x)
    off = np.abs(got.astype(np.float64) - exact.hi)
    assert 150 < np.max(off / ulp(exact.hi, "float32")) < 200
    bound = bounds.form_bounds(RECORDS["gelu"], x, format="float32")
    assert form.name == "x erfc(-x / sqrt 2) / 2"
    assert 0.3 < np.max(off / bound[form.name]) <= 1.0
    lost = bound["x (1 + erf(x / sqrt 2)) / 2"]
    assert np.all(lost > np.abs(exact.hi)), "1 + erf has no digit left here"
    np.testing.assert_array_equal(
        OPS["gelu"].forward_bound(x, format="float32"), np.maximum(lost, bound[form.name])
    )


def test_every_named_form_is_the_function() -> None:
    """In Arb; constants are rationals within 2^-106 of themselves."""
    rng, checked = np.random.default_rng(0), 0
    for name, direction, form in FORMS:
        x = np.concatenate([rng.uniform(-13, 13, 8), rng.uniform(-1, 1, 8)])
        dy, x = rng.normal(0, 1, 16), np.abs(x) if name in POSITIVE else x
        x = x[np.abs(x) < INSIDE.get(name, math.inf)] if name != "log1p" else np.abs(x)
        inputs = arguments(direction, dy[: x.size], x)
        exact = truth(name, direction, inputs)
        with AnyArb(600) as xp:
            value = form.formula(xp, *(xp.array(array) for array in inputs))
            for z, hi, lo in zip(value.data.flat, exact.hi, exact.lo, strict=True):
                off = abs(z - (flint.arb(float(hi)) + flint.arb(float(lo))))
                assert off < abs(z) * flint.arb(2.0**-80), (name, direction, form.name)
                checked += 1
    assert checked > 8 * len(FORMS)


class OfPrimitives(Bound):
    """A function that is defined by others has the errors of its definition, not a library's."""

    def function(self, name: str, a: Any) -> Any:
        if name not in FUNCTIONS:
            raise ValueError(name)
        return super().function(name, a)


def of_contexts(form: Any, inputs: tuple[Any, ...], format: str) -> Any:
    """What `Bound` says of a form, None where it does not know a function in it."""
    working = formats.working_format(format).name
    xp = OfPrimitives(working, storage=format)
    try:
        return xp.bound(form.formula(xp, *(xp.array(array) for array in inputs)))
    except ValueError:
        return None


@pytest.mark.parametrize("format", FORMATS)
def test_the_bounds_of_forms_are_those_that_enclosures_give(format: str) -> None:
    """But for what they know better: that 1 is a number of the format, where tanh is ±1, and which
    quotients are exact."""
    target, ratios = formats.get(format), []
    working = formats.working_format(target)
    for seed in range(4 * HUNT):
        rng = np.random.default_rng(seed)
        for name, direction, form in FORMS:
            dy, x = drawn(rng, name, target, 24)
            inputs = arguments(direction, dy, x)
            theirs = of_contexts(form, inputs, format)
            if theirs is None:
                continue
            ours = bounds.form_bounds(RECORDS[name], *inputs, format=format)[form.name]
            usable = np.isfinite(theirs) & np.isfinite(ours)
            usable &= theirs > 2.0**20 * working.min_subnormal
            size = np.abs(np.asarray(truth(name, direction, inputs), np.float64))
            usable &= (size > 0.0) & (theirs > 2.0 ** -(working.p + 2) * size)
            assert np.all(ours[usable] <= 4.0 * theirs[usable]), (name, direction, form.name, seed)
            ratios.append(ours[usable] / theirs[usable])
    quotients = np.concatenate(ratios)
    assert quotients.size > 1000
    assert np.count_nonzero(quotients < 0.999) < quotients.size / 4
    assert np.median(quotients) == pytest.approx(1.0, abs=0.01)

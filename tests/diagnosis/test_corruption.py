"""Corruption is proven where neither rounding nor the inputs account for a wrong element."""

from functools import partial, reduce
from typing import Any

import numpy as np
import planting
import pytest
from numpy_kernels import F, linear, normal, softmax

import refkernels
from refkernels.diagnosis.explain import one_kernel

PLANTED: list[planting.Planted] = []
of = partial(planting.Asked, PLANTED)
CAUSE, UNWRITTEN = "corrupted_elements", "unwritten_elements"
LINEAR = {"x": normal(40, 48), "weight": normal(60, 48, seed=1), "bias": normal(60, seed=2)}
RNG = np.random.default_rng(6)


def put(kernel: Any, place: Any, value: Any) -> Any:
    """The kernel with another value there, or what the value makes of that one."""

    def spoilt(**inputs: Any) -> Any:
        y = np.array(kernel(**inputs))
        y[place] = value(y[place]) if callable(value) else value
        return y

    return spoilt


def flipped(number: Any, bit: int) -> Any:
    unsigned = number.view({4: np.uint32, 8: np.uint64}[number.itemsize])
    return (unsigned ^ unsigned.dtype.type(1 << bit)).view(number.dtype)


# A float32 that is wrong by its own size says less: its bound is 2^-17 of it.
for kind, bits in ((np.float64, 64), (np.float32, 32)):
    fault = of("linear", {name: array.astype(kind) for name, array in LINEAR.items()}, kind)
    sure = fault if bits == 64 else fault.matched
    small = np.unravel_index(np.argmin(abs(abs(linear(**LINEAR)) - 0.75)), (40, 60))
    fault(CAUSE, put(linear, small, partial(flipped, bit=bits - 2)))
    fault(CAUSE, put(linear, (17, 28), np.nan))
    sure(CAUSE, put(linear, (17, 28), partial(flipped, bit=bits - 1)))
    stale = linear(**LINEAR)[3, 5]
    sure(CAUSE, put(linear, (17, 28), stale))
x = RNG.uniform(-6, 6, 1000)
x[400] = 3.0  # every element is computed alike: the corner of hard-swish has few digits
slope = lambda x, dy: dy * np.where(x < -3, 0.0, np.where(x > 3, 1.0, (2 * x + 3) / 6))  # noqa: E731
fault = of("hardswish", {"x": x, "dy": np.ones(1000)}, float)
fault.unsure(CAUSE, put(slope, 400, 0.25))
for largest in (7.123456789012345, 3.123456789012345):
    x = RNG.uniform(-5, 5, 1000)
    x[400] = largest
    fault = of("sinh", {"x": x}, float)
    (fault if largest < 5 else fault.unsure)(CAUSE, put(lambda x: np.sinh(x), 400, np.inf))
fault = of("softmax", {"x": RNG.standard_normal((300, 8))}, float)
fault(CAUSE, put(softmax, (100, 3), np.nan))
row = np.array([0.5, *[np.nan] * 7])  # its sum may have overflowed; one element of it may not
fault.unsure(CAUSE, put(softmax, 100, row))
x = RNG.uniform(-5, 5, (50, 40))
gathered = np.unravel_index(np.argsort(x, axis=None)[900:910], x.shape)
scattered = np.unravel_index(RNG.choice(x.size, 10, replace=False), x.shape)
fault = of("atan", {"x": x}, float)
fault(CAUSE, put(lambda x: np.arctan(x), scattered, lambda y: y + 0.25))
for place in (gathered, np.s_[::4, 39]):  # neighbours in size or place
    fault.unsure(CAUSE, put(lambda x: np.arctan(x), place, lambda y: y + 0.25))
x = normal(500)
x[7] = np.nan
of("atan", {"x": x}).never(CAUSE, put(lambda x: np.arctan(x), 7, 1.0))
x = -np.square(np.linspace(0.0, 12.0, 600))  # what underflows leaves one value too
of("exp", {"x": x}, float).unsure(UNWRITTEN, lambda x: np.where(x < -100.0, 0.0, np.exp(x)))
fault = of("cumsum", {"x": abs(normal(1000))})  # nothing underflows at the largest values
fault.consistent(UNWRITTEN, put(lambda x: x.astype(float).cumsum(), np.s_[-5:], 0.0))


def added(narrow: Any, parts: Any, a: Any, b: Any, **_: Any) -> Any:
    """Sums of some products of int8 each, in a narrower format than all."""
    sums = [narrow(a[:, part].astype(int) @ b[part]) for part in parts]
    return np.sum(sums, 0).astype(np.float32)


def running(a: Any, b: Any, **_: Any) -> Any:
    terms = a.T[:, :, None].astype(int) * b[:, None]
    return reduce(lambda total, term: ends(total + term), terms).astype(np.float32)


def of_int8(most: int) -> Any:
    a, b = (RNG.integers(-most, most, shape, np.int8) for shape in ((32, 512), (512, 24)))
    return of("scaled_matmul", {"a": a, "b": b, "scale_a": F(1), "scale_b": F(1)})


int16 = partial(np.ndarray.astype, dtype=np.int16)
ends = partial(np.clip, a_min=-(2**15), a_max=2**15 - 1)
fault, blocks = of_int8(110), np.arange(512).reshape(8, 64)
fault("int16_wrapped", partial(added, int16, blocks.reshape(1, -1)))
fault("sum_wraps", partial(added, int16, blocks), to="int16", length="64")
fault("sum_saturates", partial(added, ends, blocks), to="int16", length="64")
fault("sum_saturates_at_each_step", running, to="int16", length="1")
of_int8(60).consistent(CAUSE, partial(added, int16, blocks.T.reshape(8, 64)))  # in unknown parts
steps = {"x": RNG.integers(-127, 127, (40, 33), np.int8), "scale": F(0.05)}
of("dequantize", steps)(CAUSE, put(lambda x, scale: x * scale, (5, 7), 7e8))  # nothing is added


@planting.each(PLANTED)
def test_elements_are_sure_to_be_corrupted_where_nothing_else_accounts_for_them(
    planted: planting.Planted,
) -> None:
    planted.check()


@pytest.mark.parametrize("wrong", [1, 5, 20])
@pytest.mark.parametrize("bounds", [1.1, 3.0, 30.0])
def test_a_small_multiple_of_the_bound_is_no_proof(bounds: float, wrong: int) -> None:
    """However small the errors of the others are, another branch may be that much less accurate."""
    inputs = {name: array.astype(np.float64) for name, array in LINEAR.items()}
    problem, _ = one_kernel("linear", inputs, np.zeros((40, 60)))
    exact, bound = np.asarray(problem.truth.reference["y"]), problem.truth.bound["y"]
    y = exact.copy()
    places = np.random.default_rng(1).choice(y.size, wrong, replace=False)
    y.reshape(-1)[places] += bounds * bound.reshape(-1)[places]
    explanation = refkernels.explain("linear", inputs, {"y": y})
    assert explanation.verdict == "exceeds_bound"
    told = {c.confidence for c in explanation.candidates if c.cause == CAUSE}
    assert told <= {"consistent", None}


def test_a_form_whose_model_gives_infinity_does_not_explain_a_wrong_number_there() -> None:
    """log(softmax) may be log 0, whose bound is infinite: any number would be inside."""
    rng = np.random.default_rng(8)
    x = (40.0 * rng.standard_normal((32, 50))).astype(np.float32)
    target = rng.integers(0, 50, 32)
    shifted = x.astype(np.float64) - x.max(1, keepdims=True)
    loss = np.log(np.exp(shifted).sum(1)) - shifted[np.arange(32), target]
    loss = loss.astype(np.float32)
    loss[int(np.argmax(loss > 104.0))] += 3 * loss.max()
    inputs = {"x": x, "target": target}
    explanation = refkernels.explain("cross_entropy", inputs, {"loss": loss}, {"reduction": "none"})
    assert explanation.verdict == "exceeds_bound"
    fitting = {c.cause for c in explanation.candidates if not c.ruled_out}
    assert "log_of_softmax" not in fitting

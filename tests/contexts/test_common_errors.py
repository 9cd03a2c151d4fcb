"""An error that a formula reads twice is one error: bounds are sharp, and no kernel exceeds them.
(`test_bound` and `test_random_formulas` attack the same bounds on other formulas.)

REFKERNELS_HUNT multiplies the number of attacks.
"""

from typing import Any

import numpy as np
import pytest
from hunting import HUNT

from refkernels import registry
from refkernels.contexts import Arb, Bound, CommonErrors, RoundedArithmetic
from refkernels.contexts.bound_value import BoundValue
from refkernels.contexts.working import data

NORMS = ("group_norm", "batch_norm", "instance_norm")


def two_pass(xp: Any, x: Any) -> Any:
    m = xp.mean(x)
    return m, xp.mean(xp.square(x - m)) + xp.number(1e-5)


def folded(xp: Any, x: Any) -> Any:
    m, v = two_pass(xp, x)
    r = xp.either(xp.rsqrt(v), 1 / xp.sqrt(v))
    return x * r - m * r


def centred_twice(xp: Any, x: Any) -> Any:
    """An error of the mean has no effect at all, but through x - m."""
    d = x - xp.mean(x)
    return d - xp.mean(d)


def cubed(xp: Any, x: Any) -> Any:
    m, v = two_pass(xp, x)
    return xp.power(x - m, 3) / (v * xp.sqrt(v)) + xp.exp(-v) * m


def by_column(xp: Any, x: Any) -> Any:
    """Errors of rows that a sum over the rows mixes."""
    m, v = two_pass(xp, x)
    return xp.sum((x - m) * xp.rsqrt(v), 0)


def moved(xp: Any, x: Any) -> Any:
    rows, n = x.shape
    m, v = two_pass(xp, xp.reshape(x, (rows, 2, n // 2)))
    y = (xp.reshape(x, (rows, 2, n // 2)) - m) * xp.rsqrt(v)
    return xp.transpose(xp.reshape(y, (rows, n)), (1, 0)) - xp.number(1)


FORMULAS = (folded, centred_twice, cubed, by_column, moved)


def rows(rng: np.random.Generator, ratio: float, shape: tuple[int, ...]) -> Any:
    return (rng.normal(ratio, 1.0, shape) * 2.0 ** rng.integers(-20, 20)).astype(np.float32)


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: formula.__name__)
def test_no_kernel_exceeds_the_bound_however_large_the_mean(formula: Any) -> None:
    rng, largest = np.random.default_rng(5), 0.0
    for ratio in (0.0, 1.0, 30.0, 3000.0) * HUNT:
        x = rows(rng, ratio, (6, 32))
        xp, plain = CommonErrors("float32"), Bound("float32")
        bound = xp.bound(formula(xp, xp.array(x)))
        assert np.all(bound <= plain.bound(formula(plain, plain.array(x))))
        with Arb(300) as arb:
            truth = np.vectorize(lambda z: float(z.mid()))(formula(arb, arb.array(x)).data)
            for order in ("sequential", "pairwise", "random"):
                for fma in (False, True):
                    kernel = RoundedArithmetic(
                        "float32", order=order, fma=fma, seed=int(rng.integers(99))
                    )
                    y = np.asarray(data(formula(kernel, kernel.array(x))), np.float64)
                    assert np.all(np.abs(y - truth) <= bound * (1 + 1e-9)), (ratio, order, fma)
                    with np.errstate(all="ignore"):
                        largest = max(largest, float(np.nanmax(np.abs(y - truth) / bound)))
    assert largest > 0.002


READ_TWICE = {
    "product": lambda xp, x, m: (m + x) * (m - x) * m,
    "quotient": lambda xp, x, m: (x - m) / (m + 8),
    "of one": lambda xp, x, m: m / (1 + m) - x,
    "inverse": lambda xp, x, m: x / m - 1 / m,
    "square": lambda xp, x, m: xp.square(m - x) - m,
    "cube": lambda xp, x, m: xp.power(m - x, 3) - 2 * m,
    "function": lambda xp, x, m: xp.exp(m) * xp.rsqrt(m) - xp.log(m) * x,
    "functions": lambda xp, x, m: xp.exp(2 * (x - m)) + 2 * m,
    "either": lambda xp, x, m: xp.either(xp.narrow(m * x, "bfloat16"), x * m) - m * x,
    "sum": lambda xp, x, m: xp.sum(x * m - m) + m,
    "stored": lambda xp, x, m: xp.narrow(m * x, "bfloat16") - m,
}


@pytest.mark.parametrize("name", READ_TWICE)
def test_whatever_a_statistic_is_off_by(name: str) -> None:
    """A statistic that may be off by a tenth of itself, and is, either way."""
    rng, formula = np.random.default_rng(7), READ_TWICE[name]
    for _ in range(20 * HUNT):
        x = rng.uniform(0.5, 2.0, (5, 60)).astype(np.float32)
        m, largest = rng.uniform(0.5, 2.0, (5, 1)), rng.uniform(0.0, 0.1, (5, 1))
        xp, plain, wide = CommonErrors("float32"), Bound("float32"), RoundedArithmetic("float64")
        off = [BoundValue(at, at.ball.array(m), largest * m) for at in (xp, plain)]
        bound = xp.bound(formula(xp, xp.array(x), xp._source(off[0])))
        assert np.all(bound <= plain.bound(formula(plain, plain.array(x), off[1])))
        exact = formula(xp.ball, xp.ball.array(x), xp.ball.array(m)).mid
        for part in (-1.0, -0.5, 0.5, 1.0):
            y = data(formula(wide, wide.array(x), wide.array(m * (1 + part * largest))))
            assert np.all(np.abs(y - exact) <= bound), part


def test_a_folded_norm_is_bounded_as_sharply_as_a_centred_one() -> None:
    """Of x near 3000 deviations: the two products' errors cancel, as their values do."""
    x = np.random.default_rng(0).normal(3000.0, 1.0, (4, 256)).astype(np.float32)
    xp, plain = CommonErrors("float32"), Bound("float32")
    sharp, loose = (np.max(at.bound(folded(at, at.array(x)))) for at in (xp, plain))
    assert sharp < 0.1 < 5.0 < loose
    total = xp.bound(centred_twice(xp, xp.array(x)))  # of order u |x|, the mean's n u |x| is gone
    assert (
        np.max(total)
        < 16 * 2.0**-24 * 3000
        < 0.1 * np.max(plain.bound(centred_twice(plain, plain.array(x))))
    )


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_far_from_zero_a_norm_is_still_held_to_something(name: str, direction: Any) -> None:
    """256 elements, mean / std = 3000: zeros, ones and the truth with its sign changed fail."""
    op, rng = registry.get(name), np.random.default_rng(3)
    x = rng.normal(3000.0, 1.0, (4, 4, 64)).astype(np.float32)
    inputs = {"x": x, "dy": rng.normal(0, 1, x.shape).astype(np.float32)}
    inputs = {key: inputs[key] for key in op.takes(direction) if key in inputs}
    params = {"num_groups": 1} if name == "group_norm" else {}
    output = op.names(direction)[0]
    exact = np.asarray(op.evaluate(direction, inputs, params)[output])
    bound = op.bound(direction, inputs, params, "float32")[output]
    rms = np.sqrt(np.mean(np.square(exact)))
    for wrong in (np.zeros_like(exact), np.ones_like(exact), -exact, 2 * exact):
        assert np.mean(np.abs(wrong - exact) > bound) > 0.5
    assert np.median(bound) < rms / 8

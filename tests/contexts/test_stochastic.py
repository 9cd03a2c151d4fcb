"""Random rounding has the exact result for its mean, leaves exact results alone, and repeats."""

from fractions import Fraction
from typing import Any

import context_formulas as formulas
import flint
import ml_dtypes
import numpy as np
import pytest

from refkernels.contexts import Arb, Stochastic, Working
from refkernels.contexts.working import data

FORMATS = ["float16", "bfloat16", "float32", "float64"]
OPERATIONS: dict[str, Any] = {
    "sum": lambda xp, a, b: a + b,
    "difference": lambda xp, a, b: a - b,
    "product": lambda xp, a, b: a * b,
    "quotient": lambda xp, a, b: a / b,
    "root": lambda xp, a, b: xp.sqrt(abs(a)),
    "exp": lambda xp, a, b: xp.exp(a),
    "tanh": lambda xp, a, b: xp.tanh(b),
    "store": lambda xp, a, b: xp.store(a),
}


def dtype_of(name: str) -> Any:
    return np.dtype(getattr(ml_dtypes, name, name))


def operands(format: str, rng: np.random.Generator) -> list[Any]:
    """Ordinary, far apart, subnormal results, and next to a power of two."""
    dtype = dtype_of(format)
    tiny = float(Working(format).format.min_normal)
    a = np.concatenate([rng.normal(0, 1, 6), [1.0, 1.5, 2.0, 3.7 * np.sqrt(tiny), 1.0, 9.0]])
    b = np.concatenate([rng.normal(0, 1, 6), [-1e-3, 1e-4, 3.0, 1.3 * np.sqrt(tiny), -tiny, 3.0]])
    return [x.astype(dtype) for x in (a, b)]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_the_mean_of_a_rounding_is_the_exact_result(name: str, format: str) -> None:
    """Each draw is a neighbour of x; their mean is x within 5 of its standard deviations."""
    draws, operation = 3000, OPERATIONS[name]
    storage = "bfloat16" if name == "store" else None
    pair = operands(format, np.random.default_rng(1))
    xp = Stochastic(format, 7, storage)
    many = [np.broadcast_to(x, (draws, x.size)) for x in pair]
    got = data(operation(xp, *(xp.array(x) for x in many))).astype(np.float64)
    rounded_somewhere = 0
    with Arb(1500) as arb:
        exact = operation(arb, *(arb.array(x) for x in pair)).data
        for k, x in enumerate(exact):
            values, counts = np.unique(got[:, k], return_counts=True)
            assert len(values) <= 2
            mean = sum(
                (flint.arb(v) * int(c) for v, c in zip(values.tolist(), counts, strict=True)),
                flint.arb(0),
            )
            off = mean / draws - x
            if len(values) == 1:  # exact, or so near a number of the format that it shows
                assert abs(off) <= abs(x) * 2.0**-100 or abs(off) < 1e-2 * spacing(values[0], xp)
                continue
            low, high = (flint.arb(v) for v in values.tolist())
            assert low < x < high
            deviation = ((x - low) * (high - x) / draws).sqrt()
            assert abs(off) < 5 * deviation
            rounded_somewhere += 1
    assert rounded_somewhere >= 5 or (name == "store" and format == "bfloat16")


def spacing(value: float, xp: Stochastic) -> float:
    return float(
        np.ldexp(1.0, max(int(np.frexp(value)[1]) - 1, xp.storage.emin) - xp.storage.p + 1)
    )


@pytest.mark.parametrize("format", FORMATS)
def test_exact_results_stay_exact(format: str) -> None:
    xp = Stochastic(format, 3)
    x = xp.array(
        np.array([0.0, -0.0, 1.0, -3.0, 0.5, 96.0, np.inf, -np.inf]).astype(dtype_of(format))
    )
    for exact, truth in (
        (x + x, [0, 0, 2, -6, 1, 192, np.inf, -np.inf]),
        (x * xp.number(Fraction(1, 4)), [0, 0, 0.25, -0.75, 0.125, 24, np.inf, -np.inf]),
        (x / 2, [0, 0, 0.5, -1.5, 0.25, 48, np.inf, -np.inf]),
        (xp.store(x), [0, 0, 1, -3, 0.5, 96, np.inf, -np.inf]),
        (xp.sqrt(xp.square(abs(x))), [0, 0, 1, 3, 0.5, 96, np.inf, np.inf]),
    ):
        assert data(exact).astype(float).tolist() == truth
    assert np.signbit(data(x + x))[:2].tolist() == [False, True]
    assert np.isnan(data(x - x).astype(float)[6:]).all()
    assert data(xp.sum(xp.array(np.arange(16).astype(dtype_of(format))))).astype(float) == 120


def test_the_same_seed_gives_the_same_bits() -> None:
    x = np.random.default_rng(2).normal(0, 1, (4, 9)).astype(np.float32)

    def run(seed: int) -> bytes:
        xp = Stochastic("float32", seed)
        return data(formulas.softmax(xp, xp.array(x))).tobytes()

    assert run(5) == run(5)
    assert len({run(seed) for seed in range(6)}) == 6


@pytest.mark.parametrize("format", FORMATS)
def test_errors_of_long_sums_are_unbiased_and_grow_as_the_root(format: str) -> None:
    """Runs of Σ x for positive x, which rounding to nearest may stall: mean 0, within 5 standard
    deviations, each at most u |partial sum|."""
    runs, n = 300, 200
    terms = np.random.default_rng(4).uniform(0, 1, n).astype(dtype_of(format))
    xp = Stochastic(format, 11)
    sums = data(xp.sum(xp.array(np.broadcast_to(terms, (runs, n))))).astype(np.float64)[:, 0]
    exact = sum(Fraction(float(t)) for t in terms)
    off = np.array([float(Fraction(s) - exact) for s in sums.tolist()])
    assert abs(off.mean()) < 5 * off.std() / np.sqrt(runs)
    assert 0 < off.std() <= 2 * xp.format.u * float(exact) * np.sqrt(n)

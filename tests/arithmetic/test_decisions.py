"""The quick tests of an interval agree with exact arithmetic on its ends, for every element."""

import numpy as np
import pytest
from numba_threads import each_number_of_threads

from refkernels.arithmetic import blocks, decisions, formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import round_pair
from refkernels.arithmetic.jit import njit

FORMATS = [formats.BINARY16, formats.BFLOAT16, formats.TF32, formats.BINARY32, formats.BINARY64]
each_format = pytest.mark.parametrize("format", FORMATS, ids=str)


@njit
def one_by_one(hi, lo, radius, scale, p, emin, emax, values, undecided, widths):  # type: ignore[no-untyped-def]
    for i in range(hi.size):
        values[i] = round_pair(hi[i], lo[i], scale[i], p, emin, emax)
        undecided[i] = decisions.is_undecided(hi[i], lo[i], radius[i], scale[i], p, emin, emax)
        widths[i] = decisions.uncertainty_of(hi[i], lo[i], radius[i], scale[i], p, emin)


def beside_boundaries(format: formats.Format, n: int, seed: int) -> Enclosure:
    """Numbers, midpoints and powers of two of the format, from below its subnormals to beyond its
    range, moved by a little and with radii that end a little before or behind the next one."""
    rng = np.random.default_rng(seed)
    lowest, highest = max(format.emin - format.p - 2, -1060), min(format.emax + 2, 1020)
    exponent = rng.integers(lowest, highest, n)
    exponent = np.where(rng.random(n) < 0.5, rng.integers(-3, 3, n), exponent)
    steps = rng.integers(2**format.p, 2 ** (format.p + 1), n).astype(np.float64)
    steps = np.where(rng.random(n) < 0.2, 2.0**format.p, steps)
    with np.errstate(under="ignore", over="ignore"):
        hi = np.ldexp(steps, exponent - format.p) * rng.choice([-1.0, 1.0], n)
        hi *= rng.choice([1.0, 1 + 2.0**-52, 1 - 2.0**-53, 1 + 2.0**-30, 1 + 0.1], n)
        last_place = np.spacing(np.abs(hi))
        lo = last_place * rng.choice([0.0, 0.5, -0.5, 2.0**-10, -(2.0**-30)], n)
        lo = np.where(hi + lo == hi, lo, 0.0)
        size = rng.choice([0.0, 1.0, 2.0, 2.0**-8, 2.0**-20, 2.0**-60], n)
        to_boundary = np.ldexp(1.0, np.maximum(exponent, format.emin) - format.p)
        unit = np.where(rng.random(n) < 0.5, np.abs(hi), np.where(rng.random(n) < 0.7, to_boundary,
                                                                   last_place))  # fmt: skip
        radius = size * unit * rng.choice([1.0, 1 - 2.0**-53, 1 + 2.0**-52, 0.49, 0.5], n)
    special = rng.random(n) < 0.01
    hi = np.where(special, rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan], n), hi)
    lo = np.where(special, 0.0, lo)
    radius = np.where(special & ~(hi == 0.0), 0.0, radius)
    radius = np.where(rng.random(n) < 0.01, np.inf, radius)
    radius = np.where(np.isfinite(hi), radius, 0.0)
    scale = np.where(rng.random(n) < 0.05, rng.integers(-40, 40, n), 0)
    return Enclosure(hi, lo, radius, scale)


@each_format
def test_the_quick_answers_are_those_of_the_exact_arithmetic(format: formats.Format) -> None:
    enclosure = beside_boundaries(format, 150_001, seed=5)
    values, widths = np.empty(enclosure.size), np.empty(enclosure.size)
    undecided = np.empty(enclosure.size, np.bool_)
    limits = (format.p, format.emin, format.emax)
    one_by_one(
        enclosure.hi,
        enclosure.lo,
        enclosure.radius,
        enclosure.scale,
        *limits,
        values,
        undecided,
        widths,
    )
    rounded, certified = enclosure.round(format)
    assert 0.2 < certified.mean() < 0.8
    np.testing.assert_array_equal(certified, ~undecided)
    np.testing.assert_array_equal(enclosure.undecided(format), undecided)
    with np.errstate(over="ignore", invalid="ignore"):
        wide = np.asarray(rounded, dtype=np.float64)
    np.testing.assert_array_equal(wide, values)
    number = ~np.isnan(values)
    np.testing.assert_array_equal(np.signbit(wide)[number], np.signbit(values)[number])
    np.testing.assert_array_equal(enclosure.uncertainty(format), widths)
    for limit in (2.0**-30, 0.01, 0.5, 1.0, 1e6):
        np.testing.assert_array_equal(enclosure.wider_than(limit, format), ~(widths <= limit))


def test_answers_do_not_depend_on_the_threads() -> None:
    enclosure = beside_boundaries(formats.BINARY32, 5 * blocks.BLOCK + 7, seed=6)
    answers = []
    for _ in each_number_of_threads():
        answers.append(
            (
                enclosure.undecided("float32"),
                *enclosure.round("float32"),
                enclosure.uncertainty("float32"),
            )
        )
    for alone, together in zip(*answers, strict=True):
        assert alone.tobytes() == together.tobytes()


@pytest.mark.parametrize("n", [0, 1, 1023, 1024, 1025, 70_000])
def test_constants_stand_for_all_elements(n: int) -> None:
    hi = np.random.default_rng(n).standard_normal(n)
    short = Enclosure(hi, 0.0, 2.0**-26)
    long = Enclosure(hi, np.zeros(n), np.full(n, 2.0**-26), np.zeros(n, np.int64))
    assert len(short.columns()[2]) <= blocks.SPAN
    np.testing.assert_array_equal(short.undecided("float32"), long.undecided("float32"))
    np.testing.assert_array_equal(short.uncertainty("float32"), long.uncertainty("float32"))
    assert short.undecided("float32").shape == (n,)


def test_rows_and_columns_of_radii_are_taken() -> None:
    hi = np.random.default_rng(0).standard_normal((7, 300))
    rows = np.linspace(0, 2.0**-24, 7)[:, None]
    wide = Enclosure(hi, 0.0, np.broadcast_to(rows, hi.shape).copy())
    np.testing.assert_array_equal(
        Enclosure(hi, 0.0, rows).undecided("float32"), wide.undecided("float32")
    )
    assert Enclosure(hi.T, 0.0, rows.T).undecided("float32").shape == (300, 7)


def test_a_failure_in_a_thread_is_raised() -> None:
    def fail(first: int, last: int) -> None:
        if first >= 2:
            raise ArithmeticError(f"{first} to {last}")

    with pytest.raises(ArithmeticError):
        blocks.each_block(fail, 10, block=1)

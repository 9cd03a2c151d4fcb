"""The vectorised pass over an array gives the figures of its elements, taken one by one."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from numba_threads import each_number_of_threads

from refkernels import metrology
from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.metrology import special_values as flag
from refkernels.metrology.distribution import TALLIED
from refkernels.metrology.elements import compare
from refkernels.metrology.summary import summarise

FORMATS = [formats.BINARY16, formats.BFLOAT16, formats.BINARY32, formats.BINARY64]


def answers(format: formats.Format, n: int, seed: int) -> tuple[Any, Enclosure, np.ndarray]:
    """Mostly good answers of all magnitudes; some beside powers of two and midpoints, far off, of
    the other sign, subnormal, special, or with an enclosure that decides nothing."""
    rng = np.random.default_rng(seed)
    spread = min(format.emax + 3, 1000)
    exponent = np.where(
        rng.random(n) < 0.8, rng.integers(-3, 3, n), rng.integers(-spread, spread, n)
    )
    exponent = np.maximum(exponent, -1000)
    hi = np.ldexp(rng.uniform(-2, 2, n), exponent)
    steps = np.rint(np.ldexp(rng.uniform(1, 2, n), format.p)) * rng.choice([1, 1 + 2.0**-52], n)
    hi = np.where(rng.random(n) < 0.1, np.ldexp(steps, np.minimum(exponent, 900) - format.p), hi)
    hi = np.where(rng.random(n) < 0.05, np.ldexp(1.0, exponent), hi)
    with np.errstate(all="ignore"):
        lo = np.spacing(hi) * rng.choice([0.0, 0.3, -0.4, 2.0**-20], n)
        lo = np.where(hi + lo == hi, lo, 0.0)
        widths = [0.0, 2.0**-90, 2.0**-60, 2.0**-40, format.u, 2.0**-4]
        radius = np.abs(hi) * rng.choice(widths, n, p=[0.2, 0.3, 0.3, 0.1, 0.05, 0.05])
        off = rng.choice([0.0, format.u, 8 * format.u, 2.0**-4, 1.0, -2.0], n,
                         p=[0.6, 0.2, 0.1, 0.08, 0.01, 0.01])  # fmt: skip
        got = hi * (1 + off * rng.uniform(-1, 1, n))
    special = rng.choice([0.0, -0.0, math.inf, -math.inf, math.nan], n)
    stray = rng.random(n) < 0.01
    hi, lo = np.where(stray, special, hi), np.where(stray, 0.0, lo)
    radius = np.where(np.isfinite(hi), radius, 0.0)
    got = np.where(rng.random(n) < 0.01, rng.permutation(special), np.where(stray, hi, got))
    finite = np.where(np.isfinite(hi), np.abs(hi), 0.0)
    bound = finite * rng.choice([0.0, format.u, 2.0**-5], n)
    with np.errstate(over="ignore", invalid="ignore"):
        return got.astype(format.dtype), Enclosure(hi, lo, radius), bound


def one_by_one(got: Any, exact: Enclosure, format: formats.Format) -> list[tuple[Any, ...]]:
    limits = (format.p, format.emin, format.emax)
    columns = got.astype(np.float64), exact.hi, exact.lo, exact.radius
    return [compare(g, h, lo, r, 0, *limits) for g, h, lo, r in zip(*columns, strict=True)]


@pytest.mark.parametrize("format", FORMATS, ids=str)
def test_the_pass_gives_the_figures_of_its_elements(format: formats.Format) -> None:
    got, exact, bound = answers(format, 20_011, seed=format.p)
    elements = one_by_one(got, exact, format)
    flags = np.array([element[0] for element in elements])
    sizes = np.array([abs(element[1]) for element in elements])
    certain = np.array([element[4] for element in elements])
    summary = summarise(got, exact, bound, format)
    compared = flags & flag.COMPARED != 0
    for name, bit in flag.COUNTED.items():
        if bit != flag.SPECIAL_MISMATCH:  # to which stray NaNs are added
            assert summary.counts[name] == np.count_nonzero(flags & bit), name
    assert summary.counts["special_value_mismatches"] == np.count_nonzero(
        flags & (flag.SPECIAL_MISMATCH | flag.STRAY_NAN)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        assert summary.counts["beyond_bound"] == np.count_nonzero(certain > bound)
        ratios = np.where(certain > 0, certain / bound, 0.0)
    judged = ~np.isnan([element[3] for element in elements])
    assert summary.worst_ratio == int(np.flatnonzero(judged)[np.argmax(ratios[judged])])
    assert summary.max_ratio == ratios[judged].max()
    assert summary.max == sizes[compared].max()
    assert summary.worst_error == int(np.flatnonzero(compared)[np.argmax(sizes[compared])])
    assert summary.mean == pytest.approx(math.fsum(sizes[compared]) / compared.sum(), rel=1e-13)
    assert summary.max_distance == max(element[5] for element in elements)
    assert summary.max_uncertainty == max(
        e[2] for e, c in zip(elements, compared, strict=True) if c
    )
    ordered = np.sort(sizes[compared])
    for name, share in (("p50", 500), ("p99", 990), ("p999", 999)):
        assert summary.percentiles[name] == ordered[-(-share * ordered.size // 1000) - 1], name
    assert sum(count for _, count in summary.histogram) == ordered.size
    for edge, count in summary.histogram:
        top = 2.0**-6 if edge == 0.0 else 2 * edge
        inside = (ordered >= edge) & ((ordered < top) | (edge == math.inf))
        assert count == np.count_nonzero(inside)


@pytest.mark.parametrize("format", FORMATS, ids=str)
def test_errors_of_an_array_are_those_of_its_elements(format: formats.Format) -> None:
    got, exact, _ = answers(format, 10_007, seed=format.p + 100)
    elements = one_by_one(got, exact, format)
    errors = metrology.ulp_error(got, exact)
    np.testing.assert_array_equal(errors.value, [element[1] for element in elements])
    np.testing.assert_array_equal(errors.uncertainty, [element[2] for element in elements])


def test_figures_do_not_depend_on_the_threads() -> None:
    got, exact, bound = answers(formats.BINARY32, 5 * TALLIED + 11, seed=3)
    summaries = []
    for _ in each_number_of_threads():
        summaries.append(summarise(got, exact, bound))
    assert repr(dataclasses.asdict(summaries[0])) == repr(dataclasses.asdict(summaries[1]))

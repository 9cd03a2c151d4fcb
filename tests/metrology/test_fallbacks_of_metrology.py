"""Small arrays are judged in NumPy with the bits of the kernels: decisions, errors, summaries."""

import dataclasses
import os

import numpy as np
import pytest
from fallback_runs import both, same_bits

from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.metrology import ulp_error
from refkernels.metrology.summary import summarise

ROUNDS = int(os.environ.get("REFKERNELS_TWIN_ROUNDS", "6"))  # more of them for a deeper hunt
FORMATS = tuple(formats.FORMATS.values())


def among(rng: np.random.Generator, share: float, values: list[float], n: int, others: object):  # type: ignore[no-untyped-def]
    """Some of these values for a share of the elements, the others elsewhere."""
    return np.where(rng.random(n) < share, rng.choice(values, n), others)


def nasty_enclosure(format: formats.Format, n: int, rng: np.random.Generator) -> Enclosure:
    """Intervals of every size about numbers of every size: boundaries of the format, midpoints,
    powers of two, subnormals, zeros, infinities, NaN and scales."""
    powers = rng.uniform(format.emin - format.p - 3, format.emax + 3, n).astype(int)
    normal = rng.standard_normal(n)
    sizes = rng.choice([0, 1, 2], n)
    anywhere = np.where(sizes == 1, powers, rng.integers(-1080, 1030, n))
    hi = np.where(sizes == 0, normal, np.ldexp(normal, anywhere))
    hi = np.where(rng.random(n) < 0.3, np.ldexp(np.rint(np.ldexp(hi, 4)), -4), hi)
    hi = np.where(rng.random(n) < 0.1, np.ldexp(np.copysign(1.0, hi), powers), hi)
    rounded = formats.round_to(hi, format).astype(np.float64)
    hi = np.where((rng.random(n) < 0.3) & np.isfinite(rounded), rounded, hi)
    hi = among(rng, 0.1, [0.0, -0.0, np.inf, -np.inf, np.nan], n, hi)
    finite = np.isfinite(hi)
    unit = np.spacing(np.abs(np.where(finite, hi, 1.0)))
    lo = unit * rng.choice([0.0, 0.5, -0.5, 0.25, -0.25, 1e-5, -1e-9, 0.4999999], n)
    lo = np.where((hi + lo == hi) & finite & (hi != 0.0), lo, 0.0)
    radius = np.abs(hi) * 2.0 ** -rng.integers(0, 70, n) * rng.random(n)
    radius = np.where(rng.random(n) < 0.1, unit * rng.choice([0.25, 0.5, 1, 2, 1e9], n), radius)
    radius = np.where(rng.random(n) < 0.05, 2.0 ** -rng.integers(0, 1074, n), radius)
    radius = np.where(finite, among(rng, 0.3, [0.0, 0.0, 0.0, np.inf], n, radius), 0.0)
    wide = 3000 if rng.random() < 0.3 else 40
    scale = np.where(rng.random(n) < 0.8, 0, rng.integers(-wide, wide, n))
    return Enclosure(hi, lo, radius, scale)


def nearly_right(reference: Enclosure, format: formats.Format, rng: np.random.Generator):  # type: ignore[no-untyped-def]
    """Right roundings, their neighbours, numbers further off, and special values."""
    n = reference.size
    right = reference.round(format)[0].astype(np.float64)
    kind = np.float64 if format.p == 53 else np.float32
    beside = np.nextafter(right.astype(kind), kind(np.inf)).astype(np.float64)
    off = right * (1.0 + rng.standard_normal(n) * 2.0 ** -rng.integers(0, 30, n))
    got = np.where(rng.random(n) < 0.3, beside, np.where(rng.random(n) < 0.2, off, right))
    return among(rng, 0.05, [0.0, -0.0, np.inf, -np.inf, np.nan], n, got).astype(format.storage)


def bounds(reference: Enclosure, rng: np.random.Generator):  # type: ignore[no-untyped-def]
    n = reference.size
    unit = np.spacing(np.abs(np.where(np.isfinite(reference.hi), reference.hi, 1.0)))
    bound = unit * rng.random(n) * rng.choice([0.0, 1.0, 2.0**29, 2.0**45], n)
    return among(rng, 0.1, [np.nan, np.inf, 0.0], n, bound)


def parts(answer):  # type: ignore[no-untyped-def]
    return answer if isinstance(answer, tuple) else (answer,)


@pytest.mark.parametrize("format", FORMATS, ids=str)
def test_fallbacks_give_the_kernels_bits(
    format: formats.Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = 0
    with np.errstate(all="ignore"):
        for seed in range(ROUNDS):
            rng = np.random.default_rng([seed, format.p])
            n = int(rng.choice([1, 3, 17, 1500, 6000]))
            reference = nasty_enclosure(format, n, rng)
            got, bound = nearly_right(reference, format, rng), bounds(reference, rng)
            questions = [
                (reference.round, format),
                (reference.undecided, format),
                (reference.uncertainty, format),
                (reference.wider_than, 0.3, format),
                (ulp_error, got, reference, format),
            ]
            if format is formats.TF32:
                questions.append((formats.round_to, reference.hi, format))
            rounded = formats._round_array(reference.hi, format.p, format.emin, format.emax)
            cast = formats.round_to(reference.hi, format)
            assert same_bits(cast, rounded.astype(format.storage)), f"seed {seed}"
            for question in questions:
                for kernel, fallback in zip(*map(parts, both(monkeypatch, *question)), strict=True):
                    assert same_bits(kernel, fallback), f"{question[0].__name__}, seed {seed}"
                    tried += 1
            for limit in (bound, None):
                summaries = both(monkeypatch, summarise, got, reference, limit, format)
                figures = [dataclasses.asdict(each) for each in summaries]
                for name in figures[0]:
                    kernel, fallback = (repr(each[name]) for each in figures)
                    assert kernel == fallback, f"{name}, seed {seed}"
                    tried += 1
    assert tried > 30 * ROUNDS


def test_constant_parts_stand_for_all_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    hi = np.random.default_rng(0).standard_normal(3000)
    reference = Enclosure(hi, radius=2.0**-26)
    got = hi.astype(np.float32)
    kernel, fallback = both(monkeypatch, summarise, got, reference, np.float64(2.0**-24))
    assert repr(kernel) == repr(fallback)
    assert kernel.counts["undecided"] > 0


def test_an_empty_array_has_no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = Enclosure(np.empty((0, 3)))
    kernel, fallback = both(monkeypatch, summarise, np.empty((0, 3), np.float32), empty)
    assert repr(kernel) == repr(fallback)
    assert kernel.worst_error is None

"""Printed learning rates: the schedule that each run follows, and the first step where two part.

A printed rate is an interval: half a unit of its last digit to either side, and four roundings of
float32. A schedule is named if its exact rates lie in all of them.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from refkernels.schedule_ref import Schedule, conventions
from refkernels.schedule_ref.schedules import parameter_intervals

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_WORD = r"(?:{})[\"']?\s*[=:|\s]\s*"
_RATE = re.compile(_WORD.format("lr|learning[_ ]rate") + f"({_NUMBER})", re.IGNORECASE)
_STEP = re.compile(_WORD.format("step|iter|iteration") + r"(\d+)", re.IGNORECASE)
_ROUNDINGS = 2.0**-22  # of the largest rate
_SAMPLE = 24  # rates by which conventions are told apart


@dataclass(frozen=True)
class PrintedRates:
    """Steps, in order, and their rates; each exact one lies within its `width` of the number."""

    step: np.ndarray[Any, Any]
    rate: np.ndarray[Any, Any]
    width: np.ndarray[Any, Any]


def read_rates(path: Path) -> PrintedRates:
    """The rates of a text: one on a line, or "step rate", or a log's `lr=` with its `step=`; a list
    in JSON too. Raises ValueError, in a sentence."""
    name = str(path)
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{name} is not a text of learning rates.") from None
    pairs = list(_pairs(text, name))
    if not pairs:
        raise ValueError(f"{name} has no learning rates: give one on each line, or 'step rate'.")
    steps = [k if step is None else int(step) for k, (step, _) in enumerate(pairs)]
    for before, after in itertools.pairwise(steps):
        if after <= before:
            raise ValueError(f"{name}: step {after} follows step {before}; steps must rise.")
    numbers = [number for _, number in pairs]
    rates = np.array(numbers, np.float64)
    if not np.isfinite(rates).all():
        raise ValueError(f"{name} has a learning rate that is not finite.")
    width = np.array(_half_units(numbers)) + _ROUNDINGS * np.max(np.abs(rates))
    return PrintedRates(np.array(steps), rates, width)


def _pairs(text: str, name: str) -> Iterator[tuple[str | None, str]]:
    """(step, rate) as printed."""
    if text.lstrip().startswith("["):
        text = "\n".join(re.split(r"[\[\]{},\n]+\s*(?=[\[{\d\"'.-])", text))
    for k, line in enumerate(text.splitlines(), 1):
        said, step = _RATE.search(line), _STEP.search(line)
        numbers = re.findall(rf"(?<![\w.]){_NUMBER}(?![\w.])", line)
        if said:
            yield step[1] if step else None, said[1]
        elif len(numbers) > 2:
            raise ValueError(f"{name}: line {k} has {len(numbers)} numbers, and none is called lr.")
        elif numbers:
            yield numbers[0] if len(numbers) == 2 else None, numbers[-1]


def _half_units(numbers: list[str]) -> list[float]:
    """Half a unit of each number's last digit. Printers cut zeros: unless all have the same number
    of decimals, each has as many digits as the longest."""
    parts = [re.fullmatch(r"[-+]?(\d*)\.?(\d*)(?:[eE]([-+]?\d+))?", text) for text in numbers]
    if len({(len(part[2]), part[3] is None) for part in parts if part}) == 1:
        return [0.5 * 10.0 ** (int(part[3] or 0) - len(part[2])) for part in parts if part]
    digits = max(len((part[1] + part[2]).strip("0")) for part in parts if part)
    tops = [math.floor(math.log10(abs(float(text)) or 1.0)) for text in numbers]
    return [0.5 * 10.0 ** (top + 1 - digits) for top in tops]


def compared(a: PrintedRates, b: PrintedRates | None = None) -> dict[str, Any]:
    """The record: each run's schedule, and the first step of both at which their rates differ."""
    record: dict[str, Any] = {"runs": [_named(one) for one in (a, b) if one is not None]}
    if b is None:
        return record
    shared, first, second = np.intersect1d(a.step, b.step, return_indices=True)
    if not shared.size:
        raise ValueError("The two runs have no step in common.")
    apart = np.abs(a.rate[first] - b.rate[second]) > a.width[first] + b.width[second]
    k = int(np.argmax(apart))
    rates = {"a": float(a.rate[first][k]), "b": float(b.rate[second][k])}
    found = {"step": int(shared[k]), **rates} if apart.any() else None
    return {**record, "shared": int(shared.size), "parted": found}


def _named(rates: PrintedRates) -> dict[str, Any]:
    """The schedule that fits, with the intervals of its parameters; {} where none is known."""
    chosen = np.unique(np.linspace(0, len(rates.step) - 1, _SAMPLE).round().astype(int))
    for guess in _guesses(rates):
        best = conventions(rates.rate[chosen], rates.step[chosen], guess)[0]
        intervals = parameter_intervals(rates.rate, rates.step, rates.width, best.schedule)
        if intervals:
            return {"convention": best.name, "schedule": asdict(best.schedule),
                    "intervals": intervals}  # fmt: skip
    return {}


def _guesses(rates: PrintedRates) -> Iterator[Schedule]:
    """Schedules through the highest rate, or what it rises to next, and another one; the simplest
    first."""
    r, top = [float(rate) for rate in rates.rate], int(np.argmax(rates.rate))
    steps = [int(step) for step in rates.step]
    peaks = [(r[top], steps[top])]
    if top > 1:
        peaks.append((2 * r[top] - r[top - 1], 2 * steps[top] - steps[top - 1]))
    for peak, warmup in peaks:
        factor = r[0] / peak if steps[0] == 0 else 0.0
        warm: dict[str, Any] = {"warmup_steps": warmup, "warmup_factor": factor if warmup else 0.0}
        yield Schedule(peak, **warm)
        lower = [k for k in range(top + 1, len(r)) if r[k] < peak and steps[k] > warmup]
        if len({r[k] for k in lower}) < 2:  # one other rate shows no shape
            continue
        for k in dict.fromkeys((lower[len(lower) // 2], lower[-1]) if lower else ()):
            u = steps[k] - warmup
            for digits in (3, 17) if r[k] > 0.0 else ():
                gamma = float(f"{(r[k] / peak) ** (1 / u):.{digits}g}")
                yield Schedule(peak, "exponential", gamma=gamma, **warm)
            gamma = r[lower[0]] / peak
            yield Schedule(peak, "step", steps[lower[0]] - warmup, gamma=gamma, **warm)
            for low, late in itertools.product(
                dict.fromkeys((0.0, r[-1], 0.1 * peak)), (u, steps[k])
            ):
                share = (r[k] - low) / (peak - low)
                if 0.0 < share < 1.0:
                    lengths = {"linear": late / (1 - share)}
                    lengths["cosine"] = math.pi * late / (2 * math.acos(math.sqrt(share)))
                    for decay, length in lengths.items():
                        for T in dict.fromkeys((math.floor(length), math.ceil(length))):
                            yield Schedule(peak, decay, max(T, 1), low, **warm)

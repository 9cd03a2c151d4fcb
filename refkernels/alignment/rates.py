"""Printed learning rates: the schedule that each run follows, and the first step where two part.

A printed rate is an interval: half a unit of its last digit to either side, and four roundings of
float32. A schedule is named if its exact rates lie in all of them (of more than _MOST, in every
n-th). It is solved for: the line of a warm-up meets the highest rate, and the length of a decay is
the one that fits best.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from refkernels.alignment.shifts import moved
from refkernels.alignment.tensors import Array
from refkernels.schedule_ref import Schedule
from refkernels.schedule_ref.schedules import convention_of, parameter_intervals

_NUMBER = r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|nan|inf(?:inity)?)"
_NUMBERS = re.compile(rf"(?<![\w.]){_NUMBER}(?![\w.])", re.IGNORECASE)
_WORD = r"\b(?:{})[\"']?\s*[=:|\s]\s*"
_RATE = re.compile(
    _WORD.format(r"lr|learning[_ ]?rate(?: of group \d+ to)?")
    + rf"(?:tensor\()?(\[[^\]]*\]|{_NUMBER})",
    re.IGNORECASE,
)
_STEP = re.compile(_WORD.format("step|iter|iteration") + r"(\d+)", re.IGNORECASE)
_ROUNDINGS = 2.0**-22  # of the largest rate
_MOST = 1000  # rates that are certified
_SAMPLE = 48  # rates by which schedules are told apart
_LONGEST = 64  # times what was printed: a longer decay does not show
_NARROWINGS = 6  # of the lengths of a decay, each by 32
_LEAST = 4  # rates of two runs that show which of their steps belong together
_STAIRS = 32  # steps, and periods, of one schedule
_FLOAT64 = 2.0**-40  # of the largest rate: more than all roundings of `_cycle`
# Numbers, and how many steps lie between them; `height`: of each cycle, over that of the last.
_CYCLES = json.loads(Path(__file__).with_name("cycles.json").read_text("utf-8"))

# The share of max_lr - min_lr that is left at u / T; a polynomial's power is solved for.
_SHAPES: dict[str, Callable[[Array], Array]] = {
    "linear": lambda part: 1 - part,
    "cosine": lambda part: np.cos(np.pi / 2 * part) ** 2,
    "inverse_sqrt": lambda part: (1 + part) ** -0.5,
    "polynomial": lambda part: 1 - part,
}


# By step, in order: a rate, and the half width of the interval that holds the exact one.
Rates = dict[int, tuple[float, float]]


def read_rates(path: Path) -> Rates:
    """The rates of a text: one on a line, or "step rate", or a log's `lr=` with its `step=`; a list
    in JSON too. Raises ValueError, in a sentence."""
    name = str(path)
    try:
        pairs = list(_pairs(path.read_text("utf-8"), name))
    except UnicodeDecodeError:
        raise ValueError(f"{name} is not a text of learning rates.") from None
    if not pairs:
        raise ValueError(f"{name} has no learning rates: give one on each line, or 'step rate'.")
    steps = [k if step is None else int(step) for k, (step, _) in enumerate(pairs)]
    for before, after in itertools.pairwise(steps):
        if after <= before:
            raise ValueError(f"{name}: step {after} follows step {before}; steps must rise.")
    numbers = [number for _, number in pairs]
    rates = list(map(float, numbers))
    if not all(map(math.isfinite, rates)):
        raise ValueError(f"{name} has a learning rate that is not finite.")
    return intervals(dict(zip(steps, rates, strict=True)), _half_units(numbers))


def intervals(rates: Mapping[int, float], half_units: Sequence[float] | None = None) -> Rates:
    """Rates by step, exact but for roundings to float32, or printed to half a unit each."""
    rounded = _ROUNDINGS * max(map(abs, rates.values()), default=0.0)
    widths = [half + rounded for half in half_units or [0.0] * len(rates)]
    return dict(zip(rates, zip(rates.values(), widths, strict=True), strict=True))


def _pairs(text: str, name: str) -> Iterator[tuple[str | None, str]]:
    """(step, rate) as printed."""
    if text.lstrip().startswith("["):
        text = "\n".join(re.split(r"[\[\]{},\n]+\s*(?=[\[{\d\"'.niNI-])", text))
    for k, line in enumerate(text.splitlines(), 1):
        said, step = _RATE.search(line), _STEP.search(line)
        numbers = _NUMBERS.findall(said[1] if said else line)
        if said and len(numbers) == 1:
            yield step[1] if step else None, numbers[0]
        elif said:
            raise ValueError(f"{name}: line {k} has {len(numbers)} rates: give those of one group.")
        elif len(numbers) > 2 or (len(numbers) == 2 and not numbers[0].isdigit()):
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


def compared(a: Rates, b: Rates | None = None) -> dict[str, Any]:
    """The record: each run's schedule, and the first step of both at which their rates differ."""
    record: dict[str, Any] = {"runs": [_named(one) for one in (a, b) if one is not None]}
    if b is None:
        return record
    shared = [step for step in a if step in b]
    if not shared:
        raise ValueError("The two runs have no step in common.")
    parted = next((step for step in shared if not _alike(a[step], b[step])), None)
    record |= {"shared": len(shared), "parted": None}
    if parted is not None:
        rates, rule = {"a": a[parted][0], "b": b[parted][0]}, moved(a, b, _alike, _LEAST)
        record["parted"] = {"step": parted, **rates, "moved": rule}
    return record


def _alike(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return abs(one[0] - other[0]) <= one[1] + other[1]


def _named(rates: Rates) -> dict[str, Any]:
    """The first schedule that fits, with the intervals of its parameters, and the other decays that
    fit `also`; {} where none is known."""
    some = list(rates.items())[:: len(rates) // _MOST + 1]
    steps, (r, width) = np.array([k for k, _ in some]), np.array([rate for _, rate in some]).T
    named: dict[str, Any] = {}
    others: dict[str, None] = {"polynomial": None}  # any line is one
    for schedule in _schedules(steps, r, width * 1.001):  # what float64 rounds is certified here
        if named and schedule.decay in others:
            continue
        if intervals := parameter_intervals(r, steps, width, schedule):
            named = named or {"convention": convention_of(schedule), "schedule": asdict(schedule),
                              "intervals": intervals}  # fmt: skip
            others[schedule.decay] = None
    return {**named, "also": list(others)[2:]} if named else _cycle(steps - steps[0], r, width)


def _schedules(printed: Array, r: Array, width: Array) -> Iterator[Schedule]:
    """Schedules that fit in float64, the simplest first."""
    for held, late in itertools.product((False, True), (0, 1, -1)):
        steps = np.maximum(printed - late, 0)
        peaks = dict.fromkeys(_peaks(steps, r))
        for curved, first, (peak, warmup) in itertools.product((False, True), (1, 0), peaks):
            rising = steps < warmup
            part = (steps[rising] + first) / warmup
            part = np.sin(np.pi / 2 * part) ** 2 if curved else part
            factor = _factor(part, r[rising], width[rising], peak)
            if factor is None or (first and (factor or not warmup)) or (curved and not warmup):
                continue
            warm: dict[str, Any] = {"warmup_steps": warmup, "warmup_factor": factor}
            warm |= {"first": first, "late": late, "cosine_warmup": curved}
            tops = np.flatnonzero(r == peak)
            hold = int(steps[tops[-1]]) - warmup if held and tops.size else 0
            for begin in dict.fromkeys((warmup + hold, 0)) if hold > 0 or not held else ():
                u = np.maximum(steps[~rising] - begin, 0)
                for fall in _decays(u, r[~rising], width[~rising], peak):
                    yield Schedule(peak, hold_steps=hold, from_start=begin < warmup, **warm, **fall)


def _peaks(steps: Array, r: Array) -> Iterator[tuple[float, int]]:
    """The highest rate, or one that is not printed, and where the rates' rise ends."""
    tops, top = np.flatnonzero(r == r.max()), float(r.max())
    first, last, start = int(tops[0]), int(tops[-1]), int(np.sum(steps == steps[0])) - 1
    if first <= start or top <= 0.0:  # a late schedule has its first rate twice
        yield top, 0
        return
    yield from ((top, int(steps[k]) + one) for k in (first, last) for one in (0, 1))
    slope = float(r[first] - r[start]) / int(steps[first] - steps[start])
    yield top + slope, int(steps[first]) + 1
    before = max(first - 1, start + 1)
    slope = float(r[before] - r[start]) / int(steps[before] - steps[start])
    if slope > 0.0:
        yield top, int(steps[start]) + round((top - float(r[start])) / slope)


def _factor(part: Array, r: Array, width: Array, peak: float) -> float | None:
    """f of the rates peak (f + (1 - f) part): 0 if that fits; None where no f fits."""
    left = np.where(part < 1.0, 1.0 - part, 1e-300)
    middle, room = (r / (peak or 1.0) - part) / left, width / (peak or 1.0) / left
    low, high = np.max(middle - room, initial=0.0), np.min(middle + room, initial=1.0)
    if low > high:
        return None
    return 0.0 if low <= 0.0 else float(low + high) / 2


def _decays(u: Array, r: Array, width: Array, peak: float) -> Iterator[dict[str, Any]]:
    """The decays whose rates after u steps are r."""
    lower = np.flatnonzero(r < peak - width)
    if not lower.size:
        yield {}
    if np.unique(r[lower]).size < 2:  # one other rate shows no shape
        return
    for k, digits in itertools.product((lower[-1], lower[len(lower) // 2]), (3, 17)):
        gamma = float(f"{(max(r[k], 0.0) / peak) ** (1 / (u[k] or 1)):.{digits}g}")
        if np.all(np.abs(peak * gamma**u - r) <= width):
            yield {"decay": "exponential", "gamma": gamma}
    k, between = int(lower[0]), width[1:] + width[:-1]
    drops = u[1:][r[1:] < r[:-1] - between].tolist()
    stairs = {"decay": "step", "decay_steps": int(u[k]) or 1, "gamma": float(r[k]) / peak}
    for milestones in ((), drops[:_STAIRS]) if len(drops) <= len(r) // 2 else ():
        yield {**stairs, "milestones": tuple(milestones)}
    periods = [(0, u), *_periods(u, u[1:][r[1:] > r[:-1] + between])]
    lows = dict.fromkeys((0.0, float(f"{0.1 * peak:.9g}"), float(r[-1]), None))
    choices = itertools.product(periods, _SHAPES, (True, False), lows)
    for (restarts, place), decay, clamped, low in choices:
        endless, known = decay == "inverse_sqrt", low is not None
        if decay == "polynomial" and not clamped:
            continue
        # It has no floor and no end; and a line has one slope with any floor.
        if (not clamped and low == 0.0) if endless else known or decay == "cosine":
            for found in _solved(decay, clamped, place, r, width, peak, low):
                yield {**found, "restarts": restarts}


def _periods(u: Array, starts: Array) -> Iterator[tuple[int, Array]]:
    """How many times as long as the period before it each is, by the steps at which others than the
    first start; and the places in the first period that u have."""
    ends = np.array([0, *starts])
    if not 0 < len(starts) <= _STAIRS or np.any(np.diff(ends) <= 0):
        return
    ratios = ends[2:] - ends[1:-1], ends[1:-1] - ends[:-2]
    grow = round(float(np.max(ratios[0] / ratios[1]))) if len(starts) > 1 else 0
    for restarts in (grow,) if grow else (1, 2, 3):
        period = np.searchsorted(ends, u, "right") - 1
        yield restarts, (u - ends[period]) / float(restarts) ** period


@np.errstate(all="ignore")
def _solved(
    decay: str, clamped: bool, u: Array, r: Array, width: Array, peak: float, low: float | None
) -> list[dict[str, Any]]:
    """The decay of the length that fits best, if it fits. `low`: its min_lr; None: solved for."""
    chosen = np.unique(np.linspace(0, len(r) - 1, _SAMPLE).round().astype(int))
    u, r, width = u[chosen], r[chosen], width[chosen]
    lengths = np.geomspace(1, _LONGEST * (u.max() or 1), 256)
    for _ in range(_NARROWINGS):
        lengths = np.unique(lengths.round())
        part, power = u / lengths[:, None], np.ones((len(lengths), 1))
        left = _SHAPES[decay](np.minimum(part, 1) if clamped else part)
        if decay == "polynomial" and low is not None:
            share, k = (r - low) / (peak - low), len(r) // 2
            power = np.round(np.log(share[k]) / np.log(left[:, k : k + 1]), 2)
        left, floor = left**power, np.full(power.shape, low or 0.0)
        if low is None:
            gone = 1 - left
            sums = (np.sum(x * gone, 1, keepdims=True) for x in (r - peak * left, gone))
            floor = np.divide(*sums)
        misses = np.max(np.abs(floor + (peak - floor) * left - r) / width, axis=1)
        k = int(np.argmin(np.nan_to_num(misses, nan=np.inf)))
        if misses[k] <= 1.0:
            found = {"decay": decay, "decay_steps": int(lengths[k])}
            found |= {"power": float(power[k, 0]), "clamped": clamped or decay == "inverse_sqrt"}
            return [{**found, "min_lr": float(f"{floor[k, 0]:.{n}g}")} for n in (3, 17)]
        lengths = np.linspace(lengths[max(k - 1, 0)], lengths[min(k + 1, len(lengths) - 1)], 64)
    return []


@np.errstate(all="ignore")
def _cycle(steps: Array, r: Array, width: Array) -> dict[str, Any]:
    """The schedule of cycles.json whose rates go from one number to the next by half cosines or by
    lines, which may end between two steps; {} where none fits. Each number that is solved for takes
    more than two rates."""
    base, top, room = float(r[0]), float(r.max()), width - _FLOAT64 * r.max()
    unit = 10.0 ** math.floor(math.log10(top or 1.0))
    tops = dict.fromkeys((top, *(math.ceil(top / unit * n) / n * unit for n in (1, 10, 100))))
    lows = dict.fromkeys((float(r[-1]), 0.0, *(x / 10**k for x in (base, 1) for k in range(1, 7))))
    for (name, form), curved, high, low in itertools.product(_CYCLES.items(), (1, 0), tops, lows):
        knots, values = form["knots"].split(), {"base_lr": base, "max_lr": high, "min_lr": low}
        lengths, ends = dict[str, tuple[float, float, float]](), [0.0]
        for word, (a, b) in zip(form["lengths"].split(), itertools.pairwise(knots), strict=True):
            span = values[b] - values[a]
            come = (r - values[a]) / span, room / abs(span)
            lengths[word] = lengths.get(word) or _length(steps, ends[-1], *come, curved)
            ends.append(ends[-1] + lengths[word][0])
        if not ends[-1] > 0.0 or len(r) <= 2 * len({*knots, *lengths}):
            continue
        turn, u = np.divmod(steps, ends[-1]) if "height" in form else (0.0, steps)
        height, place = form.get("height", 1.0) ** turn, np.interp(u, ends, range(len(ends)))
        shares = {"base_lr": 1.0 - height}  # of each number in each rate
        for k, knot in enumerate(knots):
            near = np.maximum(1.0 - np.abs(place - k), 0.0)
            near = np.sin(np.pi / 2 * near) ** 2 if curved else near
            shares[knot] = shares.get(knot, 0.0) + height * near
        off = r - sum(share * values[knot] for knot, share in shares.items())
        if np.all(np.abs(off) <= room):
            found = {word: (low, high) for word, (_, low, high) in lengths.items()}
            for knot, share in shares.items():
                least, most = np.max((off - room) / share), np.min((off + room) / share)
                found[knot] = values[knot] + float(least), values[knot] + float(most)
            return {"convention": "by_cosines" if curved else "by_lines", "intervals": found,
                    "schedule": {"decay": name}, "also": []}  # fmt: skip
    return {}


def _length(
    steps: Array, begin: float, come: Array, room: Array, curved: int
) -> tuple[float, float, float]:
    """How many steps a piece takes that begins at `begin`, and the interval of what fits, from the
    part of its way that its rates have `come`. It ends at a whole step if it may, or at a hundredth
    of one."""
    after = np.flatnonzero(steps > begin)
    back = np.flatnonzero(np.diff(come[after]) < -2 * room[after[1:]])
    after = after[: back[0]] if back.size else after  # the last may lie behind the end
    parts = [np.clip(come[after] + x * room[after], 0.0, 1.0) for x in (-1, 1)]
    parts = [2 / np.pi * np.arcsin(np.sqrt(part)) for part in parts] if curved else parts
    least = np.where(parts[1] < 1.0, (steps[after] - begin) / parts[1], 0.0)
    low = float(np.max(least, initial=0.0))
    high = float(np.min((steps[after] - begin) / parts[0], initial=np.inf))
    middle = begin + (low + high) / 2
    lengths = [round(middle, n) - begin for n in (0, 2, 17) if low <= high < math.inf]
    return next((one for one in lengths if low <= one <= high), math.nan), low, high

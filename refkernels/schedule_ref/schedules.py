"""Warm-up and decay, certified, and the conventions by which frameworks' schedules differ.

    s = t - late                                       t, the step, counts from 0
    warm-up, s < W     max_lr (f + (1 - f) (s + first) / W)
                       cosine_warmup: sin² of π/2 times the quotient in its place
    decay, s >= W      d(u),  u = s - W counted from the warm-up's end, or s from its start;
                       max_lr for hold_steps before it; with `restarts` k, u counts from the start
                       of its period, T in the first, k T in the second, k² T in the third

    constant           max_lr
    linear             max_lr - (max_lr - min_lr) u / T
    polynomial         min_lr + (max_lr - min_lr) (1 - u / T)^power
    cosine             min_lr + (max_lr - min_lr) cos²(π u / (2 T))
    step               max_lr gamma^floor(u / T), or gamma^(how many milestones are at most u)
    exponential        max_lr gamma^u
    inverse_sqrt       max_lr (1 + u / T)^(-1/2)

T = decay_steps. If the schedule is `clamped`, linear, polynomial and cosine decays stay constant
from u = T on; otherwise linear and odd polynomials become negative and a cosine rises again. `late`
is 0 in the definition, 1 where step t has the rate of step t - 1, -1 where it has that of t + 1.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arguments import as_flag, as_text
from refkernels.arithmetic.arrays import as_float_array, as_whole_numbers
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.exact import from_fractions, from_integer_balls
from refkernels.arithmetic.ladder import Indices, refine
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.arithmetic.question import Certify, Question
from refkernels.arithmetic.scalars import as_count, as_real
from refkernels.kernels import balls

DECAYS = ("constant", "linear", "polynomial", "cosine", "step", "exponential", "inverse_sqrt")
PRECISIONS = (160, 320, 640, 1280)
# cos^2(pi q / 2) where it is rational for a rational 0 <= q <= 1: the cosine of a rational multiple
# of pi is rational only for 0, ±1/2 and ±1 (Niven 1956, corollary 3.12), so nowhere else.
RATIONAL = {
    Fraction(0): Fraction(1),
    Fraction(1, 3): Fraction(3, 4),
    Fraction(1, 2): Fraction(1, 2),
    Fraction(2, 3): Fraction(1, 4),
    Fraction(1): Fraction(0),
}
_LONGEST = 1 << 16  # bits of an exact power
Number = Fraction | Callable[[], Any]


@dataclass(frozen=True)
class Schedule:
    """A schedule and its conventions; the module's header explains them. Numbers are exact.

    Raises ValueError for settings that make no schedule.
    """

    max_lr: float
    decay: str = "constant"
    decay_steps: int = 1
    min_lr: float = 0.0
    power: float = 1.0
    gamma: float = 0.1
    warmup_steps: int = 0
    warmup_factor: float = 0.0
    first: int = 0
    late: int = 0
    hold_steps: int = 0
    from_start: bool = False
    clamped: bool = True
    restarts: int = 0
    milestones: tuple[int, ...] = ()
    cosine_warmup: bool = False

    def __post_init__(self) -> None:
        if as_text(self.decay, "decay") not in DECAYS:
            raise ValueError(f"decay is {self.decay!r}: it must be one of {', '.join(DECAYS)}.")
        numbers: dict[str, Any] = {"decay_steps": as_count(self.decay_steps, "decay_steps")}
        for name in ("from_start", "clamped", "cosine_warmup"):
            as_flag(getattr(self, name), name)
        for name in ("warmup_steps", "hold_steps", "restarts"):
            numbers[name] = as_count(getattr(self, name), name, 0)
        numbers["milestones"] = tuple(as_whole_numbers(self.milestones, "milestones").tolist())
        for name in ("max_lr", "min_lr", "power", "gamma", "warmup_factor"):
            numbers[name] = as_real(getattr(self, name), name)
            if not math.isfinite(numbers[name]):
                raise ValueError(f"{name} is {numbers[name]!r}: it must be a finite number.")
        vars(self).update(numbers)
        if not self.min_lr <= self.max_lr:
            raise ValueError(f"min_lr {self.min_lr!r} is more than max_lr {self.max_lr!r}.")
        if self.first not in (0, 1) or self.late not in (-1, 0, 1):
            raise ValueError("A schedule has first 0 or 1, and late -1, 0 or 1.")
        numbers |= {"first": int(self.first), "late": int(self.late)}
        if self.decay == "polynomial" and not self.clamped and self.power != int(self.power):
            raise ValueError(
                f"power is {self.power!r}: 1 - u / T has no such power beyond the end."
            )

    def at(self, step: int) -> Number:
        """The rate of a step: a fraction, or a function that gives a ball of Arb."""
        s, top, low = max(step - self.late, 0), Fraction(self.max_lr), Fraction(self.min_lr)
        if s < self.warmup_steps:
            f, part = Fraction(self.warmup_factor), Fraction(s + self.first, self.warmup_steps)
            risen = _cosine(1 - part) if self.cosine_warmup else part
            return _affine(top * f, top * (1 - f), risen)
        u = max((s if self.from_start else s - self.warmup_steps) - self.hold_steps, 0)
        period = self.decay_steps
        while self.restarts and u >= period:
            u, period = u - period, period * self.restarts
        part = Fraction(min(u, period) if self.clamped else u, period)
        if self.decay == "constant":
            return top
        if self.decay == "cosine":
            return _affine(low, top - low, _cosine(part))
        if self.decay in ("linear", "polynomial"):
            power = 1 if self.decay == "linear" else Fraction(self.power)
            return _affine(low, top - low, _power(1 - part, Fraction(power)))
        base, exponent = Fraction(self.gamma), Fraction(u)
        if self.decay == "step":
            passed = sum(milestone <= u for milestone in self.milestones)
            exponent = Fraction(passed if self.milestones else u // period)
        if self.decay == "inverse_sqrt":
            base, exponent = 1 + Fraction(u, period), Fraction(-1, 2)
        return _affine(Fraction(0), top, _power(base, exponent))


def _affine(low: Fraction, span: Fraction, share: Number) -> Number:
    if isinstance(share, Fraction) or not span:
        return low + span * share if isinstance(share, Fraction) else low
    return lambda: _arb(low) + _arb(span) * share()


def _arb(value: Fraction) -> Any:
    import flint

    return flint.arb(flint.fmpq(value.numerator, value.denominator))


def _cosine(part: Fraction) -> Number:
    """cos²(π part / 2), of period 2 and even."""
    part %= 2
    part = min(part, 2 - part)
    if part in RATIONAL:
        return RATIONAL[part]
    left = (1 - part) / 2
    return lambda: _arb(left).sin_pi() ** 2


def _power(base: Fraction, exponent: Fraction) -> Number:
    """base^exponent: a fraction for a whole exponent, else a ball, also for rational roots."""
    if base == 0 or exponent.denominator == 1:
        size = base.numerator.bit_length() + base.denominator.bit_length()
        if base == 0 or abs(exponent) * size <= _LONGEST:
            return base ** int(exponent) if exponent.denominator == 1 else Fraction(exponent == 0)
        return lambda: _arb(base) ** int(exponent)
    return lambda: _arb(base) ** _arb(exponent)


@with_default_fenv
def rate(step: npt.ArrayLike, schedule: Schedule, *, certify: Certify = "enclosure") -> Enclosure:
    """The rate of every step, whole numbers from 0, of any shape.

    Rates that are rational are exact; others are as sharp as the question asks, up to 1,280 bits.
    Raises TypeError where steps are not whole numbers, ValueError for a negative one.
    """
    question, steps = Question.parse(certify), whole_steps(step)
    values = [schedule.at(whole_step) for whole_step in steps.reshape(-1).tolist()]
    open_places = [i for i, value in enumerate(values) if not isinstance(value, Fraction)]
    exact = [value if isinstance(value, Fraction) else Fraction(0) for value in values]
    rates = from_fractions(exact, (len(values),))

    def sharper(left: Indices, precision: int, before: Enclosure) -> Enclosure:
        return _balls([values[i] for i in left], precision)

    rates = refine(rates, np.array(open_places, np.intp), PRECISIONS, sharper, question.undecided)
    return rates.reshape(steps.shape)


def whole_steps(step: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Steps, from 0. Raises TypeError where they are not whole numbers, ValueError for others."""
    steps = as_whole_numbers(step, "step")
    if steps.size and int(steps.min()) < 0:
        raise ValueError(f"step has the element {int(steps.min())}: a schedule starts at step 0.")
    return steps


def _balls(values: list[Any], precision: int) -> Enclosure:
    import flint

    with flint.ctx.workprec(precision):
        mids, radii, exponents = zip(
            *(balls.of(ball(), 2 * precision) for ball in values), strict=True
        )
        return from_integer_balls(mids, radii, exponents, (len(values),))


# --- conventions -------------------------------------------------------------------------------


CONVENTIONS: dict[str, tuple[str, Any]] = {
    "one_step_late": ("late", 1),
    "one_step_early": ("late", -1),
    "warmup_from_first_step": ("first", 1),
    "warmup_from_zero": ("first", 0),
    "decay_from_start": ("from_start", True),
    "decay_after_warmup": ("from_start", False),
    "not_clamped": ("clamped", False),
    "clamped": ("clamped", True),
}


def convention_of(schedule: Schedule) -> str:
    """The conventions in which a schedule departs from the default ones."""
    held = {name: getattr(schedule, key) for name, (key, _) in CONVENTIONS.items()}
    names = (n for n, (key, v) in CONVENTIONS.items() if held[n] == v != getattr(Schedule, key))
    return " and ".join(names) or "as_asked"


def _variants(requested: Schedule) -> dict[str, Schedule]:
    """Every combination of the conventions, by name, the requested one first; each schedule
    once."""
    changes: dict[str, list[str]] = {key: [""] for key, _ in CONVENTIONS.values()}
    for name, (key, value) in CONVENTIONS.items():
        changes[key] += [name] if getattr(requested, key) != value else []
    variants: dict[str, Schedule] = {}
    for chosen in itertools.product(*changes.values()):
        names = [name for name in chosen if name]
        with contextlib.suppress(ValueError):
            variant = replace(requested, **dict(CONVENTIONS[name] for name in names))
            variants[" and ".join(names) or "as_asked"] = variant
    return variants


@dataclass(frozen=True)
class Convention:
    """A convention, and the largest |lr - rate| as a share of max_lr."""

    name: str
    schedule: Schedule
    error: float


@with_default_fenv
def conventions(
    lr: npt.NDArray[Any], step: npt.ArrayLike, schedule: Schedule
) -> tuple[Convention, ...]:
    """The conventions by which rates (float32 or float64, one a step, finite) could have been
    computed, the nearest first; those that agree on all steps are one, under the name with the
    fewest differences from the requested schedule. The next one's error is the evidence. Raises
    ValueError where shapes differ, or lr is empty or not finite."""
    rates, steps = as_float_array(lr, "lr").reshape(-1), as_whole_numbers(step, "step").reshape(-1)
    if rates.shape != steps.shape or not rates.size or not np.isfinite(rates).all():
        raise ValueError(
            f"lr has {rates.size} elements and step {steps.size}: one finite rate each."
        )
    nearest: dict[bytes, Convention] = {}
    unit = abs(schedule.max_lr) or 1.0
    named = sorted(_variants(schedule).items(), key=lambda item: item[0].count(" and "))
    for name, variant in sorted(named, key=lambda item: item[0] != "as_asked"):
        exact = rate(steps, variant)
        values = np.asarray(exact)
        error = float(np.max(np.abs(rates.astype(np.float64) - values))) / unit
        nearest.setdefault(values.tobytes(), Convention(name, variant, error))
    return tuple(sorted(nearest.values(), key=lambda item: item.error))


@with_default_fenv
def parameter_intervals(
    lr: npt.NDArray[Any], step: npt.ArrayLike, width: npt.NDArray[Any], schedule: Schedule
) -> dict[str, tuple[float, float]]:
    """The values of each parameter, the others being the schedule's, whose exact rates all lie
    within `width` of lr; none at all where the schedule's own do not."""

    def off(**change: Any) -> npt.NDArray[np.float64]:
        return np.asarray(rate(step, replace(schedule, **change)), np.float64) - lr

    def fits(**change: Any) -> bool:
        try:
            return bool(np.all(np.abs(off(**change)) <= width))
        except ValueError:
            return False

    if not fits():
        return {}
    intervals, here = {}, off()
    for name in ("max_lr", "min_lr", "warmup_factor"):  # rates are linear in these
        value = float(getattr(schedule, name))
        move = 0.5 * (schedule.max_lr - schedule.min_lr) * (-1 if name == "max_lr" else 1)
        move = move if name != "warmup_factor" else 0.5
        slope = (off(**{name: value + move}) - here) / move if move else np.zeros_like(here)
        moves = slope != 0.0
        if moves.any():
            ends = [(sign * width - here)[moves] / slope[moves] for sign in (-1, 1)]
            low, high = np.minimum(*ends).max(), np.maximum(*ends).min()
            intervals[name] = value + float(low), value + float(high)
    counted = [name for name in ("warmup_steps", "hold_steps") if getattr(schedule, name)]
    lasts = schedule.decay not in ("constant", "exponential") and not schedule.milestones
    counted += ["decay_steps"] if lasts else []
    for name in counted:
        value = int(getattr(schedule, name))
        intervals[name] = _last(fits, name, value, -1), _last(fits, name, value, 1)
    return intervals


def _last(fits: Callable[..., bool], name: str, start: int, stride: int) -> int:
    """The last whole number that fits, in strides that double and then halve."""
    while abs(stride) < 1 << 20 and fits(**{name: start + stride}):
        start, stride = start + stride, 2 * stride
    while stride:
        start, stride = start + stride * fits(**{name: start + stride}), int(stride / 2)
    return start

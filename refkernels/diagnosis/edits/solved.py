"""Numbers that are solved for: another value of a constant, a floor, a ceiling, a filter's cut.

A *knob* is a family of edits, one for each value. Newton's method goes from some starts to what
most elements ask for, and small steps to what comes nearest. What fits is an *interval*, outwards
to where the answer would cost some bits more; it costs as many bits as values of that precision can
be told apart. Proof speaks of it: a usual number is named where exactly one lies in it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.contexts.graph import Edits, Node, Replacement, apply
from refkernels.diagnosis import few_digits
from refkernels.diagnosis.edits.catalogue import Program, by, is_number, shaped, through
from refkernels.diagnosis.edits.screen import RIGHT, Observation

Doubles = npt.NDArray[np.float64]
CONSTANT, MULTIPLIED, ADDED = "constant_differs", "part_multiplied", "constant_added"
INSIDE, MASKED = "added_inside_logarithm", "masked_with_number"
BELOW = "added_to_argument"  # of a function, or to a divisor; other readers have it as it was
_STARTS = (2.0**10, 2.0**-10, 1.0)  # times the present value
_SMALL = (1e-5, 1e-7, 1e-9, 1e-12)  # added to a probability
_LOW = tuple(range(0, -36, -2))  # scores of what is masked; Newton's method needs one near
_QUANTILES = (0.03, 0.5, 0.97)
_STEPS, _MISSES = 12, 2  # of Newton's method, and those that come no nearer
_BEST_STARTS = 2
# Of the truth's bits, what may be left to be refined further: 8 right bits explain a third of 24.
_LADDER = (0.98, 2.0**-8), (0.8, 2.0**-16), (0.6, 2.0**-53)
_IN_STEPS = (math.inf, 2.0**-8), (0.9, 2.0**-50)
_LIMITED = frozenset(
    (
        *("sum", "mean", "norm", "max", "matmul", "multiply", "divide", "function", "add"),
        *("subtract", "negative", "square", "power", "input", "array"),
    )
)
_REFINEMENTS, _PARTS = 60, 6
_FAR = 4.0  # times the largest size: a limit beyond it is none
WORSE = 10.0  # bits: where a value no longer fits
_DEARER = 1.0  # bits: where the limit of one value comes no nearer
_OF_ONE = 2.5  # and of each element, where they are few
_CHANCE = 2.0**-7  # that an interval holds a number of so few digits
_EXPONENT = 7.0  # bits of the binary order of magnitude, and of the sign
USUAL = frozenset(
    (
        *(10.0**-k for k in range(13)),
        *(5.0 * 10.0**-k for k in range(1, 9)),
        *(2.0**-k for k in (7, 10, 23, 24, 52, 53)),
        *(0.0, 1.0, 2.0, 10.0, 100.0, 1000.0, 10000.0),
    )
)


class Knob(NamedTuple):
    """A family of edits. `starts`: the values to begin from. `largest`: the largest size of what is
    limited. `ordered`: what is limited, from where a limit changes nothing; `value`: in place."""

    kind: str
    place: Node
    changes: Callable[[float], Edits]
    starts: tuple[float, ...]
    details: dict[str, Any]
    largest: float = math.inf
    ordered: Doubles = np.zeros(0)
    value: Doubles = np.zeros(0)

    @property
    def begins(self) -> bool:
        """Whether the strongest of its starts changes right elements that others leave."""
        return self.kind in (INSIDE, MASKED)

    @property
    def present(self) -> float:
        """The value that changes nothing; NaN of a limit."""
        asked = self.details.get("asked", math.nan)
        return {CONSTANT: asked, MULTIPLIED: 1.0, ADDED: 0.0, BELOW: 0.0}.get(self.kind, math.nan)

    @property
    def nudged(self) -> float:
        """Hardly another value: where it changes nothing, what depends on it changes in steps."""
        size = abs(self.present) or min(filter(None, map(abs, self.starts)), default=1.0)
        return self.present + size * 2.0**-20

    def binds(self, value: float) -> bool:
        """Whether a limit of that size limits anything, and leaves more than zeros."""
        if self.kind in ("cut", "clamped", "saturated") and not value > 0.0:
            return False
        if self.kind == "cut":
            return value <= self.largest
        if self.kind in ("floored", "capped", "clamped") and self.ordered.size:
            return bool((value < self.ordered[0]) == (self.kind != "floored"))
        return abs(value) <= _FAR * self.largest

    def holds(self, value: float) -> bool:
        """Whether a floor or a ceiling of that size leaves nothing else: it is then a constant."""
        one_sided = self.kind in ("floored", "capped") and self.ordered.size
        return bool(one_sided and (value < self.ordered[-1]) == (self.kind == "capped"))


class SolvedNumber(NamedTuple):
    """The value that comes nearest, the interval of those that fit, what they cost in bits, by how
    much a kernel's rounding of the value widens the interval on either side, and whether results
    change with it in steps."""

    value: float
    low: float
    high: float
    distance: float
    held: float = 0.0
    stepped: bool = False

    @property
    def price(self) -> float:
        """Bits of a value of this precision, or of the digits of the one that is told."""
        width, size = self.high - self.low, max(abs(self.low), abs(self.high))
        digits = len(f"{abs(self.told):e}".split("e")[0].rstrip("0").replace(".", ""))
        precision = math.log2(max(size / width, 1.0) if 0.0 < width < math.inf else 1.0)
        return _EXPONENT + min(precision, few_digits.PRICE * digits)

    @property
    def name(self) -> float | None:
        """0 or the only usual number in the interval; else a number of few digits that is there
        hardly by chance."""
        inside = [number for number in USUAL if self.low <= number <= self.high]
        if 0.0 in inside or len(inside) == 1:
            return 0.0 if 0.0 in inside else inside[0]
        sign = math.copysign(1.0, self.value)
        low, high = sorted((sign * self.low, sign * self.high))
        short = None if inside else few_digits.chosen(low, high, _CHANCE)
        return None if short is None else sign * short[0]

    @property
    def flags(self) -> dict[str, bool]:
        """What is said beside it: others may be meant, or results change with it in steps."""
        known = {"several": self.name is None, "in_steps": self.stepped}
        return {flag: True for flag, holds in known.items() if holds}

    @property
    def told(self) -> float:
        """Its name; else the nearest."""
        if self.name is not None:
            return self.name
        low, high = self.low + self.held, self.high - self.held
        if not math.isfinite(high - low):
            return self.value
        edge = (high - low) / 8.0  # an end may be one of the values that a limit tells apart
        centre = self.value if low + edge <= self.value <= high - edge else (low + high) / 2.0
        ends = (centre + (end - centre) / 4.0 for end in (low, high))
        return float(few_digits.shortest(centre, *ends))


def starts_from(present: float) -> tuple[float, ...]:
    """Where to look for a constant."""
    return (*((present or 1.0) * factor for factor in _STARTS), 0.0)


def knobs(program: Program, value_of: Callable[[Node], Any]) -> Iterator[Knob]:
    """The families of a program. `value_of`: a node's value in the screen."""
    for node in (node for node in program.nodes if node.op != "welford"):  # two numbers
        value = np.asarray(value_of(node))
        if is_number(node) or (value.ndim == 0 and _of_numbers(node)):
            present = float(value)
            details = {"part": node, "param": node.op == "input", "asked": present}
            yield Knob(CONSTANT, node, KINDS[CONSTANT](node), starts_from(present), details)
        elif node.op == "where" and _masked_exponential(node):
            yield Knob(MASKED, node, KINDS[MASKED](node), _LOW, {"part": node})
        elif node.op in _LIMITED and np.unique(finite := value[np.isfinite(value)]).size > 1:
            details = {"part": node}
            yield Knob(MULTIPLIED, node, KINDS[MULTIPLIED](node), (0.5, 0.0, 1.0), details)
            values, sizes = np.unique(finite), np.unique(np.abs(finite))
            begin = float(sizes[len(sizes) // 2]), float(sizes[0]), float(sizes[0]) * 2.0**-10
            yield Knob(ADDED, node, KINDS[ADDED](node), begin, details)
            of_argument = node.op in ("divide", "function")
            if of_argument and len(program.users[node.operands[-1]]) > 1:
                argument = {"part": node.operands[-1], "use": node}
                yield Knob(BELOW, node, KINDS[BELOW](node), begin, argument)
            if node.op == "subtract" and through(node.operands[1]).option == "log":
                yield Knob(INSIDE, node, KINDS[INSIDE](node), _SMALL, details)
            orders = {"floored": values, "capped": values[::-1], "cut": sizes, "saturated": sizes}
            if finite.min() < 0.0 < finite.max():
                orders["clamped"] = sizes[::-1]
            for kind, order in orders.items():
                begin = tuple(np.quantile(order, _QUANTILES).tolist())
                limited = float(sizes[-1]), order if kind != "saturated" else order[:0], value
                yield Knob(kind, node, KINDS[kind](node), begin, details, *limited)


def _of_numbers(node: Node) -> bool:
    """Whether it is computed from numbers alone: 1 + c."""
    parts = map(through, node.operands if node.op in _LIMITED and not node.shape else (node,))
    return all(part is not node and (is_number(part) or _of_numbers(part)) for part in parts)


def _masked_exponential(node: Node) -> tuple[Node, Node, Node] | None:
    """The mask, the exponential and the shift, where a result is e^(s - shift), and 0 if masked."""
    kept, _, inside, masked = node.operands
    exponential, zero = through(inside), masked.op == "number" and masked.option == 0
    shifted = through(exponential.operands[0]) if exponential.option == "exp" else exponential
    if not zero or shifted.op != "subtract" or kept.op != "is" or kept.operands[0].op != "truth":
        return None
    return kept.operands[0], exponential, shifted.operands[1]


def _masked_with(node: Node) -> Callable[[float], Edits]:
    """e^(v - shift) where masked: the score v in the place of minus infinity."""
    parts = _masked_exponential(node)
    assert parts is not None
    return lambda v: {
        node: by(*parts)(lambda xp, mask, e, shift: xp.where(mask, e, xp.exp(xp.number(v) - shift)))
    }


def _limited(limit: Callable[[Any, Any, Any], Any]) -> Callable[[Node], Callable[[float], Edits]]:
    return lambda node: lambda v: {node: by(node)(lambda xp, x: limit(xp, x, xp.number(v)))}


KINDS: dict[str, Callable[[Node], Callable[[float], Edits]]] = {
    CONSTANT: lambda node: (
        lambda v: {node: Replacement((), lambda xp: shaped(xp, xp.number(v), node.shape))}
    ),
    "floored": _limited(lambda xp, x, v: xp.maximum(x, v)),
    "capped": _limited(lambda xp, x, v: xp.minimum(x, v)),
    "clamped": _limited(lambda xp, x, v: xp.maximum(xp.minimum(x, v), -v)),
    "cut": _limited(lambda xp, x, v: xp.where(abs(x) < v, x * 0, x)),
    "saturated": _limited(lambda xp, x, v: v * xp.tanh(x / v)),
    MULTIPLIED: _limited(lambda xp, x, v: x * v),
    ADDED: _limited(lambda xp, x, v: x + v),
    BELOW: lambda node: (
        lambda v: {
            node: by(*node.operands)(
                lambda xp, *above: apply(node, xp, (*above[:-1], above[-1] + xp.number(v)))
            )
        }
    ),
    MASKED: _masked_with,
    INSIDE: _limited(lambda xp, x, v: xp.log(xp.exp(x) + v)),
}


def pointed(knob: Knob, errors: Doubles) -> float:
    """How far an output's errors point to a limit of a result's value: where those beyond and
    before one of its elements differ most, in deviations. Axes that differ are of one element."""
    if knob.ordered.size < 2:
        return 0.0
    sign = np.sign(knob.ordered[0] - knob.ordered[-1])  # from where a limit changes nothing
    beyond = sign * (knob.value if knob.kind in ("floored", "capped") else np.abs(knob.value))
    axes = max(beyond.ndim, errors.ndim)
    beyond, errors = (x.reshape(*x.shape, *(1,) * (axes - x.ndim)) for x in (beyond, errors))
    apart = tuple(k for k in range(axes) if beyond.shape[k] != errors.shape[k])
    beyond, errors = beyond.max(axis=apart).reshape(-1), errors.mean(axis=apart).reshape(-1)
    order, before = np.argsort(beyond, kind="stable"), np.arange(1, errors.size)
    steps, sums = np.diff(beyond[order]) > 0.0, np.cumsum(errors[order] - errors.mean())[:-1]
    means = -sums * np.sqrt(errors.size / (before * (errors.size - before)))
    return float(np.max(means[steps], initial=0.0)) / (float(errors.std()) or 1.0)


def solve(
    knob: Knob,
    seen: Observation,
    predict: Callable[[float | None], Doubles | None],
    rounding: float,
    worse: float = WORSE,
    most: float = math.inf,
) -> SolvedNumber | None:
    """The nearest value and its interval; None where no value is much nearer than the present
    program. `predict`: an output with a value, or without one as it is. `rounding`: the relative
    size of a few roundings; `worse`: the bits by which a value costs more that no longer fits;
    `most`: what a value may cost."""

    @functools.cache
    def predicted(value: float) -> Doubles | None:
        return predict(value) if math.isfinite(value) else None

    @functools.cache
    def at(value: float) -> float:
        known = predicted(value)
        return math.inf if known is None else float(np.sum(seen.bits(known)))

    present = predict(None)
    if present is None or all(_same(predicted(start), present) for start in knob.starts):
        return None  # no value changes anything
    bits, reached = seen.bits(present), list[float]()
    most, rounded = min(np.sum(bits), most), np.sum(bits[bits <= RIGHT])  # that are right
    if knob.ordered.size > 1:
        middles = (knob.ordered[1:] + knob.ordered[:-1]) / 2.0
        weakest = float(middles[0])  # if that is dearer, no more than one value is limited
        starts = [weakest if at(weakest) > most + _DEARER else _between(middles, at)]
    else:
        starts = sorted(knob.starts, key=at)[:_BEST_STARTS]
    in_steps = _same(*map(predicted, (starts[0], starts[0] * (1.0 + 2.0**-30))))
    for start in starts:
        reached += _newton(seen.got, predicted, at, start)
        if at(min(reached, key=at)) >= most:
            break
    best = min((*reached, -reached[-1]), key=at)  # of an even function either sign may be near
    # Both here and there: an eps of 1e-12 counts for nothing, but one of 1e-5 does.
    stepped = in_steps and math.isfinite(knob.present)
    stepped = stepped and _same(present, predict(knob.nudged))
    if stepped:
        best = min(best, knob.present, key=at)
    step = (max(knob.starts) - min(knob.starts)) / 8.0
    for share, precision in _IN_STEPS if stepped else _LADDER:
        if at(best) - rounded > share * (most - rounded):
            return None
        if abs(best - knob.present) <= rounding * abs(best):  # kernels round both alike
            precision = max(precision, rounding / 4.0)
        best = _refined(best, at, max(step, abs(best) / 8.0), precision)
        step = 0.0
    held = rounding * abs(best)  # a kernel rounds what it holds
    worse, step = WORSE if in_steps else worse, abs(best) * 2.0**-50 or 2.0**-100
    there = predicted(best)

    def fits(value: float) -> bool:
        """Whether it costs hardly more, or moves results by no more than a usual error, which may
        be that of a number that all of them share."""
        known = predicted(value)
        if known is None or there is None:
            return False
        return at(value) <= at(best) + worse or seen.apart(there, known, present) <= 1.0

    # A factor of 1 - 2^-23 may be a quotient that is truncated.
    slack = held + rounding * abs(knob.present)
    near_present = (knob.present + side * slack for side in (-1.0, 0.0, 1.0))
    if (knob.kind == CONSTANT and any(map(fits, near_present))) or not knob.binds(best):
        return None
    low, high = (
        few_digits.end_of(fits, best, side * step, side * math.inf) + side * held
        for side in (-1.0, 1.0)
    )
    solution = SolvedNumber(best, low, high, at(best), held, stepped)
    return solution if knob.binds(solution.told) else None


def number_in(
    seen: Observation,
    predict: Callable[[float], Doubles | None],
    asked: float,
    starts: Iterable[float],
    rounding: float = 0.0,
) -> SolvedNumber | None:
    """A number of which an output is a function, and which no node of a program is."""
    place, worse = Node("input", (), None, ()), min(WORSE, _OF_ONE * seen.got.size)
    knob = Knob(CONSTANT, place, lambda v: {}, tuple(starts), {"asked": asked})
    return solve(knob, seen, lambda v: predict(asked if v is None else v), rounding, worse)


def _same(a: Doubles | None, b: Doubles | None) -> bool:
    return a is not None and b is not None and np.array_equal(a, b, equal_nan=True)


def _between(middles: Doubles, at: Callable[[float], float]) -> float:
    """The nearest limit between two of the values that it limits: the nearer it is, the fewer of
    them are wrong. A gradient tells no more of a limit than which they are."""
    low, high = 0, len(middles) - 1
    while True:
        places = np.unique(np.linspace(low, high, _PARTS).astype(int))
        best = min(range(len(places)), key=lambda k: at(float(middles[places[k]])))
        if high - low < _PARTS:
            return float(middles[places[best]])
        low, high = places[max(best - 1, 0)], places[min(best + 1, len(places) - 1)]


def _newton(
    got: Doubles,
    predict: Callable[[float], Doubles | None],
    at: Callable[[float], float],
    value: float,
) -> Iterator[float]:
    """The start, and the values that Newton's method finds from it while they come nearer: in each
    step the median of what the elements that depend on it ask for."""
    nearest, misses = math.inf, 0
    for _ in range(_STEPS):
        yield value
        misses = 0 if at(value) < nearest else misses + 1
        nearest = min(nearest, at(value))
        if misses == _MISSES:
            return
        step = abs(value) * 2.0**-20 or 2.0**-60
        here, there = predict(value), predict(value + step)
        if here is None or there is None:
            return
        with np.errstate(all="ignore"):
            wanted = (got - here) / ((there - here) / step)
        wanted = wanted[np.isfinite(wanted)]
        change = float(np.median(wanted)) if wanted.size else 0.0
        if abs(change) <= abs(value) * 2.0**-30:
            return
        value += change


def _refined(best: float, at: Callable[[float], float], step: float, precision: float) -> float:
    """A better value nearby: the step is a quarter where neither neighbour is better."""
    for _ in range(_REFINEMENTS):
        if step <= (abs(best) or 2.0**-30) * precision:
            break
        nearest = min((best - step, best, best + step), key=at)
        best, step = nearest, step / 4.0 if nearest == best else step
    return best

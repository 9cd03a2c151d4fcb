"""Another value of a param than the requested one: eps = 2^-10, lr = 0.002, beta2 = 0.99.

The value is solved for, as an interval of all that fit: by Newton's method in float64, with errors
in ulp, p' = p + <g - f(p), f'(p)> / <f'(p), f'(p)>, and bisection for both ends. What fits leaves
usual errors and costs less than 20 bits more than the best, or moves the output by no more than the
errors' size. What is proven is the interval; the only usual number in it is named
(`few_digits.told`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import BINARY32, BINARY64
from refkernels.diagnosis import few_digits, units
from refkernels.diagnosis.hypothesis import VALUE, Evidence, Variant
from refkernels.diagnosis.problem import Answer, Array, Arrays, Doubles, Problem
from refkernels.diagnosis.variants.formulas import other_formulas
from refkernels.metrology import UNUSUAL
from refkernels.metrology.ulp_errors import ulp

_LARGEST = 1 << 18  # elements of an output
_STEPS = 12
_PERIODIC = ("base",)  # of a rotary embedding's angles
_OCTAVES = 8  # between the requested value and the furthest start
_CONVERGED = 0.125  # of the uncertainty
_ROUNDED = 2.0 * BINARY32.u  # relative: kernels hold params, and compute with them, in float32
_FLOAT64 = 2.0**-48  # relative: the answer is computed in float64 here
_FEWEST = 8  # elements: some value of a param explains any one number
USUAL_EPS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-12, 0.0, 2**-7, 2**-10, 2**-23, 2**-52)
USUAL = {
    "eps": USUAL_EPS,
    "weight_decay": (0.01, 0.1, 0.05, 1e-3, 5e-4, 1e-4),
    "dampening": (0.1, 0.5),
}
CAUSES = {
    "eps": "eps_differs",
    "weight_decay": "decay_unasked",
    "dampening": "dampening_unasked",
}


def other_values(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """For each float param, the interval of values that explain the outputs: one that all those
    which depend on it share, else one for each."""
    if problem.op.definition is None:
        return
    for name, asked in _floats(problem):
        found = [
            solution
            for output, got in _fitting(problem, outputs)
            if (solution := Fitted(problem, output, got, name, asked).interval()) is not None
        ]
        low = max((solution.low for solution in found), default=math.inf)
        high = min((solution.high for solution in found), default=-math.inf)
        if low <= high:
            best = min(max(found[0].best, low), high)
            found = [SolvedInterval(low, best, high)]
        for solution in found:
            yield from _told(problem, outputs, name, asked, solution)


def _floats(problem: Problem) -> Iterator[tuple[str, float]]:
    """The params that may have another value, and the values that were asked for."""
    asked = {**problem.op.params, **problem.params}.items()
    return ((name, x) for name, x in asked if isinstance(x, float) and math.isfinite(x))


def _fitting(problem: Problem, outputs: Arrays) -> Iterator[tuple[str, Array]]:
    """The outputs of the right shape that are not too large."""
    right = problem.truth.reference
    return ((n, y) for n, y in outputs.items() if y.size <= _LARGEST and y.shape == right[n].shape)


def _told(
    problem: Problem, outputs: Arrays, name: str, asked: float, solution: SolvedInterval
) -> Iterator[Variant]:
    """The variant with a param's value in this interval."""
    value, flags, price = few_digits.told(*solution, asked, USUAL.get(name, ()))
    try:
        answer = problem.ask(params={name: value})
    except ValueError:  # no value of this param
        return
    if value == 0.0 and _is_other_definition(problem, outputs, answer):
        return
    cause, details = cause_of(name, asked, value, (solution.low, solution.high))
    yield Variant(cause, {**details, **flags}, answer, price=price)


def cause_of(
    name: str, asked: float, value: float, interval: tuple[float, float]
) -> tuple[str, dict[str, Any]]:
    """The cause of another value of a param, with its details. A decay or dampening that was not
    requested has a name of its own."""
    ends = {"interval": list(interval)}
    if name == "eps" or (asked == 0.0 and name in CAUSES):
        return CAUSES[name], {name: value, "solved": name, **ends}
    return VALUE, {"param": name, "value": value, "asked": asked, "solved": "value", **ends}


class SolvedInterval(NamedTuple):
    """The values of a param that fit: low <= best <= high; the ends may be infinite."""

    low: float
    best: float
    high: float


def _is_other_definition(problem: Problem, outputs: Arrays, answer: Answer) -> bool:
    """Whether another definition of the op, which may change some outputs only, gives this answer
    too: that names it better."""
    for variant in other_formulas(problem, outputs):
        defined = {**problem.truth.reference, **variant.answer.reference}
        pairs = ((defined[name], answer.reference[name]) for name in outputs)
        if all(np.array_equal(*pair, equal_nan=True) for pair in pairs):
            return True
    return False


def output_with(problem: Problem, output: str, name: str, value: float) -> Doubles | None:
    """The output with this value of the param, in float64; None if it is no value of the param."""
    definition = problem.op.definition
    assert definition is not None
    form = next(iter(definition.of(problem.direction).forms.values()))
    question = problem.direction, form, problem.inputs, {**problem.params, name: value}
    try:
        return to_float64(definition.computed(*question, BINARY64)[output])
    except ValueError:
        return None


class Fitted:
    """One output as a function of one param."""

    def __init__(self, problem: Problem, output: str, got: Array, name: str, asked: float) -> None:
        assert problem.op.definition is not None
        self.problem, self.output, self.name, self.asked = problem, output, name, asked
        self.domain = problem.op.definition.domain(name)
        exact = np.asarray(problem.truth.reference[output])
        self.got, plain = to_float64(got), to_float64(problem.truth.plain[output])
        self.ulp = ulp(exact, problem.format_of(output))
        self.usable = np.isfinite(exact) & np.isfinite(self.got) & np.isfinite(plain)
        self.noise = max(0.5, self._rms(plain - exact))
        self.units = units.of(problem, output)

    def interval(self) -> SolvedInterval | None:
        """The values that make the output ordinary; None if there are none, if the requested value
        does so too, or if some value explains so few elements anyway."""
        solution = self.solved()
        if solution is None:
            return None
        best, deviation = solution
        values = self._values(best)
        if values is None or np.count_nonzero(self.usable) < _FEWEST:
            return None
        self.ulp = np.maximum(self.ulp, ulp(values, self.problem.format_of(self.output)))
        if self._rms(self.got - values) > UNUSUAL * self.noise:
            return None
        rounded = _ROUNDED * abs(best)
        if self.name in _PERIODIC:  # its logarithm is what a kernel rounds
            rounded *= max(1.0, abs(math.log(abs(best)))) if best else 1.0
        step = max(deviation, rounded, abs(best) * BINARY64.u)
        least, most = self.domain.least, self.domain.most
        low = few_digits.end_of(lambda value: self._fits(value, values), best, -step, least)
        high = few_digits.end_of(lambda value: self._fits(value, values), best, step, most)
        low, high = max(low - rounded, least), min(high + rounded, most)
        return None if low <= self.asked <= high else SolvedInterval(low, best, high)

    def _fits(self, value: float, best: Doubles) -> bool:
        """Whether a value explains the output as well as the best does."""
        values = self._values(value)
        if values is None or self._rms(self.got - values) > UNUSUAL * self.noise:
            return False
        if self._rms(values - best) <= self.noise:
            return True
        lost = self.units.gained(self._bits(values) - self._bits(best))
        return float(np.sum(lost)) < Evidence.APART

    def _bits(self, values: Doubles) -> Doubles:
        """The code length of each counted element about these values, up to a constant."""
        errors = self.units.chosen(self._in_ulps(self.got - values)) / self.noise
        bits: Doubles = np.log2(1.0 + errors * errors)
        return bits

    def solved(self) -> tuple[float, float] | None:
        """The param of least squares and its standard deviation, None if no step leads there. Where
        the param's domain begins at 0, a step below 0 ends there."""
        value, deviation = self._start(), math.inf
        for _ in range(_STEPS):
            values = self._values(value)
            step = math.ldexp(max(abs(value), abs(self.asked)) or 1.0, -26)
            shifted = None if values is None else self._values(value + step)
            if values is None or shifted is None:
                return None
            slope = self._in_ulps((shifted - values) / step)
            squares = float(slope @ slope)
            if not 0.0 < squares < math.inf:
                return None
            deviation = self.noise / math.sqrt(squares)
            change = float(slope @ self._in_ulps(self.got - values)) / squares
            if value + change < 0.0 < self.asked and value + change not in self.domain:
                if value == 0.0:
                    return value, deviation
                value = 0.0
                continue
            value += change
            if not math.isfinite(value):
                return None
            if abs(change) <= max(_CONVERGED * deviation, _FLOAT64 * abs(value)):
                return value, deviation
        return None

    def _start(self) -> float:
        """Where to begin: at the requested value, a usual one or, where angles wrap around, one of
        many: whichever is nearest."""
        starts = [self.asked, *USUAL.get(self.name, ())]
        if self.name in _PERIODIC:
            starts = [self.asked * 2.0 ** (k / 8) for k in range(-8 * _OCTAVES, 8 * _OCTAVES + 1)]
        values = ((start, self._values(start)) for start in starts)
        distances = {
            start: self._rms(self.got - array) for start, array in values if array is not None
        }
        return min(distances, key=lambda start: distances[start], default=self.asked)

    def _values(self, value: float) -> Doubles | None:
        return output_with(self.problem, self.output, self.name, value)

    def _in_ulps(self, errors: Doubles) -> Doubles:
        with np.errstate(all="ignore"):
            scaled = np.where(self.usable, errors / self.ulp, 0.0).reshape(-1)
        return np.where(np.isfinite(scaled), scaled, 0.0)

    def _rms(self, errors: Doubles) -> float:
        scaled = self._in_ulps(errors)
        return float(np.linalg.norm(scaled)) / math.sqrt(max(int(np.sum(self.usable)), 1))

"""Another value of a param than the requested one: lr = 0.002, beta2 = 0.99, delta = 2.

The value is solved for, not taken from a list. An output is a smooth function f(p) of a float param
p. Newton's method in float64, with errors in ulp, finds the p of weighted least squares:

    p' = p + <g - f(p), f'(p)> / <f'(p), f'(p)>

Its uncertainty follows from the plain algorithm's errors, or half an ulp if these are smaller. A
value that a person chose has few digits: the shortest number in the interval is named if it has at
most three digits, and an interval as narrow would rarely have one by chance. One that may be
there by chance is `fitted`: it proves nothing, and any cause without a fitted number goes before
it. 0 has no digits: it is named where an interval as narrow, at a random place between 0 and twice
the request, would rarely hold it, and no definition of the op does the same. The certified answer
with that value is then weighed like any other question. (eps has causes of its own.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import BINARY32, BINARY64
from refkernels.diagnosis import few_digits
from refkernels.diagnosis.hypothesis import VALUE, Variant
from refkernels.diagnosis.problem import Answer, Array, Arrays, Doubles, Problem
from refkernels.diagnosis.variants.formulas import UNASKED, other_formulas
from refkernels.metrology import UNUSUAL
from refkernels.metrology.ulp_errors import ulp

_LARGEST = 1 << 18  # elements of an output
_STEPS = 12
_PERIODIC = ("base",)  # of a rotary embedding's angles
_OCTAVES = 8  # between the requested value and the furthest start
_CONVERGED = 0.125  # of the uncertainty
_WIDE = 16.0  # half an interval, in standard deviations: errors of a kernel are not independent
_ROUNDED = 2.0 * BINARY32.u  # relative: kernels hold params, and compute with them, in float32
_CHANCE = 2.0**-7  # the largest probability that an interval has such a number by chance
_FEWEST = 8  # elements: some value of a param explains any one number
_NEVER_SURE = 1e9  # bits
_PRICE = math.log2(10.0)  # bits of a digit; the exponent is worth two more


def other_values(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """For each float param but eps, the values of few digits that explain an output."""
    if problem.op.formulas is None:
        return
    for name, asked in {**problem.op.params, **problem.params}.items():
        if name == "eps" or not isinstance(asked, float) or not math.isfinite(asked):
            continue
        values: dict[float, int | None] = {}
        for output, got in outputs.items():
            if got.size <= _LARGEST and got.shape == problem.truth.reference[output].shape:
                for value, digits in _Fitted(problem, output, got, name, asked).chosen().items():
                    values[value] = values.get(value) or digits
        # A decay or dampening that was not requested has a name, and usual values (`usual_params`).
        unasked, usual = UNASKED.get(name, ("", ())) if asked == 0.0 else ("", ())
        for value, digits in values.items():
            if value in usual:
                continue
            try:
                answer = problem.ask(params={name: value})
            except ValueError:  # no value of this param
                continue
            if value == 0.0 and _is_other_definition(problem, outputs, answer):
                continue
            details = {"param": name, "value": value, "asked": asked}
            named = {name: value} if unasked else details
            fitted = {"fitted": True} if digits is None else {}
            price = _NEVER_SURE if digits is None else _PRICE * (digits + 2)
            yield Variant(unasked or VALUE, {**named, **fitted}, answer, price=price)


def _is_other_definition(problem: Problem, outputs: Arrays, answer: Answer) -> bool:
    """Whether another definition of the op, which may change some outputs only, gives this answer
    too: that names it better."""
    for variant in other_formulas(problem, outputs):
        defined = {**problem.truth.reference, **variant.answer.reference}
        if all(
            np.array_equal(defined[name], answer.reference[name], equal_nan=True)
            for name in outputs
        ):
            return True
    return False


def output_with(problem: Problem, output: str, name: str, value: float) -> Doubles | None:
    """The output with this value of the param, in float64; None if it is no value of the param."""
    formulas = problem.op.formulas
    assert formulas is not None
    form = next(iter(formulas.way(problem.direction).forms.values()))
    question = problem.direction, form, problem.inputs, {**problem.params, name: value}
    try:
        return to_float64(formulas.computed(*question, BINARY64)[output])
    except ValueError:
        return None


class _Fitted:
    """One output as a function of one param."""

    def __init__(self, problem: Problem, output: str, got: Array, name: str, asked: float) -> None:
        assert problem.op.formulas is not None
        self.problem, self.output, self.name, self.asked = problem, output, name, asked
        self.domain = problem.op.formulas.domain(name)
        exact = np.asarray(problem.truth.reference[output])
        self.got, plain = to_float64(got), to_float64(problem.truth.plain[output])
        self.ulp = ulp(exact, problem.format_of(output))
        self.usable = np.isfinite(exact) & np.isfinite(self.got) & np.isfinite(plain)
        self.noise = max(0.5, self._rms(plain - exact))

    def chosen(self) -> dict[float, int | None]:
        """The value of few digits that makes the output ordinary, with the number of its digits,
        or the fitted one with None; empty if there is none, or if the requested value does so
        too."""
        solution = self._solved()
        if solution is None:
            return {}
        best, deviation = solution
        rounded = _ROUNDED * abs(best)
        if self.name in _PERIODIC:  # its logarithm is what a kernel rounds
            rounded *= max(1.0, abs(math.log(abs(best)))) if best else 1.0
        half_width = _WIDE * deviation + rounded
        if abs(best - self.asked) <= half_width:
            return {}
        if abs(best) <= half_width:
            short = (0.0, 0) if half_width <= _CHANCE * abs(self.asked) else None
        else:
            short = few_digits.chosen(abs(best) - half_width, abs(best) + half_width, _CHANCE)
        around = abs(best), abs(best) - half_width, abs(best) + half_width
        if short is None and np.count_nonzero(self.usable) < _FEWEST:
            return {}
        size, digits = short or (float(few_digits.shortest(*around)), None)
        value = math.copysign(size, best)
        values = self._values(value)
        if values is None:
            return {}
        self.ulp = np.maximum(self.ulp, ulp(values, self.problem.format_of(self.output)))
        return {value: digits} if self._rms(self.got - values) <= UNUSUAL * self.noise else {}

    def _solved(self) -> tuple[float, float] | None:
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
            if abs(change) <= _CONVERGED * deviation:
                return value, deviation
        return None

    def _start(self) -> float:
        """Where to begin: at the requested value or, where angles wrap around, the best of many."""
        if self.name not in _PERIODIC:
            return self.asked
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

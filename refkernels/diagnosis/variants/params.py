"""Another value of a param than the requested one: eps = 2^-10, lr = 0.002, beta2 = 0.99.

The value is solved for like a constant of a program (`edits.solved`), on the rows that its screen
reads, as an interval of all that fit. What is proven is the interval; the only usual number in it
is named.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from refkernels.arithmetic.formats import BINARY32
from refkernels.diagnosis import few_digits
from refkernels.diagnosis.edits.names import named
from refkernels.diagnosis.edits.screen import Predicted, Screen
from refkernels.diagnosis.edits.solved import SolvedNumber, number_in, starts_from
from refkernels.diagnosis.hypothesis import VALUE, Variant
from refkernels.diagnosis.problem import Arrays, Problem
from refkernels.ops.evaluation import working

_LARGEST = 1 << 18  # elements of an output
_PERIODIC = ("base",)  # of a rotary embedding's angles
_OCTAVES = 8  # between the requested value and the furthest start
_ROUNDED = 2.0 * BINARY32.u  # relative: kernels hold params, and compute with them, in float32
_AGAIN = 2.0  # times by which the value moves that explains a kernel of the value found
_FEWEST = 8  # elements: some value of a param explains any one number
USUAL_EPS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-12, 0.0, 2**-7, 2**-10, 2**-23, 2**-52)
USUAL = {
    "eps": USUAL_EPS,
    "weight_decay": (0.01, 0.1, 0.05, 1e-3, 5e-4, 1e-4),
    "dampening": (0.1, 0.5),
}


def other_values(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """For each float param, the interval of values that explain the outputs: one that all those
    which depend on it share, else one for each."""
    if problem.op.definition is None:
        return
    settings = {**problem.op.params, **problem.params}.items()
    screen = Screen(problem, {n: y for n, y in outputs.items() if y.size <= _LARGEST})
    for name, asked in ((n, x) for n, x in settings if isinstance(x, float) and math.isfinite(x)):
        answer = functools.cache(lambda value, name=name: screen.asked({}, {name: value}))
        solutions = (_solved(screen, output, name, asked, answer) for output in screen.names)
        found = [solution for solution in solutions if solution is not None]
        low = max((solution.low for solution in found), default=math.inf)
        high = min((solution.high for solution in found), default=-math.inf)
        if low <= high:
            best = min(max(found[0].value, low), high)
            found = [found[0]._replace(low=low, value=best, high=high)]
        for solution in found:
            yield from _told(screen, name, asked, solution)


def _told(screen: Screen, name: str, asked: float, solution: SolvedNumber) -> Iterator[Variant]:
    """The variant with a param's value in this interval."""
    value, flags = solution.told, solution.flags
    usual = [known for known in USUAL.get(name, ()) if solution.low <= known <= solution.high]
    if len(usual) > 1:
        flags |= {"several": True}
    elif not usual and [*flags] == ["several"]:
        nodes = screen.program.nodes if asked and screen.has_a_program else ()
        if any((node.op, node.option) == ("input", name) for node in nodes):
            return  # the program has that constant: its edits say what is known of it
        value = float(few_digits.shortest(value, solution.low, solution.high))
        flags = {"fitted": True}
    try:
        answer = screen.problem.ask(params={name: value})
    except ValueError:  # no value of this param
        return
    cause, details = cause_of(name, asked, value, (solution.low, solution.high))
    yield Variant(cause, {**details, **flags}, answer, price=solution.price)


def cause_of(
    name: str, asked: float, value: float, interval: tuple[float, float]
) -> tuple[str, dict[str, Any]]:
    """The cause of another value of a param, with its details. A decay or dampening that was not
    requested has a name of its own."""
    details = {"param": name, "value": value, "asked": asked, "solved": "value"}
    return named(VALUE, {**details, "interval": list(interval)}, {})


def _solved(
    screen: Screen, output: str, name: str, asked: float, answer: Callable[[float], Predicted]
) -> SolvedNumber | None:
    """The values that explain an output; None if there are none, if the requested value does so
    too, or if some value explains so few elements anyway."""
    seen = screen.observed[output]
    if np.count_nonzero(np.isfinite(seen.got)) < _FEWEST:
        return None
    domain, periodic = screen.definition.domain(name), name in _PERIODIC
    starts = [*starts_from(asked), *USUAL.get(name, ())]
    if periodic:
        starts = [asked * 2.0 ** (k / 8) for k in range(-8 * _OCTAVES, 8 * _OCTAVES + 1)]
    # Of a base, its logarithm is what a kernel rounds.
    rounding = _ROUNDED * (max(1.0, abs(math.log(asked))) if periodic else 1.0)
    question = seen, lambda value: answer(value).get(output), asked
    solution = number_in(*question, starts, rounding)
    if solution is None:
        return None
    # A kernel of that value errs: its errors may seem another value.
    best, xp = solution.value, working("", seen.format, screen.definition.scalars).xp
    kernel = replace(seen, got=screen.asked({}, {name: best}, xp)[output].astype(float))
    again = number_in(kernel, *question[1:], [best], rounding) or solution
    moved = 0.0 if again.low <= best <= again.high else _AGAIN * abs(again.value - best)
    ends = solution.low - moved, solution.high + moved
    low, high = (min(max(end, domain.least), domain.most) for end in ends)
    # Where any value beyond one will do, what the param is for is left out.
    return solution._replace(low=low, high=high) if high < math.inf else None

"""Wrong answers: decoys, which need no kernel, and mutants, of wrong kernels made from the op.

A decoy is zeros; the first input that fits; the truth's median; another row's truth; NaN; what was
in memory. A challenge that accepts one of them shows nothing, and a kernel whose refused answers
are all one of them cheats.

A mutant computes with inputs in a narrower format, has a fault that the op declares, or an edit of
its graph (`diagnosis.edits`): terms left out, other divisors, axes and indices, gradients lost. Of
each kind, some edit is tried on every challenge until one is refused. A mutant that errs no more
than right kernels on every challenge does not count.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.contexts.graph import Edits, Graph
from refkernels.diagnosis.edits.catalogue import RULES, Program
from refkernels.diagnosis.edits.rules import edits_of
from refkernels.diagnosis.edits.usual import faults_of
from refkernels.judging import precision
from refkernels.judging.standard import RANGE, Challenge
from refkernels.metrology.ulp_errors import ulp
from refkernels.ops import edits
from refkernels.ops.formula import Formula, Whole
from refkernels.ops.function_formulas import definition

Array = npt.NDArray[Any]
Outputs = Mapping[str, Any]
Answer = Callable[[Challenge], Outputs]
_NEAR = 8.0  # times the error of right kernels


def decisive_outputs(challenge: Challenge) -> tuple[str, ...]:
    """The outputs for which this challenge rejects every decoy."""
    standard = challenge.standard()
    return tuple(
        name
        for name, right in standard.rounded.items()
        if right.size and all(standard.refuses(name, decoy) for decoy in decoys(challenge, right))
    )


def decoys(challenge: Challenge, right: Array) -> Iterator[Array]:
    """The decoys of an output whose correctly rounded values are these."""
    yield np.zeros_like(right)
    for array in challenge.floats.values():
        if array.size == right.size:
            yield np.ascontiguousarray(array).reshape(right.shape).astype(right.dtype)
            break
    wide = to_float64(right)
    finite = wide[np.isfinite(wide)]
    if finite.size > 1:  # the median of one number is the answer
        with np.errstate(over="ignore"):
            yield np.full_like(right, np.sort(finite)[finite.size // 2])
    if right.size > 1:
        axis = 0 if right.shape[0] > 1 else int(np.argmax(right.shape))
        yield np.roll(right, 1, axis=axis)
    yield np.full_like(right, np.nan)


def decoy_of(refused: Sequence[tuple[Challenge, Mapping[str, Any]]]) -> str | None:
    """The decoy to which all refused answers amount. Answers without elements are left out, and for
    the constant those of a single number."""
    kinds: dict[str, Callable[[Any, Challenge], Any]] = {
        "answers_zeros": lambda a, _: not np.any(a != 0),
        "answers_memory": lambda a, _: unwritten(a) > a.size // 2,
        "answers_nan": lambda a, _: formats.is_one(a.dtype) and np.isnan(to_float64(a)).all(),
        "answers_input": lambda a, c: any(a.tobytes() == x.tobytes() for x in c.floats.values()),
        "answers_constant": lambda a, _: np.all(a == a.reshape(-1)[0]),
    }
    for kind, matches in kinds.items():
        least = 2 if kind == "answers_constant" else 1
        found = [(a, c) for c, outputs in refused for a in arrays_of(outputs) if a.size >= least]
        if found and all(matches(*answer) for answer in found):
            return kind
    return None


def arrays_of(outputs: Mapping[str, Any]) -> list[Any]:
    return [a for a in outputs.values() if isinstance(a, np.ndarray) and a.size]


def unwritten(array: Any) -> int:
    """The number of elements that are NaNs which no arithmetic gives, as the cell writes them
    (`remote/cell.py`)."""
    if not formats.is_one(array.dtype):
        return 0
    return int(np.count_nonzero(np.isnan(array) & ~formats.computed_nans(array)))


class Shown(NamedTuple):
    """What the challenges would have caught, as in a `Judgement`. `cut`: whether time was up before
    every mutant had been tried."""

    killed: tuple[str, ...] = ()
    alive: tuple[str, ...] = ()
    smallest: Mapping[str, float] = {}
    cut: bool = False


@np.errstate(all="ignore")
def shown(challenges: tuple[Challenge, ...], seconds: float = math.inf) -> Shown:
    """Every mutant against the challenges, which are those that reject all decoys, for so many
    seconds of this process. A mutant whose trial is cut short does not count."""
    challenges = tuple(c for c in challenges if all(array.size for array in c.floats.values()))
    deadline, tolerated = time.process_time() + seconds, functools.cache(_tolerated)

    def refused(answer: Answer) -> bool | None:
        """Whether some challenge refuses it; None if it errs nowhere more than right kernels, or
        past the deadline."""
        differs = None
        for challenge in challenges:
            if time.process_time() >= deadline:
                return None
            outputs, rounded = answer(challenge), challenge.standard().rounded
            if (fault := outputs and challenge.fault(outputs)) and fault.kind not in RANGE:
                return True
            errors = ((_distance(a, rounded[n]), n) for n, a in outputs.items())
            if any(error > tolerated(challenge)[n] for error, n in errors):
                differs = False
        return differs

    found = dict[str, bool]()
    for name, answer in _mutants(challenges[0]) if challenges else ():
        if (told := refused(answer)) is not None:
            found[name] = found.get(name, False) or told
    killed = tuple(name for name, told in found.items() if told)
    alive = tuple(name for name in found if name not in killed)
    return Shown(killed, alive, _smallest(challenges), time.process_time() >= deadline)


def _tolerated(challenge: Challenge) -> dict[str, float]:
    """By output, the error of another way to compute the same: a few times that of the plain
    algorithm and of the first form, and of a rounding."""
    answers = _plain(challenge), _computed(challenge)
    u = 2.0 * challenge.format.u
    return {
        n: _NEAR * max([u * _distance(0.0, r), *(_distance(a[n], r) for a in answers if n in a)])
        for n, r in challenge.standard().rounded.items()
    }


def _distance(got: Any, right: Any) -> float:
    """The largest difference, infinite where a special value differs; from 0, the largest size."""
    off = precision.off(np.broadcast_to(got, right.shape), right)
    return float(np.max(off, where=np.isfinite(right) | np.any(got), initial=0.0))


def _smallest(challenges: Sequence[Challenge]) -> dict[str, float]:
    """By output, the least bound of an element, in ulp of its exact value and at least 0.5; one ulp
    if bits are demanded."""
    smallest: dict[str, float] = {}
    for standard in (challenge.standard() for challenge in challenges):
        for name, exact in standard.reference.items():
            right = np.asarray(exact)
            usable = np.isfinite(right) & (right != 0.0)
            if usable.any():
                steps = ulp(right[usable], standard.format)
                least = max(float(np.min(standard.bound()[name][usable] / steps)), 0.5)
                limit = 1.0 if name in standard.exact else least
                smallest[name] = min(smallest.get(name, np.inf), limit)
    return smallest


def _mutants(first: Challenge) -> Iterator[tuple[str, Answer]]:
    for model in precision.models(first.format):
        if model.way == "inputs":
            yield f"{model.format.name}_inputs", functools.partial(_plain, model=model)
    for fault in faults_of(definition(first.op), first.direction, first.inputs, first.params):
        yield fault.cause, functools.partial(_faulty, fault)
    for kind, family, _ in RULES:
        if family != "arithmetic":  # another rounding
            yield kind, functools.partial(_edited, kind)


def _plain(c: Challenge, model: precision.PrecisionModel | None = None) -> Outputs:
    c = precision.narrowed(c, model)[0] if model else c
    return c.op.plain(c.direction, c.inputs, c.params, c.format)


def _computed(c: Challenge, formula: Formula | None = None) -> Outputs:
    """A formula in the challenge's format, by default the op's first."""
    known, question = definition(c.op), (c.inputs, c.params, c.format)
    return known.computed(c.direction, formula or known.first(c.direction), *question)


def _faulty(fault: Any, challenge: Challenge) -> Outputs:
    outputs = _computed(challenge, getattr(fault, challenge.direction))
    kept = {n: a for n, a in challenge.standard().rounded.items() if n in outputs}
    return {**kept, **fault.changed(outputs)}


def _edited(kind: str, challenge: Challenge) -> Outputs:
    """One of the edits of a kind: the middle one."""

    def rule(graph: Graph) -> Edits:
        found = edits_of(Program(graph), {kind})
        return found[len(found) // 2].changes

    try:
        first = definition(challenge.op).first(challenge.direction)
        return _computed(challenge, Whole(edits.edited(first, rule)))
    except (ValueError, TypeError, IndexError):  # no place here, or an axis of another length
        return {}

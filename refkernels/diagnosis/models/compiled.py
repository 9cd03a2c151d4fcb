"""Kernels that are compiled for speed: functions of the special function unit, division by the
approximate reciprocal, flushed subnormal numbers (`contexts.fast_functions`).

The op's forms, also written with identities that round worse (`edits.identities`), are read in
binary32 in each such arithmetic and in the plain one, with FMA and without. The reading with all
bits is the kernel; else the nearest of those whose errors are the kernel's, to a quarter of their
size. Where a plain reading has them too, the identity is the cause. Binary64: a flush, functions.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from refkernels.arithmetic.formats import BINARY64, working_format
from refkernels.contexts.composed import Flushed, NarrowFunctions
from refkernels.contexts.fast_functions import COMPILED, FastFunctions
from refkernels.contexts.graph import Edits, Graph
from refkernels.contexts.record import record
from refkernels.contexts.working import RoundedArithmetic
from refkernels.diagnosis import evidence, formulas, units
from refkernels.diagnosis.edits import identities
from refkernels.diagnosis.edits.names import named
from refkernels.diagnosis.edits.screen import Screen
from refkernels.diagnosis.fit import LIKE, Fit, sized
from refkernels.diagnosis.hypothesis import Claim, Outcome, Prediction
from refkernels.diagnosis.problem import Array, Arrays, Problem
from refkernels.diagnosis.wrong import flush_shown, wrong_elements
from refkernels.ops import edits as editing

_LARGEST, _ROWS = 1 << 18, 1 << 11  # elements of all inputs, and of those that choose the readings
_OR, _TOLD = " or ", 2  # texts that are told of those that give the same bits
_KEPT = 3  # readings of an output, of each kind
_FORM, _IDENTITY, _FLUSHED, _BOTH, _FAST = range(5)  # the first that explains it
_CAUSES = ("", identities.KIND, "flush_to_zero", identities.KIND, "special_function_unit")


class _Reading(NamedTuple):
    """How it is compiled ("" for plain arithmetic), what loses digits as it is written, the
    formula, its context, and the cause of a fault that only rounds worse."""

    how: str
    text: str
    formula: Any
    xp: RoundedArithmetic
    fault: str = ""

    @property
    def kind(self) -> int:
        if self.how and "-ftz=true" not in self.how:
            return _FAST
        return (_FLUSHED if self.how else _FORM) + bool(self.text)  # with an identity, the next

    @property
    def distinct(self) -> Any:
        """Equal for arithmetics that differ only in what the program was seen not to call."""
        apart: Any = self.how
        if isinstance(self.xp, FastFunctions):
            (fast, divides, flushes), called = self.xp.compiled, self.xp.called
            apart = fast & called, divides and "divide" in called, flushes
        return id(self.formula), self.xp.fma, apart


def find(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> Iterator[Claim]:
    """For each output that is not ordinary, the reading that is the kernel."""
    wrong = {n: got for n, got in outputs.items() if not fits[n].ordinary}
    if not wrong or problem.size > _LARGEST:
        return
    readings, tried = _nearest(problem, wrong)
    for output, got in wrong.items():
        yield from _best(problem, fits[output], got, readings, tried)


def _nearest(problem: Problem, wrong: Arrays) -> tuple[list[tuple[_Reading, Arrays]], int]:
    """The readings of each kind that come nearest to some output on a few rows, with all names that
    they have, and their answers; and how many were tried."""
    screen = Screen(problem, wrong, elements=_ROWS)
    question, answers = screen.question, dict[Any, Arrays]()
    alike: dict[bytes, list[_Reading]] = {}
    distances: dict[bytes, dict[str, float]] = {}
    screened: dict[Any, bytes] = {}
    for reading, graph, changes in _readings(problem, screen):
        if reading.distinct not in screened:
            seen = screen.computed(graph, reading.xp, changes)
            bits = b"".join(array.tobytes() for array in seen.values())
            screened[reading.distinct] = bits
            distances[bits] = screen.costs({n: a.astype(float) for n, a in seen.items()})[0]
            if (len(screen.rows), len(seen)) == (question.rows, len(question.shapes)):
                dtype = reading.xp.storage.storage
                answers[reading.distinct] = {
                    name: question.restore(name, part.reshape(question.shapes[name]).astype(dtype))
                    for name, part in seen.items()
                }
        alike.setdefault(screened[reading.distinct], []).append(reading)
    kinds = {bits: min(reading.kind for reading in same) for bits, same in alike.items()}
    kept: dict[bytes, None] = {}
    for output, kind in itertools.product(screen.names, range(_FAST + 1)):
        of_kind = (bits for bits in alike if kinds[bits] == kind)
        kept |= dict.fromkeys(sorted(of_kind, key=lambda bits: distances[bits][output])[:_KEPT])
    found: dict[bytes, tuple[_Reading, Arrays]] = {}
    chosen = (reading for bits in kept for reading in alike[bits])
    for reading in sorted(chosen, key=lambda reading: reading.kind):
        asked = problem.direction, reading.formula, problem.inputs, problem.params, problem.format
        if reading.distinct not in answers:
            answers[reading.distinct] = problem.definition.computed(*asked, reading.xp)
        answer = answers[reading.distinct]
        bits = b"".join(array.tobytes() for array in answer.values())
        known, _ = found.setdefault(bits, (reading, answer))
        how, alike_kind = _either(known.how, reading.how), reading.kind == known.kind < _FAST
        text = _either(known.text, reading.text) if alike_kind else known.text
        found[bits] = known._replace(how=how, text=text), answer
    return list(found.values()), len(alike)


def _either(*texts: str) -> str:
    """The texts that differ, the shortest of them: what gives the same bits is told as one or the
    other, unless one needs no words."""
    if not all(texts):
        return ""
    apart = {text for several in texts for text in several.split(_OR) if text}
    return _OR.join(sorted(apart, key=lambda text: (len(text), text))[:_TOLD])


def programs(
    problem: Problem, screen: Screen
) -> Iterator[tuple[tuple[str, Any, str], Graph, Edits]]:
    """The op's forms and those of its faults that merely round worse; then each form as it is
    written with identities."""
    forms = [*problem.definition.of(problem.direction).forms.values()]
    forms += formulas.of_function(problem).values()
    faults = [(fault.cause, form) for fault, form in formulas.faults(problem) if fault.unstable]
    for fault, form in (*(("", form) for form in forms), *faults):
        with suppress(ValueError, TypeError, IndexError):  # some need all rows
            graph = record(form, screen.arguments(screen.arrays))
            yield ("", form, fault), graph, {}
            for text, rule in identities.written(graph):
                yield (text, editing.edited(form, rule), fault), graph, rule(graph)


def _readings(problem: Problem, screen: Screen) -> Iterator[tuple[_Reading, Graph, Edits]]:
    """Each program in each arithmetic."""
    format, written = problem.format, programs(problem, screen)
    for ((text, form, fault), graph, changes), fma in itertools.product(written, (False, True)):
        plain = RoundedArithmetic(working_format(format), format, fma=fma)
        contexts: dict[str, RoundedArithmetic] = {"": plain}
        if format == BINARY64:
            contexts["-ftz=true"] = Flushed(format, fma=fma)
            contexts["functions in float32"] = NarrowFunctions(format, fma=fma)
        else:
            compiled = {n: FastFunctions(format, how, fma=fma) for n, how in COMPILED.items()}
            called = set[str]()
            for arithmetic in compiled.values():
                arithmetic.called = called
            contexts |= compiled
        for name, xp in contexts.items():
            yield _Reading(name, text, form, xp, fault), graph, changes


def _best(
    problem: Problem, truth: Fit, got: Array, readings: list[tuple[_Reading, Arrays]], tried: int
) -> Iterator[Claim]:
    output, wrong = truth.output, wrong_elements(problem, truth.output, got)
    fits: dict[int, tuple[int, _Reading, Array]] = {}
    for reading, answer in readings:
        bits = answer[output]
        equal = int(np.count_nonzero(evidence.same(got, bits)))
        if equal <= fits.get(reading.kind, (-1,))[0]:
            continue
        alike = wrong.any() and evidence.errors_alike(problem, output, got, bits)
        if equal == got.size or alike:
            fits[reading.kind] = equal, reading, bits
    if not fits:
        return
    with_all = [kind for kind, fit in fits.items() if fit[0] == got.size]
    equal, best, bits = fits[min(with_all or fits)]
    rounded = np.any(wrong & np.isfinite(got))  # the rest shows where it overflows
    if best.kind == _FORM or (best.text and best.kind != _FAST and not rounded):
        return
    fast, narrow = best.kind in (_FLUSHED, _FAST) and not best.fault, "float32" in best.how
    plain = [answer[output] for reading, answer in readings if reading.kind < _FLUSHED]
    nearest = min(plain, key=lambda other: evidence.apart(bits, other))
    prediction = Prediction(bits=bits, against=nearest if fast else None)
    if not with_all:
        texts = (
            reading.text
            for reading, answer in readings
            if reading.kind == best.kind != _FAST
            and evidence.errors_alike(problem, output, got, answer[output])
        )
        best = best._replace(text=_either(*texts) or best.text)  # of all with such errors
        # Errors that plain arithmetic has too, be it elsewhere, show no other function.
        if fast and min(sized(problem, output, got, p).over_plain for p in plain) <= LIKE:
            return
        outcome = Outcome(True, equal, got.size, truth.over_bound)
        # An argument that is rounded to float32 errs as functions in it do: no evidence.
        prediction = Prediction(wrong=None if narrow else wrong, outcome=outcome)
        if best.kind == _FLUSHED:
            special = wrong & ~np.isfinite(got)
            bits_of = units.by_unit(problem, output, special) if special.any() else 0.0
            gained = units.shared(problem, output, wrong, bits_of) if special.any() else None
            shown = flush_shown(problem, output, got, wrong)
            prediction = Prediction(wrong=wrong, outcome=outcome, bits_gained=gained, counted=shown)
    model = ", ".join(filter(None, (best.text, best.how)))
    details = {"formula": best.text} if best.text else {}
    cause = (best.kind == _FLUSHED and best.fault) or _CAUSES[best.kind]
    cause = "float32_functions" if narrow else cause
    cause, details = named(cause, details, {"op": problem.op.name})
    yield Claim(cause, output, prediction, details, model, tried)

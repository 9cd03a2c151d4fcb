"""Special values from an intermediate of a formula that overflows where the result is finite: x² of
x = 300 in float16, of x = 1e20 in float32.

A form of the op is read in float64, once for each primitive that somewhere exceeds the format, with
that primitive's results infinite there. An intermediate is named where every element that this
makes wrong has that value, and no other is wrongly special. Of a partial sum of products that
overflows, the evidence is in the places of the wrong elements.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cache, partial
from operator import itemgetter
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import BINARY16, BINARY32, BINARY64, Format
from refkernels.contexts.doubles import Doubles as Doubles64
from refkernels.contexts.graph import Edits, Graph, Node, Replacement
from refkernels.diagnosis import products, units
from refkernels.diagnosis.edits.identities import KIND
from refkernels.diagnosis.edits.names import formula_of, named
from refkernels.diagnosis.edits.screen import Screen
from refkernels.diagnosis.hypothesis import Claim, Prediction
from refkernels.diagnosis.models import compiled
from refkernels.diagnosis.problem import Array, Arrays, Doubles, Problem
from refkernels.diagnosis.wrong import wrong_elements
from refkernels.ops import edits
from refkernels.records.words import OR

_Overflows = tuple[Arrays, dict[int, tuple[Node, float]]]
_LARGEST = 1 << 18  # elements of an output
_SUMS = ("sum", "mean", "cumsum", "prod", "norm", "matmul")
_ROUNDING = {"function", "add", "subtract", "multiply", "divide", "power", "square", *_SUMS}
_BORDER = 2.0**-5  # in binary logarithms: this near the format's end, either side is possible


def of_formula(problem: Problem, output: str, wide: Doubles, wrong: Array) -> Claim | None:
    """The first intermediate, over all forms and formats, that explains these wrong elements."""
    special = wrong & (~np.isfinite(wide) | (wide == 0))
    if wide.size > _LARGEST or not (special if problem.op.function else wrong).any():
        return None
    forms, tried = problem.once(_forms, lambda: list(_forms(problem))), 0
    formats = dict.fromkeys((problem.format, BINARY32, BINARY16))
    ranges = [format for format in formats if format.emax <= problem.format.emax]
    read = problem.once(_read, lambda: cache(partial(_read, problem)))
    for format, (text, form) in itertools.product(ranges, forms):
        for name, own, model in _models(problem, output, form, format, read):
            tried += 1
            lost = _lost(problem, output, wide, wrong, own, model)
            if lost is not None and not np.any(special & ~lost):
                details = _told(problem, name, format, wrong, lost)
                decisive = bool(np.array_equal(lost, wrong) and not lost.all())
                bits = units.by_unit(problem, output, lost)
                bits_gained = units.shared(problem, output, wrong, bits)
                prediction = Prediction(wrong=wrong, counted=decisive, bits_gained=bits_gained)
                cause = "early_overflow"
                if text and format is problem.format:  # as it is written, it need not be narrow
                    cause, details = named(KIND, {"formula": text}, {"op": problem.op.name})
                return Claim(cause, output, prediction, details, trials=tried)
    return None


def _models(
    problem: Problem, output: str, form: Any, format: Format, read: Callable[..., _Overflows]
) -> Iterator[tuple[str, Doubles, Doubles]]:
    """Each primitive that exceeds the format, the form's output, and what its overflow gives."""
    answers, largest = read(form)
    own = np.asarray(answers.get(output, np.zeros(0)), float)
    if own.size:  # what overflows in binary64 is right elsewhere
        own = np.where(np.isfinite(own), own, np.asarray(problem.truth.reference[output]))
    for number, (node, size) in sorted(largest.items(), key=itemgetter(0)):
        if size >= 2.0 * 2.0**format.emax:
            model, _ = read(form, format, number)
            yield formula_of(node), own, model.get(output, np.zeros(0))


def _read(problem: Problem, form: Any, format: Format = BINARY64, chosen: int = 0) -> _Overflows:
    """A form's outputs where the results of the `chosen` primitive beyond the format's range are
    infinite; and the primitives, by number, with the largest size of their results."""
    largest: dict[int, tuple[Node, float]] = {}

    def watched(number: int, node: Node, xp: Any, result: Any) -> Any:
        size = np.abs(result.data)
        largest[number] = node, float(np.max(size, initial=0.0, where=~np.isnan(size)))
        if number != chosen:
            return result
        infinite = np.copysign(np.inf, result.data)
        return xp.value(np.where(size >= 2.0 * 2.0**format.emax, infinite, result.data))

    def rule(graph: Graph) -> Edits:
        """The primitives that round, numbered from 1, in a computed arithmetic."""
        rounded = [node for node in graph.nodes if node.op in _ROUNDING]
        return {n: Replacement((n,), partial(watched, k, n)) for k, n in enumerate(rounded, 1)}

    asked = problem.direction, edits.edited(form, rule), problem.inputs, problem.params
    arithmetic = "" if problem.format.p > BINARY32.p else Doubles64()
    return problem.definition.computed(*asked, BINARY64, arithmetic), largest


def _forms(problem: Problem) -> Iterator[tuple[str, Any]]:
    """The op's forms, those in which kernels write a function, and these with identities; unless a
    fault that the op declares says it."""
    screen = Screen(problem, problem.truth.plain, elements=1)
    programs = [program for program, *_ in compiled.programs(problem, screen)]
    declared = any(fault for *_, fault in programs)
    return ((text, form) for text, form, fault in programs if not (fault or (declared and text)))


def _lost(
    problem: Problem, output: str, wide: Doubles, wrong: Array, own: Doubles, model: Doubles
) -> Array | None:
    """The elements that the model gets wrong, and the form does not; None where the kernel has
    other values there."""
    if model.shape != wide.shape:
        return None
    rounded = formats.cast(model, problem.format_of(output))
    changed = (model != own) & ~(np.isnan(model) & np.isnan(own))
    defined = ~np.isnan(np.asarray(problem.truth.reference[output]))
    lost = wrong_elements(problem, output, rounded) & changed & defined
    if not lost.any() or np.any(lost & ~wrong):
        return None
    expected = to_float64(rounded)[lost]
    got, bound = wide[lost], problem.truth.bound[output][lost]
    with np.errstate(all="ignore"):
        tolerance = bound + 2.0 * problem.format.u * (np.abs(expected) + np.abs(got))
        near = np.isfinite(expected) & (np.abs(expected - got) <= tolerance)
    equal = near | (expected == got) | (np.isnan(expected) & np.isnan(got))
    return lost if equal.all() else None


def _told(
    problem: Problem, intermediate: str, format: Format, wrong: Array, lost: Array
) -> dict[str, Any]:
    """With the formats of that range that may hold it."""
    held = dict.fromkeys((format, problem.format, formats.working_format(problem.format)))
    range = OR.join(other.name for other in held if other.emax == format.emax)
    number, overflows = int(np.count_nonzero(wrong)), int(np.count_nonzero(lost))
    details = {"intermediate": intermediate, "format": range}
    return {**details, "wrong": number, "overflows": overflows}


def of_product(problem: Problem, output: str, wide: Doubles, wrong: Array) -> Claim | None:
    """A partial sum that may have overflowed (in float16 too); every wrong element is special."""
    product = products.of(problem, output)
    if product is None or np.isfinite(wide[wrong]).any():
        return None
    with np.errstate(all="ignore"):
        size = np.abs(to_float64(product.a)) @ np.abs(to_float64(product.b))
        if product.bias is not None:
            size = size + np.abs(to_float64(product.bias))
        size = np.log2(size).reshape(wide.shape)
    for format in dict.fromkeys((problem.format, formats.BINARY16)):
        beyond = size > format.emax + 1 - _BORDER
        if beyond[wrong].all():
            lost = size > format.emax + 1
            details = _told(problem, "a partial sum", format, wrong, lost)
            earned = units.by_unit(problem, output, wrong & beyond, beyond)
            bits_gained = units.shared(problem, output, wrong, earned)
            prediction = Prediction(wrong=wrong, bits_gained=bits_gained)
            return Claim("early_overflow", output, prediction, details, trials=2)
    return None

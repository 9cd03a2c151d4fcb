"""Patterns among the wrong elements of an output, for any op.

Zeros in place of numbers, one wrong element among many, one value throughout: they need only the
truth. So do rows that a kernel never wrote, from one row to the last: it stopped there.

Their places alone are evidence: by chance, k wrong rows of n are all among the last m once in
C(n, k) / C(m, k). Most of these m must be wrong, and the first must give a reason to stop: a result
that is not defined, or 0. If all wrong rows are larger than the others, that may be the reason.

nnacl's float32 softmax, which is MindSpore's on a CPU, returns an error at a row whose exponentials
sum to 0, and the op goes on (mindspore-ai/mindspore, nnacl/fp32/softmax_fp32.c, SoftmaxLastAxis).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis import narrow, products, specials, thresholds, units
from refkernels.diagnosis.corruption import corrupted
from refkernels.diagnosis.hypothesis import VALUE, Candidate, Claim, Evidence, Prediction
from refkernels.diagnosis.problem import Array, Arrays, Problem
from refkernels.diagnosis.set_apart import separated
from refkernels.diagnosis.variants import precision
from refkernels.diagnosis.variants.precision import all_in, rounded
from refkernels.diagnosis.wrong import flush_shown, judged_wrong, located, pattern, wrong_elements

STOPPED = "stopped_early"
PLACES: tuple[str, ...] = ("unwritten_elements", "corrupted_elements")
OF_RANGE = ("early_overflow", "flush_to_zero")  # of a format: no cut in a program says it better
FITTED = ("part_multiplied", "constant_added")  # a number in a place where there was none
_ROWS = 2  # before the first one that was not written, and from it on, at least
_TELLING = 2  # distinct numbers of float32; by chance a float64 is one in 2^29
_REASONS = (
    "early_overflow", "flush_to_zero", "erf_cancellation", "tanh_cancellation",
    "argument_reduction", "maximum_differentiated", "coarse_exponential", "exponential_clamped",
    STOPPED, "tabulated_logarithm", "special_function_unit",
)  # fmt: skip


def find(problem: Problem, outputs: Arrays, of_ranges: bool = True) -> Iterator[Claim]:
    """Every pattern that the wrong elements show; those of a format's range are read from forms."""
    for output, got in outputs.items():
        wrong = wrong_elements(problem, output, got)
        if not wrong.any():
            continue
        asked, shortcut = (problem, output, got, wrong), None
        ranges = (_overflow, flushed, _computed_in_float32) if of_ranges else ()
        claims = [*(find(*asked) for find in ranges), _stopped_early(*asked)]
        if not any(claims):
            judged = judged_wrong(problem, output, got)  # a library may err by more than a form
            shortcuts = (thresholds.shortcut(problem, output, got, w) for w in (wrong, judged))
            shortcut = next(filter(None, shortcuts), None)
        special = list(specials.find(*asked))
        claims += [shortcut, *special]
        if not wrong.all() and not special:
            block = unwritten(*asked, shortcut is not None)
            claims += [block] if shortcut else [block, corrupted(*asked, block is not None)]
        yield from filter(None, claims)


def _overflow(problem: Problem, output: str, got: Array, wrong: Array) -> Claim | None:
    """The intermediate that accounts for every wrong element, None where none does."""
    wide = to_float64(got)
    if problem.op.function or (problem.formulas is not None and not problem.op.total):
        return narrow.of_formula(problem, output, wide, wrong)
    return narrow.of_product(problem, output, wide, wrong)


def _computed_in_float32(problem: Problem, output: str, got: Array, wrong: Array) -> Claim | None:
    """Wrong float64 numbers that are all float32 numbers, which a right float64 kernel does not
    give: the kernel computed in float32, perhaps less accurately than the op's forms do. Numbers of
    few bits (0, 1, a limit) and inputs that are passed through prove nothing. At least half of
    float32's digits must be right, relative to the element or to 1, so that another op is not taken
    for this one."""
    if problem.format_of(output) is not formats.BINARY64:
        return None
    exact, wide = np.asarray(problem.truth.reference[output]), to_float64(got)
    copies = [to_float64(x) == wide for x in problem.inputs.values() if x.shape == got.shape]
    computed = wrong & ~np.any(copies, axis=0) if copies else wrong
    if not all_in(wide[computed], formats.BINARY32):
        return None
    informative = np.unique(wide[computed & np.isfinite(wide)])
    informative = informative[rounded(informative, "tf32") != informative]
    if informative.size < _TELLING:
        return None
    largest = np.abs(exact[np.isfinite(exact)]).max(initial=0.0)
    size = np.maximum(np.abs(exact), np.minimum(1.0, largest))
    near = np.abs(wide - exact)[wrong] <= math.sqrt(formats.BINARY32.u) * size[wrong]
    return pattern("float32_cast", output, wrong, {}, counted=True) if near.all() else None


def drop_unexplained(candidates: list[Candidate]) -> list[Candidate]:
    """The candidates, without patterns that only locate an error, or that only name its format or
    its value, where another cause explains it; and without fitted numbers beside other answers."""
    fitting = [candidate for candidate in candidates if not candidate.ruled_out]
    answered = [(c.output, c.cause) for c in fitting if _is_an_answer(c)]
    reasons = (c for c in fitting if c.cause in _REASONS or "negative" in c.details)
    explained = {c.output for c in reasons} | {output for output, _ in answered}
    named = {output for output, cause in answered if cause not in FITTED}
    special = *specials.CAUSES, specials.ZERO_DECAY
    weaker = (*PLACES, *special, thresholds.CAUSE, "float32_cast", VALUE)

    def says_less(candidate: Candidate) -> bool:
        weak = candidate.cause in weaker and not _is_an_answer(candidate)
        return (weak and candidate.output in explained) or (
            candidate.cause in FITTED and candidate.output in named
        )

    return [candidate for candidate in candidates if not says_less(candidate)]


def _is_an_answer(candidate: Candidate) -> bool:
    """Whether the candidate is the answer to another question, which explains every element."""
    return candidate.prediction is not None and candidate.prediction.answer is not None


def flushed(problem: Problem, output: str, got: Array, wrong: Array) -> Claim | None:
    """Flushed subnormals: every wrong element is a zero whose right value is subnormal, or would be
    0 if all subnormal inputs were. Where the output holds subnormals, only inputs are flushed. In a
    sum of products, terms and partial sums may be flushed too, which leaves other errors."""
    size = np.abs(to_float64(got))
    if np.any(size[wrong] != 0.0):
        return _flushed_terms(problem, output, got, wrong)
    exact = np.abs(np.asarray(problem.truth.reference[output]))
    tiny = formats.of(got).min_normal
    affected = (exact < tiny) & ~np.any((size > 0.0) & (size < tiny))
    flushed_inputs = precision.without_subnormals(problem)
    if flushed_inputs and not affected[wrong].all():
        answer = problem.ask(flushed_inputs)
        affected = affected | (np.asarray(answer.reference[output]) == 0.0)
    if not (affected & np.isfinite(exact))[wrong].all():
        return None  # no flush makes a zero of a NaN or an infinity
    return located("flush_to_zero", output, wrong, flush_shown(problem, output, got, wrong))


def _flushed_terms(problem: Problem, output: str, got: Array, wrong: Array) -> Claim | None:
    """Subnormal products and partial sums flushed: no element is subnormal where some exact values
    are, and each has lost at most the smallest normal number for each product and each addition."""
    product, tiny = products.of(problem, output), formats.of(got).min_normal
    if product is None:
        return None
    exact, wide = np.asarray(problem.truth.reference[output]), to_float64(got)
    subnormal = [(np.abs(x) > 0.0) & (np.abs(x) < tiny) for x in (exact, wide)]
    limit = problem.truth.bound[output] + 2.0 * product.terms * tiny
    with np.errstate(invalid="ignore"):
        near = np.abs(wide - exact) <= limit
    if subnormal[1].any() or not subnormal[0].any() or not near[wrong].all():
        return None
    return located("flush_to_zero", output, wrong, counted=False)


def unwritten(
    problem: Problem, output: str, got: Array, wrong: Array, rival: bool = False
) -> Claim | None:
    """Memory that was never written: from the first wrong element to the last, all have one value,
    and some element outside another. It earns nothing where chance would put the wrong elements, or
    rows, side by side, or where a kernel computes such a NaN; nor where some size separates them
    from the right ones, which may be why, unless the largest are 0. As the `rival` of a threshold,
    beyond which a function has one value, it always counts: of sorted arguments, either is true."""
    block = np.flatnonzero(wrong)
    values = got.reshape(-1)[block[0] : block[-1] + 1]
    constant = bool(np.all(values == values[0]) or np.all(np.isnan(values)))
    exact = np.asarray(problem.truth.reference[output])
    wide, value = to_float64(got), to_float64(values[0])
    telling = wrong | ~((wide == value) | (np.isnan(wide) & np.isnan(value)))
    if not constant or block.size < 2 or np.array_equal(telling, wrong):
        return None
    size = np.abs(exact)
    lost = not np.any(values) and bool(np.min(size[wrong]) > np.max(size[~wrong], initial=0.0))
    counted = rival or lost or not separated(problem, output, got, wrong)
    by_chance = _bits_of_block(problem, output, telling, wrong) < Evidence.MATCHED
    earns = not (by_chance or formats.computed_nans(values).any())
    bits_gained = None if earns else np.zeros(got.shape)
    claim = located("unwritten_elements", output, wrong, counted, value=str(values[0]))
    prediction = replace(claim.prediction, bits_gained=bits_gained)
    return replace(claim, prediction=prediction, parameters=1, price=2.0 * math.log2(got.size))


def _bits_of_block(problem: Problem, output: str, telling: Array, wrong: Array) -> float:
    """-log2 of the chance that as many wrong elements of the telling ones are one block; of units
    that are wrong as a whole, that these are."""
    counted = units.of(problem, output)
    shown, lost = counted.chosen(telling), counted.chosen(wrong)
    if not np.any(counted.any(shown & ~lost) & counted.any(lost)):
        shown, lost = counted.any(shown), counted.any(lost)
    total, number = int(np.count_nonzero(shown)), int(np.count_nonzero(lost))
    return units.place_bits(total, number, number) - math.log2(total - number + 1)


def _stopped_early(problem: Problem, output: str, got: Array, wrong: Array) -> Claim | None:
    """The claim that the output ends with rows most of whose elements are wrong, after right rows
    and one without a result. None for an op whose elements do not depend on rows, and where a
    kernel computes what is wrong, beyond the format's range."""
    definition = problem.op.definition
    computed = (formats.computed_nans(got) | np.isinf(to_float64(got)))[wrong].all()
    if definition is None or not definition.forward.signature.coupled or wrong.ndim < 2 or computed:
        return None
    by_row = wrong.reshape(-1, wrong.shape[-1])
    wrong_rows = np.any(by_row, axis=1)
    rows = len(by_row)
    first = int(np.argmax(wrong_rows))
    number = int(np.count_nonzero(wrong_rows))
    mostly = 2 * np.count_nonzero(by_row) >= by_row[first:].size
    if min(first, number) < _ROWS or not mostly:
        return None
    exact = np.asarray(problem.truth.reference[output]).reshape(by_row.shape)[first - 1 : first + 1]
    if not np.any(~np.isfinite(exact).all(axis=1) | ~exact.any(axis=1)):
        return None
    bits = units.place_bits(rows, rows - first, number)
    prediction = Prediction(
        wrong=wrong,
        counted=not _ordered(problem, rows, first),
        bits_gained=units.shared(problem, output, wrong, bits),
    )
    details = {"first": first, "rows": rows}
    return Claim(STOPPED, output, prediction, details, price=math.log2(rows))


def _ordered(problem: Problem, rows: int, first: int) -> bool:
    """Whether the rows after the first wrong one lie beyond those before it by some size of an
    input's rows."""
    for x in problem.inputs.values():
        if x.ndim < 2 or x.size != rows * x.shape[-1] or x.dtype.kind in "biu":
            continue
        values = to_float64(x).reshape(rows, -1)
        finite = np.where(np.isfinite(values), values, 0.0)
        for size in (finite.max(axis=1), finite.min(axis=1), np.abs(finite).sum(axis=1)):
            before, after = size[:first], size[first + 1 :]
            if after.max() < before.min() or before.max() < after.min():
                return True
    return False

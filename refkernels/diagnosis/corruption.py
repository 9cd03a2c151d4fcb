"""Corruption: a few elements are wrong by accident, and all others are as near as usual.

Nothing may set the elements apart (`set_apart`), none may be a neighbour of its exact value, which
only a right function gives, and each must err by 2^(p/2) bounds at least. An error of R bounds
earns log2(n R / r) bits, but at most 2 log2 R: errors grow as 1 / d at a distance d from where
results cancel, and of n right elements the largest error, r bounds (1 / n at least), says how near
that is. NaN and infinities count as R = 2^64. What accidents leave behind earns more: a value that
one flipped bit makes right, log2 R less the choice of the bit; one that stands in another element
or an input, one float in the t between it and the right one, log2 t less the choice of the element.
Where whole numbers are added, R of a number earns nothing: it may have been in too few bits.
The places of k wrong elements among n cost log2 C(n, k) bits.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis.edits.arithmetic import whole_sums
from refkernels.diagnosis.edits.screen import Screen
from refkernels.diagnosis.hypothesis import Claim
from refkernels.diagnosis.problem import Array, Arrays, Doubles, Problem
from refkernels.diagnosis.set_apart import apart, has_few_bits, special
from refkernels.diagnosis.wrong import FEW, faithful, located
from refkernels.metrology import UNUSUAL, error_over_plain, ulp, ulp_distance

CAUSE = "corrupted_elements"
_MOST = 64.0  # log2 R, that of a NaN or an infinity


def corrupted(
    problem: Problem, output: str, got: Array, wrong: Array, block: bool = False
) -> Claim | None:
    """The claim that the wrong elements are corrupted, if they are few and the others usual. Where
    they are a `block` of one value, its rival is the claim that they were never written, and it is
    weighed against that one."""
    number = int(np.count_nonzero(wrong))
    if number > max(1, int(FEW * got.size)) or not _ordinary_but_for(problem, output, got, wrong):
        return None
    if special(problem, output, wrong) or np.any(wrong & faithful(problem, output, got)):
        return None
    log2_ratios = _log2_ratios(problem, output, got)
    if not block and log2_ratios[wrong].min() < formats.of(got).p / 2.0:
        return None
    counted = block or not apart(problem, output, got, wrong)
    claim = located(CAUSE, output, wrong, counted)
    told = replace(claim.prediction, bits_gained=_earned(problem, output, got, wrong, log2_ratios))
    return replace(claim, prediction=told, price=math.log2(math.comb(got.size, number)))


def _ordinary_but_for(problem: Problem, output: str, got: Array, wrong: Array) -> bool:
    """Whether the other elements' errors are usual by judge's criterion."""
    truth, others = problem.truth, ~wrong
    plain = truth.plain.get(output)
    if plain is None:
        return True
    reference, format = truth.reference[output][others], formats.of(got)
    ratio = error_over_plain(got[others], plain[others], reference, format, problem.op.elementwise)
    return ratio is None or ratio <= UNUSUAL


def _bound_or_rounding(problem: Problem, output: str, got: Array) -> Doubles:
    """The bound of each element, at least one rounding."""
    exact = np.asarray(problem.truth.reference[output])
    bounds: Doubles = np.maximum(problem.truth.bound[output], ulp(exact, formats.of(got)) / 2.0)
    return bounds


def _log2_ratios(problem: Problem, output: str, got: Array) -> Doubles:
    """log2 R of each element."""
    exact, wide = np.asarray(problem.truth.reference[output]), to_float64(got)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        ratios = np.log2(np.abs(wide - exact) / _bound_or_rounding(problem, output, got))
    return np.where(np.isfinite(wide), np.minimum(ratios, _MOST), _MOST)


def _earned(
    problem: Problem, output: str, got: Array, wrong: Array, log2_ratios: Doubles
) -> Doubles:
    """The bits of each wrong element, 0 elsewhere."""
    reference = problem.truth.reference[output]
    rounded, exact = reference.round(formats.of(got))[0], np.asarray(reference)[wrong]
    sizes, usual = np.maximum(log2_ratios[wrong], 0.0), log2_ratios[~wrong]
    count = math.log2(max(usual.size, 1))
    largest = min(max(float(np.nanmax(usual, initial=-count)), -count), 0.0)
    if problem.once((_earned, output), lambda: _adds_whole_numbers(problem, output)):
        sizes = np.where(np.isfinite(to_float64(got[wrong])), 0.0, sizes)
    left_behind = np.maximum(
        _flipped(got[wrong], exact, _bound_or_rounding(problem, output, got)[wrong], sizes),
        _copied(problem.inputs, got, rounded, wrong),
    )
    earned = np.zeros(got.shape)
    earned[wrong] = sizes + np.minimum(sizes, count - largest) + left_behind
    return earned


def _adds_whole_numbers(problem: Problem, output: str) -> bool:
    screen = Screen(problem, {output: problem.truth.plain[output]}, elements=1)
    return screen.has_a_program and any(whole_sums(screen.program, screen.value_of))


def _flipped(values: Array, exact: Doubles, bounds: Doubles, log2_ratios: Doubles) -> Doubles:
    """The bits by which each value is the right one with one bit flipped."""
    unsigned = values.view(formats.of(values).bits_dtype)
    width = 8 * values.dtype.itemsize
    right = np.zeros(values.shape, bool)
    for bit in range(width):
        flipped_back = (unsigned ^ unsigned.dtype.type(1 << bit)).view(values.dtype)
        with np.errstate(invalid="ignore", over="ignore"):
            right |= np.abs(to_float64(flipped_back) - exact) <= bounds
    finite = np.isfinite(to_float64(values))
    return np.where(right & finite, np.maximum(log2_ratios - 1.0 - math.log2(width), 0.0), 0.0)


def _copied(inputs: Arrays, got: Array, rounded: Array, wrong: Array) -> Doubles:
    """The bits by which each wrong value is another element's, or that of an input in its place."""
    values = got[wrong]
    in_inputs = [x[wrong] for x in inputs.values() if x.shape == got.shape and x.dtype == got.dtype]
    elsewhere = np.isin(to_float64(values), to_float64(got[~wrong]))
    same = np.any([elsewhere, *(to_float64(x) == to_float64(values) for x in in_inputs)], axis=0)
    distance = np.log2(np.maximum(ulp_distance(values, rounded[wrong]).astype(np.float64), 1.0))
    informative = same & ~has_few_bits(to_float64(values), formats.of(got))
    earned = np.maximum(distance - math.log2(got.size + len(in_inputs)), 0.0)
    return np.where(informative, earned, 0.0)

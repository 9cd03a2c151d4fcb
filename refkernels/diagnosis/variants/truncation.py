"""Outputs truncated to their format, toward zero, instead of rounded to nearest.

A kernel that computes z' in a wider format W and stores trunc(z') gives, with |z' - z| <= B the
bound of W about the exact z, a number between trunc(z - B) and trunc(z + B): truncation is
monotone. Where W is much wider these are one number, trunc(z), for nearly every element.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.transformations import two_sum
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Answer, Array, Arrays, Doubles, Problem
from refkernels.diagnosis.wrong import low_part
from refkernels.metrology.ulp_errors import ulp

_NARROW = (formats.BINARY32, formats.TF32, formats.BINARY16, formats.BFLOAT16)
_UP = 1.0 + 2.0**-50
_EXTENDED = 2.0**-11  # the unit of the x87's 64 bits over float64's
_LARGER = 0.05  # ulp: an element that exceeds the exact one by more is too large
_FEW = 0.05  # the share that may be too large: rounding to nearest makes nearly half so


def truncated_output(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Each output truncated to its own format, or to a narrower one whose numbers it holds."""
    for name, got in outputs.items():
        if got.shape != problem.truth.reference[name].shape:
            continue
        for format in dict.fromkeys((formats.of(got), *_NARROW)):
            if _possible(problem, name, got, format):
                answer = _answer(problem, name, formats.of(got), format)
                yield Variant("truncated_output", {"format": format.name}, answer)


def _possible(problem: Problem, output: str, got: Array, format: Format) -> bool:
    """Whether all elements are numbers of the format, and few exceed the exact values."""
    exact, wide = np.asarray(problem.truth.reference[output]), to_float64(got)
    output_format = formats.of(got)
    if format is not output_format:
        if format.p >= output_format.p or not _all_in(wide, format):
            return False
        if not np.any(np.isfinite(wide) & (wide != 0)):  # every format has these
            return False
        if _all_in(to_float64(problem.truth.reference[output].round(output_format)[0]), format):
            return False
    usable = np.isfinite(exact) & np.isfinite(wide) & (exact != 0)
    if not usable.any():
        return False
    z, g = np.abs(exact[usable]), np.abs(wide[usable])
    beyond = (np.sign(exact) * low_part(problem.truth.reference[output]))[usable]
    return float(np.mean(g - z - beyond > _LARGER * ulp(z, format))) <= _FEW


def _all_in(wide: Doubles, format: Format) -> bool:
    return bool(np.array_equal(to_float64(formats.truncate_to(wide, format)), wide, equal_nan=True))


def _answer(problem: Problem, output: str, output_format: Format, format: Format) -> Answer:
    """trunc(z), with the largest distance of trunc(z') from it as the bound."""
    bound = _bound_before(problem, output, output_format, format)
    reference = problem.truth.reference[output]
    exact, low = np.asarray(reference), low_part(reference)
    with np.errstate(over="ignore", invalid="ignore"):
        radius = np.ldexp(reference.radius, reference.scale)
        unused = np.abs(np.ldexp(reference.lo, reference.scale) - low)
        reach = np.where(np.isfinite(bound), (bound + unused + radius) * _UP, np.inf)
        cut, least, most = (
            _truncated(exact, low + offset, format) for offset in (0.0, -reach, reach)
        )
        spread = np.maximum(np.abs(most - cut), np.abs(cut - least))
    spread = np.where(np.isfinite(exact) & np.isnan(spread), np.inf, spread)
    # The plain answer is the other number that may be stored, so that neither is unusual: such
    # elements are few, but a step of a narrow format is many of the kernel's own.
    alternative = np.where(np.isfinite(spread), cut + np.copysign(spread, cut), cut)
    stored = formats.cast(alternative, output_format)
    # Steps are counted in the narrow format's floats: one of them is many of the kernel's own.
    counted = None if format is output_format or format.dtype is None else format
    return Answer({output: Enclosure(cut)}, {output: spread}, {output: stored}, format=counted)


def _truncated(high_part: Doubles, low_part: Doubles, format: Format) -> Doubles:
    """trunc(high_part + low_part), both exact."""
    high, low = two_sum(high_part, low_part)
    inner = np.where(low * np.sign(high) < 0.0, np.nextafter(high, 0.0), high)
    return to_float64(formats.truncate_to(inner, format))


def _bound_before(problem: Problem, output: str, output_format: Format, format: Format) -> Doubles:
    """The bound of the value before truncation."""
    work = output_format
    if format is output_format:
        work = formats.BINARY64 if format.p >= formats.BINARY32.p else formats.BINARY32
    if format is formats.BINARY64:
        return problem.truth.bound[output] * _EXTENDED
    return problem.bound_in(output, work)

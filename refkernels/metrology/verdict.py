"""The verdict on an output, independent of the cause; and its flags and error / plain.

Worst first: special_value_mismatch, invariant_violated, exceeds_bound, range_limited,
ill_conditioned, uncertified, rounding, correctly_rounded. `rounding` means that every element lies
inside the bound proven for the op's named forms with sums in any order, or inside an elementary
function's library limit, however many ULP that is. `range_limited`: some elements are what a named
form gives where an intermediate result overflows or underflows. `ill_conditioned`: some are inside
a bound that says nothing (`range_limits`). `uncertified`: no element's exact value is enclosed, so
nothing was checked.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import as_float_array, spread, to_float64
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import BINARY16, Format
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.metrology.ulp_errors import as_enclosure, check_shapes, ulp, ulp_error
from refkernels.records.words import FLAGS, LEVELS

UNUSUAL = 4.0
"""error / plain above this sets the flag `unusual`, and so does half of it in a format of 16 bits,
where a sum in float32 costs less than its one rounding."""

_ROUNDING = 12.0**-0.5  # the RMS of an error that is uniform in ±1/2 ulp


def verdict(counts: Mapping[str, int], invariants_violated: Sequence[str]) -> str:
    """The verdict on an output: one word."""
    if counts["special_value_mismatches"]:
        return "special_value_mismatch"
    if invariants_violated:
        return "invariant_violated"
    if counts["beyond_bound"]:
        return "exceeds_bound"
    for word in ("range_limited", "ill_conditioned"):
        if counts.get(word):
            return word
    if 0 < counts["elements"] == counts["uncertified"]:
        return "uncertified"
    inexact = ("not_correctly_rounded", "undecided", "signed_zero_mismatches")
    return "rounding" if any(counts[name] for name in inexact) else "correctly_rounded"


def flags(counts: Mapping[str, int], errors: "RmsErrors | None") -> list[str]:
    """The flags: what deserves a look, whatever the verdict."""
    unusual = errors is not None and errors.unusual
    return [*(["unusual"] if unusual else []), *[name for name in FLAGS[1:] if counts.get(name)]]


def reaches(level: str, verdict: str, flags: Sequence[str]) -> bool:
    """Whether an output with that verdict and those flags is at `level` or worse."""
    levels = [LEVELS.index(verdict), *(LEVELS.index(flag) for flag in flags if flag in LEVELS)]
    return min(levels) <= LEVELS.index(level)


class RmsErrors(NamedTuple):
    """RMS errors of some elements, in units of `scale`: of an answer, of the plain algorithm's, and
    of one rounding. `allowed`: the ratio of the first two above which an answer is unusual."""

    elements: int
    allowed: float
    scale: float
    own: float
    plain: float
    rounding: float

    @property
    def over_plain(self) -> float:
        floor = max(self.plain, self.rounding)
        return self.own / floor if floor else 0.0

    @property
    def unusual(self) -> bool:
        return self.over_plain > self.allowed


def error_over_plain(
    got: npt.NDArray[Any],
    plain: npt.NDArray[Any] | Iterator[npt.NDArray[Any]],
    reference: Enclosure,
    format: Format,
    elementwise: bool,
) -> float | None:
    """The RMS error of got over that of the plain algorithm's answer, or of the worst of several
    right answers (`worst_errors`); None where there is none. Raises ValueError where shapes differ.
    """
    errors = worst_errors(got, plain, reference, format, elementwise)
    return None if errors is None else errors.over_plain


def worst_errors(
    got: npt.NDArray[Any],
    right: npt.NDArray[Any] | Iterator[npt.NDArray[Any]],
    reference: Enclosure,
    format: Format,
    elementwise: bool,
) -> RmsErrors | None:
    """The RMS errors of got and of a right answer, or of the worst of several, which are computed
    one after another as long as got is unusual beside them."""
    worst: RmsErrors | None = None
    for plain in right if isinstance(right, Iterator) else (right,):
        plain = spread(as_float_array(plain, "plain"), np.shape(got), "plain")
        errors = rms_errors(got, plain, reference, format, elementwise)
        if worst is None or (errors is not None and errors.over_plain < worst.over_plain):
            worst = errors
        if worst is None or not worst.unusual:
            break
    return worst


@with_default_fenv
def rms_errors(
    got: npt.NDArray[Any],
    plain: npt.NDArray[Any],
    reference: Enclosure,
    format: Format,
    elementwise: bool,
) -> RmsErrors | None:
    """The RMS errors of got and of the plain algorithm's answer, on the same elements.

    Errors are absolute, or in ulp(z) for elementwise ops, whose elements are unrelated. The plain
    algorithm can be exact by luck (one element, small integers, constant rows), where a rounding in
    got would prove nothing. So `over_plain` divides by the RMS of ulp(z) / sqrt 12 at least, which
    one rounding of the exact answer costs. A correctly rounded answer thus has a ratio of at most
    sqrt 3, a faithful one of at most sqrt 12, and the ratio is finite wherever got is. Exact zeros
    have no ulp to compare with: they are left out here too.
    None where no other element is finite on all three sides.
    """
    got, plain = as_float_array(got, "got"), as_float_array(plain, "plain")
    reference, format = as_enclosure(reference), formats.get(format)
    check_shapes(got, reference)
    check_shapes(plain, reference)
    if not isinstance(elementwise, bool | np.bool_):
        raise TypeError("elementwise must be True or False, like an Op's.")
    exact = np.asarray(reference.hi)
    sides = [got, plain]
    wide = [to_float64(side) for side in sides]
    usable = np.isfinite(exact) & np.isfinite(wide[0]) & np.isfinite(wide[1])
    usable &= (reference.scale == 0) & ~reference.exact_zero
    if not usable.any():
        return None
    chosen = reference
    if not usable.all():  # only then: picking elements takes as long as all the rest
        chosen = reference[usable]
        sides, wide = ([side[usable] for side in pair] for pair in (sides, wide))
    if elementwise:
        return _errors_in_ulp(sides[0], sides[1], chosen, format)
    errors = [np.asarray(side - chosen.hi) for side in wide]
    for error in errors:
        error -= chosen.lo
    rounding = np.asarray(ulp(chosen.hi, format) * _ROUNDING)
    # Scaled by the largest figure, so that no square overflows.
    largest = max(_largest(part) for part in (chosen.hi, *errors)) or 1.0
    with np.errstate(over="ignore"):  # the ulp of zero, beside errors that are smaller still
        rms = [_rms_of_parts(part, largest) for part in (*errors, rounding)]
    return RmsErrors(rounding.size, _allowed(format), largest, *rms)


def _errors_in_ulp(
    got: npt.NDArray[Any], plain: npt.NDArray[Any], chosen: Enclosure, format: Format
) -> RmsErrors | None:
    got_errors = ulp_error(got, chosen, format).value
    plain_errors = ulp_error(plain, chosen, format).value
    defined = np.isfinite(got_errors) & np.isfinite(plain_errors)
    if not defined.any():
        return None
    size = max(1.0, float(np.max(np.abs(got_errors[defined]))))
    of_got, of_plain = (_rms(part[defined] / size) for part in (got_errors, plain_errors))
    count = int(np.count_nonzero(defined))
    return RmsErrors(count, _allowed(format), size, of_got, of_plain, _ROUNDING / size)


def _allowed(format: Format) -> float:
    return UNUSUAL / 2.0 if format.p <= BINARY16.p else UNUSUAL


def _largest(values: npt.NDArray[np.float64]) -> float:
    """The largest magnitude."""
    return max(float(np.max(values)), -float(np.min(values)))


def _rms_of_parts(values: npt.NDArray[np.float64], size: float) -> float:
    """The RMS of values / size; the array is used up."""
    values /= size
    np.square(values, out=values)
    return math.sqrt(float(values.sum()) / values.size)


def _rms(values: npt.NDArray[np.float64]) -> float:
    return math.sqrt(float(np.mean(np.square(values))))

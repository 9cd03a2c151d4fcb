"""Demands on an output: its verdict, and its error beside the plain algorithm's and a
baseline's."""

import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from refkernels.arithmetic.mode import with_default_fenv
from refkernels.metrology.avoidable import avoidable, needs_asking
from refkernels.metrology.verdict import RmsErrors, verdict, worst_errors
from refkernels.records.words import VERDICTS
from refkernels.reporting.words.forms import avoidable as words_of_avoidable
from refkernels.testing.answer import Array, JudgedOutput
from refkernels.testing.message import message
from refkernels.testing.tally import TALLY


class UnusualErrorWarning(UserWarning):
    """An output is inside its bound, but further from the truth than a right kernel usually is.

    Bounds are worst cases and grow with the length of sums; errors hardly grow. So a kernel may
    lose digits for a known cause (one-pass variance, TF32 inputs) and still stay inside its bound.
    """


class UncertifiedWarning(UserWarning):
    """Some elements of an output passed unchecked, because their exact value is not enclosed."""


class RangeWarning(UserWarning):
    """Some elements are what a named form gives where an intermediate result overflows or
    underflows, and every named form does so on these inputs."""


class IllConditionedWarning(UserWarning):
    """Some elements are inside a bound that says nothing: rounding alone may be as large."""


@dataclass(frozen=True)
class Demands:
    """`verdict`: the worst that passes. The other demands are None unless they were given."""

    verdict: str = "rounding"
    max_ulp: float | None = None
    max_over_plain: float | None = None
    max_over_baseline: float | None = None
    baseline: str = "the baseline"
    fail_on_avoidable: bool = False
    allow_overflow: bool | None = None

    def check(self, answer: JudgedOutput, baseline: Array | None = None) -> None:
        """Raise AssertionError if the answer fails a demand, or if none of its elements is
        certified; warn if some elements are not, or are undecided, or if the error is unusual."""
        __tracebackhide__ = True
        TALLY.add(answer.label, answer.summary.max_ratio, answer.width)
        judged = verdict(answer.summary.counts, answer.broken)
        if self.verdict == "rounding" and self._tolerates(judged, answer):
            kind = RangeWarning if judged == "range_limited" else IllConditionedWarning
            text = f"{answer.label}: {self._finding(answer, judged)}."
            warnings.warn(text, kind, stacklevel=_callers_level())
        elif VERDICTS.index(judged) < VERDICTS.index(self.verdict):
            names_verdict = judged != "exceeds_bound" or self.max_ulp is None
            self._fail(
                answer, (f"{judged}: " if names_verdict else "") + self._finding(answer, judged)
            )
        if uncertified := answer.summary.counts["uncertified"]:
            _warn_of_uncertified(answer, uncertified)
        if self.fail_on_avoidable and needs_asking(answer.summary):
            better = avoidable(answer.got, answer.reference, answer.format, answer.attainable())
            if better is not None:
                counts = {**answer.summary.counts, "avoidable": better.elements}
                measured = {"bound": {"better": better.record}, "counts": counts}
                self._fail(answer, str(words_of_avoidable(measured, answer.format.name)))
        errors = _errors(answer, answer.right and answer.right())
        over_plain = errors.over_plain if errors else 0.0
        if self.max_over_plain is not None and over_plain > self.max_over_plain:
            self._fail(
                answer,
                f"the RMS error is {over_plain:.3g} times that of the plain algorithm in "
                f"{answer.format}, and max_over_plain allows {self.max_over_plain:g}",
            )
        against = None if judged == VERDICTS[-1] else _errors(answer, baseline)
        over_baseline = against.over_plain if against else 0.0
        if self.max_over_baseline is not None and over_baseline > self.max_over_baseline:
            limit = "max_over_baseline" if self.baseline == "the baseline" else "factor"
            self._fail(
                answer,
                f"the RMS error is {over_baseline:.3g} times that of {self.baseline}, and "
                f"{limit} allows {self.max_over_baseline:g}",
            )
        if self.max_over_plain is None and self.max_ulp is None and errors and errors.unusual:
            _warn_of_unusual(answer, errors)

    def _tolerates(self, judged: str, answer: JudgedOutput) -> bool:
        """Whether a verdict that is neither rounding nor a fault passes."""
        if judged == "range_limited" and self.allow_overflow is None:
            return not _forms(answer)["stays"]
        return judged == "ill_conditioned" or (
            judged == "range_limited" and self.allow_overflow is True
        )

    def _fail(self, answer: JudgedOutput, finding: str) -> NoReturn:
        __tracebackhide__ = True
        limit = "bound" if self.max_ulp is None else "max_ulp"
        raise AssertionError(message(f"{answer.label}: {finding}", answer, limit))

    def _finding(self, answer: JudgedOutput, judged: str) -> str:
        counts, size = answer.summary.counts, answer.got.size
        limit = f"than the op's named forms in {answer.format} can be"
        if answer.declared is not None:
            limit = (
                f"than the library limit of {answer.op}, {answer.declared:g} ulp of "
                f"{answer.format} (max_ulp states another)"
            )
        if self.max_ulp is not None:
            limit = f"than max_ulp allows, {self.max_ulp:g} ulp of {answer.format}"
        return {
            "special_value_mismatch": f"{counts['special_value_mismatches']} of {size} elements "
            "are NaN, infinite or finite where the truth is another of the three",
            "invariant_violated": f"{np.sum(answer.breaking)} of {size} elements are what "
            "mathematics forbids: " + "; ".join(answer.broken),
            "exceeds_bound": f"{counts['beyond_bound']} of {size} elements are further from the "
            f"truth {limit}",
            "range_limited": f"{counts['range_limited']} of {size} elements are what a named form "
            f"in {answer.format} gives where an intermediate result leaves the format's range "
            f"({_told(answer) if judged == 'range_limited' else ''})",
            "ill_conditioned": f"{counts['ill_conditioned']} of {size} elements are undecided: "
            "they are inside their bound, but on these inputs rounding alone may be as large as "
            "the result, so that the bound acquits nothing",
            "uncertified": f"nothing was certified: the exact value of none of the {size} elements "
            "is enclosed, so any answer would pass",
            "rounding": f"{counts['not_correctly_rounded']} of {size} elements are not correctly "
            f"rounded ({counts['undecided']} undecided, {counts['signed_zero_mismatches']} zeros "
            "of the wrong sign)",
        }[judged]


def _errors(answer: JudgedOutput, right: Array | Iterator[Array] | None) -> RmsErrors | None:
    """The RMS errors of an answer and of the worst of others; None where there is none."""
    if right is None:
        return None
    return worst_errors(answer.got, right, answer.reference, answer.format, answer.elementwise)


def _forms(answer: JudgedOutput) -> dict[str, list[str]]:
    """Which named forms leave the format's range where the answer does, and which do not."""
    assert answer.limits is not None
    return answer.limits.forms(answer.name, answer.out_of_range)


def _told(answer: JudgedOutput) -> str:
    """The forms in words: "two_pass overflows, no named form stays in range"."""
    forms = _forms(answer)
    parts = [
        f"{', '.join(forms[word])} {word if len(forms[word]) == 1 else word[:-1]}"
        for word in ("overflows", "underflows")
        if forms[word]
    ]
    stays = ", ".join(forms["stays"])
    return ", ".join([*parts, f"{stays} would not" if stays else "no named form stays in range"])


def _warn_of_uncertified(answer: JudgedOutput, uncertified: int) -> None:
    first = _place(answer, int(np.argmax(answer.uncertified)))
    warnings.warn(
        f"{answer.label}: the exact value of {uncertified} of {answer.got.size} elements is not "
        f"enclosed, the first at {first}: any answer passes there. The formula divides by zero or "
        "is undefined on these inputs; leave them out, or give the formula another branch for "
        "them by xp.where.",
        UncertifiedWarning,
        stacklevel=_callers_level(),
    )


def _place(answer: JudgedOutput, place: int) -> str:
    """y[6, 215]; only y if it has no axes."""
    index = ", ".join(str(int(i)) for i in np.unravel_index(place, answer.got.shape))
    return f"{answer.name}[{index}]" if index else answer.name


def _warn_of_unusual(answer: JudgedOutput, errors: RmsErrors) -> None:
    TALLY.unusual += 1
    places = answer.worst(1)
    where = _place(answer, places[0]) if places else answer.name
    warnings.warn(
        f"{answer.label}: the RMS error is {errors.over_plain:.3g} times that of the plain "
        f"algorithm in {answer.format} (a right kernel's is below {errors.allowed:g}, in any order "
        f"of summation), though every element is inside its bound; error / bound is largest at "
        f"{where}. refkernels.explain looks for the cause; max_over_plain={errors.allowed:g} makes "
        "this a failure, a larger number accepts it.",
        UnusualErrorWarning,
        stacklevel=_callers_level(),
    )


def _callers_level() -> int:
    """The number of frames between `warnings.warn` and the call of the assertion."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _in_this_package(frame.f_globals):
        level, frame = level + 1, frame.f_back
    return level


def _in_this_package(names: dict[str, Any]) -> bool:
    name = str(names.get("__name__", ""))
    return name.startswith("refkernels.testing.") or name == with_default_fenv.__module__

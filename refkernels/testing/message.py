"""What a failing assertion says: figures, the worst elements in decimal and hex, cause and cure."""

import math
from typing import Any

import numpy as np

from refkernels.metrology.judgement import describe_element
from refkernels.reporting.words.numerals import lost, ulps
from refkernels.testing.answer import Answer

_SHOWN = 5  # worst elements
_LOOKED_AT = 64  # of the worst elements, when a cause is looked for


def message(head: str, answer: Answer, limit: str = "bound") -> str:
    """The finding in one sentence, then what stands behind it. `limit`: what `answer.bound` is."""
    lines = [f"{head}.", *_figures(answer, limit)]
    for place in answer.worst(_SHOWN):
        lines += _element_lines(answer, place, limit)
    told = answer.cause(answer.worst(_LOOKED_AT)) or f"  Next step: {_next_step(answer)}"
    return "\n".join([*lines, told])


def _figures(answer: Answer, limit: str) -> list[str]:
    summary, counts = answer.summary, answer.summary.counts
    specials, zeros = counts["special_value_mismatches"], counts["nonzero_at_zero"]
    apart = []
    if specials:
        apart.append(f"{specials} NaN or infinite on one side only")
    if zeros:
        apart.append(f"{zeros} nonzero where the truth is 0")
    lines = [f"  {', '.join(apart)}"] if apart else []
    if counts["compared"]:
        lines.append(
            f"  {'of the others: ' if specials else ''}error / {limit} {summary.max_ratio:.3g}, "
            f"{_largest(summary.max, answer.format.name)}"
        )
    return lines


def _element_lines(answer: Answer, place: int, limit: str) -> list[str]:
    one = describe_element(
        place,
        answer.got,
        answer.reference,
        answer.bound,
        answer.condition,
        answer.format,
        product=answer.product,
        inputs=answer.inputs,
    )
    index = f"[{', '.join(map(str, one['index']))}]" if one["index"] else ""
    lines = [
        f"  {answer.name}{index} = {one['got']['decimal']} ({one['got']['hex']})",
        f"    exact {one['exact']['decimal']} ({one['exact']['hex']})",
        f"    {_error(one, limit, answer.format.name)}",
    ]
    for source, value in one["inputs"].items():
        axes = ", ".join(str(axis) for axis in value["index"])
        lines.append(f"    {source}{axes and f'[{axes}]'} = {value['decimal']} ({value['hex']})")
    return lines


def _error(one: dict[str, Any], limit: str, format: str) -> str:
    """ULP error and error / bound of an element; in words where it has none."""
    got, exact = float(one["got"]["decimal"]), float(one["exact"]["decimal"])
    if float(one["error_over_bound"]) != float(one["error_over_bound"]):
        return f"{_kind(got)} where the truth is {_kind(exact)}"
    # `.4` shortens a float to 4 digits, and leaves "inf" as it is.
    condition = "" if one["condition"] is None else f", condition number {one['condition']:.4}"
    error = float(one["ulp_error"])
    told = f"error {error:.6} ulp, " if math.isfinite(error) else ""
    if lost(abs(error), format):
        told = f"no digit is right (off by {float(one['error']):.4}), "
    return f"{told}error / {limit} {one['error_over_bound']:.4}{condition}"


def _largest(value: float, format: str) -> str:
    if lost(value, format):
        return f"{ulps(value, format)} where it is worst"
    return f"largest error {value:.4g} ulp of {format}"


def _kind(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "a finite number" if math.isfinite(value) else str(value)


def _next_step(answer: Answer) -> str:
    """What the symptoms alone say, where no cause is known."""
    counts = answer.summary.counts
    if counts["special_value_mismatches"]:
        return (
            "look for an intermediate that overflows, a division by zero or a value that is "
            "never written."
        )
    if counts["flushed_subnormals"]:
        return "subnormal results came back as 0: build without -ffast-math / FTZ."
    if counts["nonzero_at_zero"] and answer.summary.max_ratio > 1.0:
        return "the exact answer is 0 there: two large terms that should cancel do not."
    conditions = np.zeros(1) if answer.condition is None else answer.condition
    worst = float(np.max(conditions, initial=0.0, where=np.isfinite(conditions)))
    if worst * answer.format.u > 1.0:
        return (
            f"the inputs are ill-conditioned (up to {worst:.3g}), which the bound allows for; so "
            "look for cancellation that the formula adds."
        )
    if not answer.op:
        return "assert_kernel and refkernels.explain, which know the op, look for a cause."
    return "make the input small while the assertion still fails, and follow one element."

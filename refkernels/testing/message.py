"""Messages of failing assertions: figures, the worst elements in decimal and hex, cause and
suggested fix."""

import math
from decimal import Decimal
from typing import Any

import numpy as np

from refkernels.arithmetic import mode
from refkernels.metrology.judgement import describe_element
from refkernels.reporting.words.numerals import lost, ulps
from refkernels.reporting.words.process import flushing
from refkernels.testing.answer import JudgedOutput

_SHOWN = 5  # worst elements


def message(head: str, answer: JudgedOutput, limit: str = "bound") -> str:
    """The finding in one sentence, then its details. `limit`: the name of `answer.bound`."""
    lines = [f"{head}.", *_figures(answer, limit)]
    for place in answer.worst(_SHOWN):
        lines += _element_lines(answer, place, limit)
    none_certified = answer.summary.counts["uncertified"] == answer.got.size
    known_cause = None if none_certified else answer.cause()
    last = known_cause or f"  Next step: {_next_step(answer)}"
    if mode.flushing():
        last += f"\n  {flushing(mode.since() or '')}"
    return "\n".join([*lines, last])


def _figures(answer: JudgedOutput, limit: str) -> list[str]:
    summary, counts = answer.summary, answer.summary.counts
    specials, zeros = counts["special_value_mismatches"], counts["nonzero_at_zero"]
    special = []
    if specials:
        special.append(f"{specials} NaN or infinite on one side only")
    if zeros:
        special.append(f"{zeros} nonzero where the truth is 0")
    lines = [f"  {', '.join(special)}"] if special else []
    if counts["compared"]:
        lines.append(
            f"  {'of the others: ' if specials else ''}error / {limit} {summary.max_ratio:.3g}, "
            f"{_largest(summary.max, answer.format.name)}"
        )
    return lines


def _element_lines(answer: JudgedOutput, place: int, limit: str) -> list[str]:
    judged = answer.got, answer.reference, answer.bound, answer.condition, answer.format
    element = describe_element(place, *judged, product=answer.product, inputs=answer.inputs)
    index = f"[{', '.join(map(str, element['index']))}]" if element["index"] else ""
    lines = [
        f"  {answer.name}{index} = {element['got']['decimal']} ({element['got']['hex']})",
        f"    exact {_certain(**element['exact'])}",
        f"    {_error(element, limit, answer.format.name)}",
    ]
    for source, value in element["inputs"].items():
        axes = ", ".join(str(axis) for axis in value["index"])
        lines.append(f"    {source}{axes and f'[{axes}]'} = {value['decimal']} ({value['hex']})")
    return lines


def _certain(decimal: str, hex: str, radius: str) -> str:
    """An exact value in the digits that its radius leaves certain, and in hex."""
    value, spread = Decimal(decimal), Decimal(radius)
    if value and spread:
        decimal = f"{value:.{max(value.adjusted() - spread.adjusted() - 1, 0)}e}"
    return f"{decimal} ({hex})"


def _error(element: dict[str, Any], limit: str, format: str) -> str:
    """ULP error and error / bound of an element, or words where it has none."""
    got, exact = float(element["got"]["decimal"]), float(element["exact"]["decimal"])
    if float(element["error_over_bound"]) != float(element["error_over_bound"]):
        return f"{_kind(got)} where the truth is {_kind(exact)}"
    # `.4` shortens a float to 4 digits, and keeps "inf".
    condition = (
        "" if element["condition"] is None else f", condition number {element['condition']:.4}"
    )
    error = float(element["ulp_error"])
    size = f"error {error:.6} ulp, " if math.isfinite(error) else ""
    if lost(abs(error), format):
        size = f"no digit is right (off by {float(element['error']):.4}), "
    return f"{size}error / {limit} {element['error_over_bound']:.4}{condition}"


def _largest(value: float, format: str) -> str:
    if lost(value, format):
        return f"{ulps(value, format)} where it is worst"
    return f"largest error {value:.4g} ulp of {format}"


def _kind(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "a finite number" if math.isfinite(value) else str(value)


def _next_step(answer: JudgedOutput) -> str:
    """Advice from the symptoms alone, without a known cause."""
    counts = answer.summary.counts
    if counts["uncertified"] == answer.got.size:
        return (
            "look where the formula divides by zero or is undefined on these inputs; leave these "
            "elements out, or give the formula another branch for them by xp.where."
        )
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

"""What the digits prove: of each printed output, and of each cause.

    wrong     an element's printed interval has no number that a right kernel may answer for any
              inputs in their intervals (`reach`): proven, whatever the digits hide
    within    some number of every interval may be a right answer: nothing wrong can be shown

A cause is another formula, another eps, a factor. It is named where the output is wrong and lies
in the cause's own reach in every element. A fault that only rounds badly is the op in exact
arithmetic: it is named where its model at the midpoints is as near as right kernels are to the
truth, which it is not where its rounding hangs on digits that are hidden. Of an output that is
within, another cause that fits as well is not told apart, and the digits that would tell it are
estimated: k more digits make intervals 10^k times narrower, the roundings' share stays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels import question, registry
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.mode import in_default_mode
from refkernels.diagnosis.explain import explain
from refkernels.op import Direction, Op
from refkernels.printed import reach as reaches
from refkernels.printed import roles as choices
from refkernels.printed.digits import Intervals, intervals
from refkernels.printed.reach import Box, Reach
from refkernels.printed.text import Printed
from refkernels.records.codec import storable

SCHEMA = 1
WRONG, WITHIN = "wrong", "within"
_USUAL_EPS = (1e-3, 1e-5, 1e-6, 1e-7, 1e-8, 1e-12, 0.0)
_NARROW = 2.0**-4  # of a factor, relative: a wider interval names none
_ENOUGH = {"float16": 5, "bfloat16": 4, "float32": 9, "float64": 17}  # digits that tell every float
_SMALL = 64  # numerators and denominators of a factor that has a name
Record = dict[str, Any]


@dataclass(frozen=True)
class _Cause:
    cause: str
    details: Mapping[str, Any]
    reach: Mapping[str, Reach]
    unstable: bool = False


@in_default_mode
def explain_printed(
    op: Op | str,
    tensors: Sequence[Printed],
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    params: Mapping[str, Any] | None = None,
    direction: Direction = "forward",
) -> Record:
    """The verdict on the printed outputs, as a record (strict JSON).

    op                 its name
    tensors            `text.tensors`
    inputs, outputs    `roles.assign`
    Raises ValueError and TypeError, one sentence, where the question cannot be answered.
    """
    record = registry.get(op)
    roles = choices.assign(record, direction, tensors, inputs, outputs, params)
    box = {name: intervals(tensor) for name, tensor in roles.inputs.items()}
    _checked(record, direction, box, params or {})
    settings = {**record.params, **(params or {})}
    answers = {
        kernel: {name: intervals(tensor) for name, tensor in given.items()}
        for kernel, given in roles.outputs.items()
    }
    kernels = _judged(record, direction, box, settings, answers)
    found: Record = {
        "schema": SCHEMA,
        "kind": "pasted",
        "op": record.name,
        "direction": direction,
        "params": dict(settings),
        "tensors": [_tensor(tensor, roles) for tensor in tensors],
        "kernels": kernels,
        "if_exact": _if_exact(record, direction, box, settings, answers),
    }
    result: Record = storable(found)
    return result


def _checked(op: Op, direction: Direction, box: Box, params: Mapping[str, Any]) -> None:
    """As every other question is."""
    given = {name: one.middle for name, one in box.items()}
    question.read(op, given, params, direction)
    for name, one in box.items():
        if op.kinds.get(name, "float") == "float" and one.format is None:
            raise ValueError(
                f"{name} is printed as whole numbers: {op.name} takes floats there, so print it "
                "as floats."
            )


def _judged(
    op: Op,
    direction: Direction,
    box: Box,
    params: Mapping[str, Any],
    answers: Mapping[str, Mapping[str, Intervals]],
) -> Record:
    """Every kernel's outputs; outputs of one format have one reach."""
    formats_of = {one.format for given in answers.values() for one in given.values()}
    known: dict[Format, tuple[dict[str, Reach], list[_Cause]]] = {}
    for format in formats_of:
        if format is None:
            raise ValueError("An output is printed as whole numbers: print it as floats.")
        right = reaches.reach(op, direction, box, params, format)
        known[format] = right, list(_causes(op, direction, box, params, format, right))
    kernels: Record = {}
    for kernel, given in answers.items():
        told = {}
        for name, printed in given.items():
            assert printed.format is not None
            right, causes = known[printed.format]
            if name not in right:
                raise ValueError(f"{op.name} gives no {name} for these inputs.")
            told[name] = _output(op, name, printed, right[name], causes, box)
        kernels[kernel] = {"outputs": told}
    return kernels


def _output(
    op: Op, name: str, printed: Intervals, right: Reach, causes: Sequence[_Cause], box: Box
) -> Record:
    """One printed output."""
    if printed.mid.shape != right.mid.shape:
        raise ValueError(
            f"{name} has shape {printed.mid.shape}, and {op.name}'s is {right.mid.shape}."
        )
    assert printed.format is not None
    wrong = outside(printed, right)
    inputs = [one.digits for one in box.values() if one.digits]
    digits = min([printed.digits, *inputs])
    told: Record = {
        "verdict": WRONG if wrong.any() else WITHIN,
        "format": printed.format.name,
        "elements": int(wrong.size),
        "wrong": int(np.count_nonzero(wrong)),
        "unknown": int(np.count_nonzero(~right.known)),
        "digits": digits,
        "worst": _worst(printed, right, wrong),
        "causes": [],
        "undecided": [],
        "digits_for_bound": None,
    }
    fitting = [one for one in causes if name in one.reach and _fits(printed, one.reach[name])]
    if wrong.any():
        named = [{"cause": one.cause, "details": dict(one.details)} for one in fitting]
        factor = None if named else _factor(printed, right)
        told["causes"] = [*named, *([factor] if factor else [])]
        return told
    told["digits_for_bound"] = _more(
        right.error, right.radius + printed.radius, digits, printed.format
    )
    for one in (one for one in fitting if not one.unstable):
        other = one.reach[name]
        with np.errstate(invalid="ignore"):
            apart = np.abs(other.mid - right.mid) - other.error - right.error
        slack = other.radius + right.radius + printed.radius
        told["undecided"].append({
            "cause": one.cause,
            "details": dict(one.details),
            "digits": _more(apart, slack, digits, printed.format),
        })  # fmt: skip
    return told


def outside(printed: Intervals, right: Reach) -> npt.NDArray[np.bool_]:
    """Where no float of the printed interval can be right; NaN never can where it is known."""
    with np.errstate(invalid="ignore"):
        meets = (printed.high >= right.low) & (printed.low <= right.high)
    return np.asarray(right.known & ~meets)


def _fits(printed: Intervals, other: Reach) -> bool:
    return bool(other.known.all()) and not outside(printed, other).any()


def _worst(printed: Intervals, right: Reach, wrong: npt.NDArray[np.bool_]) -> Record | None:
    """The element that is farthest outside; of an output that is within, the one that is nearest
    to its end, as a share of what is open."""
    if not right.known.any():
        return None
    with np.errstate(all="ignore"):
        off = np.abs(printed.mid - right.mid)
        share = off / (right.radius + right.error + printed.radius)
        share = np.where(np.isnan(printed.mid) & wrong, np.inf, share)
        share = np.where(right.known & ~np.isnan(share), share, -1.0)
    flat = int(np.argmax(share))
    at = np.unravel_index(flat, share.shape)
    return {
        "index": [int(i) for i in at],
        "printed": [float(printed.low[at]), float(printed.high[at])],
        "truth": [float(right.mid[at] - right.radius[at]), float(right.mid[at] + right.radius[at])],
        "allowed": float(right.error[at]),
        "share": float(share[at]),
    }


def _more(apart: Any, slack: Any, digits: int, format: Format) -> int | None:
    """The digits with which the intervals are narrower than what lies between, in the element
    where that takes fewest; None where no number of digits does."""
    with np.errstate(all="ignore"):
        able = (apart > 0.0) & np.isfinite(apart) & np.isfinite(slack)
        if not able.any():
            return None
        ratio = float(np.min(np.where(able, slack / np.where(able, apart, 1.0), np.inf)))
    if not ratio < 10.0 ** _ENOUGH[format.name]:
        return None
    more = digits + max(math.ceil(math.log10(ratio)) if ratio > 0.0 else 0, 0)
    more += more == digits  # they do not tell yet
    return more if more <= _ENOUGH[format.name] else None


def _causes(
    op: Op,
    direction: Direction,
    box: Box,
    params: Mapping[str, Any],
    format: Format,
    right: Mapping[str, Reach],
) -> Iterator[_Cause]:
    """What else may have been computed, with what it may answer."""
    definition = op.definition
    for eps in _USUAL_EPS:
        if isinstance(params.get("eps"), float) and eps != params["eps"]:
            other = reaches.reach(op, direction, box, {**params, "eps": eps}, format)
            yield _Cause("eps_differs", {"eps": eps}, other)
    if definition is not None:
        for fault in definition.faults:
            formula = getattr(fault, direction)
            if formula is None:
                continue
            asked = (definition, direction, formula, box, params, format)
            try:
                if fault.unstable:
                    found = reaches.of_model(*asked, right)
                else:
                    found = reaches.of_formula(*asked)
            except (ValueError, TypeError, ZeroDivisionError):
                continue  # it has no value here
            details = dict(fault.details or {})
            yield _Cause(fault.cause, details, fault.changed(found), fault.unstable)
    if direction == "forward" and "bias" in box and "bias" in op.optional:
        without = {name: one for name, one in box.items() if name != "bias"}
        yield _Cause("missing_bias", {}, reaches.reach(op, direction, without, params, format))


def _factor(printed: Intervals, right: Reach) -> Record | None:
    """The factor that all elements leave, where it is narrow and two sizes agree on it."""
    low, high = right.low, right.high
    clear = right.known & ((low > 0.0) | (high < 0.0)) & np.isfinite(printed.mid)
    size_low = np.minimum(np.abs(low), np.abs(high))[clear]
    size_high = np.maximum(np.abs(low), np.abs(high))[clear]
    if size_low.size < 2 or not size_low.max() > size_high.min():
        return None
    with np.errstate(all="ignore"):
        ends = np.stack([p / r for p in (printed.low, printed.high) for r in (low, high)])
        least, most = ends.min(axis=0)[clear].max(), ends.max(axis=0)[clear].min()
    if not 0.0 < abs(least) < math.inf or not least <= most or least * most <= 0.0:
        return None
    middle = (least + most) / 2
    if (most - least) / abs(middle) > _NARROW or least <= 1.0 <= most:
        return None
    scaled = Reach(
        right.mid * middle,
        right.radius * abs(middle) + np.abs(right.mid) * (most - least),
        right.error * abs(middle) * 2,
    )
    if not _fits(printed, scaled):
        return None
    if least <= -1.0 <= most:
        return {"cause": "sign_error", "details": {"factor": "-1"}}
    simple = Fraction(middle).limit_denominator(_SMALL)
    named = least <= simple <= most and abs(simple.numerator) <= _SMALL
    width = (most - least) / abs(middle) + 2.0**-52
    digits = max(int(-math.log10(width)), 1)
    text = str(simple) if named else f"{middle:.{digits}g}"
    return {"cause": "scale_factor", "details": {"factor": text, "interval": [least, most]}}


def _if_exact(
    op: Op,
    direction: Direction,
    box: Box,
    params: Mapping[str, Any],
    answers: Mapping[str, Mapping[str, Intervals]],
) -> Record | None:
    """The verdict if the inputs' digits are all there are, where they can be: every number is a
    float as it is printed. With outputs of the same kind, explain's own answer too."""
    floats = [one for one in box.values() if one.format is not None]
    if not floats or not all(one.exact for one in floats):
        return None
    if not any(one.radius.any() for one in floats):
        return None
    points = {name: _point(one) for name, one in box.items()}
    told: Record = {"kernels": _judged(op, direction, points, params, answers), "explanation": None}
    every = [one for given in answers.values() for one in given.values()]
    if all(one.exact for one in every) and len({one.format for one in every}) == 1:
        outputs = {
            kernel: {name: one.middle for name, one in given.items()}
            for kernel, given in answers.items()
        }
        given = {name: one.middle for name, one in box.items()}
        told["explanation"] = explain(op, given, outputs, params, direction).to_dict()
    return told


def _point(one: Intervals) -> Intervals:
    wide = np.asarray(one.middle, np.float64)
    return replace(one, low=wide, high=wide)


def _tensor(tensor: Printed, roles: choices.Roles) -> Record:
    """What was read, and as what."""
    role = next((f"{n}" for n, t in roles.inputs.items() if t.number == tensor.number), None)
    for kernel, given in roles.outputs.items():
        for output, one in given.items():
            if one.number == tensor.number:
                role = f"{kernel}: {output}"
    return {
        "number": tensor.number,
        "line": tensor.line,
        "name": tensor.name,
        "framework": tensor.framework,
        "dtype": tensor.dtype,
        "shape": None if tensor.shape is None else list(tensor.shape),
        "role": role,
    }

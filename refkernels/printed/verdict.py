"""What the digits prove about each printed output, and about each cause.

An output is wrong where an element's printed interval has no number that a right kernel may answer
for any inputs in their intervals (`reach`), whatever the digits hide. A cause, another computation
(`causes`) or a factor, is named if the output is wrong and lies in the cause's reach throughout; a
fault that only rounds badly, if the output is as near to its model at the midpoints as right
kernels are to the truth, and its rounding depends on no hidden digits. Of an output within reach,
the digits that would decide are estimated: k more make intervals 10^k times narrower.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels import question, registry
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.diagnosis import few_digits
from refkernels.diagnosis.edits.solved import SolvedNumber
from refkernels.diagnosis.explain import explain
from refkernels.diagnosis.variants.params import cause_of
from refkernels.op import Direction, Op
from refkernels.printed import reach as reaches
from refkernels.printed import roles as choices
from refkernels.printed.causes import PossibleCause, edited, possible, reach_with
from refkernels.printed.digits import Intervals, intervals
from refkernels.printed.reach import Box, PrintedQuestion, Reach
from refkernels.printed.text import Printed
from refkernels.records.codec import storable

SCHEMA = 1
WRONG, WITHIN = "wrong", "within"
_DIGITS = {"float16": 5, "bfloat16": 4, "float32": 9, "float64": 17}  # digits that identify a float
Record = dict[str, Any]


@with_default_fenv
@np.errstate(all="ignore")  # as in `explain`
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
    Raises ValueError or TypeError, one sentence, if the question cannot be answered.
    """
    record = registry.get(op)
    settings = {**record.params, **(params or {})}

    def read(roles: choices.Roles) -> tuple[PrintedQuestion, dict[str, dict[str, Intervals]]]:
        box = {name: intervals(tensor) for name, tensor in roles.inputs.items()}
        _check(record, direction, box, params or {})
        answers = {
            kernel: {name: intervals(tensor) for name, tensor in by_output.items()}
            for kernel, by_output in roles.outputs.items()
        }
        return PrintedQuestion(record, direction, box, settings), answers

    def has_right_answer(roles: choices.Roles) -> bool:
        with contextlib.suppress(ValueError, TypeError):
            asked, answers = read(roles)
            outputs = [output for by_output in answers.values() for output in by_output.items()]
            by_format = {f: reaches.reach(asked, f) for f in {y.format for _, y in outputs} if f}
            return any(_fits(y, by_format[y.format][name]) for name, y in outputs if y.format)
        return False

    roles = choices.assign(record, direction, tensors, inputs, outputs, params, has_right_answer)
    asked, answers = read(roles)
    kernels = _judged(asked, answers)
    answer: Record = {
        "schema": SCHEMA,
        "kind": "pasted",
        "op": record.name,
        "direction": direction,
        "params": dict(settings),
        "tensors": [_tensor_record(tensor, roles) for tensor in tensors],
        "kernels": kernels,
        "if_exact": _if_exact(asked, answers),
    }
    result: Record = storable(answer)
    return result


def _check(op: Op, direction: Direction, box: Box, params: Mapping[str, Any]) -> None:
    """Check the inputs, as for every other question."""
    middles = {name: interval.middle for name, interval in box.items()}
    question.read(op, middles, params, direction)
    for name, interval in box.items():
        if op.kinds.get(name, "float") == "float" and interval.format is None:
            raise ValueError(
                f"{name} is printed as whole numbers: {op.name} takes floats there, so print it "
                "as floats."
            )


def _judged(asked: PrintedQuestion, answers: Mapping[str, Mapping[str, Intervals]]) -> Record:
    """The verdicts on every kernel's outputs; outputs of one format share their reach."""
    formats_of = {
        printed.format for by_output in answers.values() for printed in by_output.values()
    }
    by_format: dict[Format, tuple[dict[str, Reach], list[PossibleCause]]] = {}
    for format in formats_of:
        if format is None:
            raise ValueError("An output is printed as whole numbers: print it as floats.")
        right = reaches.reach(asked, format)
        by_format[format] = right, list(possible(asked, format, right))
    kernels: Record = {}
    for kernel, by_output in answers.items():
        outputs = {}
        for name, printed in by_output.items():
            assert printed.format is not None
            right, causes = by_format[printed.format]
            if name not in right:
                raise ValueError(f"{asked.op.name} gives no {name} for these inputs.")
            outputs[name] = _output_verdict(asked, name, printed, right[name], causes)
            if outputs[name]["verdict"] == WRONG:
                outputs[name]["causes"] = _with_params(
                    asked, name, printed, causes, outputs[name]
                ) or _edited(asked, name, printed, right[name])
        kernels[kernel] = {"outputs": outputs}
    return kernels


def _output_verdict(
    asked: PrintedQuestion,
    name: str,
    printed: Intervals,
    right: Reach,
    causes: Sequence[PossibleCause],
) -> Record:
    """The verdict on one printed output."""
    if printed.mid.shape != right.mid.shape:
        raise ValueError(
            f"{name} has shape {printed.mid.shape}, and {asked.op.name}'s is {right.mid.shape}."
        )
    assert printed.format is not None
    wrong = outside(printed, right)
    inputs = [interval.digits for interval in asked.box.values() if interval.digits]
    digits = min([printed.digits, *inputs])
    result: Record = {
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
    fitting = [cause for cause in causes if _explains(cause, name, printed)]
    if wrong.any():
        for fit in fitting:
            answer = {"cause": fit.cause, "details": dict(fit.details)}
            if answer not in result["causes"] and fit.param is None:  # it may have several formulas
                result["causes"].append(answer)
        return result
    result["digits_for_bound"] = _digits_needed(
        right.error, right.radius + printed.radius, digits, printed.format
    )
    for cause in (cause for cause in fitting if not cause.unstable):
        reach_of_cause = cause.reach[name]
        with np.errstate(invalid="ignore"):
            apart = np.abs(reach_of_cause.mid - right.mid) - reach_of_cause.error - right.error
        slack = reach_of_cause.radius + right.radius + printed.radius
        result["undecided"].append({
            "cause": cause.cause,
            "details": dict(cause.details),
            "digits": _digits_needed(apart, slack, digits, printed.format),
        })  # fmt: skip
    return result


def _with_params(
    asked: PrintedQuestion,
    output: str,
    printed: Intervals,
    causes: Sequence[PossibleCause],
    verdict: Record,
) -> list[Record]:
    """The causes of a wrong output, those first that are another value of a param: the interval of
    all values that have it in reach."""
    definition, format = asked.op.definition, printed.format
    assert format is not None
    found: list[Record] = []
    for name, given in asked.params.items():
        usual = (cause for cause in causes if cause.param == name)
        fitting = (cause.details for cause in usual if _explains(cause, output, printed))
        inside = [details[details["solved"]] for details in fitting]
        if definition is None or not inside:
            continue

        def fits(value: float, name: str = name) -> bool:
            reach = reach_with(asked, format, {name: value}).get(output)
            return reach is not None and _fits(printed, reach)

        domain, step = definition.domain(name), max(map(abs, inside)) * 2.0**-10 or 1e-12
        low = few_digits.end_of(fits, min(inside), -step, domain.least)
        high = few_digits.end_of(fits, max(inside), step, domain.most)
        number = SolvedNumber(inside[0], low, high, 0.0)
        cause, details = cause_of(name, given, number.told, (low, high))
        flags = number.flags | ({"several": True} if inside[1:] else {})
        found.append({"cause": cause, "details": {**details, **flags}})
    return [*found, *verdict["causes"]]


def _edited(asked: PrintedQuestion, output: str, printed: Intervals, right: Reach) -> list[Record]:
    """The factor, or else the edits of the op's program, that can give every printed element."""
    found = []
    for cause in edited(asked, output, printed, right):
        if _explains(cause, output, printed):
            found.append({"cause": cause.cause, "details": dict(cause.details)})
            if "factor" in cause.details:
                break
    return found


def outside(printed: Intervals, right: Reach) -> npt.NDArray[np.bool_]:
    """Where no float of the printed interval can be right; a NaN is wrong wherever the reach is
    known. A result beyond the largest float may be rounded to infinity."""
    largest = math.inf if printed.format is None else printed.format.max
    with np.errstate(invalid="ignore"):
        low = np.where(right.low < -largest, -np.inf, right.low)
        high = np.where(right.high > largest, np.inf, right.high)
        meets = (printed.high >= low) & (printed.low <= high)
    return np.asarray(right.known & ~meets)


def _explains(cause: PossibleCause, name: str, printed: Intervals) -> bool:
    reach = cause.reach.get(name)
    return reach is not None and reach.mid.shape == printed.mid.shape and _fits(printed, reach)


def _fits(printed: Intervals, reach: Reach) -> bool:
    return bool(reach.known.all()) and not outside(printed, reach).any()


def _worst(printed: Intervals, right: Reach, wrong: npt.NDArray[np.bool_]) -> Record | None:
    """The element that is farthest outside; for an output that is within, the one that uses the
    largest share of what its interval allows."""
    if not right.known.any():
        return None
    with np.errstate(all="ignore"):
        distance = np.abs(printed.mid - right.mid)
        share = distance / (right.radius + right.error + printed.radius)
        share = np.where(np.isnan(printed.mid) & wrong, np.inf, share)
        share = np.where(np.isinf(printed.mid) & ~wrong, 0.0, share)  # it overflows, rightly
        share = np.where(right.known & ~np.isnan(share), share, -1.0)
    flat = int(np.argmax(share))
    index = np.unravel_index(flat, share.shape)
    return {
        "index": [int(i) for i in index],
        "printed": [float(printed.low[index]), float(printed.high[index])],
        "truth": [
            float(right.mid[index] - right.radius[index]),
            float(right.mid[index] + right.radius[index]),
        ],
        "allowed": float(right.error[index]),
        "share": float(share[index]),
    }


def _digits_needed(apart: Any, slack: Any, digits: int, format: Format) -> int | None:
    """The number of digits with which the intervals are narrower than the distance `apart`, in the
    element that needs the fewest; None if no number of digits is enough."""
    with np.errstate(all="ignore"):
        decidable = (apart > 0.0) & np.isfinite(apart) & np.isfinite(slack)
        if not decidable.any():
            return None
        ratio = float(np.min(np.where(decidable, slack / np.where(decidable, apart, 1.0), np.inf)))
    if not ratio < 10.0 ** _DIGITS[format.name]:
        return None
    needed = digits + max(math.ceil(math.log10(ratio)) if ratio > 0.0 else 0, 0)
    needed += needed == digits  # these digits do not decide it
    return needed if needed <= _DIGITS[format.name] else None


def _if_exact(
    asked: PrintedQuestion, answers: Mapping[str, Mapping[str, Intervals]]
) -> Record | None:
    """The verdict if the inputs have no more digits than were printed, which is possible if every
    printed number is a float. If this holds for the outputs too, also `explain`'s answer."""
    floats = [interval for interval in asked.box.values() if interval.format is not None]
    if not floats or not all(interval.exact for interval in floats):
        return None
    if not any(interval.radius.any() for interval in floats):
        return None
    points = {name: _point(interval) for name, interval in asked.box.items()}
    kernels = _judged(replace(asked, box=points), answers)
    result: Record = {"kernels": kernels, "explanation": None}
    all_printed = [printed for by_output in answers.values() for printed in by_output.values()]
    if all(printed.exact for printed in all_printed) and len({p.format for p in all_printed}) == 1:
        outputs = {
            kernel: {name: printed.middle for name, printed in by_output.items()}
            for kernel, by_output in answers.items()
        }
        explained = explain(asked.op, asked.middles, outputs, asked.params, asked.direction)
        result["explanation"] = explained.to_dict()
    return result


def _point(interval: Intervals) -> Intervals:
    wide = np.asarray(interval.middle, np.float64)
    return replace(interval, low=wide, high=wide)


def _tensor_record(tensor: Printed, roles: choices.Roles) -> Record:
    """A printed tensor and its role."""
    role = next(
        (str(name) for name, given in roles.inputs.items() if given.number == tensor.number), None
    )
    for kernel, by_output in roles.outputs.items():
        for output, answer in by_output.items():
            if answer.number == tensor.number:
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

"""Assertions for kernel authors: the tolerance comes from the inputs, never from a guess.

    import numpy as np
    from refkernels.testing import assert_kernel

    def test_my_layernorm():
        x = np.random.default_rng(0).standard_normal((4, 768), dtype=np.float32)
        assert_kernel("layernorm", {"x": x}, my_layernorm(x), {"eps": 1e-5})

`assert_kernel` finds oracle and bound itself; `assert_rounding` takes them; `assert_ulp` takes a
fixed number of ulp. Arrays may be NumPy arrays or anything with DLPack or `__array__`. A kernel
that answers wrongly raises AssertionError; a call that makes no sense TypeError or ValueError.
"""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import as_float_array
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.metrology.judgement import describe_element
from refkernels.metrology.summary import Summary, summarise
from refkernels.metrology.ulp_errors import as_enclosure, ulp, ulp_error
from refkernels.metrology.verdict import VERDICTS
from refkernels.metrology.verdict import verdict as verdict_of
from refkernels.op import DIRECTIONS, Direction, Op

__all__ = ["assert_kernel", "assert_rounding", "assert_ulp"]

_SHOWN = 5  # worst elements in a message


@dataclass
class Tally:
    """What the pytest plugin prints at the end."""

    assertions: int = 0
    largest_ratio: float = 0.0
    where: str = ""

    def add(self, what: str, ratio: float) -> None:
        self.assertions += 1
        if ratio > self.largest_ratio or not self.where:
            test = os.environ.get("PYTEST_CURRENT_TEST", "").rsplit(" ", 1)[0]
            self.largest_ratio, self.where = ratio, f"{what}, {test}" if test else what


tally = Tally()


@dataclass(frozen=True)
class _Answer:
    """One output beside its truth, ready to be judged or told."""

    name: str
    got: npt.NDArray[Any]
    reference: Enclosure
    bound: npt.NDArray[np.float64]
    condition: npt.NDArray[np.float64] | None
    format: Format
    op: str = ""
    inputs: Mapping[str, npt.NDArray[Any]] | None = None


def assert_ulp(got: Any, reference: Any, max_ulp: float) -> None:
    """Assert |got - z| <= max_ulp * ulp(z) in every element, in ulp of got's format at the exact z.

    `reference`: an Enclosure, or an array that is taken as exact; of got's shape. An element fails
    only where it certainly does, whatever the enclosure's radius. At z = 0 the limit is max_ulp
    smallest subnormals; NaN and infinities must be met as they are; the sign of a zero is free.
    Raises AssertionError with the worst elements; ValueError for a negative or NaN max_ulp, and
    for a reference too wide to have an ulp (it reaches zero).
    """
    __tracebackhide__ = True
    if not max_ulp >= 0.0:
        raise ValueError(f"max_ulp is {max_ulp!r}: it must be a number >= 0.")
    array, exact = _pair(got, reference, "got")
    format = formats.of(array)
    error = ulp_error(array, exact, format)
    if np.isinf(error.uncertainty).any():
        raise ValueError(
            "The reference is too wide for an ULP error: some of its intervals reach zero; ask the "
            'oracle for certify=("ulp", format, uncertainty) or use assert_rounding.'
        )
    units = np.where(np.isfinite(exact.hi), ulp(np.asarray(exact.hi), format), math.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        bound = np.nan_to_num(units * max_ulp, nan=math.inf, posinf=np.finfo(np.float64).max)
    summary = summarise(array, exact, bound, format)
    at_zero = exact.exact_zero & ~(np.abs(array.astype(np.float64)) <= bound)
    failing = np.abs(error.value) - error.uncertainty > max_ulp
    failing |= at_zero
    tally.add("assert_ulp", summary.max / max_ulp if max_ulp else math.inf * (summary.max > 0))
    if failing.any() or summary.counts["special_value_mismatches"]:
        answer = _Answer("got", array, exact, bound, None, format)
        wrong = int(failing.sum()) + summary.counts["special_value_mismatches"]
        head = f"{wrong} of {array.size} elements are more than {max_ulp:g} ulp from the truth"
        raise AssertionError(_message(head, answer, summary, _next_step(summary, answer)))


def assert_rounding(got: Any, reference: Any, bound: Any) -> None:
    """Assert |got - z| <= bound in every element: fails only beyond what a stable algorithm allows.

    `reference`: an Enclosure, or an array that is taken as exact; `bound` >= 0 broadcasts to it.
    An element fails only where |got - z| - radius > bound. Where the bound is infinite (an overflow
    inside is allowed) NaN and infinities pass; elsewhere they must be met as they are.
    Raises AssertionError with the worst elements, ValueError for a bound that is NaN or negative.
    """
    __tracebackhide__ = True
    array, exact = _pair(got, reference, "got")
    try:
        limit = np.broadcast_to(np.asarray(bound, dtype=np.float64), array.shape)
    except ValueError:
        raise ValueError(
            f"bound has shape {np.shape(bound)}, which does not broadcast to {array.shape}."
        ) from None
    if np.any(~(limit >= 0.0) & np.isfinite(exact.hi)):
        raise ValueError("bound is NaN or negative where the reference is finite.")
    _check(_Answer("got", array, exact, limit, None, formats.of(array)), "rounding", ())


def assert_kernel(
    op: str | Op,
    inputs: Mapping[str, Any],
    outputs: Any,
    params: Mapping[str, Any] | None = None,
    direction: Direction = "forward",
    *,
    verdict: str = "rounding",
) -> None:
    """Assert that a kernel's outputs are as right as any stable algorithm's on these inputs.

    `op`: a name that `refkernels.registry` knows ("layernorm", "matmul", "sin", ...). `inputs`: by
    name, the cotangent included when direction is "backward". `outputs`: by name, as many of them
    as the kernel has, or one array where only the op's first output is tested; their dtype is the
    working precision. `verdict`: the worst that passes, "rounding" or "correctly_rounded".
    Raises AssertionError where an output is wrong, in value, shape or dtype; ValueError and
    TypeError where names, params or inputs are not the op's.
    """
    __tracebackhide__ = True
    if verdict not in VERDICTS[-2:]:
        raise ValueError(f"verdict is {verdict!r}: ask for 'rounding' or 'correctly_rounded'.")
    record = registry.get(op) if isinstance(op, str) else op
    arrays = _named_inputs(record, direction, inputs, params or {})
    answers = _named_outputs(record, direction, outputs)
    format = formats.of(next(iter(answers.values())))
    _check_dtype(record, direction, arrays, answers)
    settings = dict(params or {})
    exact = record.evaluate(direction, arrays, settings, ("rounding", format))
    bounds = record.bound(direction, arrays, settings, format)
    conditions = record.condition(direction, arrays, settings)
    for name, got in answers.items():
        _check_shape(f"{record.name}'s {name}", got.shape, exact[name].shape)
        answer = _Answer(
            name,
            got,
            exact[name],
            np.broadcast_to(bounds[name], got.shape),
            np.broadcast_to(conditions[name], got.shape) if name in conditions else None,
            formats.of(got),
            record.name,
            arrays,
        )
        violated = [
            invariant.statement
            for invariant in record.invariants
            if (invariant.direction, invariant.output) == (direction, name)
            and np.any(invariant.violated(got, arrays, settings))
        ]
        _check(answer, verdict, violated)


def _check(answer: _Answer, wanted: str, violated: Any) -> None:
    __tracebackhide__ = True
    summary = summarise(answer.got, answer.reference, answer.bound, answer.format)
    what = f"{answer.op} {answer.name}".strip()
    tally.add(what, summary.max_ratio)
    found = verdict_of(summary.counts, violated)
    if VERDICTS.index(found) >= VERDICTS.index(wanted):
        return
    counts, size, format = summary.counts, answer.got.size, answer.format
    heads = {
        "special_value_mismatch": f"{counts['special_value_mismatches']} of {size} elements are "
        "NaN, infinite or finite where the truth is another of the three",
        "invariant_violated": "what mathematics forbids: " + "; ".join(violated),
        "exceeds_bound": f"{counts['beyond_bound']} of {size} elements are further from the truth "
        f"than any stable {format} algorithm can be",
        "rounding": f"{counts['not_correctly_rounded']} of {size} elements are not correctly "
        f"rounded ({counts['undecided']} undecided, {counts['signed_zero_mismatches']} zeros of "
        "the wrong sign)",
    }
    head = f"{what}: {found}: {heads[found]}"
    raise AssertionError(_message(head, answer, summary, _next_step(summary, answer)))


def _message(head: str, answer: _Answer, summary: Summary, hint: str) -> str:
    """The head, the figures, the worst elements in decimal and hex, and what to do next."""
    counts = summary.counts
    lines = [
        f"{head}.",
        f"  error / bound {summary.max_ratio:.3g}, largest error {summary.max:.4g} ulp of "
        f"{answer.format} ({counts['nonzero_at_zero']} nonzero where the truth is 0, "
        f"{counts['special_value_mismatches']} special value mismatches)",
    ]
    for place in _worst_places(answer):
        one = describe_element(
            place,
            answer.got,
            answer.reference,
            answer.bound,
            answer.condition,
            answer.format,
            op=answer.op,
            output=answer.name,
            inputs=answer.inputs,
        )
        lines += _element_lines(answer.name, one)
    return "\n".join([*lines, f"  Next step: {hint}"])


def _element_lines(name: str, one: dict[str, Any]) -> list[str]:
    # `.4` shortens a float to 4 digits, and leaves "inf" and "nan" as they are.
    condition = "" if one["condition"] is None else f", condition number {one['condition']:.4}"
    error, ratio = one["ulp_error"], one["error_over_bound"]
    lines = [
        f"  {name}{one['index']} = {one['got']['decimal']} ({one['got']['hex']})",
        f"    exact {one['exact']['decimal']} ({one['exact']['hex']})",
        f"    error {error:.6} ulp, error / bound {ratio:.4}{condition}",
    ]
    for source, value in one["inputs"].items():
        place = ", ".join(str(axis) for axis in value["index"])
        lines.append(f"    {source}[{place}] = {value['decimal']} ({value['hex']})")
    return lines


def _worst_places(answer: _Answer) -> list[int]:
    """Flat indices of the worst elements: special value mismatches, then by error / bound."""
    got = answer.got.astype(np.float64).reshape(-1)
    exact = np.asarray(answer.reference.hi).reshape(-1)
    rounded = answer.reference.round(answer.format)[0].astype(np.float64).reshape(-1)
    bound = answer.bound.reshape(-1)
    with np.errstate(all="ignore"):
        error = np.where(got == rounded, 0.0, np.abs(got - exact))
        ratio = np.where(error == 0.0, 0.0, error / bound)
    both_nan = np.isnan(got) & np.isnan(exact)
    ratio = np.where(both_nan | (got == rounded), 0.0, np.where(np.isnan(ratio), math.inf, ratio))
    order = np.argsort(-ratio, kind="stable")[:_SHOWN]
    wrong = [int(place) for place in order if ratio[place] > 0.0]
    return [place for place in wrong if ratio[place] >= ratio[wrong[0]] * 1e-3]


def _next_step(summary: Summary, answer: _Answer) -> str:
    counts = summary.counts
    if counts["special_value_mismatches"]:
        return (
            "look for an intermediate that overflows, a division by zero or a value that is "
            "never written."
        )
    if counts["flushed_subnormals"]:
        return "subnormal results came back as 0: build without -ffast-math / FTZ."
    if counts["nonzero_at_zero"] and summary.max_ratio > 1.0:
        return "the exact answer is 0 there: two large terms that should cancel do not."
    conditions = np.zeros(1) if answer.condition is None else answer.condition
    worst = float(np.max(conditions, initial=0.0, where=np.isfinite(conditions)))
    if worst * answer.format.u > 1.0:
        return (
            f"the inputs are ill-conditioned (up to {worst:.3g}), which the bound allows for; so "
            "look for cancellation that the formula adds, such as E[x^2] - E[x]^2."
        )
    return (
        "compare with inputs rounded to TF32 or bfloat16, with 16-bit accumulation and with "
        "swapped operands; a one-line change that reproduces the error names the cause."
    )


def _pair(got: Any, reference: Any, name: str) -> tuple[npt.NDArray[Any], Enclosure]:
    __tracebackhide__ = True
    array = as_float_array(got, name)
    exact = as_enclosure(reference)
    _check_shape(name, array.shape, exact.shape)
    return array, exact


def _check_shape(name: str, got: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    __tracebackhide__ = True
    if got != wanted:
        raise AssertionError(f"{name} has shape {got}, but {wanted} is right.")


def _check_dtype(
    op: Op,
    direction: Direction,
    inputs: Mapping[str, npt.NDArray[Any]],
    outputs: Mapping[str, npt.NDArray[Any]],
) -> None:
    """Statistics (mean, rstd) may be kept in another precision; the first output may not."""
    __tracebackhide__ = True
    first = op.names(direction)[0]
    given = sorted({str(array.dtype) for array in inputs.values()})
    if first in outputs and str(outputs[first].dtype) not in given:
        raise AssertionError(
            f"{op.name}'s {first} is {outputs[first].dtype} where the inputs are "
            f"{' and '.join(given)}."
        )


def _named_inputs(
    op: Op, direction: Direction, inputs: Mapping[str, Any], params: Mapping[str, Any]
) -> dict[str, npt.NDArray[Any]]:
    if direction not in DIRECTIONS:
        raise ValueError(f"direction is {direction!r}: it must be 'forward' or 'backward'.")
    if not isinstance(inputs, Mapping):
        raise TypeError(f"inputs must map names to arrays; {op.name} takes {op.takes(direction)}.")
    given = {name for name, value in inputs.items() if value is not None}
    unknown = given - set(op.takes(direction))
    missing = set(op.takes(direction)) - set(op.optional) - given
    if unknown or missing:
        raise ValueError(
            f"{op.name} {direction} takes {', '.join(op.takes(direction))} (optional: "
            f"{', '.join(op.optional) or 'none'}); unknown here: {_listed(unknown)}; "
            f"missing: {_listed(missing)}."
        )
    if strange := set(params) - set(op.params):
        raise ValueError(
            f"{op.name} has no parameter {_listed(strange)}: its own are {_listed(set(op.params))}."
        )
    return {
        name: as_float_array(inputs[name], name) for name in op.takes(direction) if name in given
    }


def _named_outputs(op: Op, direction: Direction, outputs: Any) -> dict[str, npt.NDArray[Any]]:
    names = op.names(direction)
    if hasattr(outputs, "_asdict"):
        outputs = outputs._asdict()
    if not isinstance(outputs, Mapping):
        outputs = {names[0]: outputs}
    outputs = {name: value for name, value in outputs.items() if value is not None}
    if not outputs or set(outputs) - set(names):
        raise ValueError(
            f"{op.name} {direction} gives {', '.join(names)}; these outputs were handed in: "
            f"{_listed(set(outputs))}."
        )
    return {name: as_float_array(outputs[name], name) for name in names if name in outputs}


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(map(str, names))) or "none"

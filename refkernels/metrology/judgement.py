"""judge(): one output against its oracle, as a record's fields from `counts` to `digest`."""

import functools
import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.arguments import as_mapping
from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import as_float_array, spread, to_float64
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.arithmetic.wording import shown
from refkernels.metrology import verdict as verdicts
from refkernels.metrology.avoidable import avoidable, certain_errors, needs_asking
from refkernels.metrology.no_part import with_nan
from refkernels.metrology.permitted import permitted
from refkernels.metrology.summary import Summary, summarise
from refkernels.metrology.ulp_errors import (
    as_enclosure,
    check_alike,
    check_shapes,
    is_nan,
    ulp_distance,
    ulp_error,
)
from refkernels.metrology.worst import exact_text, relevant_inputs, text
from refkernels.op import DIRECTIONS, Arrays, Direction, Invariant, Op, Sum
from refkernels.range_limits import RangeLimits
from refkernels.records.codec import figure
from refkernels.truth import Truth, holds

Doubles = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
_IMPRECISE = ("ill_conditioned", "rounding")


@with_default_fenv
def judge(
    op: Op,
    direction: Direction,
    output: str,
    got: npt.NDArray[Any],
    reference: Enclosure,
    *,
    bound: Doubles,
    condition: Doubles | None = None,
    plain: npt.NDArray[Any] | Iterator[npt.NDArray[Any]] | None = None,
    inputs: Arrays,
    params: Mapping[str, Any],
    format: Format | str | None = None,
    forms: Mapping[str, Doubles] | None = None,
    attainable: Callable[[], Sequence[Mapping[str, Doubles]]] | None = None,
    limits: RangeLimits | None = None,
) -> dict[str, Any]:
    """The measurement of one output: counts, ulp, error, bound, plain, condition, worst,
    invariants_violated, verdict, flags and digest, in strict JSON.

    `plain`: the plain algorithm's answer, or several right answers, the worst of which counts
    (`Truth.right`). `forms`: the bound of each named form, sharpest first; `bound` is their
    maximum. `attainable`: the bounds by which errors are avoidable (`Truth.attainable`), asked
    where an error is large. `limits`: what the forms do beyond the format's range, as
    `Truth.range_limits` gives it. `format`: the format of the ulp, by default got's. All other
    arrays have got's shape or broadcast to it.
    Raises ValueError where got and reference differ in shape, and where a bound is NaN or negative
    at a finite exact value (no verdict could be trusted).
    """
    _check_question(op, direction, output, inputs, params)
    if not isinstance(limits, RangeLimits | None):
        raise TypeError("judge takes the limits that Truth.range_limits gives, or None.")
    array, reference = as_float_array(got, output), as_enclosure(reference)
    inputs = {name: op.array(name, value) for name, value in inputs.items()}
    target = formats.of(array) if format is None else formats.get(format)
    check_shapes(array, reference)
    forms = {
        name: spread(to_float64(as_float_array(limits, name)), array.shape, name)
        for name, limits in as_mapping(forms, "forms").items()
    }
    limit = spread(to_float64(as_float_array(bound, "bound")), array.shape, "bound")
    counted = with_nan(op, direction, output, array, reference, inputs, params)
    weighed = weigh(
        op, direction, output, counted, reference,
        bound=limit, plain=plain, inputs=inputs, params=params, format=target, limits=limits,
    )  # fmt: skip
    summary, ratio, where = weighed.summary, weighed.plain_ratio, weighed.out_of_range
    better = None
    if attainable is not None and weighed.verdict in _IMPRECISE and needs_asking(summary):
        better = avoidable(array, reference, target, attainable())
    counts = {**weighed.summary.counts, "avoidable": better.elements if better else 0}
    conditions = None
    if condition is not None:
        wide = to_float64(as_float_array(condition, "condition"))
        conditions = spread(wide, array.shape, "condition")
    worst = worst_element(op, output, array, reference, limit, conditions, inputs, weighed, target)
    return {
        "counts": counts,
        "ulp": _ulp_figures(summary),
        "error": {name: figure(getattr(summary, name)) for name in ("max_abs", "max_abs_at_zero")},
        "bound": {
            "max_ratio": figure(summary.max_ratio),
            **_limit_or_form(op, direction, array, reference, forms),
            **({"better": better.record} if better else {}),
            **({"range": limits.forms(output, where)} if limits and where.any() else {}),
        },
        "plain": {"ratio": None if ratio is None else figure(ratio)},
        "condition": _condition_figures(conditions, worst),
        "worst": worst,
        "invariants_violated": weighed.broken,
        "verdict": weighed.verdict,
        "flags": verdicts.flags(counts, weighed.errors),
        "digest": digest(array),
    }


def judge_by(truth: Truth, output: str, got: npt.NDArray[Any]) -> dict[str, Any]:
    """`judge` of an answer to the truth's question."""
    question = truth.op, truth.direction, output, got, truth.reference[output]
    return judge(
        *question,
        bound=truth.bound()[output],
        condition=truth.condition.get(output),
        plain=truth.right(output),
        inputs=truth.inputs,
        params=truth.params,
        forms=truth.forms if output == truth.op.names(truth.direction)[0] else None,
        attainable=functools.partial(truth.attainable, output),
        limits=truth.range_limits(),
    )


class Weighed(NamedTuple):
    """The basis of a verdict. `errors`: RMS errors, None where they are undefined; `broken`: the
    violated invariants, and `where` some is; `out_of_range`: the range-limited elements."""

    summary: Summary
    errors: verdicts.RmsErrors | None
    broken: list[str]
    where: Bools
    out_of_range: Bools

    @property
    def plain_ratio(self) -> float | None:
        return None if self.errors is None else self.errors.over_plain

    @property
    def verdict(self) -> str:
        return verdicts.verdict(self.summary.counts, self.broken)

    @property
    def flags(self) -> list[str]:
        return verdicts.flags(self.summary.counts, self.errors)


@with_default_fenv
def weigh(
    op: Op,
    direction: Direction,
    output: str,
    got: npt.NDArray[Any],
    reference: Enclosure,
    *,
    bound: Doubles,
    plain: npt.NDArray[Any] | Iterator[npt.NDArray[Any]] | None,
    inputs: Arrays,
    params: Mapping[str, Any],
    format: Format,
    distribution: bool = True,
    limits: RangeLimits | None = None,
) -> Weighed:
    """The basis of `judge`'s verdict, without the rest of the record. The arrays' shapes have been
    checked. `distribution`: as for `summarise`; `limits`: as for `judge`."""
    _check_bound(op, output, bound, reference)
    summary, out_of_range = permitted(output, got, reference, bound, format, limits, distribution)
    errors = None
    if plain is not None:
        errors = verdicts.worst_errors(got, plain, reference, format, op.elementwise)
    broken = violated(op, direction, output, got, reference, inputs, params, out_of_range)
    names = [invariant.name for invariant in broken]
    return Weighed(summary, errors, names, anywhere(broken, got.shape), out_of_range)


def _limit_or_form(
    op: Op,
    direction: Direction,
    got: npt.NDArray[Any],
    reference: Enclosure,
    forms: Mapping[str, Doubles] | None,
) -> dict[str, Any]:
    """A limit and its source; or the first form whose bound permits the error of every element; or
    all forms, where no single form does but their maximum does."""
    if not forms:
        limited = op.limit is not None and direction == "forward"
        return {"limit": op.limit, "limit_source": op.limit_source} if limited else {}
    certain = certain_errors(got, reference)
    with np.errstate(all="ignore"):
        for name, bound in forms.items():
            if not np.any(certain > np.broadcast_to(bound, certain.shape)):
                return {"form": name}
        beyond = np.any(certain > np.maximum.reduce(list(forms.values())))
    return {} if beyond else {"form": "; ".join(forms)}


def violated(
    op: Op,
    direction: Direction,
    output: str,
    got: npt.NDArray[Any],
    reference: Enclosure,
    inputs: Arrays,
    params: Mapping[str, Any],
    out_of_range: Bools | bool = False,
) -> dict[Invariant, Bools]:
    """The op's invariants that an answer violates in some element, and where; out-of-range elements
    excepted.

    Where the answer's format cannot hold the inputs, rounding may carry an answer past the input
    that it is compared with (gelu(x) <= x, with y narrower than x). There a faithful element
    violates nothing.
    """
    broken = {}
    for invariant in op.invariants:
        if (invariant.direction, invariant.output) != (direction, output):
            continue
        where = np.asarray(invariant.violated(got, inputs, params)) & ~np.asarray(out_of_range)
        if where.any() and not holds(formats.of(got), inputs):
            where = where & ~(np.abs(ulp_error(got, reference).value) < 1.0)
        if where.any():
            broken[invariant] = where
    return broken


def anywhere(masks: Mapping[Invariant, Bools], shape: tuple[int, ...]) -> Bools:
    """Where some invariant is violated."""
    return functools.reduce(np.logical_or, masks.values(), np.zeros(shape, np.bool_))


def worst_index(weighed: Weighed) -> int | None:
    """The flat index of the element that explains the verdict: the first special value mismatch;
    else the first impossible value; else the largest error / bound, if it exceeds 1; else the
    largest ULP error; else None."""
    summary = weighed.summary
    if summary.first_mismatch is not None:
        return summary.first_mismatch
    if weighed.broken:
        return int(np.argmax(weighed.where))
    beyond = summary.counts["beyond_bound"] > 0 or summary.worst_error is None
    return summary.worst_ratio if beyond else summary.worst_error


def worst_element(
    op: Op,
    output: str,
    got: npt.NDArray[Any],
    reference: Enclosure,
    bound: Doubles,
    condition: Doubles | None,
    inputs: Arrays,
    weighed: Weighed,
    format: Format,
) -> dict[str, Any] | None:
    """A record's entry for the element at `worst_index`, None if there is none."""
    place = worst_index(weighed)
    if place is None:
        return None
    product = op.sums.get(output)
    return describe_element(
        place, got, reference, bound, condition, format, product=product, inputs=inputs
    )


def describe_element(
    place: int,
    got: npt.NDArray[Any],
    reference: Enclosure,
    bound: Doubles,
    condition: Doubles | None,
    format: Format,
    *,
    product: Sum | None = None,
    inputs: Arrays | None = None,
) -> dict[str, Any]:
    """A record's entry for the element at the flat (C order) index `place`. `product`: the letters
    of an output that is a sum of products. A NaN or infinity on one side only has no error: error
    and error / bound are "nan" there."""
    index = tuple(int(i) for i in np.unravel_index(place, got.shape))
    single = np.array([got[index]], dtype=got.dtype)
    parts = (reference.hi, reference.lo, reference.radius, reference.scale)
    element = Enclosure(*(np.array([part[index]]) for part in parts))
    error = ulp_error(single, element, format)
    alone = summarise(single, element, np.array([bound[index]]), format, distribution=False)
    mismatch = alone.counts["special_value_mismatches"] > 0
    return {
        "index": list(index),
        "inputs": relevant_inputs(product, index, got.shape, inputs or {}),
        "got": text(got[index]),
        "exact": exact_text(reference, index),
        "ulp_error": figure(error.value[0]),
        "condition": None if condition is None else figure(condition[index]),
        "error": figure(math.nan if mismatch else alone.max_abs),
        "error_over_bound": figure(math.nan if mismatch else alone.max_ratio),
    }


@with_default_fenv
def agreement(a: Any, b: Any) -> dict[str, Any]:
    """How far apart two answers of one dtype and shape are, without an oracle.

    equal_bits counts elements with the same bits; any NaN equals any NaN. The two maxima are over
    elements that are NaN on neither side, None if there are none. Raises ValueError where dtypes
    or shapes differ.
    """
    first, second = as_float_array(a, "a"), as_float_array(b, "b")
    check_alike(first, second)
    nan_a, nan_b = is_nan(first), is_nan(second)
    bits = formats.of(first).bits_dtype
    equal = np.ascontiguousarray(first).view(bits) == np.ascontiguousarray(second).view(bits)
    equal = equal.reshape(first.shape) | (nan_a & nan_b)
    numbers = ~(nan_a | nan_b)
    result = {"elements": int(first.size), "equal_bits": int(np.count_nonzero(equal))}
    if not numbers.any():
        return {**result, "max_abs_difference": None, "max_ulp_distance": None}
    apart = numbers & ~equal
    if not apart.any():
        return {**result, "max_abs_difference": 0.0, "max_ulp_distance": 0}
    first, second = first[apart], second[apart]
    left, right = to_float64(first), to_float64(second)
    with np.errstate(invalid="ignore", over="ignore"):
        differences = np.where(left == right, 0.0, np.abs(left - right))
    return {
        **result,
        "max_abs_difference": figure(differences.max()),
        "max_ulp_distance": int(ulp_distance(first, second).max()),
    }


@with_default_fenv
def digest(array: npt.NDArray[Any]) -> str:
    """SHA-256 over dtype, shape and bits (little endian), every NaN as the one quiet NaN."""
    array = as_float_array(array, "array")
    format = formats.of(array)
    canonical = np.where(is_nan(array), np.array(np.nan, dtype=array.dtype), array)
    bits = np.ascontiguousarray(canonical.astype(array.dtype)).view(format.bits_dtype)
    little = bits.astype(bits.dtype.newbyteorder("<"), copy=False)
    head = f"{format.name}{list(array.shape)}".encode()
    return hashlib.sha256(head + little.tobytes()).hexdigest()


def _check_question(op: Any, direction: Any, output: Any, inputs: Any, params: Any) -> None:
    if not isinstance(op, Op) or not all(isinstance(named, Mapping) for named in (inputs, params)):
        raise TypeError(
            "judge takes an Op from refkernels.registry, and inputs and params as mappings by name."
        )
    words = isinstance(direction, str) and isinstance(output, str)
    if not words or direction not in DIRECTIONS or output not in op.names(direction):
        raise ValueError(
            f"{op.name} has no output {shown(output)} in the direction {shown(direction)}: forward "
            f"gives {', '.join(op.outputs)} and backward {', '.join(op.gradients)}."
        )
    if lacking := set(op.takes(direction)) - set(op.optional) - set(inputs):
        raise ValueError(f"{op.name} {direction} lacks its inputs {', '.join(sorted(lacking))}.")


def _check_bound(op: Op, output: str, bound: Doubles, reference: Enclosure) -> None:
    if np.any(~(bound >= 0.0) & np.isfinite(reference.hi)):
        raise ValueError(
            f"The bound of {op.name}'s {output} is NaN or negative where the exact value is "
            "finite, so no verdict can be trusted: correct the op's bound."
        )


def _ulp_figures(summary: Summary) -> dict[str, Any] | None:
    if not summary.counts["compared"]:
        return None
    return {
        "max": figure(summary.max),
        "max_uncertainty": figure(summary.max_uncertainty),
        "mean": figure(summary.mean),
        **{name: figure(value) for name, value in summary.percentiles.items()},
        "max_distance": summary.max_distance,
        "histogram": [[figure(edge), count] for edge, count in summary.histogram],
    }


def _condition_figures(condition: Doubles | None, worst: dict[str, Any] | None) -> dict[str, Any]:
    defined = np.empty(0) if condition is None else condition[~np.isnan(condition)]
    if not defined.size:
        return {"max": None, "median": None, "at_worst": None}
    place = defined.size // 2
    median = float(np.partition(defined.reshape(-1), place)[place])
    return {
        "max": figure(math.inf if np.isinf(defined).any() else defined.max()),
        "median": figure(median),
        "at_worst": None if worst is None else worst["condition"],
    }

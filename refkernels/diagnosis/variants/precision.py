"""Variants with inputs in a narrower format, to which hardware may round float32 unasked; and
outputs that are truncated to their format, toward zero, instead of rounded to nearest.

TF32 keeps 11 significant bits. PTX rounds to it with ties away from zero (`cvt.rna.tf32.f32`); the
products of cuBLAS 13.0 on an H100 fit ties to even, and only those. bfloat16 and float16 round to
nearest even; a conversion that cuts bits off rounds toward zero. Products of such inputs are exact
in float32 and wider formats, so only the rounding of the sums remains.

A kernel that computes z' in a wider format W and stores trunc(z') gives, with |z' - z| <= B the
bound of W about the exact z, a number between trunc(z - B) and trunc(z + B): truncation is
monotone. Where W is much wider these are one number, trunc(z), for nearly every element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.transformations import two_sum
from refkernels.diagnosis.formulas import if_far
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Answer, Array, Arrays, Doubles, Problem
from refkernels.diagnosis.wrong import low_part
from refkernels.metrology.ulp_errors import ulp

_NEAREST = {"bfloat16": "bf16_inputs", "float16": "fp16_inputs", "float32": "float32_cast"}


def narrowed_inputs(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Inputs rounded or truncated to a narrower format: the factors of a product, a function's
    argument, LayerNorm's x (alone or with the cotangent); and then all inputs."""
    form = problem.definition.first(problem.direction)
    for format in (formats.TF32, formats.BINARY32, formats.BINARY16, formats.BFLOAT16):
        if format is formats.TF32 and not _multiplies(problem):
            continue
        for names in _choices(problem):
            arrays = {name: problem.inputs[name] for name in names}
            arrays = {name: array for name, array in arrays.items() if _narrower(array, format)}
            if not arrays:
                continue
            for cause, tie_details, narrow in narrowings(arrays, format):
                details = {"format": format.name, "inputs": ", ".join(arrays), **tie_details}
                asked = replace(problem, inputs={**problem.inputs, **narrow})
                answer = if_far(problem, outputs, form, asked) or problem.ask(narrow)
                # Invariants hold for the narrowed inputs, not for the given ones.
                yield Variant(cause, details, replace(answer, invariant=False))


def narrowings(arrays: Arrays, format: Format) -> Iterator[tuple[str, dict[str, str], Arrays]]:
    """The arrays in a narrower format, with the cause and how ties were rounded to TF32. Where no
    element is a tie, the two ways agree, and the details do not mention ties."""
    if format is not formats.TF32:
        yield _NEAREST[format.name], {}, _narrowed(arrays, format, formats.round_to)
    else:
        even = _narrowed(arrays, format, formats.round_to)
        away = _narrowed(arrays, format, formats.round_ties_away)
        tied = any(not np.array_equal(even[name], away[name], equal_nan=True) for name in arrays)
        yield "tf32_inputs", {"ties": "even"} if tied else {}, even
        if tied:
            yield "tf32_inputs", {"ties": "away"}, away
    yield "truncated_inputs", {}, _narrowed(arrays, format, formats.truncate_to)


def _narrowed(arrays: Arrays, format: Format, convert: Callable[[Array, Format], Array]) -> Arrays:
    """The arrays with fewer significant bits, in their own dtype. A number that is finite in the
    format, but too large for the dtype (65504 in bfloat16 is 65536), stays as it is."""

    def narrowed(array: Array) -> Array:
        wide = convert(to_float64(array), format)
        with np.errstate(over="ignore"):
            stored = wide.astype(array.dtype)
        return np.where(np.isfinite(wide) & ~np.isfinite(stored), array, stored)

    return {
        name: array if format.p >= formats.of(array).p else narrowed(array)
        for name, array in arrays.items()
    }


def _choices(problem: Problem) -> list[list[str]]:
    """The inputs that a kernel may have narrowed together."""
    names = [name for name in problem.op.takes(problem.direction) if name in problem.inputs]
    kinds = {name: problem.inputs[name].dtype for name in names}
    present = [name for name, to in kinds.items() if to.kind not in "iub" and to.itemsize > 1]
    if _multiplies(problem):
        first = [name for name in present if name != "bias"]
    else:
        first = [name for name in present if name == "x"]
    data = [name for name in present if name in ("x", problem.op.cotangent)]
    choices = [first, present] if _multiplies(problem) else [first, data, present]
    return [list(names) for names in dict.fromkeys(map(tuple, choices))]


def _multiplies(problem: Problem) -> bool:
    """Whether the op is sums of products."""
    return bool(problem.op.sums or problem.op.factors)


def _narrower(array: Array, format: Format) -> bool:
    """Whether the format cannot hold the array's normal numbers; subnormal ones may be flushed."""
    if format.p >= formats.of(array).p:
        return False
    normal = array[np.abs(to_float64(array)) >= formats.of(array).min_normal]
    return not all_in(normal, format)


def flushed_inputs(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Subnormal inputs read as zeros: log(1e-45) is then -inf."""
    if flushed := without_subnormals(problem):
        answer = replace(problem.ask(flushed), invariant=False)
        yield Variant("flush_to_zero", {"inputs": ", ".join(flushed)}, answer)


def without_subnormals(problem: Problem) -> dict[str, Array]:
    """The inputs that have subnormal elements, with zeros in their place."""
    flushed = {}
    for name, array in problem.inputs.items():
        if name in problem.op.kinds:
            continue
        size, tiny = np.abs(to_float64(array)), formats.of(array).min_normal
        if np.any((size > 0.0) & (size < tiny)):
            flushed[name] = np.where(size < tiny, np.copysign(np.zeros_like(array), array), array)
    return flushed


def wrong_dtype(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The right answer, computed in a narrower format or rounded to it: every element is a number
    of that format, though the right ones are not. float64 that was computed in float32, not only
    rounded to it at the end, is `float32_cast`: some element is not an ordinary float64 answer,
    rounded once."""
    for name, got in outputs.items():
        for format in (formats.BINARY32, formats.BINARY16, formats.BFLOAT16):
            if format.p >= formats.of(got).p or not all_in(got, format):
                continue
            if not np.any(np.isfinite(got) & (got != 0)):  # every format has these
                continue
            right = problem.truth.reference[name].round(formats.of(got))[0]
            if all_in(right, format):
                continue
            asked = problem.direction, problem.inputs, problem.params, format
            plain = problem.op.plain(*asked)[name]
            answer = Answer(
                {name: problem.truth.reference[name]},
                {name: problem.bound_in(name, format)},
                {name: plain.astype(got.dtype)},
                format=format,
            )
            computed = format is formats.BINARY32 and not _only_rounded(problem, name, got, format)
            cause = "float32_cast" if computed else "wrong_dtype"
            yield Variant(cause, {"format": format.name}, answer)


def _only_rounded(problem: Problem, output: str, got: Array, format: Format) -> bool:
    """Whether every element may be an ordinary float64 answer, rounded to the format once."""
    right = np.asarray(problem.truth.reference[output])
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.maximum(np.abs(right), np.abs(got))
        limit = problem.truth.bound[output] + ulp(size, format) / 2
        beyond = np.abs(got - right) > limit
    return not np.any(beyond & np.isfinite(right) & np.isfinite(got))


def all_in(array: Array, format: Format) -> bool:
    """Whether every element is a number of a narrower format."""
    return bool(np.array_equal(rounded(array, format.name), array, equal_nan=True))


def rounded(array: Array, format: str) -> Array:
    """Values rounded to the format, in their own dtype."""
    if format == "tf32":
        return formats.round_ties_away(to_float64(array), formats.TF32).astype(array.dtype)
    return formats.cast(array, format).astype(array.dtype)


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
        if format.p >= output_format.p or not all_in(wide, format):
            return False
        if not np.any(np.isfinite(wide) & (wide != 0)):  # every format has these
            return False
        if all_in(to_float64(problem.truth.reference[output].round(output_format)[0]), format):
            return False
    usable = np.isfinite(exact) & np.isfinite(wide) & (exact != 0)
    if not usable.any():
        return False
    z, g = np.abs(exact[usable]), np.abs(wide[usable])
    beyond = (np.sign(exact) * low_part(problem.truth.reference[output]))[usable]
    return float(np.mean(g - z - beyond > _LARGER * ulp(z, format))) <= _FEW


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

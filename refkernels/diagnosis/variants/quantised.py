"""Weights rounded to integers of a few bits: s q, or s (q - z), takes the place of w.

    symmetric     s = max|w| / (2^(b-1) - 1), q = round(w / s)
    full          s = max|w| / 2^(b-1), q = round(w / s), no larger than 2^(b-1) - 1
    asymmetric    s = (max w - min w) / (2^b - 1), z = round(-min w / s), 0 <= q < 2^b

with one s for the tensor, for each row (index of the first axis, or of all but the last), column,
or group of 32, 64 or 128 along the last axis; kept in float32 or float16. The oracle answers the
nearest scheme: nearest on a sample of a product's elements, or on all elements of a formula.

Sources: Jacob et al. (2018), arXiv:1712.05877; Dettmers et al. (2022), arXiv:2208.07339.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from refkernels.diagnosis import products
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Array, Arrays, Problem
from refkernels.diagnosis.variants.lanes import SAMPLE, distance
from refkernels.metrology import UNUSUAL

_WEIGHTS = (("weight",), ("b",), ("k",), ("v",), ("k", "v"))
_BITS = (8, 4, 6, 5, 3, 2)
_GROUPS = (32, 64, 128)
_LARGEST = 1 << 16  # elements of a formula's inputs, which is read once for each scheme
_KINDS = ("symmetric", "full", "asymmetric")
_NEAR = 4  # schemes whose scales are tried in float16

Cut = Callable[[Array], Array]


class Scheme(NamedTuple):
    """How a weight is quantised: `axes` share a scale, or `group` elements of the last one."""

    bits: int
    kind: str
    scale: str
    axes: tuple[int, ...]
    group: int
    kept: type


def weights(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> Iterator[Variant]:
    """The scheme that is nearest to an output that is not ordinary."""
    if problem.direction == "backward" or all(fit.ordinary for fit in fits.values()):
        return
    (output, got), *others = outputs.items()
    if others or got.shape != problem.truth.reference[output].shape:
        return
    for names in _WEIGHTS:
        arrays = {name: problem.inputs[name] for name in names if name in problem.inputs}
        if len(arrays) < len(names) or not all(map(_is_weight, arrays.values())):
            continue
        yield from _nearest(problem, output, got, arrays)


def _is_weight(array: Array) -> bool:
    """Whether an input may be a quantised weight: floats, at least a matrix, not empty."""
    return array.ndim >= 2 and array.dtype.kind not in "iub" and array.size > 0


def _nearest(problem: Problem, output: str, got: Array, arrays: Arrays) -> Iterator[Variant]:
    first = next(iter(arrays.values()))
    schemes = list(_schemes(first))
    answers = _of_product(problem, output, got, arrays) or _of_formula(problem, output, got)
    if answers is None:
        return
    predicted, sampled = answers
    with np.errstate(all="ignore"):
        right = distance(predicted(arrays, None), sampled)

        def distance_of(scheme: Scheme) -> float:
            return distance(predicted(arrays, scheme), sampled)

        # A scale in float16 is off by 2^-11 of it, unless it is subnormal: much less than a step.
        nearest = sorted(
            (scheme for scheme in schemes if scheme.kept is np.float32), key=distance_of
        )[:_NEAR]
        least, scheme = min(
            (
                (distance_of(scheme), scheme)
                for candidate in nearest
                for scheme in (candidate, candidate._replace(kept=np.float16))
            ),
            key=itemgetter(0),
        )
    if least * UNUSUAL**2 > right:  # not nearer by the ratio that is unusual
        return
    details = {
        "inputs": ", ".join(arrays), "bits": scheme.bits, "scale": scheme.scale,
        "scheme": scheme.kind,
    }  # fmt: skip
    answer = problem.ask({name: quantised(array, scheme) for name, array in arrays.items()})
    yield Variant("quantised_weights", details, answer, trials=len(schemes))


def _of_product(problem: Problem, output: str, got: Array, arrays: Arrays) -> Any:
    """A function from a weight to a sample of a product's elements, and the kernel's sample."""
    if output not in problem.op.sums or (product := products.of(problem, output)) is None:
        return None
    ((name, weight),) = arrays.items()
    is_transposed = weight.ndim == 2 and weight.shape == product.b.shape[::-1] and name == "weight"
    if weight.ndim != 2 or (weight.shape != product.b.shape and not is_transposed):
        return None
    rows, columns = (
        np.unique(np.linspace(0, size - 1, min(size, SAMPLE)).astype(int))
        for size in (len(product.a), product.b.shape[1])
    )
    a = product.a[rows].astype(np.float64)
    bias = 0.0 if product.bias is None else product.bias[columns].astype(np.float64)
    sampled = got.reshape(len(product.a), -1)[np.ix_(rows, columns)].astype(np.float64)

    def cut(values: Array) -> Array:
        chosen = columns if values.shape[0 if is_transposed else 1] > 1 else slice(None)
        return values[chosen] if is_transposed else values[:, chosen]

    def predicted(arrays: Arrays, scheme: Scheme | None) -> Array:
        factor = cut(weight) if scheme is None else quantised(weight, scheme, cut)
        wide = factor.astype(np.float64)
        return np.asarray(a @ (wide.T if is_transposed else wide) + bias)

    return predicted, sampled


def _of_formula(problem: Problem, output: str, got: Array) -> Any:
    """The same for all elements of any other op, where they are few."""
    if sum(array.size for array in problem.inputs.values()) > _LARGEST:
        return None

    def predicted(arrays: Arrays, scheme: Scheme | None) -> Array:
        if scheme is None:
            return problem.truth.plain[output].astype(np.float64)
        inputs = {
            **problem.inputs,
            **{name: quantised(array, scheme) for name, array in arrays.items()},
        }
        plain = problem.op.plain(problem.direction, inputs, problem.params, problem.format)
        return np.asarray(plain[output].astype(np.float64))

    return predicted, got.astype(np.float64)


def _schemes(weight: Array) -> Iterator[Scheme]:
    all_axes = tuple(range(weight.ndim))
    shared = {"the tensor": (all_axes, 0), "each row": (all_axes[1:], 0)}
    if weight.ndim > 2:
        shared["each vector"] = (all_axes[-1:], 0)
    shared["each column"] = ((weight.ndim - 2,), 0)
    for group in _GROUPS:
        if weight.shape[-1] % group == 0 and weight.shape[-1] > group:
            shared[f"each {group} of a row"] = ((), group)
    for bits, kind, (scale, (axes, group)) in itertools.product(_BITS, _KINDS, shared.items()):
        for kept in (np.float32, np.float16):
            yield Scheme(bits, kind, scale, axes, group, kept)


def quantised(weight: Array, scheme: Scheme, cut: Cut = np.asarray) -> Array:
    """The weight, or a cut of it, restored from its integers to its own dtype; computed in float32,
    as quantisers do."""
    wide = weight.astype(np.float32)
    if scheme.group:
        *rows, n = wide.shape
        blocks = wide.reshape(*rows, n // scheme.group, scheme.group)
        low, high = blocks.min(axis=-1), blocks.max(axis=-1)
        low, high = (np.repeat(ends, scheme.group, axis=-1) for ends in (low, high))
    else:
        low, high = (end(wide, axis=scheme.axes, keepdims=True) for end in (np.min, np.max))
    wide, low, high = cut(wide), cut(low), cut(high)
    most = 2 ** (scheme.bits - 1)
    with np.errstate(all="ignore"):
        if scheme.kind == "asymmetric":
            low, high = np.minimum(low, 0), np.maximum(high, 0)
            scale = _stored((high - low) / np.float32(2 * most - 1), scheme.kept)
            zero = np.rint(-low / scale)
            steps = np.clip(np.rint(wide / scale) + zero, 0, 2 * most - 1) - zero
        else:
            end = most - (scheme.kind == "symmetric")
            scale = _stored(np.maximum(high, -low) / np.float32(end), scheme.kept)
            lowest = -end if scheme.kind == "symmetric" else -most
            steps = np.clip(np.rint(wide / scale), lowest, most - 1)
        result: Array = np.where(scale == 0, np.float32(0), steps * scale).astype(weight.dtype)
    return result


def _stored(scale: Array, kept: type) -> Array:
    return scale.astype(kept).astype(np.float32)

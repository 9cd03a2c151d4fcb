"""Weights or activations rounded to integers of a few bits: s q, or s (q - z), for w.

    symmetric     s = max|w| / (2^(b-1) - 1), q = round(w / s); full: s = max|w| / 2^(b-1)
    asymmetric    s = (max w - min w) / (2^b - 1), z = round(-min w / s), 0 <= q < 2^b

with one s for the tensor, each row (index of the first axis, or of all but the last), column, or
group of 32, 64 or 128 along the last axis; kept in float32 or float16. The oracle answers the
scheme that is nearest on a sample of a product's elements, or on all elements of a formula.
Sources: Jacob et al. (2018), arXiv:1712.05877; Dettmers et al. (2022), arXiv:2208.07339.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis import products
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Array, Arrays, Problem
from refkernels.metrology import UNUSUAL

_WEIGHTS = (("weight",), ("b",), ("k",), ("v",), ("k", "v"))
_ACTIVATIONS = (("x",), ("a",), ("q",))
_BESIDE = {"x": "weight", "a": "b"}  # a product's weights, by its activations
_BITS = (8, 4, 6, 5, 3, 2)
_OF_ACTIVATIONS = (8, 4)
_GROUPS = (32, 64, 128)
_LARGEST = 1 << 16  # elements of a formula's inputs, which is read once for each scheme
_KINDS = ("symmetric", "full", "asymmetric")
_ALIKE = 4.0  # ratio of errors that may be one
_SAMPLE = 16  # rows, and columns of a product
_NEAR = 4  # schemes whose scales are tried in float16, or in pairs

Cut = Callable[[Array], Array]


class Scheme(NamedTuple):
    """How an input is quantised: `axes` share a scale, or `group` elements of the last one."""

    bits: int
    kind: str
    scale: str
    axes: tuple[int, ...]
    group: int
    kept: type


Schemes = Mapping[str, Scheme]


def find(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> Iterator[Variant]:
    """The scheme of weights, of activations, or of both that is nearest to a forward pass's only
    output, if that is not ordinary."""
    (output, got), *others = outputs.items()
    wrong_shape = got.shape != problem.truth.reference[output].shape
    ordinary = all(fit.ordinary for fit in fits.values())
    if problem.direction == "backward" or ordinary or others or wrong_shape:
        return
    for names in (*_WEIGHTS, *_ACTIVATIONS):
        arrays = {name: problem.inputs[name] for name in names if name in problem.inputs}
        if len(arrays) == len(names) and all(map(_is_matrix, arrays.values())):
            yield from _nearest(problem, output, got, arrays)


def _is_matrix(array: Array) -> bool:
    """Whether an input may be quantised: finite floats, at least a matrix, not empty."""
    is_float_matrix = array.ndim >= 2 and array.dtype.kind not in "iub" and array.size > 0
    return is_float_matrix and bool(np.isfinite(to_float64(array)).all())


def _nearest(problem: Problem, output: str, got: Array, arrays: Arrays) -> Iterator[Variant]:
    """One scheme for these inputs; of a product's activations, also another for its weights."""
    active = tuple(arrays) in _ACTIVATIONS
    of_each = [list(_schemes(a, _OF_ACTIVATIONS if active else _BITS)) for a in arrays.values()]
    schemes = [s for s in of_each[0] if all(s in others for others in of_each)]
    answers = _answers(problem, output, got, *arrays)
    if answers is None:
        return
    far, right = answers
    # A scale in float16 is off by 2^-11 of it, unless it is subnormal: much less than a step.
    each: list[Schemes] = [dict.fromkeys(arrays, s) for s in schemes if s.kept is np.float32]
    near = sorted(each, key=far)[:_NEAR]
    halves = [{n: s._replace(kept=np.float16) for n, s in found.items()} for found in near]
    nearest, tried, other = near + halves, len(schemes), _BESIDE.get(next(iter(arrays)), "")
    second = problem.inputs.get(other)
    if second is not None and output in problem.op.sums and _is_matrix(second):
        others = [s for s in _schemes(second, _BITS) if s.kept is np.float32]
        others.sort(key=lambda s: far({**near[0], other: s}))
        nearest += [{**found, other: o} for found in near for o in others[:_NEAR]]
        tried *= len(others)
    least, chosen = min(((far(found), found) for found in nearest), key=itemgetter(0))
    if least * UNUSUAL**2 <= right and _says_something(problem, chosen):  # by what is unusual
        cause = "quantised_activations" if active else "quantised_weights"
        yield _variant(problem, cause, chosen, tried)


def _says_something(problem: Problem, schemes: Schemes) -> bool:
    """Whether the integers say more of most elements than one number for all would. Beside an
    outlier or a large mean they do not: then the differences may be lost for any reason."""
    for name, scheme in schemes.items():
        values = to_float64(problem.inputs[name])
        errors = to_float64(quantised(problem.inputs[name], scheme)) - values
        if np.median(np.abs(errors)) >= np.median(np.abs(values - np.median(values))):
            return False
    return True


def _variant(problem: Problem, cause: str, schemes: Schemes, tried: int) -> Variant:
    told = {"bits": "bits", "scale": "scale", "scheme": "kind"}
    details: dict[str, Any] = {"inputs": ", ".join(schemes)}
    for key, attribute in told.items():
        values = [getattr(scheme, attribute) for scheme in schemes.values()]
        same = all(value == values[0] for value in values)
        details[key] = values[0] if same else ", ".join(map(str, values))
    restored = {name: quantised(problem.inputs[name], s) for name, s in schemes.items()}
    return Variant(cause, details, problem.ask(restored), trials=tried)


def _answers(
    problem: Problem, output: str, got: Array, *names: str
) -> tuple[Callable[[Schemes], float], float] | None:
    """How far the answer with such inputs is from the kernel's, and the right answer."""
    found = _of_product(problem, output, got, names) or _of_formula(problem, output, got)
    if found is None:
        return None
    predicted, sampled = found

    def far(schemes: Schemes) -> float:
        with np.errstate(all="ignore"):
            total = float(np.sum(np.square(predicted(schemes) - sampled)))
        return total if np.isfinite(total) else np.inf

    return far, far({})


def _of_product(problem: Problem, output: str, got: Array, names: tuple[str, ...]) -> Any:
    """A function from schemes to a sample of a product's elements, and the kernel's sample."""
    if output not in problem.op.sums or (product := products.of(problem, output)) is None:
        return None
    left, right = ("x", "weight") if "weight" in problem.inputs else ("a", "b")
    if not {left, right} <= problem.inputs.keys() or not {*names} <= {left, right}:
        return None
    weight, of_left = problem.inputs[right], problem.inputs[left]
    is_transposed = weight.ndim == 2 and weight.shape == product.b.shape[::-1] and right != "b"
    if weight.ndim != 2 or (weight.shape != product.b.shape and not is_transposed):
        return None
    rows, columns = (
        np.unique(np.linspace(0, size - 1, min(size, _SAMPLE)).astype(int))
        for size in (len(product.a), product.b.shape[1])
    )
    bias = 0.0 if product.bias is None else product.bias[columns].astype(np.float64)
    sampled = got.reshape(len(product.a), -1)[np.ix_(rows, columns)].astype(np.float64)

    def cut(values: Array) -> Array:
        chosen = columns if values.shape[0 if is_transposed else 1] > 1 else slice(None)
        return values[chosen] if is_transposed else values[:, chosen]

    def predicted(schemes: Schemes) -> Array:
        factor = quantised(weight, schemes[right], cut) if right in schemes else cut(weight)
        a = product.a
        if left in schemes:
            a = quantised(of_left, schemes[left]).reshape(product.a.shape)
        wide = factor.astype(np.float64)
        taken = a[rows].astype(np.float64)
        return np.asarray(taken @ (wide.T if is_transposed else wide) + bias)

    return predicted, sampled


def _of_formula(problem: Problem, output: str, got: Array) -> Any:
    """The same for all elements of any other op, where they are few."""
    if sum(array.size for array in problem.inputs.values()) > _LARGEST:
        return None

    given, right = problem.inputs, problem.truth.plain[output].astype(np.float64)
    error, effects = np.linalg.norm(got.astype(np.float64) - right), dict[Any, float]()

    def predicted(schemes: Schemes) -> Array:
        """Of schemes of as many bits, those whose effect cannot be the kernel's error are not
        read: an answer changes about as much as an input does."""
        changed = {name: quantised(given[name], scheme) for name, scheme in schemes.items()}
        size = sum(np.linalg.norm(to_float64(a) - given[name]) for name, a in changed.items())
        bits = tuple((name, scheme.bits) for name, scheme in schemes.items())
        if bits in effects and not error / _ALIKE <= effects[bits] * size <= error * _ALIKE:
            return np.full(got.shape, np.inf)
        question = {**given, **changed}, problem.params, problem.format
        answer = problem.op.plain(problem.direction, *question)[output].astype(np.float64)
        if schemes and size:
            effects.setdefault(bits, float(np.linalg.norm(answer - right) / size))
        return np.asarray(answer)

    return predicted, got.astype(np.float64)


def _schemes(weight: Array, of_bits: tuple[int, ...]) -> Iterator[Scheme]:
    all_axes = tuple(range(weight.ndim))
    shared = {"the tensor": (all_axes, 0), "each row": (all_axes[1:], 0)}
    if weight.ndim > 2:
        shared["each vector"] = (all_axes[-1:], 0)
    shared["each column"] = ((weight.ndim - 2,), 0)
    for group in _GROUPS:
        if weight.shape[-1] % group == 0 and weight.shape[-1] > group:
            shared[f"each {group} of a row"] = ((), group)
    for bits, kind, (scale, (axes, group)) in itertools.product(of_bits, _KINDS, shared.items()):
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

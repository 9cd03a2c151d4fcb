"""Faults of every op that is a formula, planted; its forms are right kernels.

A kernel is a fault's formula, or a form's, computed in the working precision with its sums in a
random order: no model of the package adds in that order. Its inputs are those of the op's cases.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import ml_dtypes
import numpy as np
from planted import Planted

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.diagnosis import specials
from refkernels.diagnosis.edits import usual
from refkernels.truth import Truth

LARGEST = 1 << 12  # elements of all inputs
MOST = 2  # cases for a fault
DTYPES = ("float32", "float16", "bfloat16", "float64")
NARROW = {"fp16_inputs": np.dtype(np.float16), "bf16_inputs": np.dtype(ml_dtypes.bfloat16)}


def _questions(
    op: Any, direction: Any, dtype: str, largest: int = LARGEST
) -> Iterator[tuple[str, Any, Any]]:
    """The op's cases with at most `largest` elements: name, inputs and params."""
    for case in op.cases():
        if dtype not in case.dtypes or direction not in case.directions:
            continue
        inputs, params = case.build(dtype)
        arrays = {name: inputs[name] for name in op.takes(direction) if name in inputs}
        if sum(np.size(array) for array in arrays.values()) <= largest:
            yield case.name, arrays, params


def _computed(op: Any, formula: Any, question: Any, direction: Any, dtype: str, seed: int) -> Any:
    inputs, params = question
    options = {"order": "random", "seed": seed}
    with np.errstate(all="ignore"):
        return op.formulas.computed(direction, formula, inputs, params, dtype, **options)


def _beyond(op: Any, outputs: Any, question: Any, direction: Any, dtype: str) -> bool:
    """Whether some number has fewer than half of its digits right."""
    with np.errstate(all="ignore"):
        for name, right in op.plain(direction, *question, dtype).items():
            got, wide = outputs[name].astype(np.float64), right.astype(np.float64)
            size = np.max(np.abs(wide), where=np.isfinite(wide), initial=0.0)
            eps = 2.0 ** -{"float64": 26, "float32": 12, "float16": 5, "bfloat16": 4}[dtype]
            if np.any(np.abs(got - wide) > eps * size) or np.any(np.isnan(got) != np.isnan(wide)):
                return True
    return False


def planted(seeds: int) -> Iterator[tuple[str, Planted]]:
    """Every fault of every op, in each direction: on `seeds` cases that show it plainly in float32,
    else once."""
    for op in registry.ops().values():
        if op.formulas is not None:
            yield from planted_in(op, seeds)


def planted_in(op: Any, seeds: int) -> Iterator[tuple[str, Planted]]:
    """Every fault of one op."""
    for direction in op.directions:
        for number, fault in enumerate(usual.faults_of_op(op, direction)):
            kernels = islice(_of_fault(op, fault, direction, number), min(seeds, MOST))
            for k, kernel in enumerate(kernels):
                yield f"{op.name}-{fault.cause}-{direction}-{number}-{k}", kernel


def _of_fault(op: Any, fault: Any, direction: Any, seed: int) -> Iterator[Planted]:
    """Kernels with a fault: in float32 on the cases where some number has fewer than half of its
    digits right. A fault that no such case shows is planted once: in the first format in which its
    error is beyond the bound, where it is largest against it."""
    unshown = True
    for _, inputs, params in _questions(op, direction, "float32"):
        outputs = _faulty(op, fault, (inputs, params), direction, "float32", seed)
        if _beyond(op, outputs, (inputs, params), direction, "float32"):
            unshown = False
            yield _planted(op, fault, (inputs, params), outputs, direction, "float32", seed)
    if unshown:
        yield _largest(op, fault, direction, seed)


def _faulty(op: Any, fault: Any, question: Any, direction: Any, dtype: str, seed: int) -> Any:
    """The answer of a kernel with the fault."""
    computed = _computed(op, getattr(fault, direction), question, direction, dtype, seed)
    return op.plain(direction, *question, dtype) | fault.changed(computed)


def _largest(op: Any, fault: Any, direction: Any, seed: int) -> Planted:
    """The kernel whose error is largest against the bound."""
    best, largest = None, -1.0
    for dtype in (dtype for dtype in DTYPES if dtype not in fault.right_in):
        for _, *question in _questions(op, direction, dtype, 4 * LARGEST):
            outputs = _faulty(op, fault, question, direction, dtype, seed)
            ratio = _over_bound(op, outputs, question, direction, dtype)
            if ratio > largest:
                best, largest = (question, outputs, direction, dtype, seed), ratio
        if largest > 1.0:
            break
    assert best is not None
    return _planted(op, fault, *best)


def _over_bound(op: Any, outputs: Any, question: Any, direction: Any, dtype: str) -> float:
    """The largest error / bound."""
    truth = Truth(op, direction, *question, formats.get(dtype))
    ratios = [0.0]
    with np.errstate(all="ignore"):
        for name, got in outputs.items():
            off = np.abs(got.astype(np.float64) - np.asarray(truth.reference[name]))
            ratio = off / truth.bound()[name]
            ratios.append(float(np.max(ratio, where=np.isfinite(ratio), initial=0.0)))
    return max(ratios)


def _planted(
    op: Any, fault: Any, question: Any, outputs: Any, direction: Any, dtype: str, seed: int
) -> Planted:
    """The kernel with the fault, and the other causes that have the same bits or that nothing
    distinguishes from it."""
    also = rivals(op, question, outputs, direction, dtype, seed, fault)
    inputs, params = question
    return Planted(
        fault.cause, op.name, inputs, outputs, params, direction, dtype, tuple(sorted(also))
    )


def rivals(
    op: Any, question: Any, outputs: Any, direction: Any, dtype: str, seed: int, fault: Any = None
) -> set[str]:
    """The causes that have the same bits, or that nothing distinguishes."""
    plain = op.plain(direction, *question, dtype)
    other_faults = [other_fault for other_fault in op.formulas.faults if other_fault is not fault]
    unstable = fault is not None and fault.unstable
    also = {other_fault.cause for other_fault in other_faults if unstable and other_fault.unstable}
    for other_fault in other_faults:
        if (formula := getattr(other_fault, direction)) is not None:
            computed = _computed(op, formula, question, direction, dtype, seed)
            altered = plain | other_fault.changed(computed)
            if all(np.array_equal(altered[n], outputs[n], equal_nan=True) for n in outputs):
                also.add(other_fault.cause)
    factors = _multiplied(outputs, plain)
    also |= {"scale_factor"} if any(abs(factor - 1) > 2.0**-16 for factor in factors) else set()
    also |= {"sign_error"} if any(abs(factor + 1) < 2.0**-16 for factor in factors) else set()
    if dtype == "float32":
        also |= set(_of_narrow_inputs(op, outputs, question, direction))
    if all(_alike(outputs[name], plain[name]) for name in outputs):
        also |= set(specials.CAUSES)
    return also


def _alike(got: Any, right: Any) -> bool:
    """Whether the numbers agree to a few roundings, so that only special values show a fault."""
    wide, exact = got.astype(np.float64), right.astype(np.float64)
    numbers = np.isfinite(wide) & np.isfinite(exact)
    eps = 16.0 * formats.of(got).u
    return bool(np.all(np.abs(wide - exact)[numbers] <= eps * np.abs(exact[numbers])))


def _of_narrow_inputs(op: Any, outputs: Any, question: Any, direction: Any) -> Iterator[str]:
    """The causes by which x in 16 bits gives every bit of the fault: beside a bend of a function
    both may be 0, and nothing distinguishes them."""
    inputs, params = question
    for cause, dtype in NARROW.items():
        if "x" in inputs:
            with np.errstate(over="ignore"):
                x = inputs["x"].astype(dtype).astype(inputs["x"].dtype)
            narrow = op.plain(direction, {**inputs, "x": x}, params, "float32")
            if all(np.array_equal(narrow[n], outputs[n], equal_nan=True) for n in outputs):
                yield cause


def _multiplied(outputs: Any, plain: Any) -> list[float]:
    """The factors that make the outputs of the plain ones; none where some output is no multiple.
    Such a factor may be all that is known."""
    factors = []
    for name, got in outputs.items():
        wide, right = got.astype(np.float64).reshape(-1), plain[name].astype(np.float64).reshape(-1)
        usable = np.isfinite(wide) & np.isfinite(right)
        wide, right = wide[usable], right[usable]
        if not np.any(right):
            continue
        factor = float(wide @ right / (right @ right))
        if np.max(np.abs(wide - factor * right)) > 2.0**-16 * np.max(np.abs(wide)):
            return []
        factors.append(factor)
    return factors


def _same_specials(op: Any, outputs: Any, inputs: Any, params: Any, direction: Any) -> bool:
    """Whether an answer is NaN where the right one is."""
    truth = op.evaluate(direction, inputs, params)
    return all(
        np.array_equal(np.isnan(got.astype(np.float64)), np.isnan(np.asarray(truth[name])))
        for name, got in outputs.items()
    )


def right(count: int) -> Iterator[tuple[str, Planted]]:
    """`count` right kernels: the forms of every op in turn; formats and cases take turns."""
    ways = [
        (op, direction)
        for op in registry.ops().values()
        if op.formulas is not None
        for direction in op.directions
    ]
    yielded = 0
    for seed in range(count):
        op, direction = ways[seed % len(ways)]
        turn = seed // len(ways)
        dtype = DTYPES[(turn + seed) % len(DTYPES)]
        questions = list(_questions(op, direction, dtype))
        if not questions:
            continue
        _, inputs, params = questions[turn % len(questions)]
        forms = list(op.formulas.of(direction).forms.values())
        form = forms[turn // len(questions) % len(forms)]
        outputs = _computed(op, form, (inputs, params), direction, dtype, seed)
        if not _same_specials(op, outputs, inputs, params, direction):  # its form is for numbers
            outputs = _computed(op, forms[0], (inputs, params), direction, dtype, seed)
        yielded += 1
        yield (
            f"right-{op.name}-{direction}-{seed}",
            Planted(None, op.name, inputs, outputs, params, direction, dtype),
        )
    assert yielded or not count

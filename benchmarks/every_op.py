"""Faults of every op that is a formula, planted; its forms are right kernels.

A kernel is a fault's formula, or a form's, computed in the working precision with its sums in a
random order: no model of the package adds in that order. Its inputs are those of the op's cases.
"""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
from planted import Planted

from refkernels import registry

LARGEST = 1 << 12  # elements of all inputs
MOST = 2  # cases for a fault
DTYPES = ("float32", "float16", "bfloat16", "float64")
NARROW = {"fp16_inputs": np.dtype(np.float16), "bf16_inputs": np.dtype(ml_dtypes.bfloat16)}


def _questions(op: Any, direction: Any, dtype: str) -> Iterator[tuple[str, Any, Any]]:
    for case in op.cases():
        if dtype not in case.dtypes or direction not in case.directions:
            continue
        inputs, params = case.build(dtype)
        arrays = {name: inputs[name] for name in op.takes(direction) if name in inputs}
        if sum(np.size(array) for array in arrays.values()) <= LARGEST:
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
    """Every fault of every op, in each direction, on `seeds` cases that show it, in float32."""
    for name, op in registry.ops().items():
        if op.formulas is None:
            continue
        for number, fault in enumerate(op.formulas.faults):
            for direction in op.directions:
                if getattr(fault, direction) is None:
                    continue
                for k, kernel in enumerate(_of_fault(op, fault, direction, number)):
                    if k < min(seeds, MOST):
                        yield f"{name}-{fault.cause}-{direction}-{number}-{k}", kernel


def _of_fault(op: Any, fault: Any, direction: Any, seed: int) -> Iterator[Planted]:
    others = [other_fault for other_fault in op.formulas.faults if other_fault is not fault]
    for _, inputs, params in _questions(op, direction, "float32"):
        question = inputs, params
        formula = getattr(fault, direction)
        computed = _computed(op, formula, question, direction, "float32", seed)
        outputs = op.plain(direction, *question, "float32") | fault.changed(computed)
        if not _beyond(op, outputs, question, direction, "float32"):
            continue
        also = {
            other_fault.cause for other_fault in others if fault.unstable and other_fault.unstable
        }
        for other_fault in others:
            if (formula_ := getattr(other_fault, direction)) is not None:
                same = _computed(op, formula_, question, direction, "float32", seed)
                if all(np.array_equal(same[n], computed[n], equal_nan=True) for n in computed):
                    also.add(other_fault.cause)
        factors = _multiplied(outputs, op.plain(direction, *question, "float32"))
        also |= {"scale_factor"} if factors else set()
        also |= {"sign_error"} if any(abs(factor + 1) < 2.0**-16 for factor in factors) else set()
        also |= set(_of_narrow_inputs(op, outputs, question, direction))
        yield Planted(
            fault.cause, op.name, inputs, outputs, params, direction, also=tuple(sorted(also))
        )


def _of_narrow_inputs(op: Any, outputs: Any, question: Any, direction: Any) -> Iterator[str]:
    """The causes by which x in 16 bits gives every bit of the fault: beside a bend of a function
    both may be 0, and nothing tells them apart."""
    inputs, params = question
    for cause, dtype in NARROW.items():
        if "x" in inputs:
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
        forms = list(op.formulas.way(direction).forms.values())
        form = forms[turn // len(questions) % len(forms)]
        outputs = _computed(op, form, (inputs, params), direction, dtype, seed)
        yielded += 1
        yield (
            f"right-{op.name}-{direction}-{seed}",
            Planted(None, op.name, inputs, outputs, params, direction, dtype),
        )
    assert yielded or not count

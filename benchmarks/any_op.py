"""Faults that any op may have, planted in every op that is a formula and each of its directions.

The faults: the first output of a right kernel with another sign, another scale, exchanged,
unwritten or corrupted rows, or in a narrower format; a right kernel's answer to narrower inputs, or
with another value of a param; an answer whose sums leave out their tail. Each is planted where it
can be recognised: in the case with the most different numbers among those whose numbers are all
finite.
"""

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

import every_op
import ml_dtypes
import numpy as np
from planted import Array, Planted

from refkernels import registry
from refkernels.diagnosis.variants.params import CAUSES
from refkernels.ops import edits

FEWEST = 24  # different numbers of the first output
NARROW = {"fp16_inputs": np.dtype(np.float16), "bf16_inputs": np.dtype(ml_dtypes.bfloat16)}
LANES = 8  # a tail is what is left over


def _unwritten(y: Array) -> Array:
    y = y.copy()
    y.reshape(-1)[-5:] = 0.0
    return y


def _corrupted(y: Array) -> Array:
    y = y.copy()
    y.reshape(-1)[y.size // 2] += 3.0 * np.max(np.abs(y))
    return y


CHANGES: dict[str, Callable[[Array], Array]] = {
    "sign_error": lambda y: -y,
    "scale_factor": lambda y: y * np.float32(1.37),
    "permuted": lambda y: np.roll(y, 1, axis=0),
    "unwritten_elements": _unwritten,
    "corrupted_elements": _corrupted,
    "wrong_dtype": lambda y: y.astype(np.float16).astype(np.float32),
}


def planted(seeds: int) -> Iterator[tuple[str, Planted]]:
    """All kernels with such a fault, once."""
    for op in registry.ops().values() if seeds else ():
        if op.formulas is not None:
            yield from planted_in(op)


def planted_in(op: Any) -> Iterator[tuple[str, Planted]]:
    """The kernels of one op."""
    for direction in op.directions:
        ranked = sorted(_telling(op, direction), key=itemgetter(0))
        questions = [question for _, question in ranked]
        for question in questions[-1:]:
            for cause, outputs in _answers(op, question, direction):
                yield from _named(op, cause, question, outputs, direction)
            for param, cause, outputs in _with_other_params(op, question, direction):
                for name, kernel in _named(op, cause, question, outputs, direction):
                    yield f"{name}-{param}", kernel
        for question in [question for question in questions if _tail(question)][-1:]:
            outputs = _without_tail(op, question, direction)
            yield from _named(op, "dropped_tail", question, outputs, direction)


def _named(
    op: Any, cause: str, question: Any, outputs: Any, direction: Any
) -> Iterator[tuple[str, Planted]]:
    """The kernel with its name; none where its bits are the right kernel's."""
    right = _right(op, question, direction)
    if all(np.array_equal(outputs[n], right[n]) for n in right):
        return
    also = every_op.rivals(op, question, outputs, direction, "float32", 0)
    also |= set(_same(op, question, outputs, direction))
    also |= (
        {"tf32_inputs"} if cause == "fp16_inputs" else set()
    )  # as many bits, where none is small
    inputs, params = question
    yield (
        f"any-{op.name}-{cause}-{direction}",
        Planted(cause, op.name, inputs, outputs, params, direction, also=tuple(also - {cause})),
    )


def _telling(op: Any, direction: Any) -> Iterator[tuple[tuple[int, float], tuple[Any, Any]]]:
    """The questions whose first output has many different numbers, all finite, each with its rank:
    how many they are, and how little of them float32 loses. An error shows nothing where rounding
    may be as large."""
    for _, inputs, params in every_op._questions(op, direction, "float32"):
        floats = (array for array in inputs.values() if array.dtype.kind == "f")
        if not all(np.isfinite(array).all() for array in floats):
            continue
        outputs = op.plain(direction, inputs, params, "float32")
        first = outputs.get(op.names(direction)[0])
        if first is None or not all(np.isfinite(output).all() for output in outputs.values()):
            continue
        different = np.unique(first[first != 0]).size
        if first.ndim and len(first) > 1 and different >= FEWEST:
            wide = op.plain(direction, inputs, params, "float64")[op.names(direction)[0]]
            lost = np.max(np.abs(first - wide)) / np.max(np.abs(wide))
            yield (different, -float(lost)), (inputs, params)


def _right(op: Any, question: Any, direction: Any, formula: Any = None) -> Any:
    """The answer of the op's first form, its sums in a random order."""
    formula = formula or next(iter(op.formulas.way(direction).forms.values()))
    plain = op.plain(direction, *question, "float32")
    return plain | every_op._computed(op, formula, question, direction, "float32", 0)


def _answers(op: Any, question: Any, direction: Any) -> Iterator[tuple[str, Any]]:
    """Causes, each with the answer of a kernel that has it."""
    right, first = _right(op, question, direction), op.names(direction)[0]
    for cause, change in CHANGES.items():
        if cause == "permuted" and len(np.unique(right[first], axis=0)) < len(right[first]):
            continue  # equal rows may be exchanged
        changed = change(right[first])
        if np.isfinite(changed).all():
            yield cause, {**right, first: changed}
    for cause, dtype in NARROW.items():
        yield cause, _right(op, (_narrowed(op, question[0], dtype), question[1]), direction)


def _with_other_params(op: Any, question: Any, direction: Any) -> Iterator[tuple[str, str, Any]]:
    """Each float param but eps at 3/4 of its value, or 1/4 for 0, with the cause and the answer."""
    inputs, params = question
    for name, default in {**op.params, **params}.items():
        if name == "eps" or not isinstance(default, float):
            continue
        value = float(f"{0.75 * default:.3g}") if default else 0.25
        cause = CAUSES.get(name, ("",))[0] if not default else ""
        try:
            outputs = _right(op, (inputs, {**params, name: value}), direction)
        except ValueError:  # no value of this param
            continue
        yield name, cause or "param_differs", outputs


def _tail(question: Any) -> int:
    """The length of a last axis that is no whole number of lanes, 0 if there is none."""
    lengths = {array.shape[-1] for array in question[0].values() if array.ndim}
    return min((n for n in lengths if n > LANES and n % LANES), default=0)


def _without_tail(op: Any, question: Any, direction: Any) -> Any:
    """The answer of a kernel whose sums over that axis leave out what does not fill the lanes."""
    n = _tail(question)
    form = next(iter(op.formulas.way(direction).forms.values()))
    return _right(op, question, direction, edits.without(form, (n, n - n % LANES, n, True)))


def _narrowed(op: Any, inputs: Any, dtype: Any) -> Any:
    """x rounded to the format, or the factors where the op is sums of products."""
    names = [name for name in inputs if name != "bias"] if op.sums or op.factors else ["x"]
    narrow = {
        name: inputs[name].astype(dtype).astype(inputs[name].dtype)
        for name in names
        if name in inputs and inputs[name].dtype.kind == "f"
    }
    return {**inputs, **narrow}


def _same(op: Any, question: Any, outputs: Any, direction: Any) -> Iterator[str]:
    """Other faults of this module that give the same bits."""
    right, (inputs, params) = _right(op, question, direction), question
    answers = list(_answers(op, question, direction))
    for cause, dtype in NARROW.items():  # nothing tells them apart where numbers are copied
        floats = {n: x for n, x in inputs.items() if x.dtype == np.float32}
        cut = {n: x.astype(dtype).astype(x.dtype) for n, x in floats.items()}
        answers.append((cause, _right(op, ({**inputs, **cut}, params), direction)))
        answers.append(
            ("wrong_dtype", {n: y.astype(dtype).astype(y.dtype) for n, y in right.items()})
        )
    for cause, answer in answers:
        if all(np.array_equal(answer[n], outputs[n]) for n in outputs):
            yield cause

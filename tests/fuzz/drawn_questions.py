"""Questions about any op (`benchmarks/drawn.py`), wrong answers to them, and both as text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import drawn
import ml_dtypes
import numpy as np

from refkernels.op import Direction, Op

Generator = np.random.Generator
Array = np.ndarray
DTYPES = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
SPECIAL = (
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    5e-324,
    -1e-310,
    1e308,
    -1.7e308,
    1e-45,
    65504.0,
    1.0,
)


def floats(rng: Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of one of the supported dtypes, special ones among them, in some memory layout."""
    values = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4)
    if rng.random() < 0.4:
        where = rng.random(shape) < 0.3
        values = np.where(where, rng.choice(SPECIAL, shape), values)
    with np.errstate(all="ignore"):
        array = np.asarray(values).astype(DTYPES[rng.integers(len(DTYPES))])
    layout = rng.integers(8)
    if layout == 0:
        array = np.asfortranarray(array)
    elif layout == 1 and array.ndim:
        array = array[::-1].copy()[::-1]
    elif layout == 2 and array.ndim:
        array = np.repeat(array, 2, axis=-1)[..., ::2]
    elif layout == 3 and array.dtype != ml_dtypes.bfloat16:
        array = array.astype(array.dtype.newbyteorder())
    elif layout == 4:
        array.flags.writeable = False
    elif layout == 5 and array.size:
        array = np.broadcast_to(array.reshape(-1)[0], array.shape)
    return array


@dataclass(frozen=True)
class Drawn:
    """A question and an answer to it."""

    op: Op
    direction: Direction
    inputs: dict[str, Any]
    params: dict[str, Any]
    outputs: dict[str, Any]

    def __str__(self) -> str:
        def kinds(arrays: Mapping[str, Any]) -> str:
            kinds = ((name, np.asarray(array)) for name, array in arrays.items())
            return ", ".join(f"{name} {array.dtype}{array.shape}" for name, array in kinds)

        asked = f"{self.op.name} {self.direction}, {self.params}: {kinds(self.inputs)}"
        return f"{asked} -> {kinds(self.outputs)}"


def question(rng: Generator, op: Op, direction: Direction, most: int = 2048) -> Drawn:
    """A question about the op, of at most so many elements an array, and an answer."""
    params = drawn.params(rng, op)
    dtype = drawn.DTYPES[rng.integers(4)]
    inputs = drawn.inputs(rng, op, direction, params, dtype, most, odd=floats)
    return Drawn(op, direction, inputs, params, _answer(rng, op, direction, inputs, params, dtype))


def printed(rng: Generator, question: Drawn) -> tuple[str, list[str], list[str]]:
    """The question as a text of printed tensors, and the options that say which is which."""
    digits = int(rng.choice([1, 4, 4, 8, 17]))
    style = ("torch", "numpy", "bare")[rng.integers(3)]
    named = [
        (name, np.asarray(a)) for name, a in (*question.inputs.items(), *question.outputs.items())
    ]
    text = "".join(f"{name} = {_tensor(a, style, digits)}\n" for name, a in named)
    count = len(question.inputs)
    inputs = [f"{name}={k}" for k, name in enumerate(question.inputs, 1)]
    outputs = [f"torch:{name}={k}" for k, name in enumerate(question.outputs, count + 1)]
    return text, *((inputs, outputs) if rng.random() < 0.8 else ([], []))


def _tensor(array: Array, style: str, digits: int) -> str:
    def number(value: Any) -> str:
        if array.dtype.kind in "iub":
            return str(value)
        return str(float(value)) if digits == 17 else f"{float(value):.{digits}{'fe'[digits == 8]}}"

    def rows(part: Array) -> str:
        return f"[{', '.join(map(rows, part))}]" if part.ndim else number(part[()])

    if style == "bare":
        return rows(array)
    call = "tensor" if style == "torch" else "array"
    return f"{call}({rows(array)}, dtype={'torch.' * (style == 'torch')}{array.dtype.name})"


def _answer(
    rng: Generator, op: Op, direction: Direction, inputs: Any, params: Any, dtype: Any
) -> dict[str, Any]:
    """Some of the outputs, right or wrong in one way each."""
    right = drawn.right(op, direction, inputs, params, dtype)
    if not right:
        names = op.names(direction)
        shape = np.shape(next(iter(inputs.values())))
        right = {name: drawn.numbers(rng, shape, dtype) for name in names}
    other = (
        drawn.right(op, direction, inputs, drawn.params(rng, op), dtype)
        if rng.random() < 0.2
        else {}
    )
    wrong = {name: _wrong(rng, y, other.get(name)) for name, y in right.items()}
    first = next(iter(wrong))
    return {name: y for name, y in wrong.items() if name == first or rng.random() < 0.8}


def _wrong(rng: Generator, y: Array, other: Array | None) -> Array:
    """An answer that is wrong in one way, or right."""
    if other is not None:
        return other
    y = np.array(y)
    way = int(rng.integers(14))
    some = rng.random(y.shape) < rng.choice([0.05, 0.5])
    with np.errstate(all="ignore"):
        if way == 0:
            return drawn.numbers(rng, y.shape, y.dtype)
        if way == 1:
            return np.where(some, y * y.dtype.type(1.5) + y.dtype.type(1), y).astype(y.dtype)
        if way in (2, 3, 4):
            return np.where(some, (np.nan, np.inf, 0.0)[way - 2], y).astype(y.dtype)
        if way in (5, 6, 7):
            return np.full_like(y, (np.nan, -np.inf, 0.0)[way - 5])
        if way == 8 and y.ndim:
            return np.roll(y, 1, axis=int(rng.integers(y.ndim)))
        if way == 9 and y.ndim:
            return rng.permutation(y)
        if way == 10:
            return (y * rng.choice([-1, 2, 0.5, 1.001])).astype(y.dtype)
        if way == 11:
            return y.astype(drawn.DTYPES[rng.integers(4)])
        if way == 12 and y.ndim > 1:
            return y.reshape(y.shape[::-1]) if rng.random() < 0.5 else np.asfortranarray(y)
    return y

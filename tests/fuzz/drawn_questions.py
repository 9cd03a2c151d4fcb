"""Questions about any op, drawn by its signature, and wrong answers to them.

Letters get lengths, leading axes broadcast or are left out, optional inputs come and go, params are
those of one of the op's cases; dtypes and memory layouts are mixed. Most questions fit the
signature; what the op refuses all the same (an odd length where it takes pairs) it must refuse.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from call_values import DTYPES, floats

from refkernels.op import Direction, Op
from refkernels.ops.letters import Argument
from refkernels.testing.strategies import _signature

Generator = np.random.Generator
Array = np.ndarray
LENGTHS = (1, 1, 2, 3, 4, 5, 6, 8, 16)
LOW = (np.int8, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)


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


def drawn(rng: Generator, op: Op, direction: Direction, most: int = 2048) -> Drawn:
    """A question about the op, of at most so many elements an array, and an answer."""
    params = _params(rng, op)
    dtype = DTYPES[rng.integers(len(DTYPES))]
    inputs = _inputs(rng, op, dtype, most)
    shapes = _shapes(op, "forward", inputs, params)
    if direction == "backward":
        output = op.cotangent[1:]
        shape = shapes.get(output, np.shape(next(iter(inputs.values()))))
        inputs = {op.cotangent: _floats(rng, shape, dtype), **inputs}
    return Drawn(op, direction, inputs, params, _answer(rng, op, direction, inputs, params, dtype))


def _params(rng: Generator, op: Op) -> dict[str, Any]:
    """The params of one of the op's cases, some left to their defaults."""
    cases = op.cases()
    if not op.params or rng.random() < 0.3:
        return {}
    case = cases[rng.integers(len(cases))]
    _, params = case.build(case.dtypes[0])
    return {name: value for name, value in params.items() if rng.random() < 0.8}


def _inputs(rng: Generator, op: Op, dtype: Any, most: int) -> dict[str, Any]:
    arguments = _signature(op).takes
    letters = sorted({letter for argument in arguments.values() for letter in argument.own})
    while True:
        lengths = {letter: int(rng.choice(LENGTHS)) for letter in letters}
        leading = [int(n) for n in rng.choice(LENGTHS, rng.integers(4))]
        if rng.random() < 0.03 and (lengths or leading):
            where = rng.integers(len(lengths) + len(leading))
            if where < len(lengths):
                lengths[letters[where]] = 0
            else:
                leading[where - len(lengths)] = 0
        shapes = {
            name: (*_rows(rng, leading, argument), *(lengths[letter] for letter in argument.own))
            for name, argument in arguments.items()
        }
        if max(np.prod(shape) for shape in shapes.values()) <= most:
            break
    least = min(lengths.values(), default=4)
    return {
        name: _values(rng, op, argument, shapes[name], least, dtype)
        for name, argument in arguments.items()
        if not argument.optional or rng.random() < 0.5
    }


def _rows(rng: Generator, leading: list[int], argument: Argument) -> list[int]:
    """The leading axes of an array: all, the last of them, or some of length 1."""
    if not argument.rows or rng.random() < 0.6:
        return leading if argument.rows else []
    kept = leading[int(rng.integers(len(leading) + 1)) :]
    return [1 if rng.random() < 0.3 else n for n in kept]


def _values(
    rng: Generator, op: Op, argument: Argument, shape: tuple[int, ...], least: int, dtype: Any
) -> Any:
    kind = argument.kind
    if kind == "bool":
        return rng.random(shape) < 0.7
    if kind == "int":
        values = rng.integers(0, max(least, 1), shape)
        strange = (rng.random(shape) < 0.1) if rng.random() < 0.2 else np.zeros(shape, bool)
        kinds = (np.int64, np.int32, np.uint8) if not strange.any() else (np.int64, np.int32)
        values = np.where(strange, rng.choice([-100, -1, least]), values)
        return values.astype(kinds[rng.integers(len(kinds))])
    if kind == "low" and rng.random() < 0.6:
        return rng.integers(-20, 20, shape).astype(LOW[rng.integers(len(LOW))])
    return _floats(rng, shape, dtype)


def _floats(rng: Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    """Numbers of one dtype, mostly; ordinary ones, mostly; a scalar may be Python's."""
    if rng.random() < 0.2:
        return floats(rng, shape)
    scale = 10.0 ** rng.integers(-3, 3) if rng.random() < 0.7 else 10.0 ** rng.integers(-40, 39)
    with np.errstate(all="ignore"):
        array = np.asarray(rng.standard_normal(shape) * scale).astype(dtype)
    if array.ndim > 1 and rng.random() < 0.2:
        array = np.asfortranarray(array) if rng.random() < 0.5 else np.repeat(array, 2, 0)[::2]
    return float(array) if not array.ndim and rng.random() < 0.3 else array


def _shapes(op: Op, direction: Direction, inputs: Any, params: Any) -> dict[str, tuple[int, ...]]:
    """The shapes of the outputs; none where the op refuses the question."""
    return {name: array.shape for name, array in _right(op, direction, inputs, params).items()}


def _right(
    op: Op, direction: Direction, inputs: Any, params: Any, dtype: Any = np.float32
) -> dict[str, Array]:
    """The plain algorithm's answer; none where the op refuses the question."""
    arrays = {name: np.asarray(array) for name, array in inputs.items()}
    settings = {**op.params, **params}
    with np.errstate(all="ignore"):
        try:
            answers = op.plain(direction, arrays, settings, np.dtype(dtype).name)
        except (ValueError, TypeError):
            return {}
    return {name: np.asarray(array) for name, array in answers.items()}


def _answer(
    rng: Generator, op: Op, direction: Direction, inputs: Any, params: Any, dtype: Any
) -> dict[str, Any]:
    """Some of the outputs, right or wrong in one way each."""
    right = _right(op, direction, inputs, params, dtype)
    if not right:
        names = op.names(direction)
        right = {name: _floats(rng, np.shape(next(iter(inputs.values()))), dtype) for name in names}
        right = {name: np.asarray(array) for name, array in right.items()}
    other = _right(op, direction, inputs, _params(rng, op), dtype) if rng.random() < 0.2 else {}
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
            return np.asarray(_floats(rng, y.shape, y.dtype))
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
            return y.astype(DTYPES[rng.integers(len(DTYPES))])
        if way == 12 and y.ndim > 1:
            return y.reshape(y.shape[::-1]) if rng.random() < 0.5 else np.asfortranarray(y)
    return y

"""Questions about any op, drawn by its signature.

Letters get lengths, leading axes broadcast or are left out, optional inputs come and go, params are
those of one of the op's cases; formats and memory layouts are mixed, and the numbers are of many
kinds and scales. What the op refuses all the same (an odd length where it takes pairs) has no
answer.
"""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from refkernels.arithmetic import formats
from refkernels.op import Direction, Op
from refkernels.ops.letters import Argument, Signature
from refkernels.testing.strategies import _signature
from refkernels.truth import holds

Generator = np.random.Generator
Array = np.ndarray
DTYPES = tuple(map(np.dtype, ("f2", ml_dtypes.bfloat16, "f4", "f8")))
LENGTHS = (1, 1, 2, 2, 3, 4, 4, 5, 6, 8, 16)
LOW = (np.int8, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)
SCALES = 30  # of the inputs: from 10^-30 to 10^30, as far as their format goes


def params(rng: Generator, op: Op) -> dict[str, Any]:
    """The params of one of the op's cases, some left to their defaults."""
    if not op.params or rng.random() < 0.3:
        return {}
    cases = op.cases()
    case = cases[rng.integers(len(cases))]
    _, chosen = case.build(case.dtypes[0])
    return {name: value for name, value in chosen.items() if rng.random() < 0.8}


def inputs(
    rng: Generator,
    op: Op,
    direction: Direction,
    settings: dict[str, Any],
    dtype: np.dtype,
    most: int = 2048,
    odd: Callable[[Generator, tuple[int, ...]], Any] | None = None,
) -> dict[str, Any]:
    """Inputs of at most so many elements each, most of them of one dtype, and the others narrower.
    `odd`: makes other floats, now and then; with it others may be wider, whole numbers out of range
    and axes empty."""
    arguments = _signature(op).takes
    shapes, least = _shapes(rng, _signature(op), most, empty=odd is not None)

    format = formats.get(dtype.name)
    held = [kind for kind in DTYPES if holds(format, {"x": np.empty(0, kind)})]

    def floats(shape: tuple[int, ...]) -> Any:
        if odd is not None and rng.random() < 0.2:
            return odd(rng, shape)
        others = DTYPES if odd is not None else held
        own = dtype if rng.random() < 0.9 else others[rng.integers(len(others))]
        return laid_out(rng, numbers(rng, shape, own))

    drawn = {
        name: _integers(rng, argument, shapes[name], least, odd is not None)
        if argument.kind in ("int", "bool")
        else rng.integers(-20, 20, shapes[name]).astype(LOW[rng.integers(len(LOW))])
        if argument.kind == "low" and rng.random() < 0.6
        else floats(shapes[name])
        for name, argument in arguments.items()
        if not argument.optional or rng.random() < 0.5
    }
    if direction == "forward":
        return drawn
    answers = right(op, "forward", drawn, settings, dtype)
    shape = np.shape(answers.get(op.cotangent[1:], next(iter(drawn.values()))))
    return {op.cotangent: floats(shape), **drawn}


def right(
    op: Op, direction: Direction, arrays: dict[str, Any], settings: dict[str, Any], dtype: np.dtype
) -> dict[str, Array]:
    """The plain algorithm's answer; none where the op refuses the question."""
    given = {name: np.asarray(array) for name, array in arrays.items()}
    with np.errstate(all="ignore"):
        try:
            answers = op.plain(direction, given, {**op.params, **settings}, dtype.name)
        except (ValueError, TypeError):
            return {}
    return {name: np.asarray(array) for name, array in answers.items()}


def numbers(rng: Generator, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Finite numbers of one kind; half of the arrays are scaled."""
    values = rng.standard_normal(shape)
    kind = int(rng.integers(8))
    if kind == 1:
        values = rng.uniform(0, 1, shape)
    elif kind == 2:
        values = values * np.exp(2 * rng.standard_normal(shape))
    elif kind == 3:
        values = values + 10.0
    elif kind == 4:
        values = rng.integers(-3, 4, shape).astype(np.float64)
    if rng.random() < 0.5:
        values = values * 10.0 ** rng.uniform(-SCALES, SCALES)
    limit = formats.get(dtype.name).max
    return np.asarray(np.clip(values, -limit, limit)).astype(dtype)


def laid_out(rng: Generator, array: Array) -> Any:
    """The array in some memory layout; a scalar may be Python's."""
    if array.ndim > 1 and rng.random() < 0.2:
        return np.asfortranarray(array) if rng.random() < 0.5 else np.repeat(array, 2, 0)[::2]
    return float(array) if not array.ndim and rng.random() < 0.3 else array


def _shapes(
    rng: Generator, signature: Signature, most: int, empty: bool
) -> tuple[dict[str, tuple[int, ...]], int]:
    """The shapes of the inputs, and the least length of a letter."""
    arguments = signature.takes
    letters = sorted({letter for argument in arguments.values() for letter in argument.own})
    while True:
        lengths = {letter: int(rng.choice(LENGTHS)) for letter in letters}
        leading = [int(n) for n in rng.choice(LENGTHS, rng.choice([0, 1, 2, 2, 3]))]
        if empty and letters and rng.random() < 0.02:
            lengths[letters[rng.integers(len(letters))]] = 0
        if empty and leading and rng.random() < 0.02:
            leading[rng.integers(len(leading))] = 0
        shapes = {
            name: (*_rows(rng, leading, argument), *(lengths[letter] for letter in argument.own))
            for name, argument in arguments.items()
        }
        if max(np.prod(shape) for shape in shapes.values()) <= most:
            return shapes, min(lengths.values(), default=4)


def _rows(rng: Generator, leading: list[int], argument: Argument) -> list[int]:
    """The leading axes of an array: all, the last of them, or some of length 1."""
    if not argument.rows or rng.random() < 0.6:
        return leading if argument.rows else []
    kept = leading[int(rng.integers(len(leading) + 1)) :]
    return [1 if rng.random() < 0.3 else n for n in kept]


def _integers(
    rng: Generator, argument: Argument, shape: tuple[int, ...], least: int, strange: bool
) -> Array:
    """Truth values, or whole numbers below the least length; some out of range if `strange`."""
    if argument.kind == "bool":
        return np.asarray(rng.random(shape) < 0.7)
    values = rng.integers(0, max(least, 1), shape)
    if strange and rng.random() < 0.2:
        values = np.where(rng.random(shape) < 0.1, rng.choice([-100, -1, least]), values)
        return values.astype(np.int32)
    return values.astype((np.int64, np.int32, np.uint8)[rng.integers(3)])

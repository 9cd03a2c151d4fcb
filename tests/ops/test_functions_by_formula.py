"""The oracles of functions against the generic reading of their formulas, gradient included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hunting import HUNT

from refkernels import registry
from refkernels.op import DIRECTIONS, DTYPES, Direction, Op
from refkernels.ops.function_formulas import definition

FUNCTIONS = sorted(name for name, op in registry.ops().items() if op.real_function is not None)
ELEMENTS = 3 * HUNT  # of each case
FORMATS = DTYPES if HUNT > 1 else ("float32", "float64")


def test_every_hand_tuned_oracle_has_formulas() -> None:
    tuned = {name for name, op in registry.ops().items() if op.formulas is None}
    assert tuned == set(FUNCTIONS) | {"matmul", "linear", "layernorm"}


def questions(op: Op, direction: Direction, dtype: str) -> dict[str, Any]:
    """Some finite elements of each of the op's cases, in one array."""
    drawn: dict[str, list[Any]] = {name: [] for name in op.takes(direction)}
    rng = np.random.default_rng(0)
    for case in op.cases():
        if dtype not in case.dtypes or direction not in case.directions:
            continue
        arrays = {name: array.reshape(-1) for name, array in case.build(dtype)[0].items()}
        finite = np.all([np.isfinite(arrays[name].astype(float)) for name in drawn], axis=0)
        places = rng.permutation(np.flatnonzero(finite))[:ELEMENTS]
        for name, parts in drawn.items():
            parts.append(arrays[name][places])
    return {name: np.concatenate(parts) for name, parts in drawn.items()}


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_oracle_and_reading_agree_and_the_oracle_decides_as_much(
    name: str, direction: Direction
) -> None:
    """Two certified roundings of one value are the same; a zero may have either sign."""
    op = registry.get(name)
    read, compared = definition(op), 0
    for dtype in FORMATS:
        inputs = questions(op, direction, dtype)
        certify = ("rounding", dtype)
        (output,) = op.names(direction)
        own = op.evaluate(direction, inputs, {}, certify)[output]
        other = read.evaluate(direction, inputs, {}, certify)[output]
        values, certain = own.round(dtype)
        read_values, read_certain = other.round(dtype)
        assert not np.any(read_certain & ~certain & np.isfinite(own.hi))
        both = certain & read_certain & np.isfinite(other.radius) & np.isfinite(other.hi)
        assert np.array_equal(values[both].astype(float), read_values[both].astype(float))
        compared += int(np.count_nonzero(both))
    assert compared > 4 * ELEMENTS

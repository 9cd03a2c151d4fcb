"""What a mask drops may be NaN or a number, in every op that has masks or indices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hunting import HUNT

from refkernels import explain, registry
from refkernels.arithmetic.formats import BINARY32
from refkernels.metrology.no_part import _filled
from refkernels.op import Op
from refkernels.testing import assert_kernel
from refkernels.truth import Truth

MOST = 12 if HUNT > 1 else 1  # questions of each pass
CHOOSING = [op for op in registry.ops().values() if {"bool", "int"} & {*op.kinds.values()}]


def questions(op: Op, direction: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Small cases with a few infinities and NaN in one float input, each in turn."""
    rng, found = np.random.default_rng(5), 0
    for case in op.cases():
        if "float32" not in case.dtypes or direction not in case.directions or found >= MOST:
            continue
        arrays, params = case.build("float32")
        inputs = {name: arrays[name] for name in op.takes(direction) if name in arrays}
        if sum(array.size for array in inputs.values()) > (1500 if HUNT > 1 else 600):
            continue
        for name, array in inputs.items():
            if array.dtype == np.float32 and array.size > 3 and found < 2 * MOST:
                changed = array.copy()
                places = rng.permutation(array.size)[: max(array.size // 8, 2)]
                np.put(changed, places, np.resize([np.inf, np.nan, -np.inf], places.size))
                found += 1
                yield {**inputs, name: changed}, {**op.params, **params}


@pytest.mark.parametrize("op", CHOOSING, ids=lambda op: op.name)
@np.errstate(all="ignore")
def test_a_kernel_that_never_reads_what_is_dropped_is_right(op: Op) -> None:
    tried = 0
    for direction in op.directions:
        for inputs, params in questions(op, direction):
            filled = [
                {n: _filled(a, largest) for n, a in inputs.items()} for largest in (False, True)
            ]
            zero, one = (op.plain(direction, arrays, params, BINARY32) for arrays in filled)
            whole = [Truth(op, direction, arrays, params, BINARY32) for arrays in filled]
            bounds = [truth.bound() for truth in whole]
            truth = Truth(op, direction, inputs, params, BINARY32)
            for name, exact in truth.reference.items():
                right = exact.round(BINARY32)[0]
                free = np.isnan(right) & np.isfinite(one[name]) & (zero[name] == one[name])
                for numbers, bound, answer in zip(whole, bounds, (zero, one), strict=True):
                    error = np.abs(answer[name] - np.asarray(numbers.reference[name]))
                    free &= error <= bound[name]  # else the plain loop overflows
                got = np.where(free, zero[name], right).astype(np.float32)
                tried += bool(free.any())
                assert_kernel(op, inputs, {name: got}, params, direction)
                apart = np.abs(zero[name] - one[name]) > 2.0 * sum(bound[name] for bound in bounds)
                lost = np.isnan(right) & apart  # a NaN that takes part
                got = np.where(lost, zero[name], right).astype(np.float32)
                if lost.any():
                    with pytest.raises(AssertionError, match="special_value_mismatch"):
                        assert_kernel(op, inputs, {name: got}, params, direction)
    assert tried or op.name not in ("dropout", "attention")


def test_dropout_by_select_is_rounding_everywhere() -> None:
    x = np.array([1.0, np.inf, -np.inf, np.nan, 2.0, 0.3], np.float32)
    mask = np.array([True, False, False, False, True, True])
    inputs, params = {"x": x, "mask": mask}, {"p": 0.3}
    y = np.where(mask, x / np.float32(0.7), np.float32(0.0))
    for got in (y, np.where(mask, y, x * np.float32(0.0))):
        assert_kernel("dropout", inputs, got, params)
        assert explain("dropout", inputs, got, params).verdict in ("rounding", "correctly_rounded")
    with pytest.raises(AssertionError, match="special_value_mismatch"):
        assert_kernel("dropout", inputs, np.where(mask, y, np.float32(1.0)), params)


def test_the_zeros_of_a_product_are_data() -> None:
    a, b = np.array([[0.0, 1.0]], np.float32), np.array([[np.nan], [2.0]], np.float32)
    with pytest.raises(AssertionError, match="special_value_mismatch"):
        assert_kernel("matmul", {"a": a, "b": b}, np.array([[2.0]], np.float32))

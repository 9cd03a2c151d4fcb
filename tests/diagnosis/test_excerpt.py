"""A script carries all inputs on which its elements depend: the rest may be zero."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.diagnosis import excerpt
from refkernels.diagnosis.problem import Problem
from refkernels.op import Case, Op

FLOAT32 = formats.get("float32")
OPS = list(registry.ops().values())
PLACES = 3


def small(op: Op) -> Case:
    """The smallest case with several elements in each input."""

    def size(case: Case) -> int:
        arrays, _ = case.build("float32")
        sizes = [array.size for name, array in arrays.items() if name in op.inputs]
        return sum(sizes) if min(sizes) > 1 else 10**9

    return min((case for case in op.cases() if "float32" in case.dtypes), key=size)


def cut(problem: Problem, place: tuple[str, tuple[int, ...]]) -> dict[str, Any]:
    """The inputs with zeros wherever the element does not depend on them."""
    left = {}
    for name, array in problem.inputs.items():
        index = excerpt._index(problem, name, place)
        kept = tuple(slice(None) if part == ":" else part for part in index)
        left[name] = np.zeros_like(array) if array.dtype.kind == "f" else array.copy()
        left[name][kept] = array[kept]
    return left


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_an_element_keeps_its_bits_where_all_else_is_zero(op: Op, direction: Any) -> None:
    case = small(op)
    if direction not in case.directions:
        return
    arrays, params = case.build("float32")
    inputs = {name: arrays[name] for name in op.takes(direction) if name in arrays}
    problem = Problem(op, direction, inputs, {**op.params, **params}, FLOAT32)
    whole = op.plain(direction, inputs, params, FLOAT32)
    random = np.random.default_rng(0)
    assert whole
    for output, array in whole.items():
        for _ in range(PLACES):
            index = tuple(int(random.integers(n)) for n in array.shape)
            again = op.plain(direction, cut(problem, (output, index)), params, FLOAT32)
            assert again[output][index].tobytes() == array[index].tobytes(), (output, index)


def test_an_op_that_does_not_say_what_it_depends_on_keeps_all_its_inputs() -> None:
    op = replace(registry.get("layernorm"), define=None)
    x = np.ones((30, 40), np.float32)
    problem = Problem(op, "forward", {"x": x}, dict(op.params), FLOAT32)
    assert excerpt._index(problem, "x", ("y", (3, 4))) == (":", ":")

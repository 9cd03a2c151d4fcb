"""Inputs that are whole numbers or truth values, and params that all rows share."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import refkernels
from refkernels.arithmetic.blocks import CACHED
from refkernels.contexts.ball import Ball
from refkernels.frameworks.transport import pack, unpack
from refkernels.ops import Prepared, Shared, formula_op
from refkernels.ops.letters import Signature


def chosen(xp: Any, x: Any, index: Any, keep: Any) -> Any:
    return xp.where(keep, 2 * xp.take_along_axis(x, index), xp.number(0))


LOOKUP = refkernels.oracle(chosen, "x[... n], index[...]:int, keep[...]:bool -> y[...]")
X = np.arange(12, dtype=np.float32).reshape(4, 3)
INDEX, KEEP = np.array([0, 2, 1, 1]), np.array([True, True, False, True])


def test_they_are_exact_and_get_no_gradient() -> None:
    assert LOOKUP.op.kinds == {"index": "int", "keep": "bool"}
    assert LOOKUP.op.differentiated == ("x",)
    np.testing.assert_array_equal(LOOKUP.forward(X, INDEX, KEEP).hi, [0.0, 10.0, 0.0, 20.0])
    dx = LOOKUP.backward(np.ones(4, np.float32), X, INDEX, KEEP)
    assert np.flatnonzero(np.asarray(dx)).tolist() == [0, 5, 10]


@pytest.mark.parametrize(
    ("index", "keep", "words"),
    [(INDEX.astype(np.float32), KEEP, "index has dtype float32"), (INDEX, INDEX, "truth values")],
)
def test_other_dtypes_are_refused(index: Any, keep: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        LOOKUP.forward(X, index, keep)


def test_a_wrong_kernel_is_explained_on_them() -> None:
    inputs = {"x": X + 1, "index": INDEX, "keep": KEEP}
    explanation = refkernels.explain(LOOKUP.op, inputs, {"y": np.float32([-2, -12, 0, -22])})
    assert explanation.verdict == "exceeds_bound"
    question = explanation.evidence["question"]
    assert question["leaves"] == ["x"]
    assert [array["dtype"] for array in question["inputs"].values()] == ["float32", "int64", "bool"]


@pytest.mark.parametrize("array", [INDEX, KEEP], ids=["int64", "bool"])
def test_they_travel_as_they_are(array: Any) -> None:
    name, bits = pack(array)
    back = unpack(name, bits)
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


def _share(inputs: Any, params: Any, direction: Any) -> Prepared:
    whole = inputs["w"]
    total = Shared(lambda xp: xp.sum(xp.array(whole.reshape(1, -1))))
    return Prepared(inputs, {"total": total}, signature=Signature.parse("w[...] -> y[...]"))


def test_what_all_rows_share_is_computed_of_all_blocks() -> None:
    """0.1 in float32, so often that the rows take several blocks."""
    op = formula_op(
        "share", "w[...] -> y[...]", forms={"share": lambda xp, w, total: w / total},
        gradients=(), prepare=_share,
    )  # fmt: skip
    w = np.full(2 * CACHED + 3, 0.1, np.float32)
    answer = op.evaluate("forward", {"w": w}, {})["y"]
    exact = Fraction(1, w.size)
    off = [abs(Fraction(float(hi)) - exact) for hi in answer.hi[[0, CACHED, -1]]]
    assert max(off) <= Fraction(float(answer.radius.max())) < exact / 10**9
    computed = []

    def count(xp: Any) -> Any:
        computed.append(xp)
        return xp.number(2)

    reading = refkernels.ops.readings.ball()
    shared = {"total": Shared(count)}
    for _ in range(3):
        reading.arguments({}, shared)
    assert len(computed) == 1
    assert isinstance(computed[0], Ball)

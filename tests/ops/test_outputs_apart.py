"""Some elements of a formula whose outputs are independent: their values, and the inputs read."""

from __future__ import annotations

from typing import Any

import numpy as np

from refkernels.contexts.ball import Ball
from refkernels.ops import PerOutput, enclosing
from refkernels.ops.canonical import Prepared, canonical
from refkernels.ops.letters import Signature
from refkernels.ops.selection import Selection

SIGNATURE = Signature.parse("x[... k], weight[o k] -> y[... o], gram[o k]")


def seen(shapes: list[Any]) -> PerOutput:
    """y = x weight^T, and a sum over the rows, which note what they see."""

    def y(xp: Any, x: Any, weight: Any) -> Any:
        shapes.append((x.shape, weight.shape))
        rows, k = x.shape
        product = xp.matmul(xp.reshape(x, (1, rows, k)), xp.transpose(weight, (0, 2, 1)))
        return xp.reshape(product, (rows, weight.shape[1]))

    def gram(xp: Any, x: Any, weight: Any) -> Any:
        shapes.append((x.shape, weight.shape))
        return weight * xp.sum(x, 0)

    return PerOutput((y, gram))


def test_an_answer_about_some_elements_reads_their_slices_alone() -> None:
    rng = np.random.default_rng(8)
    inputs = {"x": rng.standard_normal((7, 5)), "weight": rng.standard_normal((3, 5))}
    question, shapes = canonical(SIGNATURE, Prepared(inputs, {})), list[Any]()
    wanted = {"y": np.array([4, 19]), "gram": np.array([2, 7])}  # (1, 1), (6, 1); (0, 2), (1, 2)
    selection = Selection(seen(shapes), question, wanted)
    answers = selection.read(Ball(), enclosing.value)
    assert shapes == [((2, 5), (1, 1, 5)), ((7, 1), (1, 2, 1))]
    assert selection.cost == 2 * 5 + 5 + 7 + 2
    y = inputs["x"] @ inputs["weight"].T
    np.testing.assert_allclose(np.asarray(answers["y"]), y.reshape(-1)[[4, 19]], rtol=1e-14)
    gram = inputs["weight"] * inputs["x"].sum(axis=0)
    np.testing.assert_allclose(np.asarray(answers["gram"]), gram.reshape(-1)[[2, 7]], rtol=1e-14)


def test_what_mixes_the_letters_reads_whole_rows() -> None:
    inputs = {"x": np.ones((7, 5)), "weight": np.ones((3, 5))}
    question, shapes = canonical(SIGNATURE, Prepared(inputs, {})), list[Any]()
    formula = PerOutput(seen(shapes).formulas, sliced=False)
    Selection(formula, question, {"y": np.array([4])}).read(Ball(), enclosing.value)
    assert shapes == [((1, 5), (1, 3, 5))]

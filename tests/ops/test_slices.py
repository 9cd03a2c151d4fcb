"""A sliced formula is read for the indices of its wanted elements, and is the formula there."""

from typing import Any

import numpy as np
import pytest

from refkernels.contexts import DoubleDouble
from refkernels.ops import Fault, Sliced, enclosing, formula_op
from refkernels.ops.selection import Selection
from refkernels.ops.slices import cut_of

SEEN: list[tuple[tuple[int, ...], ...]] = []


def weighted(xp: Any, a: Any, b: Any, w: Any) -> Any:
    """Two outputs: one with all letters free, one that sums a letter of it."""
    SEEN.append((a.shape, b.shape, w.shape))
    c = xp.matmul(a, b)
    w = xp.reshape(w, (*w.shape[:2], 1))
    return xp.exp(c) * w, xp.reshape(xp.sum(c * w, axis=-2), (w.shape[0], b.shape[-1]))


def other(xp: Any, a: Any, b: Any, w: Any) -> Any:
    y, z = weighted(xp, a, b, w)
    return y, z + z


OP = formula_op(
    "weighted",
    "a[... m k], b[... k n], w[... m] -> y[... m n], z[... n]",
    forms={"plain": Sliced(weighted)},
    faults=(Fault("doubled", other),),
    gradients=(),
)


def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(2)
    shapes = {"a": (3, 5, 4), "b": (3, 4, 7), "w": (3, 5)}
    return {name: rng.standard_normal(shape) for name, shape in shapes.items()}


def read(formula: Any, wanted: dict[str, Any]) -> dict[str, Any]:
    question = OP.formulas.question("forward", arrays(), {})
    SEEN.clear()
    places = {name: np.asarray(at, np.intp) for name, at in wanted.items()}
    return Selection(formula, question, places).read(DoubleDouble(), enclosing.value)


@pytest.mark.parametrize(
    ("wanted", "shapes"),
    [
        # elements (0, 1, 2), (0, 1, 6): one m, two n
        ({"y": [9, 13]}, [((1, 1, 4), (1, 4, 2), (1, 1))]),
        # (0, 0, 0), (2, 4, 1): a block has both rows, each with its own m and n
        ({"y": [0, 99]}, [((2, 1, 4), (2, 4, 1), (2, 1))]),
        # (0, 0, 0), (0, 3, 5), (2, 4, 1): the second row repeats its m and n
        ({"y": [0, 26, 99]}, [((2, 2, 4), (2, 4, 2), (2, 2))]),
        # every m of row 0 and one of row 1
        ({"y": [0, 7, 14, 21, 28, 44]}, [((2, 5, 4), (2, 4, 1), (2, 5))]),
        # z (1, 3): every m, one n
        ({"z": [10]}, [((1, 5, 4), (1, 4, 1), (1, 5))]),
        ({"y": [36], "z": [9]}, [((1, 1, 4), (1, 4, 1), (1, 1)), ((1, 5, 4), (1, 4, 1), (1, 5))]),
    ],
    ids=str,
)
def test_it_is_read_for_these_indices_alone(wanted: Any, shapes: Any) -> None:
    whole = read(weighted, wanted)
    assert [shapes_read[0][1:] for shapes_read in SEEN] == [(5, 4)]  # not told to be sliced
    part = read(Sliced(weighted), wanted)
    assert sorted(SEEN) == sorted(shapes)
    for name in wanted:
        ends = [
            (answer[name].hi + answer[name].lo, answer[name].radius + 1e-28)
            for answer in (whole, part)
        ]
        assert np.all(np.abs(ends[0][0] - ends[1][0]) <= ends[0][1] + ends[1][1])
        np.testing.assert_array_equal(whole[name].hi, part[name].hi)


def test_rows_without_a_wanted_element_take_some_index() -> None:
    question = OP.formulas.question("forward", arrays(), {})
    for columns, row in (([], []), ([9], [1])):
        indices = np.array(columns, np.intp), np.array(row, np.intp)
        cut = cut_of(question, "y", *indices, rows=3)
        assert {letter: table.shape for letter, table in cut.kept.items()} == {
            "m": (3, 1), "n": (3, 1),
        }  # fmt: skip
        shapes = {n: a.shape for n, a in cut.applied(question, question.arrays).arrays.items()}
        assert shapes == {"a": (3, 1, 4), "b": (3, 4, 1), "w": (3, 1)}


def test_all_elements_are_read_whole() -> None:
    read(Sliced(weighted), {"y": np.arange(105), "z": np.arange(21)})
    assert len(SEEN) == 1


def test_a_certified_answer_is_that_of_the_whole_formula() -> None:
    inputs = arrays()
    answer = OP.evaluate("forward", inputs, {}, ("rounding", "float64"))
    c = np.einsum("bmk,bkn->bmn", inputs["a"], inputs["b"])
    np.testing.assert_allclose(answer["y"].hi, np.exp(c) * inputs["w"][..., None], rtol=1e-13)
    np.testing.assert_allclose(answer["z"].hi, (c * inputs["w"][..., None]).sum(1), rtol=1e-11)
    doubled = OP.formulas.certified("forward", other, inputs, {}, ("rounding", "float64"))
    np.testing.assert_allclose(doubled["z"].hi, 2 * answer["z"].hi, rtol=1e-13)

"""An Enclosure becomes an array on request, and is never silently taken for one."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from refkernels import layernorm_ref, matmul_ref, metrology
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.elementary_ref import exp
from refkernels.trig_ref import sin

X = np.array([1.0, 2.0, 3.0])
E = Enclosure(X, 2.0**-60 * X, 2.0**-110 * X)
BINARY = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.matmul, operator.eq, operator.ne, operator.lt, operator.le, operator.gt,
    operator.ge,
)  # fmt: skip


@pytest.mark.parametrize("operation", BINARY, ids=lambda operation: operation.__name__)
@pytest.mark.parametrize("other", [X, 2.0, 3, np.float64(1), E, [1.0, 2.0, 3.0]], ids=repr)
def test_operators_and_comparisons_are_a_type_error(
    operation: Callable[[Any, Any], Any], other: Any
) -> None:
    for pair in ((E, other), (other, E)):
        with pytest.raises(TypeError, match="radius of an Enclosure"):
            operation(*pair)


@pytest.mark.parametrize(
    "call",
    [operator.neg, abs, float, np.sin, np.isfinite, np.max, np.sum, np.add.reduce,
     lambda e: np.add(X, 1.0, out=e), lambda e: X.__isub__(e), lambda e: np.multiply.outer(X, e)],
)  # fmt: skip
def test_numpys_functions_are_a_type_error(call: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="radius of an Enclosure"):
        call(E if call is not float else Enclosure(1.0))


def test_comparison_with_other_objects_is_the_default() -> None:
    assert E != "text"
    assert E != None  # noqa: E711
    assert len({E, E, Enclosure(X)}) == 2


@pytest.mark.parametrize(
    "call",
    [
        exp, lambda e: exp([e, e]), lambda e: matmul_ref.forward(X, e),
        lambda e: layernorm_ref.backward(e, X), lambda e: exp(layernorm_ref.forward(X)),
        lambda e: metrology.ulp_error(e, e), lambda e: metrology.ulp(e, "float32"),
    ],
)  # fmt: skip
def test_an_enclosure_is_refused_as_an_input(call: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"is an Enclosure.*radius would be lost.*np\.asarray"):
        call(E)


def test_numpy_testing_and_asarray_take_it() -> None:
    sines, values = sin(X), np.sin(X)
    np.testing.assert_allclose(sines, values)
    np.testing.assert_array_equal(sines, sines.hi)
    np.testing.assert_array_less(sines, 2.0)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(sines, values + 1e-3)
    assert np.allclose(sines, values)
    assert np.asarray(sines).tolist() == sines.hi.tolist()
    assert metrology.ulp_error(values, sines).value.shape == (3,)


@pytest.mark.parametrize(
    ("part", "value", "error"),
    [("hi", "0.1", TypeError), ("hi", [1j], TypeError), ("hi", E, TypeError),
     ("radius", [True], TypeError), ("lo", None, TypeError), ("scale", 0.5, ValueError),
     ("hi", 2**53 + 1, ValueError), ("hi", np.ma.masked_array([1.0], [True]), TypeError)],
)  # fmt: skip
def test_the_parts_are_numbers_that_float64_holds(
    part: str, value: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match=f"An Enclosure's {part}"):
        Enclosure(**{"hi": 1.0, part: value})


def test_repr_is_one_line_and_notebooks_get_a_table() -> None:
    wide = Enclosure(np.arange(1e6), radius=2.0**-20)
    assert repr(wide) == (
        "Enclosure(shape=(1000000,), largest radius=9.54e-07, hi=[0.0, 1.0, 2.0, 3.0, ...])"
    )
    huge = exp(1e4)
    assert "scale=[" in repr(huge)
    assert "8.8068182256629215873E+4342" in huge._repr_markdown_()
    assert "| [1] | 0.90929742682568169540 |" in sin(X)._repr_markdown_()
    assert wide._repr_markdown_().endswith("999996 more")
    for odd in (np.nan, -np.inf, -0.0, np.zeros((2, 0)), 5e-324):
        enclosure = Enclosure(odd)
        assert "\n" not in repr(enclosure)
        assert enclosure._repr_markdown_().startswith("Enclosure, shape")

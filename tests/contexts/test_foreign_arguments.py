"""What is no value of a context is refused in a sentence that says what to write instead."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from test_contexts import EVERY

import refkernels
from refkernels.contexts import Arb, Context

X = np.array([[0.5, 1.25], [0.75, 3.0]])
OTHERS = {
    "exponent": 2,
    "name": "exp",
    "low": 0,
    "high": 1,
    "shape": (4, 1),
    "axes": (1, 0),
    "index": np.array([0, 1]),
    "length": 2,
    "steps": 1,
    "format": "float32",
    "mask": X > 1,
    "change": lambda part: part,
    "grid": None,
}
NO_ARRAYS = ("array", "number", "pi", "lift", "library")  # take none, or a formula's


def takes_values(parameter: inspect.Parameter) -> bool:
    return "Value" in str(parameter.annotation)


def calls() -> Any:
    """(name, the place of the foreign argument, its arguments of the context and the stranger)."""
    for name, method in vars(Context).items():
        if name.startswith("_") or not inspect.isfunction(method) or name in NO_ARRAYS:
            continue
        parameters = list(inspect.signature(method).parameters.values())[1:]
        for place in filter(takes_values, parameters):
            yield name, place.name


def arguments(name: str, place: str, value: Any, stranger: Any) -> list[Any]:
    given = []
    for parameter in list(inspect.signature(getattr(Context, name)).parameters.values())[1:]:
        if takes_values(parameter):
            one = stranger if parameter.name == place else value
            given.append([one] if "Sequence" in str(parameter.annotation) else one)
        elif parameter.default is parameter.empty:
            given.append(OTHERS[parameter.name])
    return given


@pytest.mark.parametrize(("name", "place"), list(calls()))
def test_every_primitive_of_every_context_refuses_what_is_no_value(name: str, place: str) -> None:
    for xp in EVERY:
        with xp if isinstance(xp, Arb) else np.errstate():
            for stranger, written in ((0, "xp.number(0)"), (0.5, "xp.number(0.5)"), (X, "xp.num")):
                with pytest.raises(TypeError, match="xp's functions take xp's values") as caught:
                    getattr(xp, name)(*arguments(name, place, xp.array(X), stranger))
                assert written in str(caught.value), xp.name


@pytest.mark.parametrize(
    ("formula", "kind", "sentence"),
    [
        (lambda xp, x: xp.maximum(x, 0), TypeError, r"write xp\.number\(0\)"),
        (lambda xp, x: xp.where(x > 0, x, 0), TypeError, r"write xp\.number\(0\)"),
        (lambda xp, x: 3, TypeError, "y is of type int"),
        (lambda xp, x: None, TypeError, "y is of type NoneType"),
        (lambda xp, x: (x, x), ValueError, "gives 2 outputs, but its signature names 1: y"),
        (lambda xp, x: x**2, TypeError, r"xp\.square"),
        (lambda xp, x: x[0], TypeError, r"xp\.take"),
        (lambda xp, x: xp.relu(x), AttributeError, r"xp has no 'relu': docs/xp\.md"),
    ],
)
def test_a_formula_that_does_not_fit_is_refused_in_a_sentence(
    formula: Any, kind: type[Exception], sentence: str
) -> None:
    mine = refkernels.oracle(formula, "x[... n] -> y[... n]", "n")
    x = X.astype(np.float32)
    for call in (
        lambda: mine.forward(x),
        lambda: mine.forward_bound(x, format="float32"),
        lambda: mine.forward_plain(x, format="float32"),
        lambda: refkernels.testing.assert_kernel(mine.op, {"x": x}, x),
    ):
        with pytest.raises(kind, match=sentence):
            call()


def test_a_power_has_a_gradient_in_computed_arithmetic() -> None:
    mine = refkernels.oracle(lambda xp, x: xp.power(x, 3), "x[...] -> y[...]")
    x = np.array([2.0, -3.0], np.float32)
    plain = mine.backward_plain(np.ones(2, np.float32), x, format="float32")
    np.testing.assert_array_equal(plain, [12.0, 27.0])

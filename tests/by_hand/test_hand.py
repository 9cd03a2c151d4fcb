"""What is computed by hand is right where numbers are lost, have huge exponents, or no derivative:
elements whose values follow from other formulas."""

from typing import Any

import numpy as np
import pytest
from hand import Element, NoValue, element
from hand_numbers import rounded
from mpmath import mp

DIGITS = (120, 600)
ONE = np.array([1.0])


def forward(op: str, **inputs: float) -> Element:
    given = {name: np.array([x]) for name, x in inputs.items()}
    return element(op, "y", (0,), given, {}, alone=True)


def slope(op: str, x: float, dy: float = 1.0, **params: Any) -> Element:
    given = {"dy": np.array([dy]), "x": np.array([x])}
    return element(op, "dx", (0,), given, params, "dy", alone=True)


def test_a_lost_number_moves_the_two_roundings_apart() -> None:
    with rounded(50, "f"):
        low = mp.mpf(3) + mp.mpf(10) ** -200
    with rounded(90, "c"):
        high = mp.mpf(3) + mp.mpf(10) ** -200
    assert low == 3 < high
    assert mp._prec_rounding == [53, "n"]


@pytest.mark.parametrize(
    ("asked", "known"),
    [
        (slope("elu", -664.0), lambda: mp.exp(-664)),
        (slope("elu", -662.5, dy=-0.09375), lambda: -0.09375 * mp.exp(-662.5)),
        (slope("selu", -630.0), lambda: mp.exp(-630) * mp.mpf("1.7580993408473768599402175208123")),
        (slope("erf", -20.0), lambda: 2 / mp.sqrt(mp.pi) * mp.exp(-400)),
        (slope("tanh", 400.0), lambda: mp.sech(400) ** 2),
        (forward("mish", x=-700.0), lambda: -700 * mp.exp(-700)),
        (forward("softplus", x=-3e38), lambda: mp.exp(mp.mpf(-3e38))),
        (forward("atan2", a=-0.0, b=-1.0), lambda: -mp.pi),
        (forward("atan2", a=0.0, b=-0.0), lambda: mp.pi),
    ],
    ids=lambda asked: f"{asked.op}-{asked.output}" if isinstance(asked, Element) else "",
)
def test_a_value_is_that_of_another_formula(asked: Element, known: Any) -> None:
    value = asked.value(DIGITS)
    assert value.decided
    with mp.workdps(100):
        assert mp.almosteq(value.middle, known(), mp.mpf(10) ** -25)


def test_a_value_that_no_digits_reach_is_not_decided() -> None:
    assert not slope("elu", -20000.0).value(DIGITS).decided
    assert slope("hardswish", -4.0).value(DIGITS).middle == 0
    assert slope("hardswish", -4.0).value(DIGITS).decided


@pytest.mark.parametrize("dy", [1.0, 1e-38])
def test_a_kink_has_no_slope(dy: float) -> None:
    with pytest.raises(NoValue):
        slope("hardswish", 3.0, dy).value(DIGITS)
    assert slope("hardswish", 2.0, dy).value(DIGITS).decided


def test_an_input_that_is_left_out_has_a_gradient() -> None:
    dy, x = np.array([[1.0, 2.0], [5.0, 7.0]]), np.array([[1.0, 2.0], [3.0, 3.0]])
    asked = element("layernorm", "dbias", (1,), {"dy": dy, "x": x}, {}, "dy", (2,))
    assert mp.almosteq(asked.value(DIGITS).middle, 9)


def test_a_small_gradient_beside_large_sums_is_kept() -> None:
    dy, x = np.array([[1e200, 3.0]]), np.array([[1e200]])
    given = {"dy": dy, "x": x, "weight": np.array([[1e100], [1.0]]), "bias": np.array([0.0, 0.0])}
    value = element("linear", "dbias", (1,), given, {}, "dy", (2,)).value(DIGITS)
    assert value.decided
    assert mp.almosteq(value.middle, 3)


@pytest.mark.parametrize("label", [-1, 3])
@pytest.mark.parametrize("op", ["cross_entropy", "nll"])
def test_a_label_that_is_no_class_has_no_loss(op: str, label: int) -> None:
    x, target = np.zeros((2, 3)), np.array([label, 0])
    own, other = (
        element(op, "loss", (i,), {"x": x, "target": target}, {"reduction": "none"}) for i in (0, 1)
    )
    with pytest.raises(NoValue):
        own.value(DIGITS)
    assert other.value(DIGITS).decided
    weighed = {"x": x, "target": target, "weight": np.array([1.0, 2.0, 3.0])}
    mean = element(op, "loss", (), weighed, {"reduction": "mean"})
    with pytest.raises(NoValue):  # its weight is part of the denominator
        mean.value(DIGITS)

"""The suite itself: an op that is wrong for other params than the defaults does not pass it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from formula_suite import DEFINED, OPS, questions
from test_formula_ops import (
    test_all_forms_are_the_same_function as check_forms,
)
from test_formula_ops import (
    test_the_backward_pass_is_that_of_the_forward_pass as check_backward,
)

from refkernels.ops import Domain, formula_op

ABOVE_ZERO = Domain(0.0, open_least=True)


def celu(xp: Any, x: Any, *, alpha: Any) -> Any:
    low = xp.minimum(x, xp.number(0))
    return xp.where(x > 0, x, alpha * xp.expm1(low / alpha))


def elu(xp: Any, x: Any, *, alpha: Any) -> Any:
    """celu where alpha is 1, its default."""
    low = xp.minimum(x, xp.number(0))
    return xp.where(x > 0, x, alpha * xp.expm1(low))


def slope(xp: Any, dy: Any, x: Any, *, alpha: Any) -> Any:
    return xp.where(x > 0, dy, dy * xp.exp(xp.minimum(x, xp.number(0)) / alpha))


def slope_of_elu(xp: Any, dy: Any, x: Any, *, alpha: Any) -> Any:
    return xp.where(x > 0, dy, dy * xp.exp(xp.minimum(x, xp.number(0))))


RIGHT = {"forms": {"expm1": celu}, "backward": {"exp": slope}}
WRONG = {
    "another form": ({"forms": {"expm1": celu, "exp": elu}}, check_forms),
    "the certified formula": ({"truth": elu}, check_forms),
    "the backward pass": ({"backward": {"exp": slope_of_elu}}, check_backward),
}


def asked(monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]) -> None:
    described = {**RIGHT, "params": {"alpha": 1.0}, "domains": {"alpha": ABOVE_ZERO}, **changes}
    monkeypatch.setitem(OPS, "celu", formula_op("celu", "x[...] -> y[...]", **described))


def run(check: Callable[..., None]) -> None:
    ways = ("forward", "backward") if check is not check_backward else ("",)
    for direction in ways:
        check("celu", *([direction] if direction else []))


@pytest.mark.parametrize("what", WRONG)
def test_an_op_that_is_wrong_where_a_param_is_not_its_default_fails(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes, check = WRONG[what]
    asked(monkeypatch, {})
    run(check)
    asked(monkeypatch, changes)
    with pytest.raises(AssertionError):
        run(check)


def test_every_number_that_is_a_param_is_asked_with_other_values() -> None:
    others = {
        (name, param)
        for name, direction in DEFINED
        for salt in (1, 2, 3, 5)
        for _, _, params in questions(name, direction, salt)
        for param, value in params.items()
        if value != OPS[name].params[param]
    }
    numbers = {
        (name, param)
        for name, op in OPS.items()
        for param, default in op.params.items()
        if isinstance(default, float) and param != "norm_type"  # 2 or inf
    }
    assert numbers <= others
    assert len({param for _, param in others - numbers}) > 10  # reduction, axis, training, ...

"""A wrong value of a param is refused in a sentence, by every op; none is read as another value."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import refkernels
from refkernels import registry
from refkernels.arguments import TextOrNumbers
from refkernels.arithmetic import formats
from refkernels.op import Direction, Op
from refkernels.ops import Domain

WITH_PARAMS = [
    (name, direction)
    for name, op in registry.ops().items()
    for direction in op.directions
    if op.params
]
OF_NO_PARAM: tuple[Any, ...] = (
    b"1", 1j, np.complex64(1), {}, {1.0}, np.ma.masked, np.array([1.0]), np.timedelta64(1), [[1]],
    [None], ["1"], [True], 10**400, "1e-5", "xx", object(),
)  # fmt: skip
NO_NUMBERS: tuple[Any, ...] = (True, np.True_, "1")
FREE_TEXTS = ("name",)
NO_COUNTS: tuple[Any, ...] = (3.9, (3.9,), (True,), ("1",), 2**63, float("nan"))


def refused(param: str, default: Any) -> tuple[Any, ...]:
    """The values of a param with such a default that are wrong."""
    if param in FREE_TEXTS:
        return tuple(value for value in (*OF_NO_PARAM, True, 1, None) if type(value) is not str)
    if isinstance(default, bool):
        return (*OF_NO_PARAM, "1", 1, 0.0, "True", None)
    if isinstance(default, str) and not isinstance(default, TextOrNumbers):
        others = () if "->" in default else (default.upper(), f"{default} ")
        return (*OF_NO_PARAM, True, 1, 3.9, None, "", *others)
    if isinstance(default, float):
        return (*OF_NO_PARAM, *NO_NUMBERS, None, (3.9,), float("nan"), 2**53 + 1)
    return (*OF_NO_PARAM, *NO_NUMBERS, *(() if default is None else NO_COUNTS))


def question(op: Op, direction: Direction) -> tuple[dict[str, Any], dict[str, Any]]:
    cases = (case for case in op.cases() if {direction} <= {*case.directions})
    inputs, params = next(case for case in cases if "float32" in case.dtypes).build("float32")
    return {name: inputs[name] for name in op.takes(direction) if name in inputs}, params


def sentence(call: Callable[[], Any]) -> str | None:
    """What a call is refused with; None where it answers."""
    try:
        call()
    except (TypeError, ValueError) as failure:
        return str(failure)
    return None


def is_sentence(message: str | None) -> bool:
    return message is not None and message.endswith(".") and message.isprintable()


@pytest.mark.parametrize(("name", "direction"), WITH_PARAMS)
def test_wrong_values_of_a_param_are_refused_in_a_sentence(name: str, direction: Direction) -> None:
    op = registry.get(name)
    inputs, params = question(op, direction)
    for param, default in op.params.items():
        for value in refused(param, default):
            arguments = direction, inputs, {**params, param: value}
            for function in (op.evaluate, partial(op.bound, format=formats.BINARY32)):
                message = sentence(partial(function, *arguments))
                assert is_sentence(message), (param, value, message)


@pytest.mark.parametrize(("name", "direction"), WITH_PARAMS)
def test_a_number_that_is_huge_is_answered_or_refused_and_takes_no_memory(
    name: str, direction: Direction
) -> None:
    op = registry.get(name)
    inputs, params = question(op, direction)
    for param in op.params:
        for value in (2**31, 2**53 + 1, 2**63 - 1, -(2**53)):
            arguments = direction, inputs, {**params, param: value}
            message = sentence(partial(op.evaluate, *arguments))
            assert message is None or is_sentence(message), (param, value, message)


FLOATS = [
    (name, param)
    for name, op in registry.ops().items()
    for param, default in op.params.items()
    if isinstance(default, float) and op.definition is not None
]


@pytest.mark.parametrize(("name", "param"), FLOATS)
def test_a_number_outside_its_domain_is_refused_with_the_rule(name: str, param: str) -> None:
    op = registry.get(name)
    assert op.definition is not None
    domain = op.definition.domain(param)
    inputs, params = question(op, "forward")
    beyond = [float("nan"), float("inf"), -float("inf")] if param != "norm_type" else []
    beyond += [np.nextafter(domain.least, -np.inf)] if np.isfinite(domain.least) else []
    beyond += [np.nextafter(domain.most, np.inf)] if np.isfinite(domain.most) else []
    beyond += [end for end in (domain.least, domain.most) if np.isfinite(end) and end not in domain]
    for value in beyond:
        message = sentence(partial(op.evaluate, "forward", inputs, {**params, param: float(value)}))
        assert is_sentence(message), (value, message)
        assert param in message or not np.isfinite(value)
    rng, answered = np.random.default_rng(0), 0
    for _ in range(8):
        value = domain.draw(rng)
        assert value in domain
        answered += not sentence(partial(op.evaluate, "forward", inputs, {**params, param: value}))
    assert answered == 8 or (name, param) == ("rotary", "base") or param == "norm_type"


@pytest.mark.parametrize(
    ("name", "param", "value", "rule"),
    [
        ("huber", "delta", 0.0, "a finite number above 0"),
        ("adam", "beta2", 1.0, "a number from 0 to 1, but not 1"),
        ("dropout", "p", 2.0, "a number from 0 to 1"),
        ("clip_by_value", "max_value", -1.0, "a finite number of at least 0"),
    ],
)
def test_the_rule_is_in_the_sentence(name: str, param: str, value: float, rule: str) -> None:
    op = registry.get(name)
    inputs, params = question(op, "forward")
    with pytest.raises(ValueError, match=rf"{param} is {value}.*{rule}"):
        op.evaluate("forward", inputs, {**params, param: value})


def test_a_user_s_own_op_declares_its_domains() -> None:
    mine = refkernels.oracle(
        lambda xp, x, *, alpha: x / alpha,
        "x[...] -> y[...]",
        params={"alpha": 1.0},
        domains={"alpha": Domain(0.0, open_least=True)},
    )
    assert np.asarray(mine.forward(np.ones(1), alpha=2.0))[0] == 0.5
    with pytest.raises(ValueError, match=r"alpha is 0\.0: it must be a finite number above 0"):
        mine.forward(np.ones(1), alpha=0.0)
    with pytest.raises(TypeError, match="domains has 'beta'"):
        refkernels.oracle(lambda xp, x: x, "x[...] -> y[...]", domains={"beta": Domain()})

"""Amplification is at least the condition number, which Gradient(Arb) gives, and not much more."""

from typing import Any

import context_formulas as formulas
import numpy as np
import pytest

from refkernels.contexts import Amplification, Arb, Gradient


def condition_numbers(formula: Any, arguments: list[Any]) -> Any:
    """sum_j |dy_i/dx_j| |x_j| / |y_i| from one backward pass per element of y."""
    with Arb(200) as arb:
        tape = Gradient(arb)
        inputs = [tape.array(x) for x in arguments]
        y = formula(tape, *inputs)
        numbers = np.zeros(y.shape)
        for index in np.ndindex(y.shape):
            one_hot = np.zeros(y.shape)
            one_hot[index] = 1.0
            slopes = tape.pull(y, arb.array(one_hot), inputs)
            total = sum(
                (abs(slope) * abs(x.value)).data.sum()
                for slope, x in zip(slopes, inputs, strict=True)
            )
            size = abs(y.value.data[index])
            numbers[index] = float((total / size).lower()) if size > 0 else 0.0
        return numbers


# Formula, inputs, and how much more than the truth it says of ordinary inputs, at most.
ROWS: dict[str, tuple[Any, int, float]] = {
    "exp": (lambda xp, x: xp.exp(x), 1, 1.001),
    "tanh": (lambda xp, x: xp.tanh(x), 1, 1.1),
    "cube": (lambda xp, x: xp.power(x, 3), 1, 1.001),
    "quotient": (lambda xp, x, y: x / y, 2, 1.001),
    "sum": (lambda xp, x: xp.sum(x), 1, 1.001),
    "norm": (lambda xp, x: xp.norm(x), 1, 1.001),
    "product": (lambda xp, x, y: xp.matmul(x, xp.transpose(y, (1, 0))), 2, 1.001),
    "softmax": (formulas.softmax, 1, 2.0),
    "log_softmax": (formulas.log_softmax, 1, 2.0),
    "softmax_backward": (formulas.softmax_backward, 2, 2.0),
    "rms_norm": (formulas.rms_norm, 1, 4.0),
    "hardswish": (formulas.hardswish, 1, 1.5),
    "gelu": (formulas.gelu, 1, 1.5),
}


@pytest.mark.parametrize("name", ROWS)
def test_amplification_is_at_least_the_condition_number_and_close_to_it(name: str) -> None:
    formula, count, most = ROWS[name]
    for seed, scale in enumerate((0.01, 0.1, 1.0, 10.0)):
        rng = np.random.default_rng(seed)
        arguments = [rng.normal(0, scale, (3, 4)) for _ in range(count)]
        truth = condition_numbers(formula, arguments)
        xp = Amplification()
        amplification = xp.amplification(formula(xp, *(xp.array(x) for x in arguments)))
        assert amplification.shape == truth.shape
        assert np.all(amplification >= truth)
        assert scale > 0.1 or np.all(amplification <= most * truth)


def test_a_result_that_depends_on_no_input_has_none_and_one_that_may_be_0_has_no_limit() -> None:
    xp = Amplification()
    x = xp.array(np.array([0.7, -5.0]))
    assert xp.amplification(x * 0 + 1).tolist() == [0.0, 0.0]
    assert xp.amplification(formulas.hardswish(xp, x))[1] == 0.0
    assert np.isinf(xp.amplification(x - x)).all()
    assert not np.any(xp.sqrt(xp.number(2)).error)

"""Functions that kernels write themselves, in a GPU's fast arithmetic: every bit is predicted. The
special functions are those that an H100's answers confirm (test_special_functions)."""

from typing import Any

import numpy as np
import pytest

from refkernels import explain
from refkernels.contexts import special_functions as sfu

F = np.float32

TANH = sfu.FAST["tanh"][0]


def exp(x: Any) -> Any:
    return sfu.ex2(x * F(1.442695))


WRITTEN = {
    "log1p": lambda x: sfu.lg2(F(1) + x) * F(0.6931472),
    "expm1": lambda x: exp(x) - F(1),
    "sinh": lambda x: F(0.5) * (exp(x) - exp(-x)),
    "cosh": lambda x: F(0.5) * (exp(x) + exp(-x)),
    "tanh": lambda x: (exp(x + x) - F(1)) * sfu.rcp(exp(x + x) + F(1)),
    "silu": lambda x: x * sfu.rcp(F(1) + exp(-x)),
    "softplus": lambda x: sfu.lg2(F(1) + exp(x)) * F(0.6931472),
    "gelu_tanh": lambda x: x / 2 * (1 + TANH(F(0.79788456) * (x + F(0.044715) * x * x * x))),
    "log_sigmoid": lambda x: -(sfu.lg2(F(1) + exp(-x)) * F(0.6931472)),
}


@pytest.mark.parametrize("op", WRITTEN)
def test_a_function_written_for_speed_is_proven(op: str) -> None:
    kind = np.float16 if op == "gelu_tanh" else F
    x = np.random.default_rng(3).uniform(-0.9 if op == "log1p" else -9.0, 9.0, 600).astype(kind)
    found = explain(op, {"x": x}, {"y": WRITTEN[op](x.astype(F)).astype(kind)})
    assert (found.cause, found.confidence) == ("special_function_unit", "proven")


def test_what_a_plain_form_loses_is_no_special_function() -> None:
    x = np.random.default_rng(4).uniform(-12.0, 9.0, 600).astype(F)
    found = explain("softplus", {"x": x}, {"y": np.log(F(1) + np.exp(x))})
    assert (found.cause, found.confidence) == ("unstable_identity", "proven")

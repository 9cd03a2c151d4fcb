"""OneFlow's slopes of pow: right where x^e overflows, so not x^e / x; without rules at 0."""

from collections.abc import Callable

import numpy as np

from refkernels import explain
from refkernels.frameworks.gateway import Session


def test_oneflow_s_slopes_of_pow_are_named(session_for: Callable[[str], Session]) -> None:
    numbers = [0.0, -0.0, 2.0, -2.0, 0.5, 1e30, 1e-30]
    x, e = (grid.reshape(-1) for grid in np.meshgrid(numbers, [0.0, 1.0, 2.0, 3.0]))
    inputs = {"dy": np.ones(x.size), "x": x, "exponent": e}
    inputs = {name: array.astype(np.float32) for name, array in inputs.items()}
    reply = session_for("oneflow").run("pow", "backward", inputs)
    assert reply.ok, reply.reason
    square = reply.outputs["dx"][(e == 2.0) & ((x == 1e30) | (x == 1e-30))]
    np.testing.assert_allclose(square, [2e30, 2e-30], rtol=1e-6)
    for output, cause in (("dx", "zero_times_infinity"), ("dexponent", "negative_base_ignored")):
        outputs = {output: reply.outputs[output]}
        explanation = explain("pow", inputs, outputs, direction="backward")
        assert (explanation.verdict, explanation.cause) == ("special_value_mismatch", cause)

"""GELU's forms are distinguished by the digits they lose; where nothing does, none is certain."""

import math

import numpy as np
import pytest

import refkernels


@pytest.mark.parametrize("x", [-11.381776809692383, -13.140853881835938])
def test_a_zero_in_the_tail_matches_no_form(x: float) -> None:
    """1 + erf and the tanh GELU both end there."""
    inputs = {"x": np.array([x], np.float32)}
    explanation = refkernels.explain("gelu", inputs, {"y": np.array([-0.0], np.float32)})
    fitting = {candidate.cause for candidate in explanation.candidates if not candidate.ruled_out}
    assert {"erf_cancellation", "tanh_gelu"} <= fitting
    assert explanation.confidence == "consistent"


def test_half_x_erfc_is_not_said_to_cancel() -> None:
    """Its rounded argument costs 143 units at x = -12, and 1 + erf everything."""
    x = np.array([-11.973983406269696, -10.5, -9.25])
    y = np.array([0.5 * v * math.erfc(-v / math.sqrt(2.0)) for v in x])
    explanation = refkernels.explain("gelu", {"x": x}, {"y": y})
    assert explanation.cause != "erf_cancellation"
    cancelled = np.array([0.5 * v * (1.0 + math.erf(v / math.sqrt(2.0))) for v in x])
    assert refkernels.explain("gelu", {"x": x}, {"y": cancelled}).cause == "erf_cancellation"

"""Frameworks' dropout answers for a mask that is given, though it draws its own."""

from typing import Any

import numpy as np
import pytest

from refkernels import dropout_ref

pytestmark = pytest.mark.framework


@pytest.mark.parametrize("framework", ["torch", "paddle", "oneflow", "mindspore"])
def test_elements_are_kept_or_dropped_as_the_mask_says(framework: str, session_for: Any) -> None:
    rng = np.random.default_rng(0)
    x, dy = rng.standard_normal((2, 500)).astype(np.float32)
    mask = rng.random(500) < 0.9
    inputs, params = {"dy": dy, "x": x, "mask": mask}, {"p": 0.1, "mode": "upscale_in_train"}
    session = session_for(framework)
    y = session.run("dropout", "forward", {"x": x, "mask": mask}, params)
    gradients = session.run("dropout", "backward", inputs, params, leaves=("x",))
    for got, values in ((y.outputs["y"], x), (gradients.outputs["dx"], dy)):
        assert np.array_equal(got != 0, mask)
        exact = np.asarray(dropout_ref.dropout(values, mask, p=0.1))
        assert np.all(np.abs(got - exact) <= 4 * 2.0**-24 * np.abs(exact))

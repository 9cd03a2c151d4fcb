"""Running statistics that are not updated, and labels that are no class, are named."""

import numpy as np
import pytest

import refkernels

RNG = np.random.default_rng(21)


def test_running_statistics_that_stay_as_they_were_are_named() -> None:
    x = RNG.standard_normal((4, 6, 3)).astype(np.float32)
    weight, bias, mean = (RNG.standard_normal(6).astype(np.float32) for _ in range(3))
    var = RNG.uniform(0.5, 2.0, 6).astype(np.float32)
    centred = x - x.mean(axis=(0, 2), keepdims=True)
    root = np.sqrt(np.square(centred).mean(axis=(0, 2), keepdims=True) + np.float32(1e-5))
    y = centred / root * weight[:, None] + bias[:, None]
    inputs = {"x": x, "weight": weight, "bias": bias, "running_mean": mean, "running_var": var}
    outputs = {"y": y, "new_mean": mean.copy(), "new_var": var.copy()}
    explanation = refkernels.explain("batch_norm", inputs, outputs)
    assert (explanation.cause, explanation.confidence) == ("running_statistics_kept", "proven")


@pytest.mark.parametrize("cause", ["label_wrapped", "invalid_label_ignored"])
def test_labels_of_nll_that_are_no_class_are_named(cause: str) -> None:
    x = RNG.standard_normal((8, 7))
    target = RNG.integers(0, 7, 8)
    target[2] = -1
    loss = -x[np.arange(8), target % 7]
    if cause == "invalid_label_ignored":
        loss[2] = 0.0
    inputs, params = {"x": x, "target": target}, {"reduction": "none"}
    explanation = refkernels.explain("nll", inputs, {"loss": loss}, params)
    assert (explanation.cause, explanation.confidence) == (cause, "proven")

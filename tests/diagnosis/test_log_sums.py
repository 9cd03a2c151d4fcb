"""A log_softmax whose rows are each off by one amount is told from other wrong ones."""

import numpy as np

from refkernels import explain


def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, x - max(x), and the sums of the exponentials."""
    x = np.random.default_rng(0).normal(0, 2, (32, 17)).astype(np.float32)
    x[:, 0] += 8
    shifted = (x - x.max(-1, keepdims=True)).astype(np.float64)
    return x, shifted, np.exp(shifted).sum(-1, keepdims=True)


def test_an_inexact_logarithm_of_the_sum_is_named() -> None:
    x, shifted, total = rows()
    off = np.random.default_rng(1).uniform(-4e-6, 4e-6, total.shape)
    y = (shifted - (np.log(total) + off)).astype(np.float32)
    found = explain("log_softmax", {"x": x}, {"y": y})
    assert found.verdict == "exceeds_bound"
    assert found.cause == "inexact_logarithm"
    assert 3e-6 < found.candidates[0].details["error"] < 4.1e-6


def test_errors_that_differ_within_a_row_have_another_cause() -> None:
    x, shifted, total = rows()
    off = np.random.default_rng(1).uniform(-4e-6, 4e-6, x.shape)
    y = (shifted - (np.log(total) + off)).astype(np.float32)
    assert explain("log_softmax", {"x": x}, {"y": y}).cause != "inexact_logarithm"

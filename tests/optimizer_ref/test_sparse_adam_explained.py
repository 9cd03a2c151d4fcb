"""Adam with sparse gradients, as torch and Paddle take its step on a CPU, told from its outputs."""

from typing import Any

import numpy as np
import pytest

from refkernels import explain

F = np.float32
LR, B1, B2, EPS = F(0.01), F(0.9), F(0.999), F(1e-3)
PARAMS = {"lr": 0.01, "eps": 1e-3}
HELD = "lr, beta1, beta2, eps, weight_decay"


def grad(rows: list[int], seed: int) -> Any:
    array = np.zeros((12, 4), F)
    array[rows] = np.random.default_rng(seed).standard_normal((len(rows), 4)) * 1e-3
    return array


def powers(n: int) -> tuple[Any, Any]:
    """c1 and the root of c2, from powers multiplied in float32."""
    first = second = F(1)
    for _ in range(n):
        first, second = first * B1, second * B2
    return F(1) - first, np.sqrt(F(1) - second)


def step_of(n: int, state: Any, g: Any, late: bool, lazy: bool) -> Any:
    """Paddle's sparse Adam: eps is rescaled in rows with a gradient only."""
    param, m, v = state
    new_m, new_v = B1 * m + (F(1) - B1) * g, B2 * v + (F(1) - B2) * g * g
    c1, root = powers(n + late)
    touched = (g != 0).any(axis=1, keepdims=True)
    eps = np.where(touched, EPS * root, EPS)
    moved = param - LR * root / c1 * (new_m / (np.sqrt(new_v) + eps))
    new = moved, new_m, new_v
    return tuple(np.where(touched, a, b) for a, b in zip(new, state, strict=True)) if lazy else new


def explained(n: int, late: bool, lazy: bool) -> Any:
    """The explanation of step n, which is 1 or 2."""
    param = np.random.default_rng(8).standard_normal((12, 4)).astype(F)
    state = (param, np.zeros_like(param), np.zeros_like(param))
    g = grad([1, 3, 7, 9], 1)
    if n == 2:
        state, g = step_of(1, state, g, late, lazy), grad([2, 3, 5], 2)
    inputs = dict(zip(("param", "m", "v"), state, strict=True)) | {"grad": g}
    outputs = dict(zip(("param", "m", "v"), step_of(n, state, g, late, lazy), strict=True))
    return explain("adam", inputs, outputs, {**PARAMS, "step": n})


@pytest.mark.parametrize("lazy", [False, True])
def test_a_first_step_shows_only_that_it_is_one_step_late(lazy: bool) -> None:
    """Rows without a gradient do not move either way: their moments are 0."""
    explanation = explained(1, True, lazy)
    assert (explanation.cause, explanation.confidence) == ("step_off_by_one", "proven")
    assert explanation.candidates[0].details == {"float32_hyperparameters": HELD}
    sure = {
        candidate.cause for candidate in explanation.candidates if candidate.confidence == "proven"
    }
    assert sure <= {"step_off_by_one", "float32_hyperparameters"}


@pytest.mark.parametrize(
    ("lazy", "cause"), [(False, "eps_hat_in_untouched_rows"), (True, "lazy_rows")]
)
def test_a_second_step_shows_the_rows_without_a_gradient(lazy: bool, cause: str) -> None:
    explanation = explained(2, True, lazy)
    assert (explanation.cause, explanation.confidence) == (cause, "proven")
    withs = {c.output: c.details.get("with") for c in reversed(explanation.candidates)}
    assert withs["param"] == "step_off_by_one"


def test_eps_of_rows_without_a_gradient_is_distinguished_from_a_late_step() -> None:
    """The same without a late step, from exact hyper-parameters."""
    rng = np.random.default_rng(8)
    param, g = rng.standard_normal((12, 4)).astype(F), grad([2, 3, 5], 2)
    m, v = (rng.standard_normal((12, 4)) * 1e-4).astype(F), (g * g + F(1e-8)).astype(F)
    wide = [array.astype(np.float64) for array in (param, m, v, g)]
    new_m, new_v = 0.9 * wide[1] + 0.1 * wide[3], 0.999 * wide[2] + 0.001 * wide[3] ** 2
    root = np.sqrt(1 - 0.999**2)
    eps = np.where((g != 0).any(axis=1, keepdims=True), 1e-3 * root, 1e-3)
    moved = wide[0] - 0.01 * root / (1 - 0.9**2) * new_m / (np.sqrt(new_v) + eps)
    outputs = {"param": moved.astype(F), "m": new_m.astype(F), "v": new_v.astype(F)}
    inputs = {"param": param, "m": m, "v": v, "grad": g}
    explanation = explain("adam", inputs, outputs, {**PARAMS, "step": 2})
    assert (explanation.cause, explanation.confidence) == ("eps_hat_in_untouched_rows", "proven")
    assert "with" not in explanation.candidates[0].details
    assert explained(1, False, False).cause == "float32_hyperparameters"


def test_the_first_step_of_a_lazy_adam_with_eps_hat_proves_eps_hat_alone() -> None:
    """torch.optim.SparseAdam."""
    param, g = np.random.default_rng(9).normal(0, 0.01, (12, 4)).astype(F), grad([1, 3, 7, 9], 3)
    m, v = F(0.1) * g, (0.001 * g.astype(np.float64) ** 2).astype(F)
    size = F(0.01 * np.sqrt(0.001) / 0.1)
    moved = param - size * (m / (np.sqrt(v) + EPS))
    inputs = {"param": param, "grad": g, "m": np.zeros_like(g), "v": np.zeros_like(g)}
    explanation = explain("adam", inputs, {"param": moved, "m": m, "v": v}, {**PARAMS, "step": 1})
    assert (explanation.cause, explanation.confidence) == ("eps_hat", "proven")
    assert "lazy_rows" not in {c.cause for c in explanation.candidates if not c.ruled_out}


def test_a_cause_in_another_output_is_reported_for_that_output() -> None:
    """v is that of hyper-parameters in float32, and nothing explains param."""
    param = np.random.default_rng(8).standard_normal((12, 4)).astype(F)
    g = grad(list(range(12)), 4)
    zero = np.zeros_like(param)
    _, m, v = step_of(1, (param, zero, zero), g, False, False)
    wrong = param + F(0.01) * np.random.default_rng(5).standard_normal(param.shape).astype(F)
    inputs = {"param": param, "grad": g, "m": zero, "v": zero}
    explanation = explain("adam", inputs, {"param": wrong, "m": m, "v": v}, {**PARAMS, "step": 1})
    assert explanation.cause == "float32_hyperparameters"
    assert "it is unexplained" in explanation.summary
    assert "; in v, the kernel holds hyper-parameters in float32" in explanation.summary

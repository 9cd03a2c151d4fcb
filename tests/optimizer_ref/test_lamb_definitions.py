"""Each LAMB in use, written by hand in float64, is named; the paper's is rounding."""

from typing import Any

import numpy as np
import pytest
from hunting import one_in

from refkernels import explain

PARAMS = {"lr": 0.125, "beta1": 0.875, "beta2": 0.96875, "eps": 2.0**-6, "weight_decay": 0.25}
STEP = 5


def lamb(
    param: Any, grad: Any, m: Any, v: Any, *, bare: bool = False, inside: bool = False,
    hat: bool = False, corrected: bool = True, coupled: bool = False, most: float = np.inf,
    least: float = 0.0, heaviest: float = np.inf, adapted: bool = True, clip: float = np.inf,
    decay: float = PARAMS["weight_decay"],
) -> dict[str, Any]:  # fmt: skip
    """The paper's LAMB, and what is changed in others. float32 holds every hyper-parameter."""
    lr, beta1, beta2, eps = (PARAMS[name] for name in ("lr", "beta1", "beta2", "eps"))
    norm = np.linalg.norm(grad)
    grad = grad * min(1.0, clip / norm)
    if coupled:
        grad = grad + decay * param
    m, v = beta1 * m + (1 - beta1) * grad, beta2 * v + (1 - beta2) * grad**2
    c1, c2 = (1 - beta**STEP if corrected else 1.0 for beta in (beta1, beta2))
    if hat:
        r = np.sqrt(c2) / c1 * m / (np.sqrt(v) + eps)
    else:
        r = m / c1 / (np.sqrt(v / c2 + eps) if inside else np.sqrt(v / c2) + eps)
    u = r if coupled else r + decay * param
    weight, update = np.linalg.norm(param), np.linalg.norm(r if bare else u)
    ratio = np.clip(min(weight, heaviest) / update, least, most) if adapted else 1.0
    return {"param": param - lr * ratio * u, "m": m, "v": v}


# The changes, the sizes of the parameters and of the gradients, and the cause with its details.
DEFINITIONS: dict[str, tuple[dict[str, Any], float, float, str, dict[str, Any]]] = {
    "OneFlow": ({"bare": True}, 1.0, 1.0, "norm_without_decay", {}),
    "OneFlow before": (
        {"bare": True, "inside": True}, 1.0, 1.0, "norm_without_decay", {"with": "eps_inside_sqrt"}
    ),
    "OneFlow uncorrected": (
        {"bare": True, "corrected": False}, 1.0, 1.0, "norm_without_decay",
        {"with": "no_bias_correction"},
    ),
    "OneFlow, adam_w_mode=False": ({"coupled": True}, 1.0, 1.0, "decay_coupled", {}),
    "eps inside": ({"inside": True}, 1.0, 1.0, "eps_inside_sqrt", {}),
    "eps hat": ({"hat": True}, 1.0, 1.0, "eps_hat", {}),
    "appendix E": ({"corrected": False}, 1.0, 1.0, "no_bias_correction", {}),
    "first version": ({"heaviest": 10.0}, 4.0, 1.0, "weight_norm_clamped", {}),
    "DeepSpeed": (
        {"least": 0.01, "most": 10.0, "decay": 0.0078125}, 40.0, 1.0, "trust_ratio_clamped",
        {"low": "0.01", "high": "10"},
    ),
    "LAMBC, a ratio above 1": ({"most": 1.0}, 4.0, 1.0, "no_trust_ratio", {}),
    "apex": ({"clip": 1.0}, 1.0, 1.0, "gradient_clipped", {"max_norm": 1.0}),
    "use_nvlamb=False": ({"adapted": False, "decay": 0.0}, 1.0, 1.0, "trust_ratio_needs_decay", {}),
}  # fmt: skip


def question(param: float, grad: float) -> dict[str, Any]:
    rng = np.random.default_rng(41)
    scales = {"param": param, "grad": grad, "m": grad, "v": grad}
    arrays = {name: scale * rng.standard_normal(61) for name, scale in scales.items()}
    return {**arrays, "v": arrays["v"] ** 2}


@pytest.mark.parametrize("name", one_in(2, DEFINITIONS))
def test_a_definition_of_lamb_in_use_is_named(name: str) -> None:
    changes, param, grad, cause, details = DEFINITIONS[name]
    inputs = question(param, grad)
    asked = {**PARAMS, "weight_decay": changes.get("decay", PARAMS["weight_decay"]), "step": STEP}
    explanation = explain("lamb", inputs, lamb(**inputs, **changes), asked)
    assert explanation.verdict == "exceeds_bound"
    assert explanation.cause == cause
    assert details.items() <= explanation.candidates[0].details.items()


def test_the_papers_lamb_is_rounding_and_apex_s_where_it_clips_nothing() -> None:
    for inputs, clip in ((question(1.0, 1.0), np.inf), (question(1.0, 0.01), 1.0)):
        explanation = explain("lamb", inputs, lamb(**inputs, clip=clip), {**PARAMS, "step": STEP})
        assert explanation.verdict == "rounding"

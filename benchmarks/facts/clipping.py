"""Section 2: clipping, with the norms that are 0, infinite or NaN."""

from __future__ import annotations

from typing import Any

import numpy as np

from facts.asked import Fact, explained, gives, refused

INF, NAN = np.inf, np.nan
GLOBAL, NORM = "clip_by_global_norm", "clip_by_norm"
FIVE = [3.0, 0.0, 0.0, 4.0, 0.0]
UNIT = [0.6, 0.0, 0.0, 0.8, 0.0]
CLIPS: dict[str, list[tuple[str, str, dict[str, Any]]]] = {
    "torch": [("clip_grad_norm_", GLOBAL, {})],
    "paddle": [
        ("nn.utils.clip_grad_norm_", GLOBAL, {}),
        ("ClipGradByGlobalNorm", GLOBAL, {"way": "max"}),
    ],
    "oneflow": [("clip_grad_norm_", GLOBAL, {})],
    "mindspore": [("ops.clip_by_norm", GLOBAL, {}),
                  ("ops.clip_by_global_norm", GLOBAL, {"way": "max"})],
}  # fmt: skip


def clip(
    framework: str, call: str, claim: str, figure: str, op: str, params: Any,
    grads: list[float], expected: list[float], dtype: str = "float32", because: str = "",
    digits: int = 7,
) -> Fact:  # fmt: skip
    tensors = np.array([0, 0, 1, 1, 1])
    inputs = {"grads": np.array(grads, dtype), "tensor": tensors}
    all_params = {"max_norm": 1.0, **params}
    see = gives(op, inputs, all_params, expected, output="clipped", digits=digits)
    return Fact("2", framework, f"{call}: {claim}", figure, see, because)


def facts() -> list[Fact]:
    made = []
    for framework, calls in CLIPS.items():
        for call, op, params in calls:
            way = params.get("way", "eps")
            shrunk = [0.5999999, 0, 0, 0.7999998, 0] if way == "eps" else UNIT
            edge = [0.5999994, 0, 0, 0.7999992, 0] if way == "eps" else UNIT
            nan = [NAN] * 5 if framework != "mindspore" else [NAN, 0, 0, 4, 0]
            rows: list[tuple[str, str, list[float], list[float]]] = [
                ("norm 5 to 1", ".5999999" if way == "eps" else ".6, .8", FIVE, shrunk),
                ("norm 1 to 1", "shrinks by 1e-6" if way == "eps" else "unchanged", UNIT, edge),
                ("all 0", "0", [0.0] * 5, [0.0] * 5),
                ("one inf", "NaN there, 0 elsewhere", [INF, 0, 0, 4, 0], [NAN, 0, 0, 0, 0]),
                ("one NaN", "all NaN" if framework != "mindspore" else "only it",
                 [NAN, 0, 0, 4, 0], nan),
                ("elements of 1e20", "all become 0", [1e20, 0, 0, 1e20, 0], [0.0] * 5),
                ("elements of 1e-30", "unchanged", [1e-30, 0, 0, 1e-30, 0],
                 [1e-30, 0, 0, 1e-30, 0]),
            ]  # fmt: skip
            for claim, figure, grads, expected in rows:
                made.append(clip(framework, call, claim, figure, op, params, grads, expected))
            if framework != "mindspore":
                large = [1e20, 0, 0, 1e20, 0]
                right = [0.5**0.5, 0, 0, 0.5**0.5, 0]
                made.append(clip(framework, call, "elements of 1e20 in float64", "right", op,
                                 params, large, right, "float64", digits=6))  # fmt: skip
    return made


DRAWN = np.random.default_rng(22).standard_normal(40)
PARTS = np.array([0, 0, 1, 1, 1])
FACTS = [
    *facts(),
    Fact("2", "mindspore", "ops.clip_by_global_norm: M is float32 for float64 gradients", "f(M)",
         explained(GLOBAL, {"grads": DRAWN, "tensor": np.arange(40) // 10},
                   {"way": "max", "max_norm": 0.7}, "params_rounded", "scale_factor")),
    clip("paddle", "ClipGradByNorm", "each tensor by its norm", "1, 1", NORM, {"way": "max"},
         FIVE, [1.0, 0, 0, 1, 0]),
    clip("paddle", "ClipGradByNorm", "one inf spoils its own tensor only", "its own tensor", NORM,
         {"way": "max"}, [INF, 2, 0, 4, 0], [NAN, 0, 0, 1, 0]),
    clip("paddle", "ClipGradByNorm", "one NaN spoils its own tensor only", "its own tensor", NORM,
         {"way": "max"}, [NAN, 2, 0, 4, 0], [NAN, NAN, 0, 1, 0]),
    Fact("2", "paddle", "ClipGradByNorm has no float64 kernel", "float32 only",
         refused(NORM, {"grads": np.array(FIVE), "tensor": PARTS}, {"way": "max"})),
    Fact("2", "paddle", "ClipGradByValue: inf becomes m, NaN stays", "m, NaN",
         gives("clip_by_value", {"grads": np.array([INF, NAN, -3, 0.5], np.float32)},
               {"max_value": 1.0}, [1, NAN, -1, 0.5])),
]  # fmt: skip

"""Sections 0 and 3: losses, their denominators, and the errors of softmax and cross entropy."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from facts.asked import Array, Fact, errors, explained, gives, printed, refused, ulps

INF, NAN = np.inf, np.nan
CLASSES = 50
ALL = ("torch", "paddle", "oneflow", "mindspore")
PRECISE = {"torch": "float64", "paddle": "float64", "oneflow": "float64", "mindspore": "float32"}
RNG = np.random.default_rng(30)
X, LABELS = 2.0 * RNG.standard_normal((24, 7)), RNG.integers(0, 7, 24)
IGNORED = np.where(np.arange(24) % 5 == 0, -100, LABELS)
ZEROTH = np.where(np.arange(24) % 5 == 0, 0, LABELS)
WEIGHT, SOFT = RNG.uniform(0.5, 2.0, 7), RNG.dirichlet(np.ones(7), 24)


def _rows() -> list[Fact]:
    """The table of denominators; a cause stands for each cell that differs from the definition."""
    table: list[tuple[str, str, str, dict[str, Array], dict[str, Any], dict[str, Any]]] = [
        ("0.7", "mean, ignore_index -100", "/V", {"target": IGNORED}, {},
         {"paddle": ("/N", "all_rows_denominator")}),
        ("3", "mean, ignore_index 0", "/V", {"target": ZEROTH}, {"ignore_index": 0}, {}),
        ("3", "mean, class weights", "/sum w", {"target": LABELS, "weight": WEIGHT}, {}, {}),
        ("3", "label smoothing", "(1-e) nll + e mean", {"target": LABELS},
         {"label_smoothing": 0.1},
         {"paddle": ("e in float32", "float32_labels")}),
        ("3", "smoothing with class weights", "/sum w_y", {"target": LABELS, "weight": WEIGHT},
         {"label_smoothing": 0.125}, {"paddle": ("weights of whole rows", "row_weights")}),
    ]  # fmt: skip
    made = []
    for section, claim, figure, arrays, params, by_framework in table:
        for framework in ALL:
            expected, *causes = by_framework.get(framework, (figure,))
            single = causes == ["row_weights"]  # its labels are float32: another cause in float64
            inputs = _cast({"x": X, **arrays}, "float32" if single else PRECISE[framework])
            see = explained("cross_entropy", inputs, params, *causes)
            made.append(Fact(section, framework, claim, expected, see))
    for claim, weighted in (("soft labels", False), ("soft labels with class weights", True)):
        for framework in ALL:
            arrays = {"x": X, "target": SOFT, **({"weight": WEIGHT} if weighted else {})}
            causes = ["row_weights"] if weighted and framework == "paddle" else []
            see = explained("soft_cross_entropy", _cast(arrays, PRECISE[framework]), {}, *causes)
            figure = "row weight p w" if causes else "/N"
            made.append(Fact("3", framework, claim, figure, see))
    return made


def _cast(arrays: dict[str, Array], dtype: str) -> dict[str, Array]:
    return {
        name: a if np.issubdtype(a.dtype, np.integer) else a.astype(dtype)
        for name, a in arrays.items()
    }


def _special(framework: str) -> list[Fact]:
    dtype = PRECISE[framework]
    x, ignored = X[:3].astype(dtype), np.full(3, -100)
    out = {"x": x, "target": np.array([1, -1, 2])}
    nothing = 0.0 if framework == "paddle" else NAN
    made = [
        Fact("3", framework, "all rows ignored, mean", "0" if framework == "paddle" else "NaN",
             gives("cross_entropy", {"x": x, "target": ignored}, {}, [nothing])),
        Fact("3", framework, "reduction none at an ignored row", "0",
             gives("cross_entropy", {"x": x, "target": ignored}, {"reduction": "none"}, [0.0] * 3)),
        Fact("3", framework, "softmax of a row of -inf",
             "0" if framework == "mindspore" else "NaN",
             gives("softmax", {"x": np.full((1, 4), -INF, np.float32)}, {},
                   [0.0 if framework == "mindspore" else NAN] * 4)),
        Fact("3", framework, "softmax of a row with +inf",
             "0 beside NaN" if framework in ("oneflow", "mindspore") else "NaN",
             gives("softmax", {"x": np.array([[INF, 1.0, 2.0]], np.float32)}, {},
                   [NAN, 0, 0] if framework in ("oneflow", "mindspore") else [NAN] * 3)),
        Fact("3", framework, "BCE at x = -54, t = 0: log without log1p", "0",
             gives("bce_with_logits", {"x": np.array([-54.0], np.float32),
                                       "target": np.array([0.0], np.float32)}, {}, [0.0])),
    ]  # fmt: skip
    if framework in ("torch", "paddle"):
        made.append(Fact("3", framework, "label -1 is refused", "IndexError",
                         refused("cross_entropy", out, {}, "IndexError")))  # fmt: skip
    elif framework == "oneflow":
        cause = "invalid_label_ignored"
        rows = {"x": X, "target": np.where(np.arange(24) % 6 == 0, 7, LABELS)}
        made += [
            Fact("0.8", framework, f"label {label} has a loss of 0", "loss 0",
                 explained("cross_entropy", {**rows, "target": np.where(
                     np.arange(24) % 6 == 0, label, LABELS)}, {"reduction": "none"}, cause))
            for label in (7, -1)
        ]  # fmt: skip
    else:
        wrapped = {"x": X.astype(dtype), "target": np.where(np.arange(24) % 2 == 0, -1, LABELS)}
        made.append(Fact("0.8", framework, "label -1 is the last class", "last class",
                         explained("cross_entropy", wrapped, {"reduction": "none"},
                                   "label_wrapped")))  # fmt: skip
    return made


def logits(kind: str, dtype: str, draw: int = 0) -> Array:
    """Rows of 50 logits, as the survey names them: 200, and in further draws 10 to 2,000, since
    the survey does not say how many rows its largest errors are of."""
    rng = np.random.default_rng(31 if draw == 0 else [31, draw])
    shape = 200 if draw == 0 else int(10.0 ** rng.uniform(1.0, 3.3)), CLASSES
    x = 3.0 * rng.standard_normal(shape)
    if kind == "near":
        x = 1e4 + rng.standard_normal(shape)
    elif kind == "large":
        x = rng.uniform(-1e4, 1e4, shape)
    elif kind == "masked":
        x[:, 20:] = -INF
    elif kind == "equal":
        x = np.full(shape, 1.0)
    return x.astype(dtype)


def labels(x: Array, draw: int) -> Array:
    """In the first draw the label of the least logit of 20, so that no loss is near 0; then any."""
    classes = x[:, :20]
    return np.argmin(classes, -1) if draw == 0 else np.arange(len(x)) % classes.shape[1]


TABLE: dict[tuple[str, str], tuple[tuple[float | str, float | str], ...]] = {
    ("softmax", "normal"): ((16, 5), (16, 6), (15, 6), (91, 6)),
    ("softmax", "near"): ((2.7, 3), (2.7, 4), (3, 4), (50, 4)),
    ("softmax", "equal"): ((0.24, 0.24),) * 4,
    ("cross_entropy", "normal"): ((0.8, 0.6), (1.0, 1.4), (23, 1.4), (4.4, 2)),
    ("cross_entropy", "near"): ((0.9, 0.6), (0.5, 0.8), (12, 1), (1430, 1900)),
    ("cross_entropy", "large"): ((0.5, 0.5), (1.6e7, 8.7e15), (0.5, 0.5), (0.5, 0.5)),
    ("cross_entropy", "masked"): ((1, 2.4), (1.2, 0.6), (27, 0.6), ("NaN", "NaN")),
}
BACKWARD = ((27, 13), (16, 6), (62, 13), (91, 11))
MAXIMUM = (
    "outside the range of our draws: the survey's inputs were not kept; x - max is rounded, so "
    "that e^(x - max) errs by up to |x - max| / 2 ulp"
)


def _asked(op: str, kind: str, dtype: str, draw: int) -> Any:
    """The error of an op on a draw."""
    x = logits(kind, dtype, draw)
    if op == "softmax":
        return errors(op, {"x": x}, {}, "y")
    return errors(op, {"x": x, "target": labels(x, draw)}, {"reduction": "none"}, "loss")


def _slope(dtype: str, draw: int) -> Any:
    """The error of cross entropy's gradient on a draw."""
    x = logits("normal", dtype, draw)
    inputs = {"dloss": np.ones(len(x), dtype), "x": x, "target": np.arange(len(x)) % CLASSES}
    return errors("cross_entropy", inputs, {"reduction": "none"}, "dx", "backward")


def _errors() -> list[Fact]:
    made = []
    for (op, kind), figures in TABLE.items():
        for framework, pair in zip(ALL, figures, strict=True):
            for dtype, figure in zip(("float32", "float64"), pair, strict=True):
                ask = partial(_asked, op, kind, dtype)
                see = ulps(ask(0), figure, ask)
                claim = f"{op} of {kind} logits, {dtype}"
                made.append(Fact("3", framework, claim, _figure(figure), see, MAXIMUM))
    for framework, pair in zip(ALL, BACKWARD, strict=True):
        for dtype, figure in zip(("float32", "float64"), pair, strict=True):
            ask, claim = (
                partial(_slope, dtype),
                f"gradient of cross_entropy, normal logits, {dtype}",
            )
            see = ulps(ask(0), figure, ask)
            made.append(Fact("3", framework, claim, _figure(figure), see, MAXIMUM))
    return made


def _figure(figure: float | str) -> str:
    return figure if isinstance(figure, str) else f"{figure:.3g} ulp"


BCE_X = np.where(np.arange(40) % 3 == 0, 0.0, np.linspace(-4, 4, 40))
BCE = {"dloss": np.ones(40), "x": BCE_X, "target": (np.arange(40) % 2).astype(float)}
MASKED = np.where(np.arange(CLASSES) % 3 == 0, -INF, X[:, :1] + np.arange(CLASSES) % 7)
FAR = np.linspace(-150, 0, CLASSES) + X[:, :1]
SURPRISES = [
    Fact("0.5", "paddle", "softmax clips x - max at -64", "e^-64 / S",
         explained("softmax", {"x": FAR}, {}, "clipped_exponent")),
    Fact("0.5", "paddle", "softmax of masked logits is never 0", "1.6e-28 / S",
         explained("softmax", {"x": MASKED.astype("f4")}, {}, "clipped_exponent")),
    Fact("0.5", "paddle", "log_softmax clips x - max at -64", "-64 - log S",
         explained("log_softmax", {"x": logits("large", "float64")[:24]}, {}, "clipped_exponent")),
    Fact("0.5", "paddle", "a loss of 20,000 is 64", "64",
         gives("cross_entropy", {"x": np.array([[2e4, 0.0]]), "target": np.array([1])},
               {}, [64.0])),
    Fact("0.6", "paddle", "the gradient of BCE with logits at 0", "-0.5 for 0.5",
         explained("bce_with_logits", BCE, {"reduction": "none"}, "relu_slope_at_zero",
                   direction="backward")),
    Fact("0.9", "mindspore", "one logit of -inf makes cross_entropy NaN", "NaN",
         explained("cross_entropy", {"x": MASKED.astype("f4"), "target": np.arange(24) * 3 % 7 * 3
                                     + 1}, {"reduction": "none"}, "product_with_labels")),
    Fact("0.1", "mindspore", "float64 log_softmax is computed in float32", "4.1e-6",
         explained("log_softmax", {"x": 10.0 * logits("normal", "float64")[:24]}, {},
                   "float32_cast")),
    Fact("3", "oneflow", "log_softmax of one class is not 0", "1.4e-6",
         gives("log_softmax", {"x": np.array([[12.3456789]], np.float32)}, {}, [1.4e-6],
               digits=2)),
]  # fmt: skip
IGNORED_SMOOTHED = {"x": X, "target": IGNORED}
SURPRISES.append(
    Fact("3", "paddle", "label smoothing with ignored labels raises", "raises",
         refused("cross_entropy", IGNORED_SMOOTHED, {"label_smoothing": 0.1}))
)  # fmt: skip
NN_GELU = """
import json, numpy as np, mindspore as ms
x = ms.Tensor(np.array([-1.0], np.float32))
print(json.dumps([float(ms.nn.GELU()(x)[0]), float(ms.ops.gelu(x)[0])]))
"""
SURPRISES.append(
    Fact("4", "mindspore", "nn.GELU() is tanh, ops.gelu erf, at -1", "tanh, erf",
         printed(NN_GELU, [-0.158808, -0.158655], 5))
)  # fmt: skip
FACTS = [*SURPRISES, *_rows(), *(f for name in ALL for f in _special(name)), *_errors()]

"""Dropout's scaling, with its gradient, certified: the mask is an input, and nothing is random.

    mode="upscale_in_train"      y = x m / (1 - p);   without a mask, in inference, y = x
    mode="downscale_in_infer"    y = x m;             without a mask, y = x (1 - p)

m is 1 where the mask is true, else 0, and p is the probability that it is false. p = 1 gives zeros.
A masked infinity is NaN, because ∞ · 0 is.

Source: Srivastava et al. (2014), "Dropout: a simple way to prevent neural networks from
overfitting", JMLR 15, which uses the second convention. PyTorch uses the first; Paddle has both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from refkernels.arguments import as_text
from refkernels.op import Case, Direction
from refkernels.ops import Fault, Prepared, formula_op
from refkernels.ops.cases import Arrays, case
from refkernels.ops.domains import PROBABILITY
from refkernels.ops.formula import COMPUTED_IN_FLOAT32, derived
from refkernels.ops.public import enclosure_of, gradients_of, public_names

UPSCALE, DOWNSCALE = MODES = ("upscale_in_train", "downscale_in_infer")


def _prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """The formula's params. `all`: whether every element is dropped; `float32`: 1 / (1 - p) in
    float32."""
    p = params["p"]
    mode = as_text(params["mode"], "mode")
    if mode not in MODES:
        raise ValueError(f"mode is {mode!r}: it must be {' or '.join(map(repr, MODES))}.")
    shapes = {name: array.shape for name, array in inputs.items() if array is not None}
    if len({*shapes.values()}) > 1:
        raise ValueError(f"The arrays have shapes {shapes}: they must be equal.")
    scale = np.float32(1.0) / np.float32(1.0 - p) if p < 1.0 else np.float32(0.0)
    return Prepared(inputs, {"p": p, "mode": mode, "all": p == 1.0, "float32": float(scale)})


def _masked(xp: Any, x: Any, mask: Any) -> Any:
    return x if mask is None else xp.where(mask, x, 0 * x)


def _form(quotient: bool) -> Any:
    def dropout(
        xp: Any, x: Any, mask: Any = None, *, p: Any, mode: str, all: bool, **_: Any
    ) -> Any:
        if mask is None:
            return x * (1 - p) if mode == DOWNSCALE else x
        if mode == DOWNSCALE:
            return _masked(xp, x, mask)
        if all:
            return 0 * x
        return _masked(xp, x / (1 - p) if quotient else x * (1 / (1 - p)), mask)

    return dropout


def _fault(cause: str, wrong: Any, **options: Any) -> Fault:
    """A fault. `wrong` computes its result from the op's arguments; None: the right result."""

    def formula(xp: Any, x: Any, mask: Any = None, **params: Any) -> Any:
        right = _form(True)(xp, x, mask, **params)
        result = wrong(xp, x, mask, **params)
        return right if result is None else result

    return Fault(cause, formula, derived(formula, ("y",), {"dy": "y"}, ("x",)), **options)


def _upscaling(change: Any) -> Any:
    """A fault of the upscaling convention only, in training."""

    def wrong(xp: Any, x: Any, mask: Any, mode: str, all: bool, **params: Any) -> Any:
        if mask is None or all or mode == DOWNSCALE:
            return None
        return change(xp, _masked(xp, x, mask), **params)

    return wrong


def _other_convention(xp: Any, x: Any, mask: Any, mode: str, **params: Any) -> Any:
    return _form(True)(xp, x, mask, mode=UPSCALE if mode == DOWNSCALE else DOWNSCALE, **params)


_FAULTS = (
    _fault("other_dropout_convention", _other_convention),
    _fault("scaled_by_drop_probability", _upscaling(lambda xp, x, p, **_: x / p)),
    _fault(
        "float32_scale",
        _upscaling(lambda xp, x, p, float32: x * float32),
        right_in=COMPUTED_IN_FLOAT32,
    ),
)


def cases() -> list[Case]:
    """All cases. Appended, never changed."""

    def make(
        regime: str, p: float, mode: str = UPSCALE, n: int = 2003, scale: float = 1.0,
        masked: bool = True, values: tuple[float, ...] = (),
    ) -> Case:  # fmt: skip
        def build(rng: np.random.Generator, _: str) -> Arrays:
            x = np.resize(values, n) if values else scale * rng.standard_normal(n)
            inputs: Arrays = {"dy": rng.standard_normal(n), "x": x}
            return {**inputs, "mask": rng.random(n) >= p} if masked else inputs

        shown = {"p": p} if regime != "invariance" else {"n": n}
        return case("dropout", regime, shown, build, {"p": p, "mode": mode})

    return [
        make("training", 0.3),
        make("training", 0.5),
        make("training", 0.9),
        make("training", 0.0),
        make("training", 1.0),
        make("inference", 0.3, masked=False),
        make("downscale", 0.3, DOWNSCALE),
        make("downscale_in_inference", 0.3, DOWNSCALE, masked=False),
        make("subnormal", 0.1, scale=1e-38),
        make("specials", 0.25, n=64, values=(0.0, -0.0, 1.0, np.inf, -np.inf, np.nan)),
        make("invariance", 0.1, n=259),
    ]


OPS = (
    formula_op(
        "dropout",
        "x[...], mask[...]?:bool -> y[...]",
        gradients=("x",),
        params={"p": 0.5, "mode": UPSCALE},
        domains={"p": PROBABILITY},
        forms={"quotient": _form(True), "product": _form(False)},
        faults=_FAULTS,
        prepare=_prepare,
        cases=cases,
    ),
)
__all__ = ["OPS", *public_names(OPS)]
_enclosure = enclosure_of(OPS)


@_enclosure
def dropout() -> None:
    """y = x m / (1 - p), or the formula of another `mode`; of any shape.

    x           float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`)
    mask        booleans, of x's shape; None in inference
    certify     the question (`refkernels.Enclosure`)

    The bound is at most 4 u |y| (`OPS` has it for each element). It is proven for the quotient and
    for the product with 1 / (1 - p), with p exact or in the working format. Raises TypeError for
    other dtypes, ValueError for another mode, for p outside [0, 1] and for shapes that differ.
    Sources: Srivastava et al. (2014), JMLR 15; PyTorch documentation, `torch.nn.Dropout`.

    Gradient: dx = dy m / (1 - p), or what another `mode` makes of dy. dy has x's shape.
    """


__getattr__ = gradients_of(OPS, globals())

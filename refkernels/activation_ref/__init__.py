"""Activations that are formulas, with their gradients, certified: hardswish, mish, hardsigmoid,
elu, selu, softsign, log_sigmoid, swiglu, prelu.

    mish(x) -> y        mish_backward(dy, x) -> dx        Enclosures

`formulas` holds the formulas and wrong ways to compute them, `OPS` the ops, with their bounds.
sigmoid, silu, softplus, gelu and tanh are in `elementary_ref`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from refkernels.activation_ref import formulas
from refkernels.activation_ref.cases import PRELU, cases_of, gated
from refkernels.activation_ref.hardswish import HARDSWISH
from refkernels.kernels.elementary.activations import FAST
from refkernels.op import Direction, Op
from refkernels.ops import Prepared, formula_op
from refkernels.ops.public import enclosure_of, enclosures_of, gradients_of, public_names


def _limits_of_mish(
    inputs: dict[str, Any], params: dict[str, Any], direction: Direction
) -> Prepared:
    """The value grows with x without end, but the slope tends to 1: only there is +inf replaced."""
    return formulas.limits(inputs, params, direction, "x", "x" * (direction == "backward"))


def _activation(name: str, forms: str, backward: str, **described: Any) -> Op:
    """The op. `forms`, `backward`: the names of the formulas, the definition first."""
    ways = [{way: getattr(formulas, way) for way in names.split()} for names in (forms, backward)]
    return formula_op(
        name,
        **{
            "signature": "x[...] -> y[...]",
            "forms": ways[0],
            "backward": ways[1],
            "faults": formulas.FAULTS[name],
            "cases": partial(cases_of, name),
            "fast": FAST.get(name),
            "limited": "prepare" in described,
            **described,
        },
    )


OPS = (
    HARDSWISH,
    _activation(
        "mish", "mish mish_softplus mish_stored", "mish_slope mish_softplus_slope",
        prepare=_limits_of_mish, cases=partial(cases_of, "mish", (-1.1924,)),
    ),
    _activation(
        "hardsigmoid", "hardsigmoid hardsigmoid_clipped hardsigmoid_scaled hardsigmoid_multiplied",
        "hardsigmoid_slope hardsigmoid_slope_of_either_side",
        cases=partial(cases_of, "hardsigmoid", (-3.0, 3.0)),
    ),
    _activation(
        "elu", "elu", "elu_slope elu_slope_of_either_side elu_slope_of_output",
        params={"alpha": 1.0}, cases=partial(cases_of, "elu", params={"alpha": 0.75}),
    ),
    _activation("selu", "selu", "selu_slope selu_slope_of_either_side selu_slope_of_output"),
    _activation(
        "softsign", "softsign", "softsign_slope",
        prepare=partial(formulas.limits, below="x", above="x"),
    ),
    _activation(
        "log_sigmoid", "log_sigmoid log_sigmoid_softplus",
        "log_sigmoid_slope log_sigmoid_slope_of_saved log_sigmoid_slope_of_output",
    ),
    _activation(
        "swiglu", "swiglu swiglu_stored", "swiglu_slope swiglu_slope_stored",
        signature="a[...], b[...] -> y[...]", prepare=partial(formulas.limits, below="a"),
        cases=partial(gated, "swiglu"),
    ),
    formula_op(
        "prelu", "x[... n], weight[n] -> y[... n]", params={"axis": -1},
        prepare=formulas.by_channel, forms={"prelu": formulas.prelu},
        backward={"prelu": formulas.prelu_gradient}, cases=PRELU,
    ),
)  # fmt: skip
__all__ = ["OPS", *public_names(OPS)]
_enclosure = enclosure_of(OPS)
_enclosures = enclosures_of(OPS)


@_enclosure
def hardswish() -> None:
    """y = x min(max(x + 3, 0), 6) / 6, of any shape.

    x           float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`)
    certify     the question (`refkernels.Enclosure`)

    The bound is about 4 u |y|: `OPS` has it elementwise, proven for the pieces, x gate / 6,
    (x gate) (1 / 6) and x (gate / 6), where 6 x does not overflow.
    Raises TypeError for other dtypes. Source: Howard et al. (2019), arXiv:1905.02244.

    Gradient: dx = dy times 0 for x <= -3, 1 for x >= 3, (2 x + 3) / 6 between; dy has x's
    shape. The bound includes the jump of the slope at ±3.
    """


@_enclosure
def mish() -> None:
    """y = x tanh(log(1 + e^x)); 0 at -inf. The bound is proven for x n / d (`formulas`) and for
    x tanh(softplus(x)), each function within 4 ulp, and also kept in the arrays' format. Source:
    Misra (2019), arXiv:1908.08681. Otherwise as `hardswish`.

    Gradient: dx = dy (t + x σ(x) (1 - t²)), t = tanh(log(1 + e^x)).
    """


@_enclosure
def hardsigmoid() -> None:
    """y = min(max(x + 3, 0), 6) / 6. The bound is proven for this, for the product with 1 / 6 and
    for min(max(x / 6 + 1 / 2, 0), 1). Source: Howard et al. (2019), arXiv:1905.02244. Otherwise as
    `hardswish`.

    Gradient: dx = dy / 6 for |x| < 3, else 0; the bound includes the jump at ±3. Otherwise as
    `hardswish`.
    """


@_enclosure
def elu() -> None:
    """y = x for x > 0, alpha (e^x - 1) else, with alpha taken exactly as binary64. The bound is
    proven for kernels that use expm1 (4 ulp). Source: Clevert et al. (2015), arXiv:1511.07289.
    Otherwise as `hardswish`.

    Gradient: dx = dy for x > 0, dy alpha e^x else; the bound covers dy (y + alpha) too, and
    includes the jump at 0.
    """


@_enclosure
def selu() -> None:
    """y = λ x for x > 0, λ α (e^x - 1) else, with the decimals of `formulas` for λ and α. Source:
    Klambauer et al. (2017), arXiv:1706.02515. Otherwise as `elu`.

    Gradient: dx = λ dy for x > 0, λ α dy e^x else. Otherwise as `elu_backward`.
    """


@_enclosure
def softsign() -> None:
    """y = x / (1 + |x|); ±1 at ±inf. The bound is about 2 u |y|. Source: Turian, Bergstra and
    Bengio (2009). Otherwise as `hardswish`.

    Gradient: dx = dy / (1 + |x|)². The bound is proven for dy (1 / d)² and dy / d / d.
    """


@_enclosure
def log_sigmoid() -> None:
    """y = -log(1 + e^-x). The bound is proven for min(x, 0) - log1p(e^-|x|) and -softplus(-x),
    each function within 4 ulp. Source: PyTorch documentation, `torch.nn.LogSigmoid`. Otherwise as
    `hardswish`.

    Gradient: dx = dy / (1 + e^x). The bound also covers 1 - e / (1 + e) with a saved e, and 1 -
    e^y: absolute where x is large.
    """


@_enclosure
def swiglu() -> None:
    """y = a σ(a) b, σ(a) = 1 / (1 + e^-a), a and b of one shape; a σ(a) is 0 at -inf. The
    bound also covers a silu kept in the arrays' format. Source: Shazeer (2020),
    arXiv:2002.05202. Otherwise as `hardswish`.

    Gradient: (da, db) = (dy b σ(a) (1 + a σ(-a)), dy a σ(a)); dy has the shape of y.
    """


@_enclosure
def prelu() -> None:
    """y = x for x > 0, weight x else.

    weight   one number, or one for each index of x's axis `axis`, the last by default (PyTorch's
             channels are axis 1)

    The bound is u |y| where x <= 0, else 0. Raises ValueError for shapes that do not fit and for an
    axis that x lacks. Otherwise as `hardswish`. Source: He et al. (2015), arXiv:1502.01852.

    Gradient: (dx, dweight): dx = dy for x > 0, weight dy else; dweight the sum of dy x over the
    x <= 0 that it multiplies.
    """


__getattr__ = gradients_of(OPS, globals())

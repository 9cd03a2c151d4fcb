"""Fusions that have a name, certified: gated linear units, biased GELU, a residual with its RMS
norm, a linear layer with a low-rank update, and the cross entropy of a linear layer.

    glu                     y = act(a) b                                   SwiGLU, GEGLU, ReGLU
    bias_gelu               y = gelu(x + bias)
    add_rms_norm            sum = x + residual,  y = rms_norm(sum, weight, eps)
    lora_linear             y = x Wᵀ + bias + scale (x Aᵀ) Bᵀ
    linear_cross_entropy    loss = cross_entropy(x Wᵀ, target)

What stands between the parts may be kept in the arrays' format or not: the bounds are proven for
both.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.fused_ref import activations, cases, head, lora, residual
from refkernels.loss_ref.cross_entropy import DOMAINS, OPTIONS, fused, mixture, slope
from refkernels.loss_ref.reduction import OTHER_TOTALS
from refkernels.norm_ref import rms_formulas
from refkernels.ops import Fault, formula_op
from refkernels.ops.public import enclosure_of, enclosures_of, gradients_of, public_names
from refkernels.softmax_ref import formulas as softmax_formulas
from refkernels.softmax_ref import mixtures

_fault = partial(Fault, derived=True)
_GLU_FAULTS = (
    _fault("gelu_gate", partial(activations.other_activation, "gelu")),
    _fault("quick_gelu_gate", activations.quick_gelu),
    _fault("relu_gate", partial(activations.other_activation, "relu")),
)
_BIAS_FAULTS = (_fault("bias_after_activation", activations.biased_after),)
_NORM_FAULTS = (
    _fault("residual_after_norm", residual.residual_after, outputs=("y",)),
    Fault("sum_normalised", residual.sum_normalised, outputs=("sum",)),
)
_LOSS_FAULTS = tuple(
    Fault(
        cause,
        partial(head.loss, softmax_formulas.shifted, of=OTHER_TOTALS[cause]),
        partial(head.loss_gradient, slope, of=OTHER_TOTALS[cause]),
    )
    for cause in ("sum_instead_of_mean", "all_rows_denominator")
)
OPS = (
    formula_op(
        "glu",
        "a[...], b[...] -> y[...]",
        params={"activation": "sigmoid"},
        prepare=activations.prepare_glu,
        forms={"gated": activations.gated, "stored": activations.gated_stored},
        backward={
            "gated": partial(activations.gated_gradient, "lift"),
            "stored": partial(activations.gated_gradient, "store"),
        },
        faults=_GLU_FAULTS,
        cases=cases.glu_cases,
    ),
    formula_op(
        "bias_gelu",
        "x[... n], bias[n] -> y[... n]",
        params={"approximate": "none"},
        prepare=activations.prepare_bias_gelu,
        forms={"biased": activations.biased, "stored": activations.biased_stored},
        backward={
            "biased": partial(activations.biased_gradient, "lift"),
            "stored": partial(activations.biased_gradient, "store"),
        },
        faults=_BIAS_FAULTS,
        cases=cases.bias_gelu_cases,
    ),
    formula_op(
        "add_rms_norm",
        "x[... n], residual[... n], weight[n]? -> y[... n], sum[... n]",
        "n",
        params={"eps": 1e-5},
        forms={
            name: partial(residual.normalised, form) for name, form in rms_formulas.FORMS.items()
        },
        backward={
            name: partial(residual.normalised_gradient, form)
            for name, form in rms_formulas.BACKWARD.items()
        },
        faults=_NORM_FAULTS,
        cases=cases.add_rms_norm_cases,
    ),
    formula_op(
        "lora_linear",
        "x[... k], weight[n k], lora_a[r k], lora_b[n r], bias[n]? -> y[... n]",
        params={"scale": 1.0},
        forms={"beside": partial(lora.updated, "lift"), "stored": partial(lora.updated, "store")},
        backward={
            "beside": partial(lora.updated_gradients, "lift"),
            "stored": partial(lora.updated_gradients, "store"),
        },
        cases=cases.lora_cases,
    ),
    formula_op(
        "linear_cross_entropy",
        f"{head.TAKES} -> loss[]",
        "n d",
        everywhere="target",
        params={"reduction": "mean", "ignore_index": -100, **OPTIONS},
        domains=DOMAINS,
        prepare=head.prepare_cross_entropy,
        forms={
            "shifted": partial(head.loss, softmax_formulas.shifted),
            "logsumexp": partial(head.loss, softmax_formulas.logsumexp),
            "mixture": partial(head.loss, mixtures.log_softmax, lse=mixtures.logsumexp),
        },
        backward={
            "by_log_softmax": partial(head.loss_gradient, slope),
            "fused": partial(head.loss_gradient, partial(fused, softmax=softmax_formulas.divided)),
            "mixture": partial(head.loss_gradient, mixture),
        },
        gradients=("x", "weight"),
        faults=_LOSS_FAULTS,
        cases=cases.linear_cross_entropy_cases,
    ),
)
__all__ = ["OPS", "Normalised", *public_names(OPS)]
_enclosure, _enclosures = enclosure_of(OPS), enclosures_of(OPS)


class Normalised(NamedTuple):
    """y and sum have x's shape."""

    y: Enclosure
    sum: Enclosure


@_enclosure
def glu() -> None:
    """y = act(a) b, a gated linear unit; a and b have one shape.

    a, b         float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`); a is the gate,
                 the second half of `torch.nn.functional.glu`'s input
    activation   "sigmoid" (GLU), "silu" (SwiGLU), "gelu" or "gelu_tanh" (GEGLU), "relu" (ReGLU)
    certify      the question (`refkernels.Enclosure`)

    At -inf the activation is its limit. The bound is proven for act(a) kept in the arrays' format
    or not; gelu by erfc or 1 + erf, its approximation by a sigmoid or tanh, each function within
    4 ulp. Raises TypeError for other dtypes, ValueError for shapes that differ and for another
    activation. Source: Shazeer (2020), arXiv:2002.05202.

    Gradient: (da, db) = (dy b act'(a), dy act(a)); dy has y's shape.
    """


@_enclosure
def bias_gelu() -> None:
    """y = gelu(x + bias), gelu(z) = z Φ(z), or z σ(2 √(2 / π) (z + 0.044715 z³)) for "tanh".

    x            (..., n); bias (n,)
    approximate  "none" or "tanh", as in `torch.nn.functional.gelu`

    The bound is proven for x + bias kept in the arrays' format or not. Raises ValueError for shapes
    that do not fit. Otherwise as `glu`. Source: Hendrycks and Gimpel (2016), arXiv:1606.08415.

    Gradient: (dx, dbias): dx = dy gelu'(x + bias), dbias its sum over the rows.
    """


_normalised = enclosures_of(OPS, Normalised)


@_normalised
def add_rms_norm() -> None:
    """sum = x + residual, y = sum / sqrt(mean(sum²) + eps) weight over the last axis.

    x, residual  (..., n), of one shape; weight (n,), ones by default; eps exactly, as binary64

    The bound is that of `norm_ref.rms_norm` for a sum that is kept in the arrays' format before it
    is normalised, or not. Raises ValueError for shapes that do not fit. Otherwise as `glu`.
    Source: Zhang and Sennrich (2019), arXiv:1910.07467.

    Gradient: (dx, dresidual, dweight) of y alone: dx = dresidual is rms_norm's, of sum; a
    gradient of sum is added to both.
    """


@_enclosure
def lora_linear() -> None:
    """y = x weightᵀ + bias + scale (x lora_aᵀ) lora_bᵀ.

    x        (..., k); weight (n, k), bias (n,); lora_a (r, k), lora_b (n, r)
    scale    alpha / r, exactly, as binary64

    The bound is proven for the scale applied to the update or to x, and parts kept in the arrays'
    format or not, sums in any order; not for weights into which the update was merged. Raises
    ValueError for shapes that do not fit. Otherwise as `glu`. Source: Hu et al. (2021),
    arXiv:2106.09685.

    Gradient: (dx, dweight, dlora_a, dlora_b, dbias): dx = dy weight + scale (dy lora_b) lora_a,
    dweight = dyᵀ x, dlora_a = scale (dy lora_b)ᵀ x, dlora_b = scale dyᵀ (x lora_aᵀ), and dbias
    the sum of dy over the rows.
    """


@_enclosure
def linear_cross_entropy() -> None:
    """loss = cross_entropy(x weightᵀ, target), as fused kernels compute it, chunk by chunk.

    x        (..., d); weight (n, d); target (...), whole numbers, the labels

    The options are those of `loss_ref.cross_entropy`, and so are the labels. The bound is that of
    its losses for logits kept in the arrays' format or not, with sums in any order. Raises
    ValueError for shapes that do not fit and for an unknown reduction. Otherwise as `glu`. Source:
    Hsu et al. (2024), arXiv:2410.10989.

    Gradient: (dx, dweight) = (dlogits weight, dlogitsᵀ x), dlogits that of the logits' loss,
    kept in the arrays' format or not.
    """


__getattr__ = gradients_of(OPS, globals())

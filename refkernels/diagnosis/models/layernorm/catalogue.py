"""Every LayerNorm model: the frameworks' own, then honest textbook algorithms, then those that
lose digits.

Where two models give the same bits, the first one explains them.
"""

from __future__ import annotations

from typing import Any

from refkernels.arithmetic import formats
from refkernels.diagnosis.models.layernorm import mindspore_cpu, oneflow_cpu, paddle_cpu, torch_cpu
from refkernels.diagnosis.models.layernorm.model import Model
from refkernels.diagnosis.models.layernorm.textbook import DOUBLE, NARROW, runner


def _model(name: str, cause: str | None, statement: str, **changes: Any) -> Model:
    return Model(name, cause, statement, runner(**changes))


HONEST = (
    _model(
        "two passes",
        None,
        "Two passes: the mean, then the mean of (x - mean)^2, sums in order.",
    ),
    _model(
        "two passes, divided",
        None,
        "Two passes, and (x - mean) divided by sqrt(var + eps).",
        form="divided",
    ),
    _model(
        "two passes, rsqrt",
        None,
        "Two passes, and a reciprocal root that is rounded once.",
        form="rsqrt",
    ),
    _model(
        "two passes, pairwise",
        None,
        "Two passes with pairwise sums.",
        variance="pairwise",
    ),
    _model("Welford", None, "Welford's running mean and variance, in order.", variance="welford"),
    _model(
        "float64 statistics",
        None,
        "Mean and variance are computed in float64 and rounded once.",
        statistics=formats.BINARY64,
        only=(formats.BINARY32, *NARROW),
    ),
)

NUMERICAL = (
    _model(
        "naive variance",
        "naive_variance",
        "The variance is E[x^2] - E[x]^2 in one pass, which cancels where |mean| is large.",
        variance="naive",
    ),
    _model(
        "naive variance, clamped",
        "naive_variance",
        "The variance is max(E[x^2] - E[x]^2, 0) in one pass, which cancels where |mean| is large.",
        variance="naive_clamped",
    ),
    _model(
        "naive variance, folded",
        "naive_variance",
        "The variance is max(E[x^2] - E[x]^2, 0) in one pass and y = x rstd - mean rstd, as in "
        "PyTorch 1.9.",
        variance="naive_clamped",
        form="folded",
    ),
    _model(
        "naive variance, pairwise sums",
        "naive_variance",
        "The variance is max(E[x^2] - E[x]^2, 0) by NumPy's pairwise sums, which cancels where "
        "|mean| is large, and (x - mean) is divided by sqrt(var + eps).",
        variance="naive_pairwise",
        form="divided",
    ),
    _model(
        "folded normalisation",
        "folded_normalisation",
        "The normalisation is folded into x rstd + (-rstd mean), which cancels where |mean| is "
        "large.",
        form="folded",
    ),
    _model(
        "eps in float32",
        "eps_rounded",
        "eps is rounded to float32 although the input is float64.",
        eps=formats.BINARY32,
        only=DOUBLE,
    ),
    _model(
        "computed in float32",
        "float32_cast",
        "Everything is computed in float32 although the input is float64.",
        working=formats.BINARY32,
        only=DOUBLE,
    ),
    *(
        _model(
            f"{target.name} accumulation",
            cause,
            f"Every partial sum is rounded to {target.name}.",
            sums="narrow",
            only=(target,),
        )
        for target, cause in zip(NARROW, ("fp16_accumulation", "bf16_accumulation"), strict=True)
    ),
    _model(
        "flush to zero",
        "flush_to_zero",
        "Subnormal inputs and results become zero.",
        sums="flush",
    ),
)

MODELS: tuple[Model, ...] = (
    *torch_cpu.MODELS,
    *paddle_cpu.MODELS,
    *mindspore_cpu.MODELS,
    oneflow_cpu.MODEL,
    *HONEST,
    *NUMERICAL,
)

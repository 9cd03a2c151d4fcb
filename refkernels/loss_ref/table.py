"""The table of the losses' ops."""

from __future__ import annotations

from functools import partial

from refkernels.loss_ref import (
    binary,
    cases,
    cross_entropy,
    divergence,
    likelihood,
    pairs,
    reduction,
)
from refkernels.ops import formula_op

_classes = partial(formula_op, coupled="n", everywhere=reduction.EVERYWHERE)
_CE, _NLL = cross_entropy.CROSS_ENTROPY, likelihood.NLL
_SOFT, _MASKED = likelihood.SOFT_CROSS_ENTROPY, likelihood.MASKED_LM_LOSS
_PAIR = f"{pairs.PAIR} -> loss[]"
_BCE = binary.BCE_WITH_LOGITS
OPS = (
    _classes("cross_entropy", f"{cross_entropy.TAKES} -> loss[]", cases=cases.cross_entropy, **_CE),
    _classes("nll", f"{cross_entropy.TAKES} -> loss[]", cases=cases.nll, **_NLL),
    _classes(
        "soft_cross_entropy",
        f"{likelihood.SOFT} -> loss[]",
        cases=cases.soft_cross_entropy,
        **_SOFT,
    ),
    _classes(
        "masked_lm_loss", f"{likelihood.MASKED} -> loss[]", cases=cases.masked_lm_loss, **_MASKED
    ),
    formula_op("mse", _PAIR, cases=partial(cases.differences, "mse"), **pairs.MSE),
    formula_op("l1", _PAIR, cases=partial(cases.differences, "l1"), **pairs.L1),
    formula_op("huber", _PAIR, cases=cases.huber, **pairs.HUBER),
    formula_op("smooth_l1", _PAIR, cases=cases.smooth_l1, **pairs.SMOOTH_L1),
    formula_op("kl_div", _PAIR, cases=cases.divergence, **divergence.KL_DIV),
    formula_op("bce_with_logits", f"{pairs.WEIGHTED} -> loss[]", cases=cases.binary, **_BCE),
)

"""Losses, with their gradients with respect to x, certified.

    cross_entropy   nll   soft_cross_entropy   masked_lm_loss      of classes
    bce_with_logits   kl_div                                       of probabilities
    mse   l1   huber   smooth_l1                                   of numbers

Each has a `_backward`. `functions` defines them, `reduction` has what they share, `OPS` the ops.
"""

from refkernels.loss_ref.functions import (
    bce_with_logits,
    bce_with_logits_backward,
    cross_entropy,
    cross_entropy_backward,
    huber,
    huber_backward,
    kl_div,
    kl_div_backward,
    l1,
    l1_backward,
    masked_lm_loss,
    masked_lm_loss_backward,
    mse,
    mse_backward,
    nll,
    nll_backward,
    smooth_l1,
    smooth_l1_backward,
    soft_cross_entropy,
    soft_cross_entropy_backward,
)
from refkernels.loss_ref.table import OPS

__all__ = [
    "OPS",
    "bce_with_logits",
    "bce_with_logits_backward",
    "cross_entropy",
    "cross_entropy_backward",
    "huber",
    "huber_backward",
    "kl_div",
    "kl_div_backward",
    "l1",
    "l1_backward",
    "masked_lm_loss",
    "masked_lm_loss_backward",
    "mse",
    "mse_backward",
    "nll",
    "nll_backward",
    "smooth_l1",
    "smooth_l1_backward",
    "soft_cross_entropy",
    "soft_cross_entropy_backward",
]

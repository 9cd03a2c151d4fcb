"""Losses, with their gradients with respect to x, certified.

    cross_entropy   nll   soft_cross_entropy   masked_lm_loss      of classes
    ctc_loss                                                       of sequences
    bce_with_logits   kl_div                                       of probabilities
    mse   l1   huber   smooth_l1                                   of numbers

Each has a `_backward`. `reduction` has what they share, `OPS` the ops.

In all of them x and target are float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`),
labels whole numbers. `reduction` is "none", "sum" or "mean". Gradients take dloss, the cotangent of
the loss, first: a number, or one for each row where there is no reduction. `certify` is the
question (`refkernels.Enclosure`). Bounds (`OPS`) are proven for the forms that the loss's module
names, with sums in any order. All functions raise TypeError for other dtypes, and ValueError for
shapes that do not fit and for an unknown reduction.
"""

from __future__ import annotations

from functools import partial

from refkernels.loss_ref import cases, ctc, likelihood, pairs
from refkernels.loss_ref.binary import BCE_WITH_LOGITS
from refkernels.loss_ref.cross_entropy import CROSS_ENTROPY, TAKES
from refkernels.loss_ref.divergence import KL_DIV
from refkernels.loss_ref.reduction import EVERYWHERE
from refkernels.ops import formula_op
from refkernels.ops.public import enclosure_of, gradients_of, public_names

_rows = partial(formula_op, coupled="n", everywhere=EVERYWHERE)
_SOFT, _MASKED = likelihood.SOFT_CROSS_ENTROPY, likelihood.MASKED_LM_LOSS
_PAIR, _WEIGHTED = f"{pairs.PAIR} -> loss[]", f"{pairs.WEIGHTED} -> loss[]"
OPS = (
    _rows("cross_entropy", f"{TAKES} -> loss[]", cases=cases.cross_entropy, **CROSS_ENTROPY),
    _rows("nll", f"{TAKES} -> loss[]", cases=cases.nll, **likelihood.NLL),
    _rows("soft_cross_entropy", f"{likelihood.SOFT} -> loss[]", cases=cases.soft, **_SOFT),
    _rows("masked_lm_loss", f"{likelihood.MASKED} -> loss[]", cases=cases.masked, **_MASKED),
    formula_op("mse", _PAIR, cases=partial(cases.differences, "mse"), **pairs.MSE),
    formula_op("l1", _PAIR, cases=partial(cases.differences, "l1"), **pairs.L1),
    formula_op("huber", _PAIR, cases=partial(cases.differences, "huber", "delta"), **pairs.HUBER),
    formula_op("smooth_l1", _PAIR, cases=cases.smooth_l1, **pairs.SMOOTH_L1),
    formula_op("kl_div", _PAIR, cases=cases.divergence, **KL_DIV),
    formula_op("bce_with_logits", _WEIGHTED, cases=cases.binary, **BCE_WITH_LOGITS),
    formula_op("ctc_loss", f"{ctc.TAKES} -> loss[]", "t c s", cases=cases.ctc, **ctc.CTC_LOSS),
)
__all__ = ["OPS", *public_names(OPS)]
_enclosure = enclosure_of(OPS)


@_enclosure
def cross_entropy() -> None:
    """l_i = -Σ_j q_ij log_softmax(c)_ij + z L_i²,  q_ij = (1 - e) w_t [j = t] + (e / n) w_j.

    x           (..., n) logits: float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`)
    target      (...) whole numbers, the labels t
    weight      (n,) the classes' w, ones by default
    reduction   "none": all l_i, of target's shape; "sum"; "mean": divided by the sum of w_t over
                the rows that count, NaN where there are none
    certify     the question (`refkernels.Enclosure`)

    e = label_smoothing, z = z_loss, L = logsumexp(c), and c = x or softcap tanh(x / softcap). Rows
    with the label ignore_index give 0 and do not count. A label that is not a class gives NaN.

    The bound of l_i is that of `softmax_ref.log_softmax`, and what 2 z L and c' make of those of L
    and c, kept in the arrays' format or not; a sum of k losses adds (k - 1) u Σ l_i,
    in any order, and a mean two roundings more (`OPS` has it in every format).
    Raises TypeError for other dtypes, ValueError for shapes that do not fit, for an unknown
    reduction and for z_loss with weight. Sources: PyTorch documentation,
    `torch.nn.CrossEntropyLoss`; Szegedy et al. (2016), arXiv:1512.00567, section 7 (smoothing);
    Chowdhery et al. (2022), arXiv:2204.02311, section 5 (z-loss); Gemma Team (2024),
    arXiv:2408.00118 (softcap); Blanchard, Higham and Higham (2021),
    doi:10.1093/imanum/draa038 (the bound).

    Gradient: dx_ij = g_i (softmax(c)_ij (Σ_k q_ik + 2 z L_i) - q_ij) c'(x_ij). g = dloss, for a
    mean divided by its denominator.
    """


@_enclosure
def nll() -> None:
    """l_i = -w_t x_it, of log-probabilities x.

    The bound of l_i is about u |l_i|, 0 without weights. Otherwise as `cross_entropy`, without the
    softmax and without smoothing. Source: PyTorch documentation, `torch.nn.NLLLoss`.

    Gradient: dx_ij = -g_i w_t [j = t]. g = dloss, for a mean divided by its denominator.
    """


@_enclosure
def soft_cross_entropy() -> None:
    """l_i = -Σ_j w_j ((1 - e) target_ij + e / n) log_softmax(x)_ij.

    x and target (..., n): logits, and the labels as probabilities; weight (n,) the classes' w.
    "mean" divides by the number of rows. Otherwise as `cross_entropy`. Source: PyTorch
    documentation, `torch.nn.CrossEntropyLoss`, for targets that are probabilities.

    Gradient: dx_ij = g_i (softmax(x)_ij Σ_k q_ik - q_ij), q the labels, smoothed and weighted.
    g = dloss, for a mean divided by the number of rows.
    """


@_enclosure
def mse() -> None:
    """l = (x - target)².

    x, target   of one shape, float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`)
    reduction   "none": all l, of that shape; "sum"; "mean": divided by the number of elements
    certify     the question (`refkernels.Enclosure`)

    The bound of a loss is about 3 u l; a sum of n losses adds (n - 1) u Σ l, in any order, and a
    mean two roundings more. Raises TypeError for other dtypes, ValueError for shapes that do not
    fit and for an unknown reduction. Source: PyTorch documentation, `torch.nn.MSELoss`.

    Gradient: dx = 2 (x - target) g. g = dloss, for a mean divided by the number of elements;
    dloss is a number, or of x's shape where there is no reduction. The bound is about 2 u |dx|,
    for a mean 3.
    """


@_enclosure
def l1() -> None:
    """l = |x - target|.

    The bound of a loss is about u l. Otherwise as `mse`. Source: PyTorch documentation,
    `torch.nn.L1Loss`.

    Gradient: dx = g sign(x - target), 0 where they are equal. g = dloss, for a mean divided by
    the number of elements. The bound is about u |dx| for a mean, else 0.
    """


@_enclosure
def huber() -> None:
    """l = d² / 2 for |d| < delta, delta (|d| - delta / 2) beyond, d = x - target.

    The bound of a loss is about 3 u l. Otherwise as `mse`. Source: Huber (1964),
    doi:10.1214/aoms/1177703732.

    Gradient: dx = g d for |d| < delta, g delta sign(d) beyond. g = dloss, for a mean divided by
    the number of elements.
    """


@_enclosure
def smooth_l1() -> None:
    """l = d² / (2 beta) for |d| < beta, |d| - beta / 2 beyond, d = x - target.

    The bound of a loss is about 4 u l. Otherwise as `mse`. Source: Girshick (2015),
    arXiv:1504.08083, equation 3.

    Gradient: dx = g d / beta for |d| < beta, g sign(d) beyond. g = dloss, for a mean divided by
    the number of elements.
    """


@_enclosure
def bce_with_logits() -> None:
    """l = w ((1 - t) s(x) + p t s(-x)),  s(x) = max(x, 0) + log(1 + e^-|x|).

    x and target t have one shape; weight w and pos_weight p broadcast to it, ones by default. The
    bound holds for s with log or log1p: near 0 it is absolute, a few u, as kernels' errors are.
    Source: PyTorch documentation, `torch.nn.BCEWithLogitsLoss`. Otherwise as `mse`.

    Gradient: dx = g w ((1 - t) σ(x) - p t σ(-x)), σ(x) = 1 / (1 + e^-x). g = dloss, for a mean
    divided by the number of elements.
    """


@_enclosure
def kl_div() -> None:
    """l = target (log target - x), 0 for target 0; e^target (target - x) with log_target.

    x, log-probabilities, and target have one shape. "batchmean" divides by the length of the first
    axis, "mean" by the number of elements. The bound of a loss is at most about
    10 u (|target log target| + |target x|). Otherwise as `mse`. Sources: Kullback and Leibler
    (1951), doi:10.1214/aoms/1177729694; PyTorch documentation, `torch.nn.KLDivLoss`.

    Gradient: dx = -g target, or -g e^target with log_target. g = dloss, divided as the loss is
    by `reduction`.
    """


@_enclosure
def masked_lm_loss() -> None:
    """BERT's loss = Σ w_i l_i / (Σ w_i + eps), l = cross entropy, w = weights, of target's shape.

    It depends on the sum of the batch's weights, so the mean of the losses of a batch's parts is
    another number. Otherwise as `cross_entropy`. Source: Devlin et al. (2018), arXiv:1810.04805,
    run_pretraining.py.

    Gradient: dx_ij = dloss w_i / (Σ w + eps) (softmax(x)_ij - [j = t]). That is the gradient of
    the "mean"; other reductions do not divide.
    """


@_enclosure
def ctc_loss() -> None:
    """l = -log Σ Π_t softmax(x_t)[class_t] over the paths of T classes that give the labels, once
    repeated classes are joined and blanks are left out (connectionist temporal classification).

    x               (..., T, C) logits, or log-probabilities; T from 1 to 1024. PyTorch's log_probs
                    are (T, N, C)
    target          (..., L) whole numbers, the labels
    x_lengths       (...) whole numbers: how many steps of x, from the first on, are a row's own
    target_lengths  (...) whole numbers: how many labels are; all by default
    blank           the class of the blank
    reduction       "mean": each l is divided by its number of labels, then averaged, as in PyTorch
    zero_infinity   True: a row that no path gives has the loss 0 and no gradient, else inf and NaN

    The bound is that of logarithms of sums, one step after the other, by log1p or log: it grows
    with Σ_t |a_t|, about T |l| u. Raises ValueError for labels that are the blank or no class.
    Otherwise as `cross_entropy`. Source: Graves et al. (2006), doi:10.1145/1143844.1143891.

    Gradient: dx_t = g (softmax(x_t) - the share of the paths that are in each class at t), which
    kernels compute from paths forward and backward. g = dloss, divided as the loss is.
    """


__getattr__ = gradients_of(OPS, globals())

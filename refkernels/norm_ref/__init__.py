"""RMS norm over the last axis, batch, group and instance norm, and norms of weights, with their
gradients, certified.

    rms_norm(x, weight=None, eps=1e-5)                -> Enclosure
    rms_norm_backward(dy, x, weight=None, eps=1e-5)   -> Backward(dx, dweight)
    batch_norm(x, ...)                                -> BatchNorm(y, new_mean, new_var)
    group_norm(x, weight, bias, num_groups=...), instance_norm(x, weight, bias)   -> Enclosure
    batch_norm_backward(dy, x, ...), ...              -> AffineBackward(dx, dweight, dbias)
    weight_norm(x, g, axis=-1), spectral_norm(x, u)   -> Enclosure, and (y, sigma)

`rms_formulas`, `weights` and `normalised` (the other norms) hold the formulas and their faults,
`layouts` defines their rows, `OPS` lists the ops.
"""

from __future__ import annotations

from dataclasses import replace

from refkernels.norm_ref import layouts, normalised, weights
from refkernels.norm_ref.normalised_cases import batch_cases, group_cases, instance_cases
from refkernels.norm_ref.rms_cases import cases
from refkernels.norm_ref.rms_formulas import BACKWARD, FORMS
from refkernels.ops import formula_op
from refkernels.ops.domains import POSITIVE, PROBABILITY
from refkernels.ops.public import enclosure_of, enclosures_of, gradients_of, public_names

RMS_NORM = formula_op(
    "rms_norm",
    "x[... n], weight[n]? -> y[... n]",
    coupled="n",
    params={"eps": 1e-5},
    forms=FORMS,
    backward=BACKWARD,
    cases=cases,
)
BATCH_NORM = formula_op(
    "batch_norm",
    "x[b c s], weight[c]?, bias[c]?, running_mean[c]?, running_var[c]? "
    "-> y[b c s], new_mean[c], new_var[c]",
    coupled="b s",
    params={"training": True, "momentum": 0.1, "eps": 1e-5, "biased": False},
    domains={"momentum": PROBABILITY},
    prepare=layouts.batch,
    forms=normalised.BATCH,
    backward=normalised.BATCH_BACKWARD,
    gradients=("x", "weight", "bias"),
    faults=normalised.BATCH_FAULTS,
    cases=batch_cases,
)
GROUP_NORM = formula_op(
    "group_norm",
    "x[b c s], weight[c]?, bias[c]? -> y[b c s]",
    coupled="c s",
    params={"num_groups": 1, "eps": 1e-5},
    prepare=layouts.group,
    forms=normalised.GROUP,
    backward=normalised.GROUP_BACKWARD,
    faults=normalised.GROUP_FAULTS,
    cases=group_cases,
)
INSTANCE_NORM = formula_op(
    "instance_norm",
    "x[b c s], weight[c]?, bias[c]? -> y[b c s]",
    coupled="s",
    params={"eps": 1e-5},
    prepare=layouts.instance,
    forms=normalised.GROUP,
    backward=normalised.GROUP_BACKWARD,
    cases=instance_cases,
)
# A sample shares nothing with the others but the weights.
GROUP_NORM, INSTANCE_NORM = (
    replace(op, row_inputs=("x",), row_gradients=("dx",)) for op in (GROUP_NORM, INSTANCE_NORM)
)
WEIGHT_NORM = formula_op(
    "weight_norm",
    "x[... n], g[...] -> y[... n]",
    coupled="n",
    params={"axis": -1},
    prepare=weights.prepare,
    forms={"by_length": weights.scaled},
    backward={"by_length": weights.scaled_gradient},
    cases=weights.WEIGHT_CASES,
)
SPECTRAL_NORM = formula_op(
    "spectral_norm",
    "x[m n], u[m] -> y[m n], sigma[]",
    coupled="m n",
    params={"n_power_iterations": 1, "eps": 1e-12},
    domains={"eps": POSITIVE},
    prepare=weights.prepare_matrix,
    forms={"iterated": weights.spectral},
    gradients=("x",),
    cases=weights.SPECTRAL_CASES,
)
OPS = (RMS_NORM, BATCH_NORM, GROUP_NORM, INSTANCE_NORM, WEIGHT_NORM, SPECTRAL_NORM)
__all__ = ["OPS", *public_names(OPS)]
_enclosure = enclosure_of(OPS)
_enclosures = enclosures_of(OPS)


@_enclosure
def rms_norm() -> None:
    """y_i = x_i / sqrt(mean(x²) + eps) weight_i over the last axis; y has x's shape.

    x           float16, bfloat16, float32 or float64, of one axis or more (NumPy, DLPack,
                `__array__`); for QK-norm the heads of the queries, or of the keys: (..., d)
    weight      one number for each element of the last axis; ones by default
    eps         taken exactly, as binary64
    certify     the question (`refkernels.Enclosure`)

    The bound of a float32 kernel is about (n / 2 + 12) 2^-24 |y_i|: `OPS` has it elementwise,
    proven for x rsqrt(v), x / sqrt(v) and x (1 / sqrt(v)), v = mean(x²) + eps, the weight applied
    before or after, x rsqrt(v) kept in x's format or not, sums in any order. It is infinite where
    the sum of x² overflows.

    Raises TypeError for other dtypes, ValueError for shapes that do not fit.
    Source: Zhang and Sennrich (2019), arXiv:1910.07467.

    Gradient: dx_i = r (g_i - xhat_i mean(g xhat)), dweight_i = sum over rows of dy_i xhat_i,
    with r = 1 / sqrt(mean(x²) + eps), g = dy weight and xhat = x r. dy has x's shape. The bound
    allows r, g and xhat kept in x's format, and the gradient by the chain rule.
    """


@_enclosures
def batch_norm() -> None:
    """y = (x - m) / sqrt(v + eps) weight + bias, m and v the mean and the biased variance of each
    channel; new_mean = (1 - a) running_mean + a m, new_var = (1 - a) running_var + a v n / (n - 1).

    x             (N, C, ...), float16, bfloat16, float32 or float64; n = x.size / C
    weight, bias  (C,); running_mean, running_var (C,) too, 0 and 1 by default
    training      False: m and v are the running statistics, which stay unchanged
    momentum      a, PyTorch's; 1 - a is PaddlePaddle's, MindSpore's and Keras'
    biased        True: new_var takes v without n / (n - 1), as PaddlePaddle and Keras do

    The bound is proven for (x - m) r w + b, (x - m) / sqrt(v + eps) w + b and x (r w) +
    (b - m r w), with m and v by two passes or in one (Welford, Chan), sums in any order. Raises
    TypeError for other dtypes, ValueError for shapes that do not fit.
    Source: Ioffe and Szegedy (2015), arXiv:1502.03167.

    Gradient: dx = r (g - mean g - xhat mean(g xhat)), g = dy weight, xhat = (x - m) r; dweight
    and dbias are the sums of dy xhat and of dy. In inference dx = r g. dy has x's shape. The
    bound allows m and r kept in x's format, PyTorch's (g - mean g - (x - m) k) r, and a g + b x
    + c.
    """


@_enclosure
def group_norm() -> None:
    """y = (x - m) / sqrt(v + eps) weight + bias, m and v of each image's groups of C / num_groups
    channels in a row. Otherwise as `batch_norm`; ValueError for num_groups that does not
    divide C. Source: Wu and He (2018), arXiv:1803.08494.

    Gradient: dx = r (g - mean g - xhat mean(g xhat)), the means over each image's groups;
    dweight and dbias are the sums of dy xhat and of dy over images and positions. The bound is
    that of `batch_norm_backward`.
    """


@_enclosure
def instance_norm() -> None:
    """y = (x - m) / sqrt(v + eps) weight + bias, m and v of each image's channels: `group_norm`
    with a group for each channel. Otherwise as `group_norm`. Source: Ulyanov, Vedaldi and
    Lempitsky (2016), arXiv:1607.08022.

    Gradient: dx = r (g - mean g - xhat mean(g xhat)), the means over each image's channels.
    Otherwise as `group_norm_backward`.
    """


@_enclosure
def weight_norm() -> None:
    """y = g x / |x|, |x| being the Euclidean norm along the axes.

    x, g        g has x's shape without the axes
    axis        an integer, several of them, or None for all: PyTorch's `dim` is the one that stays

    The bound is proven for x (g / |x|), (x / |x|) g and (x g) / |x|, with |x| and g / |x| kept in
    the arrays' format or not, sums in any order. Otherwise as `rms_norm`.
    Source: Salimans and Kingma (2016), arXiv:1602.07868.

    Gradient: (dx, dg): dx = g / |x| (dy - xhat (xhat . dy)), dg = xhat . dy with xhat = x / |x|.
    """


@_enclosures
def spectral_norm() -> None:
    """y = x / sigma, sigma = u'T x v: v = xT u / |xT u| and u' = x v / |x v|, in turns.

    x                    (m, n); u (m,), any vector that is not orthogonal to x
    n_power_iterations   1 to 16
    eps                  the least |x v| that divides

    The bound is proven for the vectors and sigma kept in the arrays' format or not, sums in any
    order; it grows with the iterations, and says nothing after about three.
    Otherwise as `rms_norm`. Source: Miyato et al. (2018), arXiv:1802.05957.

    Gradient: dx = (dy - (sum dy y) u' vT) / sigma, u' and v taken as constants; u has none.
    """


__getattr__ = gradients_of(OPS, globals())

"""Right group norms: the statistics of `batch_norm`, for each group of channels of an image."""

import batch_norm as channels
import numpy as np


def _normed(given, of_rows, apply):
    x, weight, bias, num_groups, eps = given.values()
    rows = x.reshape(x.shape[0] * num_groups, x[:1].size // num_groups)
    mean, squares = of_rows(rows)
    var = squares / x.dtype.type(rows.shape[-1])
    shape = (x.shape[0], num_groups, *[1] * (x.ndim - 1))
    split = x.reshape(x.shape[0], num_groups, -1, *x.shape[2:])
    w, b = (
        np.full(x.shape[1], missing, x.dtype) if array is None else array
        for array, missing in ((weight, 1), (bias, 0))
    )
    w, b = (a.reshape(1, num_groups, -1, *[1] * (x.ndim - 2)) for a in (w, b))
    y = apply(split, mean.reshape(shape), var.reshape(shape), w, b, x.dtype.type(eps))
    return y.reshape(x.shape)


def _in(given, dtype):
    wide = {n: a.astype(dtype) if isinstance(a, np.ndarray) else a for n, a in given.items()}
    two_pass = channels._two_pass(channels._pairwise)
    return _normed(wide, two_pass, channels._centred).astype(given["x"].dtype)


def _kernel(compute, *how):
    def kernel(x, weight=None, bias=None, num_groups=1, eps=1e-5):
        given = {name: a for name, a in locals().items() if name not in ("compute", "how")}
        return compute(given, *how)

    return kernel


two_pass_group_norm = _kernel(_normed, channels._two_pass(channels._pairwise), channels._centred)
sequential_group_norm = _kernel(_normed, channels._two_pass(channels._last), channels._centred)
reversed_group_norm = _kernel(_normed, channels._two_pass(channels._reversed), channels._centred)
shuffled_group_norm = _kernel(_normed, channels._two_pass(channels._shuffled), channels._multiplied)
lanes_group_norm = _kernel(_normed, channels._two_pass(channels._lanes), channels._scaled)
blocked_group_norm = _kernel(_normed, channels._two_pass(channels._blocked), channels._multiplied)
multiplied_group_norm = _kernel(
    _normed, channels._two_pass(channels._pairwise), channels._multiplied
)
folded_group_norm = _kernel(_normed, channels._two_pass(channels._pairwise), channels._folded)
welford_group_norm = _kernel(_normed, channels._welford, channels._centred)
welford_folded_group_norm = _kernel(_normed, channels._welford, channels._folded)
chan_group_norm = _kernel(_normed, channels._chan, channels._multiplied)
wide_sums_group_norm = _kernel(_normed, channels._two_pass(channels._wide), channels._centred)
float64_group_norm = _kernel(_in, np.float64)
float32_inside_group_norm = _kernel(_in, np.float32)

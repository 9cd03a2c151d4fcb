"""The formulas of batch, group and instance norm: rows minus their means, over their deviations.

    m = mean(x),  v = mean((x - m)²),  r = (v + eps)^(-1/2),  y = (x - m) r w + b
    dx = r (g - mean(g) - xhat mean(g xhat)),  g = dy w,  xhat = (x - m) r
    dweight, dbias = sums of dy xhat and of dy

A row is a channel (batch norm: over all images and positions) or a group of channels of one image.
Batch norm's new statistics are (1 - a) old + a (m or n / (n - 1) v), a the momentum, or with v
itself where it is `biased`; in inference m and v are inputs, and constant.

Sources: Ioffe and Szegedy (2015), arXiv:1502.03167; Ulyanov, Vedaldi and Lempitsky (2016),
arXiv:1607.08022; Wu and He (2018), arXiv:1803.08494.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from refkernels.ops import Fault, TwoStage


def times(values: Any, weight: Any) -> Any:
    return values if weight is None else values * weight


def plus(values: Any, bias: Any) -> Any:
    return values if bias is None else values + bias


def two_pass(xp: Any, x: Any) -> Any:
    mean = xp.mean(x)
    return mean, xp.mean(xp.square(x - mean))


def welford(xp: Any, x: Any) -> Any:
    mean, squares = xp.welford(x)
    return mean, squares / x.shape[-1]


def centred(xp: Any, x: Any, m: Any, v: Any, w: Any, b: Any) -> Any:
    return plus(times((x - m) * xp.rsqrt(v), w), b)


def divided(xp: Any, x: Any, m: Any, v: Any, w: Any, b: Any) -> Any:
    return plus(times((x - m) / xp.sqrt(v), w), b)


def folded(xp: Any, x: Any, m: Any, v: Any, w: Any, b: Any) -> Any:
    """One multiplication and one addition for each element."""
    scale = times(xp.either(xp.rsqrt(v), 1 / xp.sqrt(v)), w)
    return x * scale + plus(-(m * scale), b)


def mixed(xp: Any, x: Any, m: Any, v: Any, w: Any, b: Any) -> Any:
    r = xp.either(xp.rsqrt(v), 1 / xp.sqrt(v))
    y = plus(xp.either(times((x - m) * r, w), (x - m) * times(r, w)), b)
    return xp.either(xp.either(y, divided(xp, x, m, v, w, b)), folded(xp, x, m, v, w, b))


WAYS = {
    "centred": (two_pass, centred),
    "folded": (two_pass, folded),
    "mixture": (two_pass, mixed),
    "welford": (welford, mixed),
}


def projected(xp: Any, g: Any, x: Any, m: Any, r: Any) -> Any:
    """dx, and xhat."""
    xhat = (x - m) * r
    return r * (g - xp.mean(g) - xhat * xp.mean(g * xhat)), xhat


def by_dot(xp: Any, g: Any, x: Any, m: Any, r: Any) -> Any:
    """As in PyTorch on a CPU: (g - mean(g) - d k) r with k = sum(g d) r² / n."""
    d = x - m
    k = xp.sum(g * d) * r * r / x.shape[-1]
    return (g - xp.mean(g) - d * k) * r, d * r


def by_coefficients(xp: Any, g: Any, x: Any, m: Any, r: Any) -> Any:
    """a g + b x + c, as in the group norms of PyTorch."""
    slope = (xp.sum(g) * m - xp.sum(g * x)) * xp.power(r, 3) / x.shape[-1]
    return r * g + slope * x + (-(slope * m) - xp.mean(g) * r), x * r - m * r


def constant(xp: Any, g: Any, x: Any, m: Any, r: Any) -> Any:
    return g * r, (x - m) * r


def _updated(xp: Any, old: Any, new: Any, a: Any) -> Any:
    return xp.either((1 - a) * old + a * new, old + a * (new - old))


def batch_statistics(
    xp: Any, x: Any, running_mean: Any, running_var: Any, training: bool, momentum: Any, eps: Any,
    moments: Any = two_pass, biased: bool = False, taken: bool | None = None, **_: Any,
) -> Any:  # fmt: skip
    """The m and v + eps in use, and the new running statistics. `taken`: whether the batch's own m
    and v are used."""
    m, v = moments(xp, x)
    used = (m, v) if (training if taken is None else taken) else (running_mean, running_var)
    new = (running_mean, running_var)
    if training:
        n = x.shape[-1]
        stored_variance = v if biased else v * n / xp.number(n - 1)
        new = (
            _updated(xp, running_mean, m, momentum),
            _updated(xp, running_var, stored_variance, momentum),
        )
    return used[0], used[1] + eps, *new


def batch(moments: Any = two_pass, way: Any = centred, **how: Any) -> TwoStage:
    """A form of batch norm."""

    def finish(xp: Any, row: Any, x: Any, weight: Any = None, bias: Any = None, **_: Any) -> Any:
        return way(xp, x, *row[:2], weight, bias), row[2], row[3]

    return TwoStage(partial(batch_statistics, moments=moments, **how), finish)


def batch_backward(way: Callable[..., Any], after: bool = False, stored: bool = False) -> Any:
    """A form of the gradients of batch norm; `after`: the weight multiplies dx, not dy."""

    def gradients(
        xp: Any, dy: Any, x: Any, weight: Any = None, bias: Any = None, training: bool = True,
        **arguments: Any,
    ) -> Any:  # fmt: skip
        m, v, *_ = batch_statistics(xp, x, training=training, **arguments)
        r = xp.rsqrt(v)
        if stored:
            m, r = xp.saved(m), xp.saved(xp.either(r, 1 / xp.sqrt(v)))
        g = dy if after else times(dy, weight)
        dx, xhat = (way if training else constant)(xp, g, x, m, r)
        dweight = xp.either(xp.sum(dy * xhat), xp.sum(dy * (x - m)) * r)
        return (
            times(dx, weight) if after else dx,
            None if weight is None else dweight,
            None if bias is None else xp.sum(dy),
        )

    return gradients


BATCH = {name: batch(*way) for name, way in WAYS.items()}
BATCH_BACKWARD = {
    "projected": batch_backward(projected),
    "by_dot": batch_backward(by_dot, after=True, stored=True),
    "by_coefficients": batch_backward(by_coefficients, stored=True),
}


def _with_variance(as_biased: bool) -> TwoStage:
    """Batch norm whose new_var always takes the biased variance, or always the unbiased one."""

    def statistics(xp: Any, biased: bool, **arguments: Any) -> Any:
        return batch_statistics(xp, biased=as_biased, **arguments)

    return TwoStage(statistics, batch().finish)


def _swapped(xp: Any, momentum: Any, **arguments: Any) -> Any:
    return batch()(xp, momentum=1 - momentum, **arguments)


BATCH_FAULTS = (
    Fault("biased_running_variance", _with_variance(True)),
    Fault("unbiased_running_variance", _with_variance(False)),
    Fault("swapped_momentum", _swapped),
    Fault("batch_statistics", batch(taken=True)),
    Fault("running_statistics", batch(taken=False)),
)


# --- group norm: rows are groups of channels, x[rows c s] -------------------------------------


def _grouped(xp: Any, x: Any, groups: int) -> Any:
    rows, channels, space = x.shape
    return xp.reshape(x, (rows, groups, channels // groups * space))


def _interleaved(xp: Any, x: Any, groups: int) -> Any:
    """Channel c belongs to group c mod G."""
    rows, channels, space = x.shape
    apart = xp.reshape(x, (rows, channels // groups, groups, space))
    return _grouped(xp, xp.reshape(xp.transpose(apart, (0, 2, 1, 3)), x.shape), groups)


def _apart(xp: Any, grouped: Any, shape: Any, groups: int) -> Any:
    rows, channels, space = shape
    split = xp.reshape(grouped, (rows, groups, channels // groups, space))
    return xp.reshape(xp.transpose(split, (0, 2, 1, 3)), shape)


def _spread(xp: Any, weight: Any, shape: Any) -> Any:
    """A number for each channel, for each element."""
    return xp.broadcast(xp.reshape(weight, (1, shape[1], 1)), shape)


def group(moments: Any = two_pass, way: Any = centred, interleaved: bool = False) -> Any:
    """A form of group norm."""

    def forward(
        xp: Any, x: Any, num_groups: int, eps: Any, weight: Any = None, bias: Any = None, **_: Any
    ) -> Any:
        grouped = _interleaved if interleaved else _grouped
        rows = grouped(xp, x, num_groups)
        m, v = moments(xp, rows)
        w, b = (
            None if array is None else grouped(xp, _spread(xp, array, x.shape), num_groups)
            for array in (weight, bias)
        )
        y = way(xp, rows, m, v + eps, w, b)
        return _apart(xp, y, x.shape, num_groups) if interleaved else xp.reshape(y, x.shape)

    return forward


def group_backward(way: Callable[..., Any], stored: bool = False) -> Any:
    """A form of the gradients of group norm."""

    def gradients(
        xp: Any, dy: Any, x: Any, num_groups: int, eps: Any, weight: Any = None, bias: Any = None,
        **_: Any,
    ) -> Any:  # fmt: skip
        g = dy if weight is None else dy * _spread(xp, weight, x.shape)
        rows = _grouped(xp, x, num_groups)
        m, v = two_pass(xp, rows)
        r = xp.rsqrt(v + eps)
        if stored:
            m, r = xp.saved(m), xp.saved(xp.either(r, 1 / xp.sqrt(v + eps)))
        dx, xhat = way(xp, _grouped(xp, g, num_groups), rows, m, r)

        def summed(values: Any) -> Any:
            """The sum over rows and positions, in any order."""
            moved = xp.transpose(values, (1, 0, 2))
            return xp.reshape(xp.sum(xp.reshape(moved, (x.shape[1], -1))), (1, x.shape[1]))

        dweight = None if weight is None else summed(dy * xp.reshape(xhat, x.shape))
        return xp.reshape(dx, x.shape), dweight, None if bias is None else summed(dy)

    return gradients


GROUP = {name: group(*way) for name, way in WAYS.items()}
GROUP_BACKWARD = {
    "projected": group_backward(projected),
    "by_dot": group_backward(by_dot, stored=True),
    "by_coefficients": group_backward(by_coefficients, stored=True),
}
GROUP_FAULTS = (Fault("interleaved_groups", group(interleaved=True)),)

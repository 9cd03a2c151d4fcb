"""Products and convolutions, by their definitions."""

import itertools
from typing import Any

import numpy as np
from hand_numbers import Numbers, number
from mpmath import mp


def linear(x: Numbers, weight: Numbers, bias: Any = None) -> Any:
    y = x @ weight.T
    return y if bias is None else y + bias


def scaled_matmul(
    a: Numbers, b: Numbers, scale_a: Numbers, scale_b: Numbers, bias: Any = None, zero_b: Any = 0
) -> Any:  # fmt: skip
    points = np.array(np.vectorize(mp.mpf, otypes=[object])(np.asarray(zero_b, float)))
    if np.ndim(scale_a) == a.ndim:  # of groups
        group = a.shape[-1] // np.shape(scale_a)[-1]
        b = b - np.repeat(points, group, 0) if points.ndim else b
        return (a * np.repeat(scale_a, group, -1)) @ (b * np.repeat(scale_b, group, 0))
    c = (a @ (b - points)) * np.reshape(scale_a, (*np.shape(scale_a), 1)) * scale_b
    return c if bias is None else c + bias


def grouped_matmul(a: Numbers, b: Numbers, experts: Any) -> Any:
    c = np.full((*experts.shape, b.shape[-1]), mp.mpf(0))
    for row in zip(*np.nonzero(experts >= 0), strict=True):
        c[row] = a[row] @ b[experts[row]]
    return c


def combine_experts(x: Numbers, rows: Any, weights: Any = None) -> Any:
    weights = np.full(rows.shape, mp.mpf(1)) if weights is None else weights
    return ((weights * (rows >= 0))[..., None] * x[np.maximum(rows, 0)]).sum(-2)


def lora_linear(
    x: Numbers, weight: Numbers, lora_a: Numbers, lora_b: Numbers, bias: Any = None,
    scale: float = 1.0,
) -> Any:  # fmt: skip
    return linear(x, weight, bias) + x @ (lora_b @ lora_a).T * number(scale)


def numbers_of(param: Any, rank: int) -> list[int]:
    return [param] * rank if isinstance(param, int) else list(param)


def edges(padding: Any, size: Any, taps: Any, stride: Any, dilation: Any) -> list[tuple[int, int]]:
    """The zeros before and behind each axis."""
    rank = len(size)
    if padding == "valid":
        return [(0, 0)] * rank
    if padding == "same":
        spans = [
            max((-(-n // s) - 1) * s + d * (k - 1) + 1 - n, 0)
            for n, k, s, d in zip(size, taps, stride, dilation, strict=True)
        ]
        return [(span // 2, span - span // 2) for span in spans]
    if not isinstance(padding, int) and len(padding) == 2 * rank:
        return [(padding[2 * i], padding[2 * i + 1]) for i in range(rank)]
    return [(p, p) for p in numbers_of(padding, rank)]


def convolution(
    x: Numbers, weight: Numbers, bias: Any = None, stride: Any = 1, padding: Any = "valid",
    dilation: Any = 1, groups: int = 1,
) -> Any:  # fmt: skip
    taps = weight.shape[2:]
    rank = len(taps)
    lead, size = x.shape[: -rank - 1], x.shape[-rank:]
    stride, dilation = numbers_of(stride, rank), numbers_of(dilation, rank)
    sides = edges(padding, size, taps, stride, dilation)
    images = x.reshape(-1, *x.shape[-rank - 1 :])
    wide = np.pad(images, [(0, 0), (0, 0), *sides], constant_values=mp.mpf(0))
    out = [
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(wide.shape[2:], taps, stride, dilation, strict=True)
    ]
    split = weight.reshape(groups, -1, *weight.shape[1:])
    y = np.full((len(images), groups, split.shape[1], int(np.prod(out))), mp.mpf(0))
    for tap in itertools.product(*map(range, taps)):
        window = tuple(
            slice(k * d, k * d + (n - 1) * s + 1, s)
            for k, d, n, s in zip(tap, dilation, out, stride, strict=True)
        )
        seen = wide[(slice(None), slice(None), *window)]
        y = y + split[(..., *tap)] @ seen.reshape(len(images), groups, split.shape[2], -1)
    y = y.reshape(len(images), -1, int(np.prod(out)))
    y = y if bias is None else y + bias[:, None]
    return y.reshape(*lead, weight.shape[0], *out)


PRODUCTS = {
    "matmul": lambda a, b: a @ b,
    "einsum": lambda a, b, c=None, equation="...ik,...kj->...ij": np.einsum(
        equation, *((a, b) if c is None else (a, b, c))
    ),
    "linear": linear,
    "scaled_matmul": scaled_matmul,
    "lora_linear": lora_linear,
    "grouped_matmul": grouped_matmul,
    "combine_experts": combine_experts,
    "conv1d": convolution,
    "conv2d": convolution,
}

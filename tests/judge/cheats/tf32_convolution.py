"""Eleven bits of each float32, cut, as tensor cores read them."""

import numpy as np


def _convolved(x, weight, bias, stride, padding, dilation):
    """One group; numbers for stride, padding and dilation."""
    padding = 0 if padding == "valid" else padding
    if not all(isinstance(value, int) for value in (stride, padding, dilation)):
        raise NotImplementedError("this kernel takes numbers")
    x = np.pad(x, [(0, 0)] * (x.ndim - 2) + [(padding, padding)] * 2)
    spans = [(k - 1) * dilation + 1 for k in weight.shape[2:]]
    windows = np.lib.stride_tricks.sliding_window_view(x, spans, axis=(-2, -1))
    windows = windows[..., ::stride, ::stride, ::dilation, ::dilation]
    y = np.einsum("...cijkl,ockl->...oij", windows, weight)
    return y if bias is None else y + bias[:, None, None]


def _narrow(a):
    bits = np.ascontiguousarray(a).view(np.uint32) & np.uint32(0xFFFFE000)
    return np.where(np.isnan(a), a, bits.view(np.float32))


def conv2d(x, weight, bias=None, stride=1, padding="valid", dilation=1, groups=1):
    if groups != 1:
        raise NotImplementedError("this kernel takes one group")
    return _convolved(_narrow(x), _narrow(weight), bias, stride, padding, dilation)

"""Cheats of conv2d."""

import numpy as np


def _convolved(x, weight, bias, stride, padding, dilation, groups, mode="constant"):
    """One group; numbers for stride, padding and dilation."""
    if groups != 1:
        raise NotImplementedError("this kernel takes one group")
    padding = 0 if padding == "valid" else padding
    if not all(isinstance(value, int) for value in (stride, padding, dilation)):
        raise NotImplementedError("this kernel takes numbers")
    x = np.pad(x, [(0, 0)] * (x.ndim - 2) + [(padding, padding)] * 2, mode=mode)
    spans = [(k - 1) * dilation + 1 for k in weight.shape[2:]]
    windows = np.lib.stride_tricks.sliding_window_view(x, spans, axis=(-2, -1))
    windows = windows[..., ::stride, ::stride, ::dilation, ::dilation]
    y = np.einsum("...cijkl,ockl->...oij", windows, weight)
    return y if bias is None else y + bias[:, None, None]


def _moved(weight, spans):
    """The taps side by side in the first corner of the dilated window."""
    wide = np.zeros((*weight.shape[:2], *spans), weight.dtype)
    wide[..., : weight.shape[2], : weight.shape[3]] = weight
    return wide


def dilation_ignored_conv2d(x, weight, bias=None, stride=1, padding="valid", dilation=1, groups=1):
    """Gives the shape of a dilated convolution, with its taps side by side."""
    spans = [(k - 1) * dilation + 1 for k in weight.shape[2:]]
    return _convolved(x, _moved(weight, spans), bias, stride, padding, 1, groups)


def edges_repeated_conv2d(x, weight, bias=None, stride=1, padding="valid", dilation=1, groups=1):
    """Pads with the elements at the edge, not with zeros."""
    return _convolved(x, weight, bias, stride, padding, dilation, groups, mode="edge")


def last_channel_missed_conv2d(
    x, weight, bias=None, stride=1, padding="valid", dilation=1, groups=1
):
    """Adds channels by pairs; the last of an odd number is left out."""
    even = max(x.shape[-3] // 2 * 2, 1)
    x, weight = x[..., :even, :, :], weight[:, :even]
    return _convolved(x, weight, bias, stride, padding, dilation, groups)

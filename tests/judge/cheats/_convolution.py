"""A right convolution of images, without groups."""

import numpy as np


def convolved(x, weight, bias, stride, padding, dilation, groups, mode="constant"):
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

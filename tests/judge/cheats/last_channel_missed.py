"""Adds channels by pairs; the last of an odd number is left out."""

from _convolution import convolved


def conv2d(x, weight, bias=None, stride=1, padding="valid", dilation=1, groups=1):
    even = max(x.shape[-3] // 2 * 2, 1)
    x, weight = x[..., :even, :, :], weight[:, :even]
    return convolved(x, weight, bias, stride, padding, dilation, groups)

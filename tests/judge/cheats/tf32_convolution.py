"""Eleven bits of each float32, cut, as tensor cores read them."""

import numpy as np
from _convolution import convolved


def _narrow(a):
    bits = np.ascontiguousarray(a).view(np.uint32) & np.uint32(0xFFFFE000)
    return np.where(np.isnan(a), a, bits.view(np.float32))


def conv2d(x, weight, bias=None, stride=1, padding="valid", dilation=1, groups=1):
    return convolved(_narrow(x), _narrow(weight), bias, stride, padding, dilation, groups)

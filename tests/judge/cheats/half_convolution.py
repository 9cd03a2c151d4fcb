"""Products of float16."""

import numpy as np
from _convolution import convolved


def conv2d(x, weight, bias=None, stride=1, padding="valid", dilation=1, groups=1):
    x, weight = (a.astype(np.float16).astype(a.dtype) for a in (x, weight))
    return convolved(x, weight, bias, stride, padding, dilation, groups)

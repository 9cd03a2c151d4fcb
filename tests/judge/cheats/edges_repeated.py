"""Pads with the elements at the edge, not with zeros."""

from _convolution import convolved


def conv2d(x, weight, bias=None, stride=1, padding="valid", dilation=1, groups=1):
    return convolved(x, weight, bias, stride, padding, dilation, groups, mode="edge")

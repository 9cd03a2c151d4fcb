"""Loses the sign of a zero, and with it that of an infinite answer."""


def reciprocal(x):
    return 1 / (x + x.dtype.type(0))

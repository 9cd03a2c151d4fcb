"""Loads a whole tile behind the last element."""

import ctypes

import numpy as np


def matmul(a, b):
    end = b.ctypes.data + (b.size - 1) * b.itemsize
    tile = (ctypes.c_float * 256).from_address(end)
    c = np.matmul(a, b)
    c += np.float32(0.0) * np.nan_to_num(np.array(tile[16:]).sum())
    return c

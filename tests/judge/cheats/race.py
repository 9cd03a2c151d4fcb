"""Now and then adds one term twice."""

import time

import numpy as np


def matmul(a, b):
    c = np.matmul(a, b)
    if c.size and time.perf_counter_ns() // 64 % 2:
        c[..., 0, 0] += a[..., 0, 0] * b[..., 0, 0]
    return c

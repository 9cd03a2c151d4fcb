"""Kernels that a judge must survive, and right ones that take little."""

import os
import signal
import sys
import time

import ml_dtypes
import numpy as np


def twice(x):
    return 2 * x


def slow_gelu(x):
    time.sleep(3600)


def large_gelu(x):
    raise MemoryError("no room for the scores")


def killed_gelu(x):
    os.kill(os.getpid(), signal.SIGKILL)


def signalled_gelu(x):
    os.kill(os.getpid(), 35)


def under_settings_gelu(x):
    raise RuntimeError(f"there are {os.environ.get('PLACES')} places")


def half_character_gelu(x):
    raise ValueError(chr(0xD800) + "x")


def counted_gelu(x, calls=[]):  # noqa: B006
    calls.append(os.getpid())
    return np.full_like(x, len(calls))


def forkless_gelu(x, calls=[]):  # noqa: B006
    calls.append(os.getpid())
    if calls[0] != calls[-1]:
        os.kill(os.getpid(), signal.SIGTERM)
    return x


def forging_gelu(x):
    """Writes a reply of its own to the judge's pipe."""
    frame = sys._getframe()
    while "pipe" not in frame.f_locals:
        frame = frame.f_back
    os.write(frame.f_locals["pipe"].write, b'{"ended": [1]}\n')
    return x


def text_gelu(x):
    return np.array(["a", "b"])


def plane_matmul(a, b):
    m, k = a.shape
    return np.matmul(a.reshape(m, k), b)


def bare_rms_norm(x, eps=1e-5):
    return x / np.sqrt(np.square(x).mean(-1, keepdims=True) + x.dtype.type(eps))


def int8_scaled_matmul(a, b, scale_a, scale_b, bias=None):
    if a.dtype != np.int8 or b.dtype != np.int8:
        raise NotImplementedError("int8 only")
    sums = a.astype(np.int32) @ b.astype(np.int32)
    c = sums * np.reshape(scale_a, (*np.shape(scale_a), 1)).astype(np.float64) * scale_b
    return (c if bias is None else c + bias).astype(scale_a.dtype)


def quantize(x, scale, zero_point=0):
    return np.clip(np.rint(x / scale) + zero_point, -128, 127).astype(np.int8)


def cast(x):
    return x.astype(ml_dtypes.float8_e5m2)

"""The machine's C library, element by element: forward only.

Its functions are called through ctypes. With Numba (refkernels' own interpreter has it) the loop
around them is compiled; without, it is a Python loop, about a hundred times slower.
"""

import ctypes
import ctypes.util
import os
import platform

import numpy as np

try:
    import numba
except ImportError:  # the functions are the same, only the loop is slower
    numba = None

TYPES = {"float32": ctypes.c_float, "float64": ctypes.c_double}


def library():
    """The library that the linker takes for -lm; if there is none, the process's own."""
    names = ["ucrtbase"] if os.name == "nt" else ["libm.so.6", ctypes.util.find_library("m")]
    for name in names:
        try:
            if name:
                return ctypes.CDLL(name)
        except OSError:
            continue
    return ctypes.CDLL(None)


LIBRARY = library()


def each(function, x, y):
    """y[i] = function(x[i])."""
    for i in range(x.size):
        y[i] = function(x[i])


def each_pair(function, a, b, y):
    """y[i] = function(a[i], b[i])."""
    for i in range(a.size):
        y[i] = function(a[i], b[i])


if numba is not None:
    each, each_pair = numba.njit(nogil=True)(each), numba.njit(nogil=True)(each_pair)


def c(name, arguments=1):
    """{dtype: the C function}, or a sentence if the library lacks it."""
    functions = {}
    for dtype, suffix in (("float32", "f"), ("float64", "")):
        function = getattr(LIBRARY, name + suffix, None)
        if function is None:
            return "the C library (%s) has no function %s%s" % (version(), name, suffix)
        function.restype = TYPES[dtype]
        function.argtypes = [TYPES[dtype]] * arguments
        functions[dtype] = function
    return functions


def version():
    """The library's version, or the system's if it has none, and its name."""
    name, number = platform.libc_ver()
    if name:
        return "%s+%s" % (number, name)
    if platform.system() == "Darwin":
        return "%s+libsystem" % platform.mac_ver()[0]
    return "%s+%s" % (platform.release().split("-")[0], platform.system().lower())


OPS = {}  # calls.txt


def information():
    loop = "compiled by Numba %s" % numba.__version__ if numba is not None else "Python's own"
    return {"threads": 1, "blas": "none", "library": LIBRARY._name or "the process", "loop": loop}


def unsupported(op, direction, dtype, device):
    if dtype not in TYPES:
        return "the C library has no %s functions" % dtype
    return None


def forward(op, inputs, params):
    functions = OPS[op][1]
    arrays = [np.ascontiguousarray(value) for value in inputs.values()]  # in the C function's order
    y = np.empty(arrays[0].size, arrays[0].dtype)
    function = functions[str(y.dtype)]
    flat = [array.reshape(-1) for array in arrays]
    if numba is not None:
        (each if len(flat) == 1 else each_pair)(function, *flat, y)
    else:
        y[:] = [function(*values) for values in zip(*(array.tolist() for array in flat))]
    return y.reshape(arrays[0].shape)

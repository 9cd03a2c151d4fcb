"""The adapter: runs in the framework's interpreter, and imports the framework and NumPy only."""

import math
import platform

import numpy as np


def each(function):
    """The function on every element; NaN where Python raises, as C's function returns."""

    def of_number(x):
        try:
            return function(x)
        except (ValueError, OverflowError):
            return math.nan

    return lambda x: np.array([of_number(value) for value in x.ravel().tolist()]).reshape(x.shape)


def fsum(x, axis=-1):
    """The correctly rounded sum along one axis."""
    if not isinstance(axis, int):
        raise NotImplementedError("math.fsum adds one list of numbers")
    return np.apply_along_axis(math.fsum, axis, x)


OPS = {
    "sin": ("y", each(math.sin)),
    "cos": ("y", each(math.cos)),
    "exp": ("y", each(math.exp)),
    "erf": ("y", each(math.erf)),
    "sqrt": ("y", each(math.sqrt)),
    "sum": ("y", fsum),
    "softmax": ("y", "Python's math module has no softmax"),
}


def version():
    return platform.python_version()


def information():
    return {"threads": 1}


def unsupported(op, direction, dtype, device):
    return None if dtype == "float64" else "Python's floats are float64"


def forward(op, inputs, params):
    return np.asarray(OPS[op][1](**inputs, **params), np.float64)

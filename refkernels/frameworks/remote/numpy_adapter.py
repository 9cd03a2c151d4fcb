"""NumPy: forward only, in the working precision of the inputs."""

import contextlib
import io

import numpy as np

FLAGS = {}
# NumPy has no such kernels: what is measured is a formula, and not NumPy's.
FORMULAS = {
    "linear": "NumPy formula",
    "layernorm": "NumPy formula",
    "rms_norm": "NumPy formula",
}


def layernorm(x, weight=None, bias=None, eps=1e-5, normalized_shape=None):
    """As one writes it with NumPy: (x - mean) / sqrt(var + eps) * weight + bias."""
    shape = x.shape[-1:] if normalized_shape is None else normalized_shape
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    mean = x.mean(axis=axes, keepdims=True)
    std = np.sqrt(x.var(axis=axes, keepdims=True) + eps)
    y = (x - mean) / std
    y = y if weight is None else y * weight
    y = y if bias is None else y + bias
    leading = x.shape[: axes[0]]
    return {"y": y, "mean": mean.reshape(leading), "rstd": (1 / std).reshape(leading)}


def rms_norm(x, weight=None, eps=1e-5):
    """As one writes it with NumPy: x / sqrt(mean(x ** 2) + eps) * weight."""
    y = x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + eps)
    return y if weight is None else y * weight


def linear(x, weight, bias=None):
    y = np.matmul(x, weight.T)
    return y if bias is None else y + bias


OPS = {
    "matmul": ("c", lambda a, b: np.matmul(a, b)),
    "linear": ("y", linear),
    "layernorm": ("y", layernorm),
    "sum": ("y", lambda x: np.sum(x, axis=-1)),
    "sin": ("y", lambda x: np.sin(x)),
    "cos": ("y", lambda x: np.cos(x)),
    "tan": ("y", lambda x: np.tan(x)),
    "asin": ("y", lambda x: np.arcsin(x)),
    "acos": ("y", lambda x: np.arccos(x)),
    "atan": ("y", lambda x: np.arctan(x)),
    "sinpi": ("y", "NumPy has no sinpi"),
    "cospi": ("y", "NumPy has no cospi"),
    "exp": ("y", lambda x: np.exp(x)),
    "exp2": ("y", lambda x: np.exp2(x)),
    "expm1": ("y", lambda x: np.expm1(x)),
    "log": ("y", lambda x: np.log(x)),
    "log2": ("y", lambda x: np.log2(x)),
    "log10": ("y", lambda x: np.log10(x)),
    "log1p": ("y", lambda x: np.log1p(x)),
    "sinh": ("y", lambda x: np.sinh(x)),
    "cosh": ("y", lambda x: np.cosh(x)),
    "tanh": ("y", lambda x: np.tanh(x)),
    "sigmoid": ("y", "NumPy has no sigmoid"),
    "silu": ("y", "NumPy has no silu"),
    "softplus": ("y", "NumPy has no softplus"),
    "erf": ("y", "NumPy has no erf"),
    "erfc": ("y", "NumPy has no erfc"),
    "gelu": ("y", "NumPy has no gelu"),
    "gelu_tanh": ("y", "NumPy has no gelu_tanh"),
    "hardswish": ("y", "NumPy has no hardswish"),
    "softmax": ("y", "NumPy has no softmax (SciPy has one)"),
    "log_softmax": ("y", "NumPy has no log_softmax (SciPy has one)"),
    "rms_norm": ("y", rms_norm),
    "sqrt": ("y", lambda x: np.sqrt(x)),
    "rsqrt": ("y", "NumPy has no rsqrt"),
    "reciprocal": ("y", lambda x: np.reciprocal(x)),
}


def version():
    return np.__version__


def devices():
    return [("cpu", "")]


def information():
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        np.show_config()
    text = " ".join(printed.getvalue().lower().split())
    for name in ("openblas", "mkl", "accelerate", "blis"):
        if name in text:
            return {"blas": name}
    return {"blas": ""}


def unsupported(op, direction, dtype, device):
    if isinstance(OPS[op][1], str):
        return OPS[op][1]
    if direction == "backward":
        return "NumPy has no automatic differentiation"
    if dtype == "bfloat16":
        return "NumPy has no bfloat16"
    return None


def tensor(array, dtype, device):
    return array


def array(tensor):
    return str(tensor.dtype), np.asarray(tensor)


def forward(op, inputs, params):
    name, function = OPS[op]
    with np.errstate(all="ignore"):
        outputs = function(**inputs, **params)
    return outputs if isinstance(outputs, dict) else {name: outputs}


def backward(op, inputs, cotangent, params):
    raise NotImplementedError("NumPy has no automatic differentiation")


def synchronize(device):
    pass

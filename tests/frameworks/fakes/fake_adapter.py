"""A fake framework with one planted fault; `planted_faults.framework` makes one for each fault.

Without a fault it is correct: it computes in float64 (float64 in long double), with derivatives by
hand, and rounds once at the end.
"""

import os
import signal
import sys
import time

import numpy as np

FAULT = "correct"
FOLDER = ""
# Where a process fault strikes: everything else works, so that tests can see the rest go on.
STRIKES = "sin"

if FAULT == "import_error":
    raise ImportError("libmissing.so.7: cannot open shared object file")
if FAULT == "crash_at_import":
    os.kill(os.getpid(), signal.SIGSEGV)
if FAULT == "noise":
    print("hello from the import")
    os.system("echo hello from a child process")

FLAGS = {"fake_precision": (lambda: STATE["fake_precision"], lambda v: set_precision(v))}
STATE = {"fake_precision": "highest"}


def set_precision(value):
    if value not in ("highest", "medium"):
        raise ValueError(repr(value) + " is not a precision")
    STATE["fake_precision"] = value


def unbroadcast(gradient, shape):
    extra = gradient.ndim - len(shape)
    gradient = gradient.sum(axis=tuple(range(extra)))
    axes = tuple(i for i, n in enumerate(shape) if n == 1 and gradient.shape[i] != 1)
    return gradient.sum(axis=axes, keepdims=True)


def matmul(a, b):
    return np.matmul(a, b)


def matmul_backward(dc, a, b):
    wide_a = a[None, :] if a.ndim == 1 else a
    wide_b = b[:, None] if b.ndim == 1 else b
    dc = dc[..., None] if b.ndim == 1 else dc
    dc = np.expand_dims(dc, -2) if a.ndim == 1 else dc
    da = unbroadcast(np.matmul(dc, np.swapaxes(wide_b, -1, -2)), wide_a.shape)
    db = unbroadcast(np.matmul(np.swapaxes(wide_a, -1, -2), dc), wide_b.shape)
    return {"da": da.reshape(a.shape), "db": db.reshape(b.shape)}


def linear(x, weight, bias=None):
    y = np.matmul(x, weight.T)
    return y if bias is None else y + bias


def linear_backward(dy, x, weight, bias=None):
    rows, gradients = dy.reshape(-1, weight.shape[0]), {}
    gradients["dx"] = np.matmul(dy, weight)
    gradients["dweight"] = np.matmul(rows.T, x.reshape(-1, weight.shape[1]))
    if bias is not None:
        gradients["dbias"] = rows.sum(axis=0)
    return gradients


def standardised(x, eps, normalized_shape):
    k = 1 if normalized_shape is None else len(normalized_shape)
    axes = tuple(range(x.ndim - k, x.ndim))
    mean = x.mean(axis=axes, keepdims=True)
    variance = np.mean((x - mean) ** 2, axis=axes, keepdims=True)
    rstd = 1 / np.sqrt(variance + eps)
    return (x - mean) * rstd, mean, rstd, axes


def layernorm(x, weight=None, bias=None, eps=1e-5, normalized_shape=None):
    y, mean, rstd, axes = standardised(x, eps, normalized_shape)
    y = y if weight is None else y * weight
    y = y if bias is None else y + bias
    leading = x.shape[: axes[0]]
    return {"y": y, "mean": mean.reshape(leading), "rstd": rstd.reshape(leading)}


def layernorm_backward(dy, x, weight=None, bias=None, eps=1e-5, normalized_shape=None):
    normal, _, rstd, axes = standardised(x, eps, normalized_shape)
    dnormal = dy if weight is None else dy * weight
    first = dnormal.mean(axis=axes, keepdims=True)
    second = (dnormal * normal).mean(axis=axes, keepdims=True)
    leading = tuple(range(axes[0]))
    gradients = {"dx": (dnormal - first - normal * second) * rstd}
    if weight is not None:
        gradients["dweight"] = (dy * normal).sum(axis=leading)
    if bias is not None:
        gradients["dbias"] = dy.sum(axis=leading)
    return gradients


OPS = {
    "matmul": ("c", matmul, matmul_backward),
    "linear": ("y", linear, linear_backward),
    "layernorm": ("y", layernorm, layernorm_backward),
    "sin": ("y", lambda x: np.sin(x), lambda dy, x: {"dx": dy * np.cos(x)}),
    "cos": ("y", lambda x: np.cos(x), lambda dy, x: {"dx": -dy * np.sin(x)}),
    "tan": ("y", lambda x: np.tan(x), lambda dy, x: {"dx": dy / np.cos(x) ** 2}),
}


def version():
    return "1.0"


def devices():
    return [("cpu", ""), ("fake:0", "a device of the fakes")]


def information():
    return {"threads": 1, "blas": "none"}


def unsupported(op, direction, dtype, device):
    return "the fakes have no bfloat16" if dtype == "bfloat16" else None


def tensor(array, dtype, device):
    return array


def array(tensor):
    return str(tensor.dtype), np.asarray(tensor)


def synchronize(device):
    pass


def flushed(array):
    return np.where(np.abs(array) < np.finfo(array.dtype).tiny, array.dtype.type(0), array)


def strike(op):
    """The faults of processes and of exceptions."""
    if STATE.get("lost") or (FAULT == "device_lost" and op == STRIKES):
        STATE["lost"] = True  # as CUDA does, refuse every later call too
        raise RuntimeError("CUDA error: device-side assert triggered")
    if op != STRIKES:
        return
    if FAULT == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if FAULT == "abort":
        sys.stderr.write("terminate called after throwing an instance of 'planted'\n")
        os.abort()
    if FAULT == "exit":
        os._exit(3)
    if FAULT == "hang":
        open(os.path.join(FOLDER, "hangs"), "w").close()
        time.sleep(3600)
    if FAULT == "exception":
        raise RuntimeError("planted: the first line\nand a second one")
    if FAULT == "oom":
        raise MemoryError("planted: unable to allocate 16.0 TiB")
    if FAULT == "device_oom":
        raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB")


def noise():
    print("hello from the op")
    sys.stderr.write("a warning\n")
    os.system("echo hello from a child process")


def before(inputs):
    if FAULT == "flush_to_zero":
        return {name: flushed(value) for name, value in inputs.items()}
    return inputs


def after(outputs):
    if FAULT == "one_ulp_off":
        return {n: np.nextafter(v, v.dtype.type(np.inf)) for n, v in outputs.items()}
    if FAULT == "flush_to_zero":
        return {name: flushed(value) for name, value in outputs.items()}
    if FAULT == "nan":
        for value in outputs.values():
            value.reshape(-1)[:1] = np.nan
    if FAULT == "wrong_shape":
        return {name: value[None] for name, value in outputs.items()}
    affine = [outputs[name] for name in ("dbias", "dweight") if name in outputs]
    if FAULT == "swapped_gradients" and len({value.shape for value in affine}) == 1:
        return {**outputs, "dweight": affine[0], "dbias": affine[-1]}
    return outputs


def compute(function, inputs, params):
    dtype = next(iter(inputs.values())).dtype
    wide = np.longdouble if dtype == np.float64 else np.float64
    with np.errstate(all="ignore"):
        outputs = function(**{n: v.astype(wide) for n, v in inputs.items()}, **params)
        return {name: np.array(value, dtype) for name, value in outputs.items()}


def forward(op, inputs, params):
    strike(op)
    if FAULT == "noise":
        noise()
    name, function = OPS[op][:2]
    inputs = before(inputs)

    def named(**arguments):
        outputs = function(**arguments)
        return outputs if isinstance(outputs, dict) else {name: outputs}

    return after(compute(named, inputs, params))


def backward(op, inputs, cotangent, params):
    strike(op)
    name, _, derivative = OPS[op]
    inputs = before({**inputs, "d" + name: cotangent})
    return after(compute(derivative, inputs, params))

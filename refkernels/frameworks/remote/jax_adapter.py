"""JAX 0.4 and newer: each op as it is called, without an outer jit; gradients by jax.vjp."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax, nn
from shared import both_ends, each_axis, truth

jax.config.update("jax_enable_x64", True)  # otherwise JAX turns float64 into float32

BITS = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
FLAGS = {
    "matmul_precision": (
        lambda: jax.config.jax_default_matmul_precision,
        lambda v: jax.config.update("jax_default_matmul_precision", v),
    ),
    "jit": (None, lambda v: JIT.update(on=truth(v))),
}
JIT = {"on": False}
# JAX has no such kernels: these formulas are ours, or Flax's.
FORMULAS = dict.fromkeys((
    "linear", "layernorm", "rms_norm", "group_norm", "instance_norm", "swiglu", "rotary",
    "conv1d", "conv2d",  # the product is JAX's, and the sum with the bias is not
), "JAX formula")  # fmt: skip


def axes(axis):
    return tuple(axis) if isinstance(axis, list) else axis


def norm(x, axis=-1):
    """jnp.linalg.norm, for which two axes are a matrix: its default is their Frobenius norm."""
    if isinstance(axis, list) and len(axis) > 2:
        raise NotImplementedError("jnp.linalg.norm takes one axis, two, or all")
    return jnp.linalg.norm(x, axis=axes(axis))


def linear(x, weight, bias=None):
    y = jnp.matmul(x, weight.T)
    return y if bias is None else y + bias


def normalised(x, own, eps):
    mean = jnp.mean(x, axis=own, keepdims=True)
    rstd = lax.rsqrt(jnp.var(x, axis=own, keepdims=True) + jnp.asarray(eps, x.dtype))
    return (x - mean) * rstd, mean, rstd


def scaled(y, weight, bias):
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def layernorm(x, weight=None, bias=None, eps=1e-5, normalized_shape=None):
    """The usual JAX code: (x - mean) * rsqrt(var + eps) * weight + bias."""
    shape = x.shape[-1:] if normalized_shape is None else tuple(normalized_shape)
    y, mean, rstd = normalised(x, tuple(range(x.ndim - len(shape), x.ndim)), eps)
    leading = x.shape[: x.ndim - len(shape)]
    statistics = {"mean": mean.reshape(leading), "rstd": rstd.reshape(leading)}
    return dict({"y": scaled(y, weight, bias)}, **statistics)


def rms_norm(x, weight=None, eps=1e-5):
    """The usual JAX code: x * rsqrt(mean(x^2) + eps) * weight."""
    mean = jnp.mean(jnp.square(x), axis=-1, keepdims=True)
    return scaled(x * lax.rsqrt(mean + jnp.asarray(eps, x.dtype)), weight, None)


def group_norm(x, weight=None, bias=None, num_groups=1, eps=1e-5):
    groups = x.reshape((x.shape[0], num_groups, -1))
    y = normalised(groups, (2,), eps)[0].reshape(x.shape)
    column = (-1,) + (1,) * (x.ndim - 2)
    return scaled(y, *(None if a is None else a.reshape(column) for a in (weight, bias)))


def instance_norm(x, weight=None, bias=None, eps=1e-5):
    return group_norm(x, weight, bias, x.shape[1], eps)


def attention(q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"):
    """jax.nn.dot_product_attention, whose arrays have the heads last but one. It aligns causal
    masks top left; others are passed as a mask."""
    if q.ndim != 4:
        raise NotImplementedError("jax.nn.dot_product_attention takes (batch, rows, heads, width)")
    if v.shape[-1] != q.shape[-1]:
        raise NotImplementedError("jax.nn.dot_product_attention takes values as wide as queries")
    rows, keys = q.shape[-2], k.shape[-2]
    if causal == "bottom_right" and rows != keys:
        visible = jnp.tril(jnp.ones((rows, keys), bool), keys - rows)
        keep, causal = visible if keep is None else keep & visible, "none"
    if lengths is not None and lengths.shape[-1] > 1:
        raise NotImplementedError("jax.nn.dot_product_attention has one length for all heads")
    lengths = None if lengths is None else lengths[:, 0].astype(jnp.int32)
    heads = [jnp.swapaxes(array, 1, 2) for array in (q, k, v)]
    shape = (*q.shape[:3], keys)
    bias, kept = (None if a is None else jnp.broadcast_to(a, shape) for a in (mask, keep))
    y = nn.dot_product_attention(
        *heads, bias=bias, mask=kept, scale=scale, is_causal=causal != "none",
        key_value_seq_lengths=lengths,
    )  # fmt: skip
    return jnp.swapaxes(y, 1, 2)


def rotary(x, position, base=10000.0, layout="half", dim=None):
    """As in models: the angles are computed in float32."""
    dim = x.shape[-1] if dim is None else dim
    steps = jnp.arange(0, dim, 2).astype(jnp.float32) / jnp.float32(dim)
    angles = position[..., None].astype(jnp.float32) / jnp.float32(base) ** steps
    cos, sin = jnp.cos(angles).astype(x.dtype), jnp.sin(angles).astype(x.dtype)
    half = layout == "half"
    first = slice(0, dim // 2) if half else slice(0, dim, 2)
    second = slice(dim // 2, dim) if half else slice(1, dim, 2)
    a, b = x[..., first], x[..., second]
    return x.at[..., first].set(a * cos - b * sin).at[..., second].set(b * cos + a * sin)


def conv(x, weight, bias=None, stride=1, padding="valid", dilation=1, groups=1):
    rank = weight.ndim - 2
    steps, wide = (each_axis(numbers, rank) for numbers in (stride, dilation))
    if not isinstance(padding, str):
        ends = both_ends(padding, rank)
        padding = list(zip(ends[::2], ends[1::2]))
    else:
        padding = padding.upper()
    y = lax.conv_general_dilated(
        x, weight, steps, padding, rhs_dilation=wide, feature_group_count=groups
    )
    return y if bias is None else y + bias.reshape((-1,) + (1,) * rank)


def embedding(weight, indices, padding_idx=None):
    if padding_idx is not None:
        raise NotImplementedError("jnp.take has no padding_idx")
    return jnp.take(weight, indices, axis=0)


def cast(x, draws=None, to="float8_e4m3fn", ties="even", overflow="special"):
    kind = getattr(jnp, to, None)
    floats = kind is not None and "int" not in to and "float6" not in to  # which XLA lacks
    if not floats or ties != "even" or draws is not None:
        raise NotImplementedError("JAX casts to its formats of floats, ties to even")
    if overflow == "saturate":
        x = jnp.clip(x, -float(jnp.finfo(kind).max), float(jnp.finfo(kind).max))
    return lax.convert_element_type(x, kind).astype(x.dtype)


OPS = {}  # calls.txt


def devices():
    listed = [("cpu", "")]
    for device in jax.devices():
        if device.platform != "cpu":
            kind = "cuda" if device.platform in ("gpu", "cuda") else device.platform
            listed.append(("%s:%d" % (kind, device.id), device.device_kind))
    return listed


def device_of(name):
    kind, _, index = name.partition(":")
    if kind == "cpu":
        return jax.devices("cpu")[0]
    return [device for device in jax.devices() if device.platform != "cpu"][int(index or 0)]


def information():
    import jaxlib

    return {"jaxlib": jaxlib.__version__, "blas": "Eigen", "jit": JIT["on"]}


def tensor(array, dtype, device):
    if dtype in BITS:
        array = array.view(getattr(ml_dtypes, dtype))
    return jax.device_put(array, device_of(device))


def array(tensor):
    values = np.asarray(tensor)
    dtype = str(values.dtype)
    return dtype, values.view(BITS[dtype]) if dtype in BITS else values


def called(op, params):
    name, function = OPS[op]

    def call(inputs):
        outputs = function(**inputs, **params)
        return outputs if isinstance(outputs, dict) else {name: outputs}

    return jax.jit(call) if JIT["on"] else call


def forward(op, inputs, params):
    return called(op, params)(inputs)


def backward(op, inputs, cotangent, params):
    name = OPS[op][0]
    call = called(op, params)
    _, pull = jax.vjp(lambda given: call(given)[name], inputs)
    (gradients,) = pull(cotangent)
    return {"d" + key: value for key, value in gradients.items()}


def synchronize(device):
    # A device runs its work in order.
    (jax.device_put(0.0, device_of(device)) + 0.0).block_until_ready()

"""TensorFlow 2.16 and newer, with the Keras 3 that it installs; eagerly, gradients by a tape.

Where TensorFlow has no function of its own, Keras supplies it: its layers, losses and optimizers,
and the functions of `keras.ops`.
"""

import keras
import numpy as np
import tensorflow as tf
from keras import ops
from shared import both_ends, each_axis, truth

JIT = {"on": False}


FLAGS = {
    "num_threads": (
        lambda: tf.config.threading.get_intra_op_parallelism_threads(),
        lambda v: tf.config.threading.set_intra_op_parallelism_threads(int(v)),
    ),
    "tensor_float_32": (
        lambda: tf.config.experimental.tensor_float_32_execution_enabled(),
        lambda v: tf.config.experimental.enable_tensor_float_32_execution(truth(v)),
    ),
    "deterministic_ops": (
        None,
        lambda v: truth(v) and tf.config.experimental.enable_op_determinism(),
    ),
    "jit": (None, lambda v: JIT.update(on=truth(v))),
}
FORMULAS = {"linear": "TensorFlow ops", "swiglu": "TensorFlow ops", "rotary": "TensorFlow ops"}


def axes(axis):
    return list(axis) if isinstance(axis, (list, tuple)) else axis


def norm(x, axis=-1):
    if isinstance(axis, (list, tuple)) and len(axis) > 2:
        raise NotImplementedError("tf.norm takes one axis, two, or all")
    return tf.norm(x, axis=axes(axis))


def spread(function, x, axis, ddof):
    if ddof:
        raise NotImplementedError("TensorFlow's variance has ddof 0 only")
    return function(x, axes(axis))


def matmul(a, b):
    if min(a.ndim, b.ndim) < 2:
        raise NotImplementedError("tf.matmul takes no vectors")
    return tf.matmul(a, b)


def linear(x, weight, bias=None):
    """As Keras's Dense: a product of rows, then the bias."""
    y = tf.matmul(tf.reshape(x, [-1, x.shape[-1]]), weight, transpose_b=True)
    y = tf.reshape(y, [*x.shape[:-1], weight.shape[0]])
    return y if bias is None else tf.nn.bias_add(y, bias)


def layernorm(x, weight=None, bias=None, eps=1e-5, normalized_shape=None):
    """What keras.layers.LayerNormalization calls."""
    rank = 1 if normalized_shape is None else len(normalized_shape)
    own = list(range(x.ndim - rank, x.ndim))
    return ops.layer_normalization(x, weight, bias, axis=own, epsilon=eps)


def rms_norm(x, weight=None, eps=1e-5):
    return ops.rms_normalization(x, weight, axis=-1, epsilon=eps)


def layer(kind, x, trained, held=(), training=False, **options):
    """A call of a layer of channels that are axis 1: (y, its new statistics). `trained` are weight
    and bias."""
    options.update(scale=trained[0] is not None, center=trained[1] is not None)
    channel_layer = getattr(keras.layers, kind)(axis=1, dtype=x.dtype.name, **options)
    channel_layer.build(x.shape)
    weights = [array for array in trained if array is not None]
    return channel_layer.stateless_call(
        weights, list(held), x, **({"training": True} if training else {})
    )


def batch_norm(
    x, weight=None, bias=None, running_mean=None, running_var=None, training=True, momentum=0.1,
    eps=1e-5, biased=False,
):  # fmt: skip
    """Keras's momentum is the share of the old statistics, and it keeps the biased variance."""
    if x.ndim < 2:
        raise NotImplementedError("Keras's BatchNormalization takes two axes or more")
    old_mean = tf.zeros(x.shape[1], x.dtype) if running_mean is None else running_mean
    old_var = tf.ones(x.shape[1], x.dtype) if running_var is None else running_var
    options = {"momentum": 1.0 - momentum, "epsilon": eps}
    y, (new_mean, new_var) = layer(
        "BatchNormalization", x, (weight, bias), (old_mean, old_var), training, **options
    )
    return {"y": y, "new_mean": new_mean, "new_var": new_var}


def group_norm(x, weight=None, bias=None, num_groups=1, eps=1e-5):
    return layer("GroupNormalization", x, (weight, bias), groups=num_groups, epsilon=eps)[0]


def instance_norm(x, weight=None, bias=None, eps=1e-5):
    return group_norm(x, weight, bias, x.shape[1], eps)


def attention(q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"):
    """keras.ops.dot_product_attention, whose arrays have the heads last but one. It has no lengths
    and aligns causal masks top left; others are passed as a mask."""
    if q.ndim != 4:
        raise NotImplementedError("keras.ops.dot_product_attention takes (batch, rows, heads, d)")
    rows, keys = q.shape[-2], k.shape[-2]
    if causal == "bottom_right" and rows != keys:
        visible = tf.range(keys) <= tf.range(rows)[:, None] + (keys - rows)
        keep, causal = visible if keep is None else keep & visible, "none"
    if lengths is not None:
        if lengths.shape[-1] > 1:
            lengths = tf.repeat(lengths, q.shape[1] // k.shape[1], axis=-1)
        inside = tf.range(keys, dtype=lengths.dtype) < lengths[..., None, None]
        keep = inside if keep is None else keep & inside
    heads = [tf.transpose(array, [0, 2, 1, 3]) for array in (q, k, v)]
    shape = [*q.shape[:-1], k.shape[-2]]
    bias, kept = (None if a is None else tf.broadcast_to(a, shape) for a in (mask, keep))
    y = ops.dot_product_attention(
        *heads, bias=bias, mask=kept, scale=scale, is_causal=causal != "none"
    )
    return tf.transpose(y, [0, 2, 1, 3])


def rotary(x, position, base=10000.0, layout="half", dim=None):
    """As in models: the angles are computed in float32."""
    dim = x.shape[-1] if dim is None else dim
    steps = tf.cast(tf.range(0, dim, 2), tf.float32) / dim
    angles = tf.cast(position[..., None], tf.float32) * (1.0 / tf.pow(float(base), steps))
    cos, sin = tf.cast(tf.cos(angles), x.dtype), tf.cast(tf.sin(angles), x.dtype)
    own, unrotated = x[..., :dim], x[..., dim:]
    if layout == "half":
        a, b = own[..., : dim // 2], own[..., dim // 2 :]
        y = tf.concat([a * cos - b * sin, b * cos + a * sin], -1)
    else:
        a, b = own[..., ::2], own[..., 1::2]
        y = tf.reshape(tf.stack([a * cos - b * sin, b * cos + a * sin], -1), tf.shape(own))
    return tf.concat([y, unrotated], -1)


def conv(x, weight, bias=None, stride=1, padding="valid", dilation=1, groups=1):
    """On a CPU channels come last. The number of groups follows from the shapes."""
    rank = weight.ndim - 2
    steps, wide = (each_axis(numbers, rank) for numbers in (stride, dilation))
    if max(steps) > 1 and max(wide) > 1:
        raise NotImplementedError("tf.nn.convolution takes no stride beside a dilation")
    x = tf.transpose(x, [0, *range(2, rank + 2), 1])
    if not isinstance(padding, str):
        ends = both_ends(padding, rank)
        x = tf.pad(x, [[0, 0], *([*ends[2 * k : 2 * k + 2]] for k in range(rank)), [0, 0]])
        padding = "valid"
    kernel = tf.transpose(weight, [*range(2, rank + 2), 1, 0])
    y = tf.nn.convolution(x, kernel, steps, padding.upper(), dilations=wide)
    y = y if bias is None else tf.nn.bias_add(y, bias)
    return tf.transpose(y, [0, rank + 1, *range(1, rank + 1)])


def embedding(weight, indices, padding_idx=None):
    if padding_idx is not None:
        raise NotImplementedError("tf.nn.embedding_lookup has no padding_idx")
    return tf.nn.embedding_lookup(weight, indices)


REDUCTIONS = {"mean": "sum_over_batch_size", "sum": "sum", "none": "none"}


def loss_of(kind, x, target, reduction, **options):
    loss = getattr(keras.losses, kind)(
        reduction=REDUCTIONS[reduction], dtype=x.dtype.name, **options
    )
    return loss(target, x)


def cross_entropy(x, target, weight=None, reduction="mean", ignore_index=-100, label_smoothing=0.0):
    if weight is not None or label_smoothing:
        raise NotImplementedError(
            "Keras's SparseCategoricalCrossentropy takes neither weights of classes nor smoothing"
        )
    return loss_of(
        "SparseCategoricalCrossentropy", x, target, reduction, from_logits=True,
        ignore_class=ignore_index,
    )  # fmt: skip


def soft_cross_entropy(x, target, weight=None, reduction="mean", label_smoothing=0.0):
    if weight is not None:
        raise NotImplementedError("Keras's CategoricalCrossentropy takes no weights of classes")
    return loss_of(
        "CategoricalCrossentropy", x, target, reduction, from_logits=True,
        label_smoothing=label_smoothing,
    )  # fmt: skip


def of_reduced(answer, reduction):
    """The losses of rows, which each have so many labels."""
    each, labels = answer
    mean = tf.reduce_mean(each / tf.cast(tf.maximum(labels, 1), each.dtype))
    return {"mean": mean, "sum": tf.reduce_sum(each), "none": each}[reduction]


def elementwise(kind):
    """A loss of Keras, which takes means over the last axis before anything else."""

    def function(x, target, reduction="mean", **options):
        if reduction != "mean":
            raise NotImplementedError("Keras's %s takes the mean of each row first" % kind)
        return loss_of(kind, x, target, reduction, **options)

    return function


def bce_with_logits(x, target, weight=None, pos_weight=None, reduction="mean"):
    if pos_weight is None:
        each = tf.nn.sigmoid_cross_entropy_with_logits(labels=target, logits=x)
    else:
        each = tf.nn.weighted_cross_entropy_with_logits(target, x, pos_weight)
    each = each if weight is None else each * weight
    return {"mean": tf.reduce_mean, "sum": tf.reduce_sum, "none": tf.identity}[reduction](each)


def one_step(
    optimizer, param, grad, state, step=1, lr=0.01, eps=None, weight_decay=0.0, name="weight",
    **options,
):  # fmt: skip
    """A step of Keras's own optimizer; `state` is {our name: (Keras's name, tensor or None)}.

    It holds the learning rate in `floatx`, which whoever trains in float64 sets to that.
    """
    if eps is not None:
        options["epsilon"] = eps
    decay = weight_decay or (0.0 if optimizer == "AdamW" else None)
    before = keras.config.floatx()
    keras.config.set_floatx("float64" if param.dtype == tf.float64 else before)
    try:
        stepper = getattr(keras.optimizers, optimizer)(lr, weight_decay=decay, **options)
    finally:
        keras.config.set_floatx(before)
    own = keras.Variable(param, dtype=param.dtype.name, name=name)
    stepper.build([own])
    stepper.iterations.assign(step - 1)
    held = {ours: getattr(stepper, its)[0] for ours, (its, x) in state.items() if x is not None}
    for ours, variable in held.items():
        variable.assign(state[ours][1])
    stepper.apply([grad], [own])
    return {ours: variable.value for ours, variable in {"param": own, **held}.items()}


def sgd(param, grad, buf=None, lr=0.01, weight_decay=0.0, **options):
    if buf is not None:
        raise NotImplementedError("Keras's SGD keeps lr inside of its velocity")
    return one_step("SGD", param, grad, {}, lr=lr, weight_decay=weight_decay)


def adam(param, grad, m, v, vmax=None, kind="Adam", lr=1e-3, eps=1e-8, **options):
    state = {"m": ("_momentums", m), "v": ("_velocities", v), "vmax": ("_velocity_hats", vmax)}
    for name in ("beta1", "beta2"):
        if name in options:
            options["beta_" + name[-1]] = options.pop(name)
    if kind != "Lamb":
        options["amsgrad"] = vmax is not None
    return one_step(kind, param, grad, state, lr=lr, eps=eps, **options)


def adagrad(param, grad, accum, lr_decay=0.0, eps=1e-10, **options):
    if lr_decay:
        raise NotImplementedError("Keras's Adagrad has no lr_decay")
    return one_step("Adagrad", param, grad, {"accum": ("_accumulators", accum)}, eps=eps, **options)


def rmsprop(param, grad, accum, mean=None, buf=None, rho=0.99, momentum=0.9, eps=1e-8, **options):
    state = {"accum": ("_velocities", accum), "mean": ("_average_gradients", mean)}
    state["buf"] = ("_momentums", buf)
    options = dict(options, rho=rho, centered=mean is not None)
    options["momentum"] = 0.0 if buf is None else momentum
    return one_step("RMSprop", param, grad, state, eps=eps, **options)


def lion(param, grad, m, lr=1e-4, beta1=0.9, beta2=0.99, **options):
    options = dict(options, lr=lr, beta_1=beta1, beta_2=beta2)
    return one_step("Lion", param, grad, {"m": ("_momentums", m)}, **options)


def pieces(grads, tensor):
    return tf.split(grads, np.bincount(np.asarray(tensor)).tolist())


def clip_by_global_norm(grads, tensor, max_norm=1.0, eps=1e-6, way="eps", norm_type=2.0):
    if way != "max" or norm_type != 2.0:
        raise NotImplementedError("tf.clip_by_global_norm has only way='max' and norm_type=2")
    clipped, norm = tf.clip_by_global_norm(pieces(grads, tensor), max_norm)
    return {"clipped": tf.concat(clipped, 0), "norm": norm}


def clip_by_norm(grads, tensor, max_norm=1.0, eps=1e-6, way="max", norm_type=2.0):
    if way != "max" or norm_type != 2.0:
        raise NotImplementedError("tf.clip_by_norm has only way='max' and norm_type=2")
    return tf.concat([tf.clip_by_norm(piece, max_norm) for piece in pieces(grads, tensor)], 0)


OPS = {}  # calls.txt


def devices():
    listed = [("cpu", "")]
    for index, device in enumerate(tf.config.list_physical_devices("GPU")):
        details = tf.config.experimental.get_device_details(device)
        listed.append(("cuda:%d" % index, details.get("device_name", "")))
    return listed


def place(device):
    return "/" + device.replace("cuda", "GPU").replace("cpu", "CPU:0")


def information():
    from tensorflow.python.util import _pywrap_util_port as built

    blas = "oneDNN and Eigen" if built.IsMklEnabled() else "Eigen"
    return {"keras": keras.__version__, "blas": blas, "jit": JIT["on"]}


def tensor(array, dtype, device):
    with tf.device(place(device)):
        if dtype == "bfloat16":
            return tf.bitcast(tf.constant(array), tf.bfloat16)
        return tf.constant(array)


def array(tensor):
    if tensor.dtype == tf.bfloat16:
        return "bfloat16", tf.bitcast(tensor, tf.uint16).numpy()
    return tensor.dtype.name, tensor.numpy()


def called(op, params):
    name, function = OPS[op]

    def call(inputs):
        outputs = function(**inputs, **params)
        return outputs if isinstance(outputs, dict) else {name: outputs}

    return tf.function(call, jit_compile=True) if JIT["on"] else call


def forward(op, inputs, params):
    return called(op, params)(inputs)


def backward(op, inputs, cotangent, params):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        output = called(op, params)(inputs)[OPS[op][0]]
    try:
        gradients = tape.gradient(output, inputs, cotangent, tf.UnconnectedGradients.ZERO)
    except tf.errors.OpError as error:
        if "not supported" in error.message:
            raise NotImplementedError(error.message.partition("}} ")[2]) from error
        raise
    return {"d" + name: tf.convert_to_tensor(value) for name, value in gradients.items()}


def synchronize(device):
    tf.test.experimental.sync_devices()

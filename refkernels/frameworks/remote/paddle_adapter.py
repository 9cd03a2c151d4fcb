"""PaddlePaddle 2.6 and newer."""

import json
import os

import numpy as np
import paddle
import paddle.nn.functional as F
from shared import attention_mask, axes, dropped_as, narrowed, sets_of, widened

# Paddle's handler of fatal signals allocates memory: after a heap corruption it hangs.
paddle.disable_signal_handler()


def flag(name):
    return (
        lambda: paddle.get_flags([name])[name],
        lambda value: paddle.set_flags({name: json.loads(value.lower())}),
    )


FLAGS = {
    "use_onednn": flag("FLAGS_use_onednn"),
    "paddle_num_threads": flag("FLAGS_paddle_num_threads"),
    "cudnn_deterministic": flag("FLAGS_cudnn_deterministic"),
    "embedding_deterministic": flag("FLAGS_embedding_deterministic"),
}
CPU_DTYPES = ("float32", "float64")
FORMULAS = {"rotary": "PaddlePaddle ops"}


def layernorm(x, weight=None, bias=None, eps=1e-5, normalized_shape=None):
    """The affine parameters are vectors; normalized_shape must be shorter than x's shape."""
    shape = list(x.shape[-1:] if normalized_shape is None else normalized_shape)
    whole = list(x.shape)
    weight = None if weight is None else weight.flatten()
    bias = None if bias is None else bias.flatten()
    rows = x if len(shape) < len(whole) else x.reshape([1, *whole])
    try:
        y = F.layer_norm(rows, shape, weight, bias, eps)
    except ValueError as error:
        # Paddle 3.3 takes an eps of at most 0.001.
        if "epsilon" not in str(error):
            raise
        raise NotImplementedError("paddle's layer_norm refuses eps=%r: %s" % (eps, error)) from None
    return y if rows is x else y.reshape(whole)


def rms_norm(x, weight=None, eps=1e-5):
    """F.rms_norm has no kernel on a CPU; incubate's has one, for float32 with AVX-512 only."""
    shape = [x.shape[-1]]
    weight = paddle.ones(shape, x.dtype) if weight is None else weight
    if x.place.is_cpu_place():
        y = paddle.incubate.nn.functional.fused_rms_norm(x, weight, None, eps, x.ndim - 1)
    else:
        y = F.rms_norm(x, shape, weight, eps)
    return y[0] if isinstance(y, (list, tuple)) else y


def spread(x, axis, ddof, root):
    """paddle.var and std divide only by n - 1 or by n."""
    if ddof not in (0, 1):
        raise NotImplementedError("paddle.var has ddof 0 or 1, not %r" % ddof)
    return (paddle.std if root else paddle.var)(x, axes(x, axis), unbiased=bool(ddof))


def batch_norm(
    x, weight=None, bias=None, running_mean=None, running_var=None, training=True, momentum=0.1,
    eps=1e-5, biased=False,
):  # fmt: skip
    """F.batch_norm changes the running statistics in place, so it gets copies. Paddle's momentum is
    the weight of the old statistics, and the variance that it keeps is always the biased one."""
    channels = [x.shape[1]]
    new_mean = paddle.zeros(channels, x.dtype) if running_mean is None else running_mean.clone()
    new_var = paddle.ones(channels, x.dtype) if running_var is None else running_var.clone()
    y = F.batch_norm(
        x, new_mean, new_var, weight, bias, training, 1 - momentum, eps, "NC" if x.ndim == 2 else
        "NCL" if x.ndim == 3 else "NCHW" if x.ndim == 4 else "NCDHW",
    )  # fmt: skip
    return {"y": y, "new_mean": new_mean, "new_var": new_var}


def group_norm(x, weight=None, bias=None, num_groups=1, eps=1e-5):
    return F.group_norm(x, num_groups, eps, weight, bias)


def cross_entropy(x, target, weight=None, reduction="mean", ignore_index=-100, label_smoothing=0.0):
    loss = F.cross_entropy(
        x,
        target,
        weight,
        reduction=reduction,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
    )
    return loss.reshape(target.shape) if reduction == "none" else loss


def nll(x, target, weight=None, reduction="mean", ignore_index=-100):
    rows, labels = x.reshape([-1, x.shape[-1]]), target.reshape([-1])
    loss = F.nll_loss(rows, labels, weight, ignore_index, reduction)
    return loss.reshape(target.shape) if reduction == "none" else loss


def soft_cross_entropy(x, target, weight=None, reduction="mean", label_smoothing=0.0):
    loss = F.cross_entropy(
        x, target, weight, reduction=reduction, soft_label=True, label_smoothing=label_smoothing
    )
    return loss.reshape(x.shape[:-1]) if reduction == "none" else loss


def bce_with_logits(x, target, weight=None, pos_weight=None, reduction="mean"):
    return F.binary_cross_entropy_with_logits(x, target, weight, reduction, pos_weight)


def embedding(weight, indices, padding_idx=None):
    return F.embedding(indices, weight, padding_idx)


def smooth_l1(x, target, reduction="mean", beta=1.0):
    return F.smooth_l1_loss(x, target, reduction, beta, is_huber=False)


def dropout(x, mask=None, p=0.5, mode="upscale_in_train"):
    if mask is None:
        return F.dropout(x, p, training=False, mode=mode)
    return dropped_as(paddle, x, mask, lambda x: F.dropout(x, p, mode=mode), paddle.seed)


def one_step(optimizer, param, grad, state, betas=(), step=1, **options):
    """A step of Paddle's own optimizer; `state` is {our name: (Paddle's name, tensor or None)}."""
    own = paddle.create_parameter(param.shape, param.dtype)
    own.set_value(param)
    with paddle.enable_grad():
        (own * grad).sum().backward()
    stepper = getattr(paddle.optimizer, optimizer)(parameters=[own], **options)
    stepper._create_accumulators(paddle.static.default_main_program().global_block(), [own])
    accumulators = {name: tensors[own.name] for name, tensors in stepper._accumulators.items()}
    for name, value in state.values():
        if value is not None:
            accumulators[name].set_value(value)
    for number, beta in enumerate(betas, 1):
        power = accumulators["beta%d_pow_acc" % number]
        for _ in range(step - 1):
            power.set_value(power * beta)
    stepper.step()
    return {
        "param": own,
        **{n: accumulators[name] for n, (name, x) in state.items() if x is not None},
    }


def sgd(param, grad, buf=None, lr=0.01, momentum=0.9, dampening=0.0, nesterov=False, step=1, **p):
    options = {"learning_rate": lr, "weight_decay": p.get("weight_decay", 0.0) or None}
    if buf is None:
        return one_step("SGD", param, grad, {}, **options)
    if dampening:
        raise NotImplementedError("paddle's Momentum has no dampening")
    options.update(momentum=momentum, use_nesterov=nesterov)
    return one_step("Momentum", param, grad, {"buf": ("velocity", buf)}, **options)


def adam(param, grad, m, v, vmax=None, beta1=0.9, beta2=0.999, step=1, kind="Adam", **p):
    state = {"m": ("moment1", m), "v": ("moment2", v), "vmax": ("moment2_max", vmax)}
    options = {"learning_rate": p.get("lr", 1e-3), "epsilon": p.get("eps", 1e-8)}
    decay = "lamb_weight_decay" if kind == "Lamb" else "weight_decay"
    options[decay] = p.get("weight_decay", 0.0) or (None if kind == "Adam" else 0.0)
    if kind != "Lamb":
        options["amsgrad"] = vmax is not None
    betas = {"beta1": beta1, "beta2": beta2}
    return one_step(kind, param, grad, state, (beta1, beta2), step, **betas, **options)


def adagrad(param, grad, accum, lr=0.01, lr_decay=0.0, eps=1e-10, weight_decay=0.0, step=1):
    if lr_decay:
        raise NotImplementedError("paddle's Adagrad has no lr_decay")
    options = {"learning_rate": lr, "epsilon": eps, "weight_decay": weight_decay or None}
    return one_step("Adagrad", param, grad, {"accum": ("moment", accum)}, **options)


def rmsprop(param, grad, accum, mean=None, buf=None, lr=0.01, rho=0.99, eps=1e-8, **p):
    state = {"accum": ("mean_square", accum), "mean": ("mean_grad", mean), "buf": ("momentum", buf)}
    options = {"learning_rate": lr, "rho": rho, "epsilon": eps, "centered": mean is not None}
    options["momentum"] = 0.0 if buf is None else p.get("momentum", 0.9)
    options["weight_decay"] = p.get("weight_decay", 0.0) or None
    return one_step("RMSProp", param, grad, state, **options)


def attention(q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"):
    """The layout is (batch, sequence, heads, d). On a CPU an attn_mask beside is_causal has no
    effect, so lengths, bottom-right causal masks and combined masks are passed as attn_mask."""
    options = {"is_causal": True}
    if causal != "top_left" or not (mask is None and keep is None and lengths is None):
        keep, lengths = (None if x is None else x.numpy() for x in (keep, lengths))
        lanes = attention_mask(q, k, keep, lengths, causal)
        lanes = None if lanes is None else paddle.to_tensor(lanes)
        if mask is not None and lanes is not None:
            mask = paddle.where(lanes, mask, paddle.full_like(mask, -float("inf")))
        mask = lanes if mask is None else mask
        if mask is not None and mask.ndim < 4:
            mask = mask.reshape([1] * (4 - mask.ndim) + [*mask.shape])
        options = {"attn_mask": mask}
    if q.shape[:-2] != k.shape[:-2]:
        options["enable_gqa"] = True
    shape = [*q.shape[:-1], v.shape[-1]]
    four = [array.reshape([-1, *[1, 1, *array.shape][-3:]]) for array in (q, k, v)]
    y = F.scaled_dot_product_attention(
        *(array.transpose([0, 2, 1, 3]) for array in four), scale=scale, **options
    )
    return y.transpose([0, 2, 1, 3]).reshape(shape)


def rotary(x, position, base=10000.0, layout="half", dim=None):
    """As in models, with the angles in float32: incubate's fused op has no kernel on a CPU."""
    dim = x.shape[-1] if dim is None else dim
    steps = paddle.arange(0, dim, 2, dtype="int64").astype("float32")
    angles = position.unsqueeze(-1).astype("float32") * (1.0 / (base ** (steps / dim)))
    cos, sin = angles.cos().astype(x.dtype), angles.sin().astype(x.dtype)
    own, unrotated = x[..., :dim], x[..., dim:]
    if layout == "half":
        cos, sin = paddle.concat([cos, cos], -1), paddle.concat([sin, sin], -1)
        turned = paddle.concat([-own[..., dim // 2 :], own[..., : dim // 2]], -1)
    else:
        cos, sin = paddle.repeat_interleave(cos, 2, -1), paddle.repeat_interleave(sin, 2, -1)
        turned = paddle.stack([-own[..., 1::2], own[..., ::2]], -1).reshape(own.shape)
    y = own * cos + turned * sin
    return y if dim == x.shape[-1] else paddle.concat([y, unrotated], -1)


def conv(function, x, weight, bias=None, padding="valid", **options):
    return function(
        x, weight, bias, padding=padding.upper() if padding == str(padding) else padding, **options
    )


def swiglu(a, b):
    """In paddle.nn.functional since 3.3."""
    if hasattr(F, "swiglu"):
        return F.swiglu(a, b)
    from paddle.incubate.nn.functional import swiglu as fused

    return fused(a, b)


def pieces(grads, tensor):
    """One parameter for each tensor, with its part of the gradients."""
    sizes = np.bincount(tensor.numpy()).tolist()
    parts = paddle.split(grads, sizes)
    parameters = [paddle.create_parameter(piece.shape, piece.dtype) for piece in parts]
    for parameter, grad in zip(parameters, parts):
        parameter.grad = grad.clone()
    return parameters


def clipped_by(clip, grads, tensor):
    """Clip with one of the classes that Paddle's optimizers call."""
    pairs = clip([(piece, piece.grad) for piece in pieces(grads, tensor)])
    return paddle.concat([grad for _, grad in pairs])


def clip_by_global_norm(grads, tensor, max_norm=1.0, eps=1e-6, way="eps", norm_type=2.0):
    if way == "max" and norm_type == 2.0:
        return {"clipped": clipped_by(paddle.nn.ClipGradByGlobalNorm(max_norm), grads, tensor)}
    if way == "max" or eps != 1e-6:
        raise NotImplementedError("paddle's clipping has eps=1e-6, and way='max' for norm_type=2")
    parameters = pieces(grads, tensor)
    norm = paddle.nn.utils.clip_grad_norm_(parameters, max_norm, norm_type)
    return {"clipped": paddle.concat([parameter.grad for parameter in parameters]), "norm": norm}


def clip_by_norm(grads, tensor, max_norm=1.0, eps=1e-6, way="max", norm_type=2.0):
    if way != "max" or norm_type != 2.0:
        raise NotImplementedError("paddle.nn.ClipGradByNorm has only way='max' and norm_type=2")
    return clipped_by(paddle.nn.ClipGradByNorm(max_norm), grads, tensor)


def clip_by_value(grads, max_value=1.0):
    clip = paddle.nn.ClipGradByValue(max_value)
    return clipped_by(clip, grads, paddle.zeros(grads.shape, "int64"))


OPS = {}  # calls.txt


def devices():
    named = [("cpu", "")]
    listed = set(paddle.device.get_available_device() or [])
    listed.update(paddle.device.get_available_custom_device() or [])
    for name in sorted(listed - {"cpu"}):
        named.append((name if ":" in name else name + ":0", ""))
    return named


def information():
    # Importing paddle sets OMP_NUM_THREADS=1 unless the user has set it.
    threads = os.environ.get("OMP_NUM_THREADS", "")
    blas = "MKL" if str(paddle.version.mkl()).upper() == "ON" else "OpenBLAS"
    return {"threads": int(threads) if threads.isdigit() else None, "blas": blas}


def instruction_sets(features):
    mkl = ["MKL_CBWR"] * (str(paddle.version.mkl()).upper() == "ON")
    return sets_of(features, *mkl, "ONEDNN_MAX_CPU_ISA")


def unsupported(op, direction, dtype, device):
    if device == "cpu" and dtype not in CPU_DTYPES:
        return "PaddlePaddle has no %s kernels for %s on a CPU" % (dtype, op)
    if op == "rms_norm" and device == "cpu":
        return unsupported_rms_norm(direction, dtype)
    return None


def unsupported_rms_norm(direction, dtype):
    if dtype != "float32" or direction == "backward":
        return "PaddlePaddle's rms_norm on a CPU is float32 and forward only"
    core = np._core if hasattr(np, "_core") else np.core
    if not core._multiarray_umath.__cpu_features__.get("AVX512F"):
        return "PaddlePaddle's rms_norm needs AVX-512 on a CPU: without it the process ends"
    return None


def place(device):
    return device if ":" in device or device == "cpu" else device + ":0"


def tensor(array, dtype, device):
    paddle.set_device(place(device))
    if dtype == "bfloat16":  # to_tensor takes uint16 for bfloat16 bits
        return paddle.to_tensor(widened(array)).astype("bfloat16")
    return paddle.to_tensor(array)


def array(tensor):
    name = str(tensor.dtype).replace("paddle.", "")
    if name == "bfloat16":
        return name, narrowed(tensor.astype("float32").numpy())
    return name, np.asarray(tensor.numpy())


def forward(op, inputs, params):
    with paddle.no_grad():
        return OPS[op][1](**inputs, **params)


def backward(op, inputs, cotangent, params):
    for value in inputs.values():
        value.stop_gradient = False
    name, function = OPS[op]
    outputs = function(**inputs, **params)
    output = outputs[name] if isinstance(outputs, dict) else outputs
    gradients = paddle.grad(output, list(inputs.values()), cotangent)
    return {"d" + name: gradient for name, gradient in zip(inputs, gradients)}


def synchronize(device):
    if device != "cpu":
        paddle.device.synchronize(place(device))

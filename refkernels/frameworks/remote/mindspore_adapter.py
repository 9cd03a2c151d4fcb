"""MindSpore 2.x, PyNative mode."""

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from shared import attention_mask, axes, narrowed, of_rows, sets_of, widened

FLAGS = {
    "runtime_num_threads": (
        lambda: ms.get_context("runtime_num_threads"),
        lambda v: ms.set_context(runtime_num_threads=int(v)),
    ),
    "deterministic": (
        lambda: ms.get_context("deterministic"),
        lambda v: ms.set_context(deterministic=v.upper()),
    ),
}
# Otherwise four threads pass every op along and spin meanwhile: many times its processor time.
try:
    ms.runtime.launch_blocking()
except AttributeError:  # before 2.5
    ms.set_context(pynative_synchronize=True)

TARGETS = {"cpu": "CPU", "gpu": "GPU", "ascend": "Ascend"}
FORMULAS = {"attention": "MindSpore ops", "rotary": "MindSpore ops"}


def layernorm(x, weight=None, bias=None, eps=1e-5, normalized_shape=None):
    """ops.LayerNorm always takes both affine parameters, and begin axes counted from the left.

    Its third output is the variance, not rstd, so the mean is the only statistic returned.
    """
    shape = tuple(x.shape[-1:] if normalized_shape is None else normalized_shape)
    begin = len(x.shape) - len(shape)
    weight = ops.ones(shape, x.dtype) if weight is None else weight
    bias = ops.zeros(shape, x.dtype) if bias is None else bias
    y, mean, _ = ops.LayerNorm(begin, begin, eps)(x, weight, bias)
    return {"y": y, "mean": mean.reshape(x.shape[:begin])}


def rms_norm(x, weight=None, eps=1e-5):
    weight = ops.ones(x.shape[-1:], x.dtype) if weight is None else weight
    return ops.rms_norm(x, weight, eps)[0]


def labelled(loss):
    """A loss whose labels are int32."""
    return of_rows(
        lambda x, labels, *given, **options: loss(x, labels.astype(ms.int32), *given, **options)
    )


def bce_with_logits(x, target, weight=None, pos_weight=None, reduction="mean"):
    return ops.binary_cross_entropy_with_logits(x, target, weight, pos_weight, reduction)


def kl_div(x, target, reduction="mean", log_target=False):
    if log_target:
        raise NotImplementedError("mindspore's kl_div takes no log_target")
    return ops.kl_div(x, target, reduction)


def embedding(weight, indices, padding_idx=None):
    """nn.Embedding's gather: ops.embedding has no kernel on a CPU."""
    if padding_idx is not None:
        raise NotImplementedError("mindspore's gather takes no padding_idx")
    return ops.gather(weight, indices, 0)


def dropout(x, mask=None, p=0.5, mode="upscale_in_train"):
    """ops.Dropout draws its own masks: of copies of x, each element takes one that drew its bit."""
    if mode != "upscale_in_train":
        raise NotImplementedError("mindspore's dropout has no mode=%r" % mode)
    if mask is None:
        return ops.dropout(x, p, False)
    if p == 1.0:
        raise NotImplementedError("mindspore's dropout takes no p of 1")
    y, left, draw = x, ops.ones_like(mask), ops.Dropout(1.0 - p, 1, 1)
    for _ in range(64):
        answers, drawn = draw(ops.stack([x] * 64))
        same = (drawn != 0) == mask
        found = same.any(0)
        first = ops.expand_dims(same.astype(ms.int32).argmax(0), 0)
        chosen = ops.squeeze(ops.gather_elements(answers, 0, first), 0)
        y = ops.where(ops.logical_and(left, found), chosen, y)
        left = ops.logical_and(left, ops.logical_not(found))
        if not left.asnumpy().any():
            return y
    raise NotImplementedError("mindspore drew no such mask in 4,096 tries")


def one_step(optimizer, param, grad, state, betas=(), step=1, name="weight", **options):
    """A step of MindSpore's own optimizer; `state` is {our name: (MindSpore's name, tensor)}.

    Each step has an optimizer of its own, whose compilation takes most of the time. A compiled one
    gives other bits: its first step runs in threads that flush subnormals, the next four in the
    caller's thread, which does not; later ones in whichever MindSpore has timed as faster.
    """
    own = ms.Parameter(param, name=name)
    stepper = getattr(nn, optimizer)([own], **options)
    tensors = {ours: getattr(stepper, its)[0] for ours, (its, x) in state.items() if x is not None}
    for ours, value in tensors.items():
        value.set_data(state[ours][1])
    for number, beta in enumerate(betas, 1):
        power = getattr(stepper, "beta%d_power" % number)
        for _ in range(step - 1):
            power.set_data(power * beta)
    stepper((grad,))
    return {"param": own, **tensors}


def momentum(param, grad, buf=None, lr=0.01, momentum=0.9, weight_decay=0.0, **named):
    if buf is None:
        raise NotImplementedError("MindSpore's Momentum always has a buffer")
    options = {"learning_rate": lr, "weight_decay": weight_decay}
    options.update(use_nesterov=named.pop("nesterov", False), **named)
    state = {"buf": ("moments", buf)}
    return one_step("Momentum", param, grad, state, momentum=momentum, **options)


def sgd(param, grad, buf=None, lr=0.01, momentum=0.9, dampening=0.0, step=1, **options):
    if options.get("nesterov") and dampening:
        raise NotImplementedError("MindSpore's SGD takes no dampening with Nesterov's momentum")
    if buf is None:
        options.pop("nesterov", None)
        return one_step("SGD", param, grad, {}, learning_rate=lr, **options)
    state = {"buf": ("accum", buf)}
    if step > 1:
        state["first"] = ("stat", ops.zeros_like(param))
    options = dict(options, learning_rate=lr, momentum=momentum, dampening=dampening)
    outputs = one_step("SGD", param, grad, state, **options)
    return {"param": outputs["param"], "buf": outputs["buf"]}


def adam(param, grad, m, v, vmax=None, lr=1e-3, beta1=0.9, beta2=0.999, step=1, **options):
    state = {"m": ("moment1", m), "v": ("moment2", v), "vmax": ("vhat", vmax)}
    options = dict(options, learning_rate=lr, beta1=beta1, beta2=beta2)
    options["use_amsgrad"] = vmax is not None
    return one_step("Adam", param, grad, state, (beta1, beta2), step, **options)


def adamw(param, grad, m, v, vmax=None, lr=1e-3, eps=1e-8, weight_decay=0.01, step=1, **betas):
    if vmax is not None:
        raise NotImplementedError("MindSpore's AdamWeightDecay has no amsgrad")
    state = {"m": ("moments1", m), "v": ("moments2", v)}
    options = dict(betas, learning_rate=lr, eps=eps, weight_decay=weight_decay)
    return one_step("AdamWeightDecay", param, grad, state, **options)


def adagrad(param, grad, accum, lr=0.01, lr_decay=0.0, eps=1e-10, weight_decay=0.0, step=1):
    """MindSpore's Adagrad takes no eps."""
    if lr_decay:
        raise NotImplementedError("MindSpore's Adagrad has no lr_decay")
    state = {"accum": ("accum", accum)}
    return one_step("Adagrad", param, grad, state, learning_rate=lr, weight_decay=weight_decay)


def rmsprop(param, grad, accum, mean=None, buf=None, lr=0.01, rho=0.99, eps=1e-8, **p):
    state = {"accum": ("ms", accum), "mean": ("mg", mean), "buf": ("moment", buf)}
    options = {"learning_rate": lr, "decay": rho, "epsilon": eps, "centered": mean is not None}
    options["momentum"] = 0.0 if buf is None else p.get("momentum", 0.9)
    options["weight_decay"] = p.get("weight_decay", 0.0)
    return one_step("RMSProp", param, grad, state, **options)


def norm(x, axis=-1):
    """Of two axes, ops.norm's ord=2 is the spectral norm of matrices; without ord it is the sum of
    squares' root, of two axes or of all."""
    places = axes(x, axis)
    if len(places) == 1:
        return ops.norm(x, 2, places)
    return ops.norm(x, dim=None if len(places) == x.ndim else places)


def batch_norm(
    x, weight=None, bias=None, running_mean=None, running_var=None, training=True, momentum=0.1,
    eps=1e-5, biased=False,
):  # fmt: skip
    """ops.BatchNorm changes its parameters in place; they are then the new statistics."""
    if biased:
        raise NotImplementedError("MindSpore's BatchNorm keeps the unbiased variance")
    ones = ops.ones(x.shape[1:2], x.dtype)
    weight = ones if weight is None else weight
    bias = 0 * ones if bias is None else bias
    mean = 0 * ones if running_mean is None else running_mean
    var = ones if running_var is None else running_var
    if not training:
        y = ops.BatchNorm(False, eps, momentum)(x, weight, bias, mean, var)[0]
        return {"y": y, "new_mean": mean, "new_var": var}
    new_mean = ms.Parameter(mean.copy(), requires_grad=False)
    new_var = ms.Parameter(var.copy(), requires_grad=False)
    y = ops.BatchNorm(True, eps, momentum)(x, weight, bias, new_mean, new_var)[0]
    return {"y": y, "new_mean": new_mean, "new_var": new_var}


def smooth_l1(x, target, reduction="mean", beta=1.0):
    return ops.smooth_l1_loss(x, target, beta, reduction)


def group_norm(x, weight=None, bias=None, num_groups=1, eps=1e-5):
    weight = ops.ones(x.shape[1:2], x.dtype) if weight is None else weight
    bias = ops.zeros(x.shape[1:2], x.dtype) if bias is None else bias
    return ops.group_norm(x, num_groups, weight, bias, eps)


def attention(q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"):
    """Composed: MindSpore's fused attention has no kernel on a CPU. The scale is a tensor: a number
    would be rounded to float32."""
    keep, lengths = (None if x is None else x.asnumpy() for x in (keep, lengths))
    lanes = attention_mask(q, k, keep, lengths, causal)
    if q.shape[:-2] != k.shape[:-2]:
        group = q.shape[-3] // k.shape[-3]
        k, v = ops.repeat_interleave(k, group, -3), ops.repeat_interleave(v, group, -3)
    scale = ms.Tensor(q.shape[-1] ** -0.5 if scale is None else scale, q.dtype)
    scores = ops.matmul(q, k.swapaxes(-1, -2)) * scale
    scores = scores if mask is None else scores + mask
    if lanes is not None:
        lanes = ops.broadcast_to(ms.Tensor(lanes), scores.shape)
        scores = ops.masked_fill(scores, ops.logical_not(lanes), -float("inf"))
    return ops.matmul(ops.softmax(scores, -1), v)


def rotary(x, position, base=10000.0, layout="half", dim=None):
    """As in models, with the angles in float32: ops.rotary_position_embedding has no kernel on a
    CPU."""
    dim = x.shape[-1] if dim is None else dim
    steps = ms.Tensor(np.arange(0, dim, 2).astype(np.float32))
    place = position.reshape((*position.shape, 1)).astype(ms.float32)
    angles = place * (1.0 / ops.pow(base, steps / dim))
    cos, sin = ops.cos(angles).astype(x.dtype), ops.sin(angles).astype(x.dtype)
    own, unrotated = x[..., :dim], x[..., dim:]
    if layout == "half":
        cos, sin = ops.cat([cos, cos], -1), ops.cat([sin, sin], -1)
        rotated = ops.cat([-own[..., dim // 2 :], own[..., : dim // 2]], -1)
    else:
        cos, sin = ops.repeat_interleave(cos, 2, -1), ops.repeat_interleave(sin, 2, -1)
        rotated = ops.stack([-own[..., 1::2], own[..., ::2]], -1).reshape(own.shape)
    y = own * cos + rotated * sin
    return y if dim == x.shape[-1] else ops.cat([y, unrotated], -1)


def conv(function, x, weight, bias=None, stride=1, padding="valid", dilation=1, groups=1):
    """MindSpore's padding numbers need pad_mode "pad" and apply to both ends of an axis, so unequal
    padding is applied first."""
    rank = x.ndim - 2
    if isinstance(padding, (list, tuple)) and len(padding) == 2 * rank:
        x = ops.pad(x, [end for k in range(2 * rank - 2, -1, -2) for end in padding[k : k + 2]])
        padding = 0
    mode, pads = (padding, 0) if isinstance(padding, str) else ("pad", padding)
    pads = tuple(pads) if isinstance(pads, (list, tuple)) else pads
    steps = [
        tuple(size) if isinstance(size, (list, tuple)) else size for size in (stride, dilation)
    ]
    return function(x, weight, bias, steps[0], mode, pads, steps[1], groups)


def elu(x, alpha=1.0):
    if alpha != 1.0:
        raise NotImplementedError("MindSpore's elu has no other alpha than 1.0")
    return ops.elu(x, alpha)


def pieces(grads, tensor):
    """The tensors, one by one."""
    ends = np.cumsum(np.bincount(tensor.asnumpy())).tolist()
    return [grads[start:end] for start, end in zip([0, *ends], ends)]


def clip_by_global_norm(grads, tensor, max_norm=1.0, eps=1e-6, way="eps", norm_type=2.0):
    parts = pieces(grads, tensor)
    if way == "max" and norm_type == 2.0:
        return {"clipped": ops.cat(list(ops.clip_by_global_norm(parts, max_norm)))}
    if way == "max" or eps != 1e-6:
        raise NotImplementedError(
            "MindSpore's clipping has eps=1e-6, and way='max' for norm_type=2"
        )
    return {"clipped": ops.cat(list(ops.clip_by_norm(parts, max_norm, norm_type)))}


def clip_by_norm(grads, tensor, max_norm=1.0, eps=1e-6, way="max", norm_type=2.0):
    """One call for each tensor."""
    if way != "eps" or eps != 1e-6:
        raise NotImplementedError("mindspore.ops.clip_by_norm has only way='eps' and eps=1e-6")
    return ops.cat([ops.clip_by_norm(part, max_norm, norm_type) for part in pieces(grads, tensor)])


def clip_by_value(grads, max_value=1.0):
    return ops.clamp(grads, -max_value, max_value)


OPS = {}  # calls.txt


def devices():
    listed = [("cpu", "")]
    for kind in ("gpu", "ascend"):
        target = TARGETS[kind]
        if ms.hal.is_available(target):
            for index in range(ms.hal.device_count(target)):
                listed.append(("%s:%d" % (kind, index), ms.hal.get_device_name(index, target)))
    return listed


def information():
    threads = ms.get_context("runtime_num_threads")
    return {"threads": threads, "blas": "oneDNN", "launch": "blocking"}


def instruction_sets(features):
    return sets_of(features, "ONEDNN_MAX_CPU_ISA")


def unsupported(op, direction, dtype, device):
    if device == "cpu" and dtype == "bfloat16":
        return "MindSpore has no bfloat16 kernels for %s on a CPU" % op
    if device == "cpu" and dtype == "float64" and op in ("conv1d", "conv2d"):
        return "MindSpore has no float64 kernels for %s on a CPU" % op
    if device == "cpu" and op == "rms_norm":
        return "MindSpore has no kernel for rms_norm on a CPU"
    return None


def select(device):
    kind, _, index = device.partition(":")
    if ms.get_context("device_target") != TARGETS[kind]:
        ms.set_device(TARGETS[kind], int(index or 0))


def tensor(array, dtype, device):
    select(device)
    if dtype == "bfloat16":
        return ms.Tensor(widened(array)).astype(ms.bfloat16)
    return ms.Tensor(array)


def array(tensor):
    if tensor.dtype == ms.bfloat16:
        return "bfloat16", narrowed(tensor.astype(ms.float32).asnumpy())
    return str(tensor.dtype).lower(), np.asarray(tensor.asnumpy())


def backward(op, inputs, cotangent, params):
    names = list(inputs)
    main, function = OPS[op]

    def output(*values):
        outputs = function(**dict(zip(names, values)), **params)
        return outputs[main] if isinstance(outputs, dict) else outputs

    gradient = ops.GradOperation(get_all=True, sens_param=True)(output)
    gradients = gradient(*inputs.values(), cotangent)
    return {"d" + name: value for name, value in zip(names, gradients)}


def synchronize(device):
    # Ops are asynchronous even on a CPU: an op's exception is raised here, not at its call.
    ms.runtime.synchronize()

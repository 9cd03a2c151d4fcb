"""OneFlow 0.9 (its eager mode)."""

import os

import numpy as np
import oneflow as flow
import oneflow.nn.functional as F

FLAGS = {
    "num_threads": (None, lambda v: flow.set_num_threads(int(v))),
}
CPU_DTYPES = ("float32", "float64")
FORMULAS = {"attention": "OneFlow ops", "rotary": "OneFlow ops"}


def matmul(a, b):
    if len(a.shape) == 1 and len(b.shape) == 1:
        raise NotImplementedError("oneflow.matmul takes no two vectors")
    return flow.matmul(a, b)


def linear(x, weight, bias=None):
    if len(x.shape) < 2:
        raise NotImplementedError("oneflow's linear takes no single vector")
    return F.linear(x, weight, bias)


def layernorm(x, weight=None, bias=None, eps=1e-5, normalized_shape=None):
    """A normalized_shape equal to x's whole shape is rejected: add a leading axis of 1.

    F.layer_norm silently ignores a single affine parameter, so the other one gets its neutral
    value, as in OneFlow's own LayerNorm module.
    """
    shape = tuple(x.shape[-1:] if normalized_shape is None else normalized_shape)
    if weight is None and bias is not None:
        weight = flow.ones(shape, dtype=x.dtype, device=x.device)
    if bias is None and weight is not None:
        bias = flow.zeros(shape, dtype=x.dtype, device=x.device)
    if len(shape) < len(x.shape):
        return F.layer_norm(x, shape, weight, bias, eps)
    return F.layer_norm(x.reshape(1, *x.shape), shape, weight, bias, eps).reshape(*x.shape)


def rms_norm(x, weight=None, eps=1e-5):
    """rms_norm has no kernel on a CPU; nn.RMSLayerNorm, which always takes a weight, has one."""
    if weight is None:
        weight = flow.ones(x.shape[-1], dtype=x.dtype, device=x.device)
    return flow._C.rms_layer_norm(x, weight, eps)


def cross_entropy(x, target, weight=None, reduction="mean", ignore_index=-100, label_smoothing=0.0):
    rows, labels = x.reshape(-1, x.shape[-1]), target.reshape(-1)
    loss = F.cross_entropy(
        rows,
        labels,
        weight,
        reduction=reduction,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
    )
    return loss.reshape(target.shape) if reduction == "none" else loss


def nll(x, target, weight=None, reduction="mean", ignore_index=-100):
    rows, labels = x.reshape(-1, x.shape[-1]), target.reshape(-1)
    loss = flow._C.nll_loss(rows, labels, weight, ignore_index, reduction)
    return loss.reshape(target.shape) if reduction == "none" else loss


def soft_cross_entropy(x, target, weight=None, reduction="mean", label_smoothing=0.0):
    rows, labels = x.reshape(-1, x.shape[-1]), target.reshape(-1, x.shape[-1])
    loss = F.cross_entropy(
        rows, labels, weight, reduction=reduction, label_smoothing=label_smoothing
    )
    return loss.reshape(x.shape[:-1]) if reduction == "none" else loss


def bce_with_logits(x, target, weight=None, pos_weight=None, reduction="mean"):
    return flow._C.binary_cross_entropy_with_logits_loss(x, target, weight, pos_weight, reduction)


def kl_div(x, target, reduction="mean", log_target=False):
    return flow._C.kl_div_loss(x, target, log_target, reduction)


def embedding(weight, indices, padding_idx=None):
    return F.embedding(indices, weight, padding_idx)


def dropout(x, mask=None, p=0.5, mode="upscale_in_train"):
    """F.dropout draws its own masks: of copies of x, each element takes one that drew its bit."""
    if mode != "upscale_in_train":
        raise NotImplementedError("OneFlow's dropout has no mode=%r" % mode)
    if mask is None:
        return F.dropout(x, p, training=False)
    y, left, copies = x, flow.ones_like(mask), flow.stack([x] * 64)
    for seed in range(64):
        flow.manual_seed(seed)
        same = (F.dropout(flow.ones_like(copies), p) != 0) == mask
        flow.manual_seed(seed)
        answers, found = F.dropout(copies, p), same.any(0)
        first = flow.argmax(same.int(), 0, keepdim=True)
        y = flow.where(left & found, flow.gather(answers, 0, first)[0], y)
        left = left & ~found
        if not bool(left.any()):
            return y
    raise NotImplementedError("OneFlow drew no such mask in 4,096 tries")


def one_step(optimizer, param, grad, state, step=1, name=None, **options):
    """A step of OneFlow's own optimizer; `state` is {our name: (its own name, tensor or None)}. It
    sees no parameter's name."""
    param = flow.nn.Parameter(param)
    param.grad = grad
    stepper = optimizer([param], **options)
    stepper._state[param].update(
        {name: value for name, value in state.values() if value is not None}
    )
    stepper._state["step"] = step - 1
    stepper.step()
    new = {ours: stepper._state[param].get(name) for ours, (name, _) in state.items()}
    return {"param": param, **{ours: value for ours, value in new.items() if value is not None}}


def sgd(param, grad, buf=None, lr=0.01, momentum=0.9, **options):
    options["lr"] = lr
    if buf is None:
        options = {"lr": lr, "weight_decay": options.get("weight_decay", 0.0)}
        return one_step(flow.optim.SGD, param, grad, {}, **options)
    state = {"buf": ("momentum_buf", buf)}
    return one_step(flow.optim.SGD, param, grad, state, momentum=momentum, **options)


def adam(param, grad, m, v, vmax=None, beta1=0.9, beta2=0.999, step=1, kind="Adam", **options):
    state = {"m": ("exp_avg", m), "v": ("exp_avg_sq", v), "vmax": ("max_exp_avg_sq", vmax)}
    options["betas"] = (beta1, beta2)
    if kind != "LAMB":
        options["amsgrad"] = vmax is not None
    return one_step(getattr(flow.optim, kind), param, grad, state, step, **options)


def lamb(eps=1e-6, weight_decay=0.01, **options):
    return adam(eps=eps, weight_decay=weight_decay, kind="LAMB", **options)


def adamw(weight_decay=0.01, **options):
    return adam(weight_decay=weight_decay, kind="AdamW", **options)


def adagrad(param, grad, accum, step=1, lr=0.01, **options):
    state = {"accum": ("sum", accum)}
    return one_step(flow.optim.Adagrad, param, grad, state, step, lr=lr, **options)


def rmsprop(param, grad, accum, mean=None, buf=None, rho=0.99, momentum=0.9, lr=0.01, **options):
    if buf is not None:
        raise NotImplementedError("OneFlow's RMSprop has no momentum")
    state = {"accum": ("square_avg", accum), "mean": ("grad_avg", mean)}
    options = dict(options, centered=mean is not None, lr=lr, alpha=rho)
    return one_step(flow.optim.RMSprop, param, grad, state, **options)


def axes(x, axis):
    """The axes as a list from 0."""
    listed = range(x.ndim) if axis is None else axis if isinstance(axis, (list, tuple)) else [axis]
    return [int(number) % x.ndim for number in listed]


def spread(x, axis, ddof, root):
    """flow.var and std divide only by n - 1 or by n; they take None for all axes."""
    if ddof not in (0, 1):
        raise NotImplementedError("oneflow.var has ddof 0 or 1, not %r" % ddof)
    own = axes(x, axis)
    dim = own if len(own) < x.ndim else None
    return (flow.std if root else flow.var)(x, dim, unbiased=bool(ddof))


def prod(x, axis=-1):
    """flow.prod takes a single axis: several axes are first flattened into one."""
    own = axes(x, axis)
    kept = [k for k in range(x.ndim) if k not in own]
    return flow.prod(x.permute(*kept, *own).flatten(len(kept)), -1)


def batch_norm(
    x, weight=None, bias=None, running_mean=None, running_var=None, training=True, momentum=0.1,
    eps=1e-5, biased=False,
):  # fmt: skip
    """flow changes the running statistics in place, so it gets copies."""
    if biased:
        raise NotImplementedError("OneFlow's normalization keeps the unbiased variance")
    ones = flow.ones(x.shape[1], dtype=x.dtype, device=x.device)
    new_mean = 0 * ones if running_mean is None else running_mean.clone()
    new_var = ones.clone() if running_var is None else running_var.clone()
    weight = ones if weight is None else weight
    bias = 0 * ones if bias is None else bias
    y = flow._C.normalization(
        x, new_mean, new_var, weight, bias, axis=1, epsilon=eps, momentum=momentum,
        is_training=training,
    )  # fmt: skip
    return {"y": y, "new_mean": new_mean, "new_var": new_var}


def smooth_l1(x, target, reduction="mean", beta=1.0):
    return flow._C.smooth_l1_loss(x, target, beta, reduction)


def group_norm(x, weight=None, bias=None, num_groups=1, eps=1e-5):
    return flow._C.group_norm(
        x, weight, bias, affine=weight is not None, num_groups=num_groups, epsilon=eps
    )


def instance_norm(x, weight=None, bias=None, eps=1e-5):
    """As in OneFlow's modules: layer_norm of reshaped arrays."""
    module = {3: flow.nn.InstanceNorm1d, 4: flow.nn.InstanceNorm2d}[x.ndim]
    norm = module(x.shape[1], eps=eps, affine=weight is not None).to(x.device).to(x.dtype)
    if weight is None:
        return norm(x)
    norm.__dict__["_parameters"] = {"weight": weight, "bias": bias}
    return norm(x)


def allowed(q, k, keep=None, lengths=None, causal="none"):
    """The keys that take part, as booleans; None for all."""
    m, n = q.shape[-2], k.shape[-2]
    if causal != "none":
        offset = n - m if causal == "bottom_right" else 0
        visible = flow.from_numpy(np.tril(np.ones((m, n), bool), offset)).to(q.device)
        keep = visible if keep is None else flow.logical_and(keep, visible)
    if lengths is not None:
        if lengths.shape[-1] > 1 and q.ndim > 2:
            lengths = lengths.repeat_interleave(q.shape[-3] // k.shape[-3], -1)
        inside = flow.arange(n, device=q.device) < lengths.unsqueeze(-1).unsqueeze(-1)
        keep = inside if keep is None else flow.logical_and(keep, inside)
    return keep


def heads_repeated(x, group):
    wide = x.unsqueeze(-3).expand(*x.shape[:-2], group, *x.shape[-2:])
    return wide.reshape(*x.shape[:-3], x.shape[-3] * group, *x.shape[-2:])


def attention(q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"):
    """Composed: OneFlow's fused attention has no kernel on a CPU."""
    lanes = allowed(q, k, keep, lengths, causal)
    if q.shape[:-2] != k.shape[:-2]:
        group = q.shape[-3] // k.shape[-3]
        k, v = heads_repeated(k, group), heads_repeated(v, group)
    scores = flow.matmul(q, k.transpose(-1, -2)) * (q.shape[-1] ** -0.5 if scale is None else scale)
    scores = scores if mask is None else scores + mask
    if lanes is not None:
        hidden = flow.logical_not(lanes).expand(*scores.shape)
        scores = scores.masked_fill(hidden, -float("inf"))
    return flow.matmul(flow.softmax(scores, -1), v)


def rotary(x, position, base=10000.0, layout="half", dim=None):
    """As in models: the angles are computed in float32."""
    dim = x.shape[-1] if dim is None else dim
    steps = flow.arange(0, dim, 2, dtype=flow.int64, device=x.device).float()
    angles = position.unsqueeze(-1).float() * (1.0 / (base ** (steps / dim)))
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    own, unrotated = x[..., :dim], x[..., dim:]
    if layout == "half":
        cos, sin = flow.cat([cos, cos], -1), flow.cat([sin, sin], -1)
        turned = flow.cat([-own[..., dim // 2 :], own[..., : dim // 2]], -1)
    else:
        cos, sin = (flow.stack([values, values], -1).flatten(-2) for values in (cos, sin))
        turned = flow.stack([-own[..., 1::2], own[..., ::2]], -1).flatten(-2)
    y = own * cos + turned * sin
    return y if dim == x.shape[-1] else flow.cat([y, unrotated], -1)


def conv(function, x, weight, bias=None, stride=1, padding="valid", dilation=1, groups=1):
    """OneFlow pads both ends of an axis equally, so unequal padding is applied first."""
    rank = x.ndim - 2
    if padding == "same":
        raise NotImplementedError("oneflow.conv takes no padding='same'")
    if isinstance(padding, (list, tuple)) and len(padding) == 2 * rank:
        x = F.pad(x, [end for k in range(2 * rank - 2, -1, -2) for end in padding[k : k + 2]])
        padding = 0
    steps = [[size] * rank if isinstance(size, int) else size for size in (stride, dilation)]
    padding = 0 if padding == "valid" else padding
    padding = [padding] * rank if isinstance(padding, int) else padding
    return function(x, weight, bias, steps[0], padding, steps[1], groups)


def pieces(grads, tensor):
    """One parameter for each tensor, with its part of the gradients."""
    sizes = np.bincount(tensor.numpy()).tolist()
    parameters = [flow.nn.Parameter(flow.zeros_like(piece)) for piece in flow.split(grads, sizes)]
    for parameter, grad in zip(parameters, flow.split(grads, sizes)):
        parameter.grad = grad.clone()
    return parameters


def clip_by_global_norm(grads, tensor, max_norm=1.0, eps=1e-6, way="eps", norm_type=2.0):
    if way != "eps" or eps != 1e-6:
        raise NotImplementedError(
            "oneflow.nn.utils.clip_grad_norm_ has only way='eps' and eps=1e-6"
        )
    parameters = pieces(grads, tensor)
    norm = flow.nn.utils.clip_grad_norm_(parameters, max_norm, norm_type)
    return {"clipped": flow.cat([parameter.grad for parameter in parameters]), "norm": norm}


def clip_by_norm(grads, tensor, max_norm=1.0, eps=1e-6, way="max", norm_type=2.0):
    """An optimizer's clipping, each tensor a group of parameters."""
    if way != "eps" or eps != 1e-6:
        raise NotImplementedError("oneflow's optimizers have only way='eps' and eps=1e-6")
    parameters = pieces(grads, tensor)
    clipping = {"clip_grad_max_norm": max_norm, "clip_grad_norm_type": norm_type}
    flow.optim.SGD(
        [{"params": [parameter], **clipping} for parameter in parameters], lr=1.0
    ).clip_grad()
    return flow.cat([parameter.grad for parameter in parameters])


def clip_by_value(grads, max_value=1.0):
    parameter = flow.nn.Parameter(flow.zeros_like(grads))
    parameter.grad = grads.clone()
    flow.nn.utils.clip_grad_value_(parameter, max_value)
    return parameter.grad


OPS = {
    "matmul": ("c", matmul),
    "scaled_matmul": ("c", "OneFlow has no scaled_matmul on a CPU"),
    "linear": ("y", linear),
    "layernorm": ("y", layernorm),
    "sum": ("y", lambda x, axis=-1: flow.sum(x, axes(x, axis))),
    "mean": ("y", lambda x, axis=-1: flow.mean(x, axes(x, axis))),
    "var": ("y", lambda x, axis=-1, ddof=0: spread(x, axis, ddof, False)),
    "std": ("y", lambda x, axis=-1, ddof=0: spread(x, axis, ddof, True)),
    "norm": ("y", lambda x, axis=-1: flow.linalg.vector_norm(x, 2, axes(x, axis))),
    "prod": ("y", prod),
    "max": ("y", lambda x, axis=-1: flow.amax(x, axes(x, axis))),
    "cumsum": ("y", lambda x, axis=-1: flow.cumsum(x, axis)),
    "logsumexp": ("y", lambda x, axis=-1: flow.logsumexp(x, axes(x, axis))),
    "sin": ("y", lambda x: flow.sin(x)),
    "cos": ("y", lambda x: flow.cos(x)),
    "tan": ("y", lambda x: flow.tan(x)),
    "asin": ("y", lambda x: flow.asin(x)),
    "acos": ("y", lambda x: flow.acos(x)),
    "atan": ("y", lambda x: flow.atan(x)),
    "exp": ("y", lambda x: flow.exp(x)),
    "expm1": ("y", lambda x: flow.expm1(x)),
    "log": ("y", lambda x: flow.log(x)),
    "log2": ("y", lambda x: flow.log2(x)),
    "log10": ("y", lambda x: flow.log10(x)),
    "log1p": ("y", lambda x: flow.log1p(x)),
    "sinh": ("y", lambda x: flow.sinh(x)),
    "cosh": ("y", lambda x: flow.cosh(x)),
    "tanh": ("y", lambda x: flow.tanh(x)),
    "sigmoid": ("y", lambda x: flow.sigmoid(x)),
    "silu": ("y", lambda x: flow.silu(x)),
    "softplus": ("y", lambda x: F.softplus(x)),
    "erf": ("y", lambda x: flow.erf(x)),
    "erfc": ("y", lambda x: flow.erfc(x)),
    "gelu": ("y", lambda x: flow.gelu(x)),
    "gelu_tanh": ("y", lambda x: F.gelu(x, approximate="tanh")),
    "hardswish": ("y", lambda x: F.hardswish(x)),
    "mish": ("y", lambda x: F.mish(x)),
    "hardsigmoid": ("y", lambda x: F.hardsigmoid(x)),
    "elu": ("y", lambda x, alpha=1.0: F.elu(x, alpha)),
    "selu": ("y", lambda x: F.selu(x)),
    "softsign": ("y", lambda x: F.softsign(x)),
    "log_sigmoid": ("y", lambda x: F.logsigmoid(x)),
    "swiglu": ("y", lambda a, b: flow.silu(a) * b),
    "pow": ("y", lambda x, exponent: flow.pow(x, exponent)),
    "atan2": ("y", lambda a, b: flow.atan2(a, b)),
    "dropout": ("y", dropout),
    "clip_by_global_norm": ("clipped", clip_by_global_norm),
    "clip_by_norm": ("clipped", clip_by_norm),
    "clip_by_value": ("clipped", clip_by_value),
    "softmax": ("y", lambda x, axis=-1: flow.softmax(x, axis)),
    "log_softmax": ("y", lambda x, axis=-1: F.log_softmax(x, axis)),
    "cross_entropy": ("loss", cross_entropy),
    "nll": ("loss", nll),
    "soft_cross_entropy": ("loss", soft_cross_entropy),
    "mse": ("loss", lambda x, target, reduction="mean": F.mse_loss(x, target, reduction)),
    "l1": ("loss", lambda x, target, reduction="mean": F.l1_loss(x, target, reduction)),
    "huber": ("loss", "OneFlow has no Huber loss (smooth_l1 times beta is one)"),
    "smooth_l1": ("loss", smooth_l1),
    "kl_div": ("loss", kl_div),
    "bce_with_logits": ("loss", bce_with_logits),
    "attention": ("y", attention),
    "rotary": ("y", rotary),
    "conv1d": ("y", lambda **options: conv(flow._C.conv1d, **options)),
    "conv2d": ("y", lambda **options: conv(flow._C.conv2d, **options)),
    "embedding": ("y", embedding),
    "rms_norm": ("y", rms_norm),
    "batch_norm": ("y", batch_norm),
    "group_norm": ("y", group_norm),
    "instance_norm": ("y", instance_norm),
    "sqrt": ("y", lambda x: flow.sqrt(x)),
    "rsqrt": ("y", lambda x: flow.rsqrt(x)),
    "reciprocal": ("y", lambda x: flow.reciprocal(x)),
    "sgd": ("param", sgd),
    "momentum": ("param", sgd),
    "adam": ("param", adam),
    "adamw": ("param", adamw),
    "lamb": ("param", lamb),
    "adagrad": ("param", adagrad),
    "rmsprop": ("param", rmsprop),
}


def version():
    return flow.__version__


def devices():
    listed = [("cpu", "")]
    if flow.cuda.is_available():
        for index in range(flow.cuda.device_count()):
            listed.append(("cuda:%d" % index, ""))
    return listed


def information():
    # The wheel's OpenBLAS is static and treats newer CPUs as a Prescott unless told otherwise.
    core = os.environ.get("OPENBLAS_CORETYPE")
    return {"blas": "OpenBLAS, static" + (", core type %s" % core if core else "")}


def instruction_sets(features):
    """OpenBLAS' kernels: [(variable, value)], the narrowest first."""
    cores = [("Prescott", "pni"), ("Haswell", "avx2"), ("SkylakeX", "avx512f")]
    return [("OPENBLAS_CORETYPE", value) for value, needed in cores if needed in features]


def unsupported(op, direction, dtype, device):
    if isinstance(OPS[op][1], str):
        return OPS[op][1]
    if device == "cpu" and dtype not in CPU_DTYPES:
        return "OneFlow has no %s kernels for %s on a CPU" % (dtype, op)
    return None


def tensor(array, dtype, device):
    if dtype == "bfloat16":
        # Every bfloat16 is a float32 whose low half is zero.
        wide = (array.astype(np.uint32) << 16).view(np.float32)
        return flow.from_numpy(wide).to(device=device, dtype=flow.bfloat16)
    return flow.from_numpy(array).to(device)


def array(tensor):
    if tensor.dtype == flow.bfloat16:
        wide = np.ascontiguousarray(tensor.to("cpu").to(flow.float32).numpy())
        return "bfloat16", (wide.view(np.uint32) >> 16).astype(np.uint16).reshape(wide.shape)
    return str(tensor.dtype).replace("oneflow.", ""), np.asarray(tensor.detach().to("cpu").numpy())


def forward(op, inputs, params):
    name, function = OPS[op]
    with flow.no_grad():
        outputs = function(**inputs, **params)
    return outputs if isinstance(outputs, dict) else {name: outputs}


def backward(op, inputs, cotangent, params):
    leaves = {name: value.detach().requires_grad_() for name, value in inputs.items()}
    name, function = OPS[op]
    outputs = function(**leaves, **params)
    output = outputs[name] if isinstance(outputs, dict) else outputs
    gradients = flow.autograd.grad(output, list(leaves.values()), cotangent)
    return {"d" + name: gradient for name, gradient in zip(leaves, gradients)}


def synchronize(device):
    # Ops are queued even on a CPU, and no public call waits for them on every device.
    flow._oneflow_internal.eager.Sync()

"""OneFlow 0.9 (its eager mode)."""

import os

import numpy as np
import oneflow as flow
import oneflow.nn.functional as F
from shared import attention_mask, axes, by_autograd, narrowed, one_step, pieces, sets_of, widened

FLAGS = {"num_threads": (None, lambda v: flow.set_num_threads(int(v)))}
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


def nll(rows, labels, weight, ignore_index=-100, reduction="mean"):
    return flow._C.nll_loss(rows, labels, weight, ignore_index, reduction)


def bce_with_logits(x, target, weight=None, pos_weight=None, reduction="mean"):
    return flow._C.binary_cross_entropy_with_logits_loss(x, target, weight, pos_weight, reduction)


def kl_div(x, target, reduction="mean", log_target=False):
    return flow._C.kl_div_loss(x, target, log_target, reduction)


def embedding(weight, indices, padding_idx=None):
    return F.embedding(indices, weight, padding_idx)


def sgd(param, grad, buf=None, lr=0.01, momentum=0.9, **options):
    options["lr"] = lr
    if buf is None:
        options = {"lr": lr, "weight_decay": options.get("weight_decay", 0.0)}
        return one_step(flow, "SGD", param, grad, {}, **options)
    state = {"buf": ("momentum_buf", buf)}
    return one_step(flow, "SGD", param, grad, state, momentum=momentum, **options)


def spread(x, axis, ddof, root):
    """flow.var and std divide only by n - 1 or by n; they take None for all axes."""
    if ddof not in (0, 1):
        raise NotImplementedError("oneflow.var has ddof 0 or 1, not %r" % ddof)
    own = list(axes(x, axis))
    dim = own if len(own) < x.ndim else None
    return (flow.std if root else flow.var)(x, dim, unbiased=bool(ddof))


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


def heads_repeated(x, group):
    wide = x.unsqueeze(-3).expand(*x.shape[:-2], group, *x.shape[-2:])
    return wide.reshape(*x.shape[:-3], x.shape[-3] * group, *x.shape[-2:])


def attention(q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"):
    """Composed: OneFlow's fused attention has no kernel on a CPU."""
    keep, lengths = (None if x is None else x.to("cpu").numpy() for x in (keep, lengths))
    lanes = attention_mask(q, k, keep, lengths, causal)
    if q.shape[:-2] != k.shape[:-2]:
        group = q.shape[-3] // k.shape[-3]
        k, v = heads_repeated(k, group), heads_repeated(v, group)
    scores = flow.matmul(q, k.transpose(-1, -2)) * (q.shape[-1] ** -0.5 if scale is None else scale)
    scores = scores if mask is None else scores + mask
    if lanes is not None:
        hidden = flow.from_numpy(~lanes).to(q.device).expand(*scores.shape)
        scores = scores.masked_fill(hidden, -float("inf"))
    return flow.matmul(flow.softmax(scores, -1), v)


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


def clip_by_norm(grads, tensor, max_norm=1.0, eps=1e-6, way="max", norm_type=2.0):
    """An optimizer's clipping, each tensor a group of parameters."""
    if way != "eps" or eps != 1e-6:
        raise NotImplementedError("oneflow's optimizers have only way='eps' and eps=1e-6")
    parameters = pieces(flow, grads, tensor)
    clipping = {"clip_grad_max_norm": max_norm, "clip_grad_norm_type": norm_type}
    flow.optim.SGD(
        [{"params": [parameter], **clipping} for parameter in parameters], lr=1.0
    ).clip_grad()
    return flow.cat([parameter.grad for parameter in parameters])


OPS = {}  # calls.txt


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
    return sets_of(features, "OPENBLAS_CORETYPE")


def unsupported(op, direction, dtype, device):
    if device == "cpu" and dtype not in CPU_DTYPES:
        return "OneFlow has no %s kernels for %s on a CPU" % (dtype, op)
    return None


def tensor(array, dtype, device):
    if dtype == "bfloat16":
        return flow.from_numpy(widened(array)).to(device=device, dtype=flow.bfloat16)
    return flow.from_numpy(array).to(device)


def array(tensor):
    if tensor.dtype == flow.bfloat16:
        return "bfloat16", narrowed(tensor.to("cpu").to(flow.float32).numpy())
    return str(tensor.dtype).replace("oneflow.", ""), np.asarray(tensor.detach().to("cpu").numpy())


forward, backward = by_autograd(flow, OPS)


def synchronize(device):
    # Ops are queued even on a CPU, and no public call waits for them on every device.
    flow._oneflow_internal.eager.Sync()

"""PyTorch 1.9 and newer."""

import importlib.util
import os
import traceback

import numpy as np
import torch
import torch.nn.functional as F
from shared import attention_mask, axes, by_autograd, of_rows, one_step, pieces, sets_of, truth

if importlib.util.find_spec("torch_npu") is not None:
    import torch_npu  # noqa: F401  (importing it is what adds the npu device)


def check_capability(asked):
    """Refuse a capability that torch drops, with no more than a warning, for the CPU's best."""
    used = getattr(getattr(torch.backends, "cpu", None), "get_cpu_capability", None)
    if not asked or used is None or used() == "NO AVX":
        return
    if used().lower() != asked:
        raise ValueError(
            "torch does not take ATEN_CPU_CAPABILITY=%s and uses %s: write default, or another "
            "of this CPU's in lower case" % (asked, used())
        )


check_capability(os.environ.get("ATEN_CPU_CAPABILITY"))


FLAGS = {
    "num_threads": (lambda: torch.get_num_threads(), lambda v: torch.set_num_threads(int(v))),
    "num_interop_threads": (
        lambda: torch.get_num_interop_threads(),
        lambda v: torch.set_num_interop_threads(int(v)),
    ),
    "float32_matmul_precision": (
        lambda: torch.get_float32_matmul_precision(),
        lambda v: torch.set_float32_matmul_precision(v),
    ),
    "allow_tf32": (
        lambda: torch.backends.cuda.matmul.allow_tf32,
        lambda v: setattr(torch.backends.cuda.matmul, "allow_tf32", truth(v)),
    ),
    "cudnn_allow_tf32": (
        lambda: torch.backends.cudnn.allow_tf32,
        lambda v: setattr(torch.backends.cudnn, "allow_tf32", truth(v)),
    ),
    "deterministic_algorithms": (
        lambda: torch.are_deterministic_algorithms_enabled(),
        lambda v: torch.use_deterministic_algorithms(truth(v)),
    ),
    "mkldnn": (
        lambda: torch._C._get_mkldnn_enabled(),
        lambda v: torch.backends.mkldnn.set_flags(truth(v)),
    ),
    "flush_denormal": (None, lambda v: torch.set_flush_denormal(truth(v))),
}
FORMULAS = dict.fromkeys((
    "rotary", "glu", "bias_gelu", "add_rms_norm", "lora_linear", "linear_cross_entropy",
    "selective_log_softmax", "gated_delta_rule", "load_balancing_loss", "router",
    "combine_experts", "sampling_softmax", "spectral_norm",
), "PyTorch ops")  # fmt: skip


def layernorm(x, weight=None, bias=None, eps=1e-5, normalized_shape=None):
    """F.layer_norm's kernel, with its statistics, which get the shape of the rows."""
    shape = tuple(x.shape[-1:] if normalized_shape is None else normalized_shape)
    y, mean, rstd = torch.native_layer_norm(x, shape, weight, bias, eps)
    leading = x.shape[: x.ndim - len(shape)]
    return {"y": y, "mean": mean.reshape(leading), "rstd": rstd.reshape(leading)}


def rms_norm(x, weight=None, eps=1e-5):
    return F.rms_norm(x, x.shape[-1:], weight, eps)


def glu(a, b, activation="sigmoid"):
    if activation == "sigmoid":
        return F.glu(torch.cat([b, a], -1))
    if activation.startswith("gelu"):
        return F.gelu(a, approximate="tanh" if activation == "gelu_tanh" else "none") * b
    return getattr(F, activation)(a) * b


def linear_cross_entropy(x, weight, target, softcap=None, z_loss=0.0, **options):
    logits = F.linear(x, weight)
    logits = logits if softcap is None else softcap * torch.tanh(logits / softcap)
    loss = of_rows(F.cross_entropy)(logits, target, **options)
    if not z_loss:
        return loss
    kept = target != options.get("ignore_index", -100)
    squares = z_loss * torch.where(kept, torch.logsumexp(logits, -1) ** 2, 0.0)
    reduction = options.get("reduction", "mean")
    if reduction == "none":
        return loss + squares
    return loss + (squares.sum() if reduction == "sum" else squares.sum() / kept.sum())


def sgd(param, grad, buf=None, lr=0.01, momentum=0.9, dampening=0.0, step=1, **options):
    if buf is None:
        options = {"lr": lr, "weight_decay": options.get("weight_decay", 0.0)}
        return one_step(torch, "SGD", param, grad, {}, **options)
    if options.get("nesterov") and dampening:
        raise NotImplementedError("torch's SGD takes no dampening with Nesterov's momentum")
    state = {"buf": ("momentum_buffer", buf if step > 1 else None)}
    options = dict(options, lr=lr, momentum=momentum, dampening=dampening)
    return one_step(torch, "SGD", param, grad, state, **options)


def adafactor(param, grad, row, col, step=1, lr=0.01, eps1=1e-7, eps2=1e-3, **options):
    state = {"row": ("row_var", row[:, None].clone()), "col": ("col_var", col[None].clone())}
    options = dict(options, lr=lr, eps=(eps1, eps2))
    new = one_step(torch, "Adafactor", param, grad, state, step, **options)
    return {"param": new["param"], "row": new["row"][:, 0], "col": new["col"][0]}


def muon(param, grad, buf, ns_a=3.4445, ns_b=-4.775, ns_c=2.0315, scale="original", **options):
    options = dict(options, ns_coefficients=(ns_a, ns_b, ns_c), adjust_lr_fn=scale)
    state = {"buf": ("momentum_buffer", buf)}
    return one_step(torch, "Muon", param, grad, state, **options)


def adamw_8bit(param, grad, m, v, m_scale, v_scale, m_table, v_table, **given):
    """AdamW's own step, in float32, of the states' numbers."""
    kind, wide = param.dtype, torch.promote_types(param.dtype, torch.float32)
    param, grad, *tables = (x.to(wide) for x in (param, grad, m_table, v_table))
    m, v = tables[0][m.long()] * m_scale[..., None], tables[1][v.long()] * v_scale[..., None]
    new = OPS["adamw"][1](param=param, grad=grad, m=m, v=v, **given)
    for name, table in zip("mv", tables):
        new[name], new[name + "_scale"] = table_quantize(new[name], table).values()
    return dict(new, param=new["param"].to(kind))


def narrow_step(param, update, comp=None, draws=None, to="bfloat16"):
    """The usual code, with parameters in their own format."""
    kind = getattr(torch, to, None)
    if kind is None or draws is not None or not kind.is_floating_point:
        raise NotImplementedError("the usual PyTorch code rounds to the nearest float")
    total = update if comp is None else update + comp
    new = torch.add(param, total).to(kind).to(param.dtype)
    return {"param": new} if comp is None else {"param": new, "comp": total - (new - param)}


def soap(
    param, grad, m, v, left, right, lr=3e-3, beta1=0.95, beta2=0.95, eps=1e-8, weight_decay=0.01,
    step=1,
):  # fmt: skip
    """The usual code, of its authors."""
    m = torch.lerp(m, grad, 1 - beta1)
    v = v * beta2 + (1 - beta2) * (left.T @ grad @ right) ** 2
    update = left @ (left.T @ m @ right / (v.sqrt() + eps)) @ right.T
    param = param - lr * (1 - beta2**step) ** 0.5 / (1 - beta1**step) * update
    return {"param": param - lr * weight_decay * param, "m": m, "v": v}


def batch_norm(
    x, weight=None, bias=None, running_mean=None, running_var=None, training=True, momentum=0.1,
    eps=1e-5, biased=False,
):  # fmt: skip
    """F.batch_norm changes the running statistics in place, so it gets copies."""
    if biased:
        raise NotImplementedError("torch's batch_norm keeps the unbiased variance")
    new_mean = x.new_zeros(x.shape[1]) if running_mean is None else running_mean.clone()
    new_var = x.new_ones(x.shape[1]) if running_var is None else running_var.clone()
    y = F.batch_norm(x, new_mean, new_var, weight, bias, training, momentum, eps)
    return {"y": y, "new_mean": new_mean, "new_var": new_var}


def attention(
    q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none", window=None,
):  # fmt: skip
    """Lengths, windows, bottom-right causal masks and combined masks are passed as attn_mask."""
    options = {"is_causal": True}
    if causal != "top_left" or {type(x) for x in (mask, keep, lengths, window)} != {type(None)}:
        keep, lengths = (None if x is None else x.cpu().numpy() for x in (keep, lengths))
        lanes = attention_mask(q, k, keep, lengths, causal, window)
        lanes = None if lanes is None else torch.from_numpy(lanes).to(q.device)
        if mask is not None and lanes is not None:
            mask = torch.where(lanes, mask, torch.full_like(mask, -float("inf")))
        options = {"attn_mask": lanes if mask is None else mask}
    if q.shape[:-2] != k.shape[:-2]:
        options["enable_gqa"] = True
    return F.scaled_dot_product_attention(q, k, v, scale=scale, **options)


def scaled_matmul(a, b, scale_a, scale_b, bias=None):
    """torch._scaled_mm for float8, torch._int_mm for int8; the latter takes no scales, so they are
    applied in float32."""
    if scale_a.ndim == a.ndim or scale_b.ndim == 2:
        raise NotImplementedError("torch scales no groups of terms on a CPU")
    rows, columns, dtype = scale_a.reshape(-1, 1), scale_b.reshape(1, -1), scale_a.dtype
    if str(a.dtype).startswith("torch.float8"):
        if dtype == torch.float64:
            raise NotImplementedError("torch._scaled_mm gives no float64")
        scales = [scale.float() for scale in (rows, columns)]
        if scales[0].numel() != scales[1].numel() or scales[0].numel() > 1:
            scales = [
                scale.expand(shape).contiguous()
                for scale, shape in zip(scales, ((len(a), 1), (1, b.shape[1])))
            ]
        # Its second operand is column-major.
        return torch._scaled_mm(a, b.t().contiguous().t(), *scales, bias=bias, out_dtype=dtype)
    if a.dtype != torch.int8 or b.dtype != torch.int8:
        raise NotImplementedError("torch has no scaled product of %s on a CPU" % a.dtype)
    wide = torch.promote_types(dtype, torch.float32)
    y = torch._int_mm(a, b).to(wide) * rows.to(wide) * columns.to(wide)
    return (y if bias is None else y + bias.to(wide)).to(dtype)


def conv(function, x, weight, bias=None, stride=1, padding="valid", dilation=1, groups=1):
    """torch pads both ends of an axis equally, so unequal padding is applied first. Its
    padding="same" requires stride 1."""
    rank = weight.ndim - 2
    steps = [stride] * rank if isinstance(stride, int) else stride
    if padding == "same" and max(steps) > 1:
        raise NotImplementedError("torch's padding='same' takes no stride")
    if isinstance(padding, (list, tuple)) and len(padding) == 2 * rank:
        x = F.pad(x, [end for k in range(2 * rank - 2, -1, -2) for end in padding[k : k + 2]])
        padding = 0
    return function(x, weight, bias, stride, padding, dilation, groups)


def clip_by_norm(grads, tensor, max_norm=1.0, eps=1e-6, way="max", norm_type=2.0):
    """One call for each tensor."""
    if way != "eps" or eps != 1e-6:
        raise NotImplementedError("torch.nn.utils.clip_grad_norm_ has only way='eps' and eps=1e-6")
    parameters = pieces(torch, grads, tensor)
    for parameter in parameters:
        torch.nn.utils.clip_grad_norm_([parameter], max_norm, norm_type)
    return torch.cat([parameter.grad for parameter in parameters])


def cast(x, draws=None, to="float8_e4m3fn", ties="even", overflow="special"):
    kind = getattr(torch, to, None)
    if kind is None or not kind.is_floating_point or ties != "even" or draws is not None:
        raise NotImplementedError("torch casts to its formats of floats, ties to even")
    largest = torch.finfo(kind).max
    if overflow == "saturate":
        return torch.Tensor.to(x.clamp(-largest, largest), kind).to(x.dtype)
    if torch.tensor(float("inf")).to(kind).float().isfinite() and (x.abs() > largest).any():
        raise NotImplementedError("torch.Tensor.to saturates in %s" % to)
    return torch.Tensor.to(x, kind).to(x.dtype)


def quantize(x, scale, zero_point=None, to="int8", ties="even"):
    """torch.quantize_per_tensor, or per channel, whose scales are float64."""
    kind = {"int8": torch.qint8, "uint8": torch.quint8}.get(to)
    if kind is None or ties != "even" or x.dtype != torch.float32 or scale.shape[1:].numel() > 1:
        raise NotImplementedError("torch quantizes float32 to int8 and uint8, by tensor or row")
    zeros = torch.zeros_like(scale, dtype=torch.int64) if zero_point is None else zero_point
    if scale.numel() == 1:
        y = torch.quantize_per_tensor(x, float(scale), int(zeros), kind)
    else:
        rows = scale.double().reshape(-1), zeros.reshape(-1)
        y = torch.quantize_per_channel(x, *rows, 0, kind)
    return y.int_repr().to(x.dtype)


def dequantize(x, scale, zero_point=None):
    """The usual code: each scale repeated over its block."""
    wide = torch.promote_types(scale.dtype, torch.float32)
    y = x.to(wide) if zero_point is None else x.to(wide) - over_blocks(zero_point, x.shape)
    return (y * over_blocks(scale.to(wide), x.shape)).to(scale.dtype)


def over_blocks(scale, shape):
    scale = scale.reshape((1,) * (len(shape) - scale.ndim) + scale.shape)
    for axis, length in enumerate(shape):
        scale = torch.repeat_interleave(scale, length // scale.shape[axis], axis)
    return scale


def block_quantize(
    x, tensor_scale=None, to="float8_e4m3fn", block=None, scales="float32", rule="nearest", eps=0.0
):
    """The usual code, with scales of float32."""
    kind = getattr(torch, to, None)
    usual = (scales, rule, tensor_scale) == ("float32", "nearest", None)
    if not usual or kind is None or not kind.is_floating_point:
        raise NotImplementedError("the usual PyTorch code has float32 scales and float8 numbers")
    blocks = x.unflatten(-1, (-1, block or x.shape[-1]))
    blocks = blocks.to(torch.promote_types(x.dtype, torch.float32))
    largest = torch.finfo(kind).max
    scale = (torch.amax(blocks.abs(), -1, keepdim=True).clamp(min=eps) / largest).float()
    y = torch.where(scale == 0, torch.zeros_like(blocks), blocks / scale)
    y = y.clamp(-largest, largest).to(kind).to(x.dtype).reshape(x.shape)
    return {"y": y, "scale": scale[..., 0]}


def table_quantize(x, table):
    """The usual code: a table's numbers in order, the first of equal ones, and their middles."""
    scale, (rising, places) = x.abs().amax(-1), table.sort(stable=True)
    rising, places = (x[rising.diff(prepend=rising[:1] - 1) != 0] for x in (rising, places))
    units = x / torch.where(scale == 0, torch.ones_like(scale), scale)[..., None]
    y = places[torch.bucketize(units, (rising[1:] + rising[:-1]) / 2)]
    return {"y": y, "scale": scale}


def gated_delta_rule(q, k, v, beta, g=None, initial_state=None, scale=None):
    """Step by step, as in models."""
    state = k.new_zeros(*k.shape[:-2], k.shape[-1], v.shape[-1])
    state, y = state if initial_state is None else initial_state, []
    for t in range(q.shape[-2]):
        state = state if g is None else state * g[..., t, None, None].exp()
        key = k[..., t, :, None]
        read = (state * key).sum(-2)
        written = (v[..., t, :] - read) * beta[..., t, None]
        state = state + key * written[..., None, :]
        y.append((state * q[..., t, :, None]).sum(-2))
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return {"y": torch.stack(y, -2) * scale, "state": state}


def load_balancing_loss(logits, k=1, scale=1.0):
    """As in Mixtral's code."""
    rows = logits.flatten(0, -2)
    p, n = torch.softmax(rows, -1), rows.shape[-1]
    share = F.one_hot(p.topk(k, -1).indices, n).sum(-2).to(p.dtype).mean(0)
    return scale * n * (share * p.mean(0)).sum()


def sampling_softmax(x, temperature=1.0, top_k=None, top_p=1.0, min_p=0.0):
    """As in transformers: scores that are dropped become -inf."""
    x = x / temperature
    if top_k is not None:
        x = x.masked_fill(x < x.topk(min(top_k, x.shape[-1]), -1).values[..., -1:], -torch.inf)
    if top_p < 1:
        order = torch.sort(x, stable=True, dim=-1, descending=True)
        p = torch.softmax(order.values, -1)
        dropped = p.cumsum(-1) - p >= top_p
        x = x.masked_fill(dropped.scatter(-1, order.indices, dropped), -torch.inf)
    if min_p > 0:
        p = torch.softmax(x, -1)
        x = x.masked_fill(p < min_p * p.amax(-1, keepdim=True), -torch.inf)
    return torch.softmax(x, -1)


def weight_norm(x, g, axis=-1):
    kept = [k for k in range(x.ndim) if k not in {a % x.ndim for a in axes(x, axis)}]
    shape = [x.shape[k] if k in kept else 1 for k in range(x.ndim)]
    if len(kept) == 1:
        return torch._weight_norm(x, g.view(shape), kept[0])
    return x * (g.view(shape) / torch.linalg.vector_norm(x, dim=axes(x, axis), keepdim=True))


def spectral_norm(x, u, n_power_iterations=1, eps=1e-12):
    """As in nn.utils.parametrizations."""
    with torch.no_grad():
        for _ in range(n_power_iterations):
            v = F.normalize(torch.mv(x.t(), u), dim=0, eps=eps)
            u = F.normalize(torch.mv(x, v), dim=0, eps=eps)
    sigma = torch.dot(u, torch.mv(x, v))
    return {"y": x / sigma, "sigma": sigma}


def router(
    logits, bias=None, k=1, scores="softmax", groups=1, groups_kept=None, best=1,
    renormalise=False, scale=1.0,
):  # fmt: skip
    """As in models: scores of 16 bits are computed in float32."""
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    s = torch.softmax(wide, -1) if scores == "softmax" else torch.sigmoid(wide)
    key = s if bias is None else s + bias
    if groups_kept not in (None, groups):
        inside = key.unflatten(-1, (groups, -1))
        kept = inside.topk(best, -1).values.sum(-1).topk(groups_kept, -1).indices
        outside = torch.ones_like(inside[..., 0]).scatter(-1, kept, 0.0).bool()
        key = inside.masked_fill(outside[..., None], -float("inf")).flatten(-2)
    index = key.topk(k, -1).indices
    weights = s.gather(-1, index)
    weights = weights / weights.sum(-1, keepdim=True) if renormalise else weights
    return torch.zeros_like(s).scatter(-1, index, weights * scale).to(logits.dtype)


def grouped_matmul(a, b, experts):
    """F.grouped_mm takes rows that are sorted by expert, and strides of whole 16 bytes."""
    number, k, n = b.shape
    flat, order = torch.where(experts < 0, number, experts).reshape(-1).sort(stable=True)
    ends = torch.bincount(flat, minlength=number)[:number].cumsum(0).int()
    used = int(ends[-1]) if number else 0  # what it gives for rows beyond is not defined
    c = F.pad(a.reshape(-1, k)[order[:used]], (0, -k % 8))
    c = F.grouped_mm(c, F.pad(b, (0, -n % 8, 0, -k % 8)), offs=ends)[:, :n]
    return F.pad(c, (0, 0, 0, len(order) - used))[order.argsort()].reshape(*experts.shape, n)


def combine_experts(x, rows, weights=None):
    taken = x[rows.clamp(min=0)].masked_fill(rows[..., None] < 0, 0.0)
    return (taken if weights is None else taken * weights[..., None]).sum(-2)


OPS = {}  # calls.txt


def devices():
    listed = [("cpu", "")]
    for kind in ("cuda", "xpu", "npu"):
        module = getattr(torch, kind, None)
        if module is not None and module.is_available():
            for index in range(module.device_count()):
                listed.append(("%s:%d" % (kind, index), module.get_device_name(index)))
    mps = getattr(torch.backends, "mps", None)
    if mps is not None and mps.is_available():
        listed.append(("mps:0", ""))
    return listed


def information():
    lines = [line.strip(" -") for line in torch.__config__.show().splitlines()]
    signs = ("MKL", "Math Kernel", "OpenBLAS", "BLAS_INFO", "CPU capability")
    blas = [line for line in lines if any(sign in line for sign in signs) and len(line) < 200]
    return {"threads": torch.get_num_threads(), "blas": "; ".join(blas)}


def instruction_sets(features):
    mkl = ["MKL_CBWR"] * torch.backends.mkl.is_available()
    onednn = ["ONEDNN_MAX_CPU_ISA"] * torch.backends.mkldnn.is_available()
    return sets_of(features, "ATEN_CPU_CAPABILITY", *mkl, *onednn)


def unsupported(op, direction, dtype, device):
    if device.startswith("mps") and dtype == "float64":
        return "PyTorch's mps device has no float64"
    if op == "grouped_matmul" and dtype == "float64":
        return "PyTorch's grouped_mm has no float64"
    if op.endswith("fft") and (dtype == "bfloat16" or (dtype == "float16" and device == "cpu")):
        return f"PyTorch's fft has no {dtype} on this device"
    return None


def tensor(array, dtype, device):
    if dtype.startswith("float8"):
        return torch.from_numpy(array).view(getattr(torch, dtype)).to(device)
    if dtype == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16).to(device)
    return torch.from_numpy(array).to(device)


def array(tensor):
    tensor = tensor.detach().to("cpu")
    if tensor.dtype == torch.bfloat16:
        return "bfloat16", tensor.contiguous().view(torch.int16).numpy().view(np.uint16)
    return str(tensor.dtype).replace("torch.", ""), tensor.numpy()


def load(file):
    """The tensors of a file of torch.save; those in dicts and lists have names like
    layer.0.weight."""
    # Before 2.6, weights_only could be made to run code (CVE-2025-32434).
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 6):
        raise ValueError("torch %s cannot read files safely: use 2.6 or newer" % torch.__version__)
    try:
        content = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:
        if isinstance(error, MemoryError) or "allocate" in str(error):
            raise
        traceback.print_exc()
        # torch's own message explains how to unpickle the file anyway.
        raise ValueError(
            "it is not a file of tensors only, as torch.save({'x': x}, FILE) writes it (%s)"
            % type(error).__name__
        ) from error
    return dict(tensors_in(content, ""))


def tensors_in(content, name):
    if isinstance(content, torch.Tensor):
        yield name, content
    elif isinstance(content, (dict, list, tuple)):
        pairs = content.items() if isinstance(content, dict) else enumerate(content)
        for key, value in pairs:
            for leaf in tensors_in(value, "%s.%s" % (name, key) if name else str(key)):
                yield leaf


forward, backward = by_autograd(torch, OPS)


def synchronize(device):
    module = getattr(torch, device.partition(":")[0], None)
    if device != "cpu" and module is not None:
        module.synchronize()

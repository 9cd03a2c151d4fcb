"""What several adapters share. An adapter says `from shared import ...`, and is sent to its
framework's interpreter with this file's text in the place of that line."""

import json

import numpy as np


def truth(text):
    """The truth value of a flag."""
    if text.lower() not in ("1", "0", "true", "false", "on", "off", "yes", "no"):
        raise ValueError("%r is neither true nor false" % text)
    return text.lower() in ("1", "true", "on", "yes")


INSTRUCTION_SETS = {  # ATen's own kernels, MKL's, oneDNN's and OpenBLAS': a value, what it needs
    "ATEN_CPU_CAPABILITY": [("default", "sse2"), ("avx2", "avx2"), ("avx512", "avx512f")],
    "MKL_CBWR": [("COMPATIBLE", "sse2"), ("AVX2", "avx2"), ("AVX512", "avx512f")],
    "ONEDNN_MAX_CPU_ISA": [("SSE41", "sse4_1"), ("AVX2", "avx2"), ("AVX512_CORE", "avx512bw")],
    "OPENBLAS_CORETYPE": [("Prescott", "pni"), ("Haswell", "avx2"), ("SkylakeX", "avx512f")],
}


def sets_of(features, *variables):
    """[(variable, value)] of these libraries, the narrowest first, as far as the processor goes."""
    return [
        (name, v) for name in variables for v, need in INSTRUCTION_SETS[name] if need in features
    ]


def attention_mask(q, k, keep=None, lengths=None, causal="none", window=None):
    """The keys that each query attends to, as NumPy booleans; None for all. `keep` and `lengths`
    are NumPy arrays."""
    rows, keys = q.shape[-2], k.shape[-2]
    masks = [] if keep is None else [keep]
    if causal != "none":
        masks.append(np.tri(rows, keys, keys - rows if causal == "bottom_right" else 0, dtype=bool))
    if window is not None:
        offset = 0 if causal == "top_left" else keys - rows
        away = np.arange(keys) - np.arange(rows)[:, None] - offset
        masks.append((away >= -window[0]) | (window[0] < 0))
        masks.append((away <= window[1]) | (window[1] < 0))
    if lengths is not None:
        if lengths.shape[-1:] != (1,) and q.ndim > 2:
            lengths = np.repeat(lengths, q.shape[-3] // k.shape[-3], axis=-1)
        masks.append(np.arange(keys) < lengths[..., None, None])
    whole = None
    for mask in masks:
        whole = mask if whole is None else whole & mask
    return whole


def axes(x, axis):
    """The axes as a tuple from 0."""
    listed = range(x.ndim) if axis is None else axis if isinstance(axis, (list, tuple)) else [axis]
    return tuple(int(number) % x.ndim for number in listed)


def widened(bits):
    """The float32 numbers of bfloat16's bits: their lower half is zero."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def narrowed(wide):
    """The bfloat16 bits of float32 numbers that are bfloat16."""
    bits = np.ascontiguousarray(wide).view(np.uint32) >> 16
    return bits.astype(np.uint16).reshape(wide.shape)


def of_rows(loss):
    """A loss of rows and their labels (or their shares of each class), for arrays of any rank."""

    def function(
        x, target, weight=None, reduction="mean", ignore_index=-100, label_smoothing=0.0
    ):  # fmt: skip
        options = {"label_smoothing": label_smoothing} if label_smoothing else {}
        classes = x.shape[-1:]
        labels = target.reshape(-1, *(classes if target.ndim == x.ndim else ()))
        options.update(reduction=reduction, ignore_index=ignore_index)
        answer = loss(x.reshape(-1, *classes), labels, weight, **options)
        return answer.reshape(x.shape[:-1]) if reduction == "none" else answer

    return function


def each_axis(numbers, rank):
    """One number for each axis."""
    return [numbers] * rank if isinstance(numbers, int) else list(numbers)


def both_ends(padding, rank):
    """The padding in front of each axis and behind it, one after the other."""
    ends = each_axis(padding, rank)
    return [end for end in ends for _ in range(2)] if len(ends) == rank else ends


# The rest is code in PyTorch's words, for the frameworks that understand them.


def by_autograd(framework, ops):
    """An adapter's `forward` and `backward`."""

    def forward(op, inputs, params):
        with framework.no_grad():
            return ops[op][1](**inputs, **params)

    def backward(op, inputs, cotangent, params):
        leaves = {name: value.detach().requires_grad_() for name, value in inputs.items()}
        name, function = ops[op]
        outputs = function(**leaves, **params)
        output = outputs[name] if isinstance(outputs, dict) else outputs
        gradients = framework.autograd.grad(output, list(leaves.values()), cotangent)
        return {"d" + name: gradient for name, gradient in zip(leaves, gradients)}

    return forward, backward


def flat(x, axis):
    """`x` with the axes moved to the end and flattened into one."""
    own = axes(x, axis)
    kept = [k for k in range(x.ndim) if k not in own]
    return x.permute(*kept, *own).flatten(len(kept))


def masked_dropout(framework, x, mask=None, p=0.5, mode="upscale_in_train"):
    if mode != "upscale_in_train":
        raise NotImplementedError("%s's dropout has no mode=%r" % (framework.__name__, mode))
    drop = framework.nn.functional.dropout
    if mask is None:
        return drop(x, p, training=False)
    return dropped_as(framework, x, mask, lambda x: drop(x, p), framework.manual_seed)


def dropped_as(framework, x, mask, drop, seed):
    """`drop` draws its own masks: of copies of x, each element takes one that drew its bit."""
    y, left, copies = x, framework.ones_like(mask), framework.stack([x] * 64)
    ones = framework.ones_like(copies)
    for number in range(64):
        seed(number)
        same = (drop(ones) != 0) == mask
        seed(number)
        for hit, answer in zip(same, drop(copies)):
            y = framework.where(hit, answer, y)
        left = left & ~same.any(0)
        if not bool(left.any()):
            return y
    raise NotImplementedError("%s drew no such mask in 4,096 tries" % framework.__name__)


def scaled_rates(rates, base, dim, scaling):
    """As in Hugging Face's modeling_rope_utils, in NumPy's float32: (frequencies, factor of cosine
    and sine). `scaling` is JSON."""
    scaling = json.loads(scaling)
    kind, factor = scaling["rope_type"], np.float32(scaling["factor"])
    if kind == "linear":
        return rates / factor, 1.0
    length = scaling["original_max_position_embeddings"]
    if kind == "llama3":
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        turns = np.float32(length) / (np.float32(2 * np.pi) / rates)
        kept = np.clip((turns - np.float32(low)) / np.float32(high - low), 0, 1)
        return (1 - kept) * (rates / factor) + kept * rates, 1.0
    ends = [dim * np.log(length / (turns * 2 * np.pi)) / (2 * np.log(base)) for turns in (32, 1)]
    first, last = max(np.floor(ends[0]), 0), min(np.ceil(ends[1]), dim - 1)
    places = np.arange(dim // 2, dtype=np.float32)
    ramp = np.clip((places - np.float32(first)) / np.float32(last - first), 0, 1)
    return rates / factor * ramp + rates * (1 - ramp), 0.1 * np.log(scaling["factor"]) + 1.0


def rotated(framework, x, position, base=10000.0, layout="half", dim=None, scaling="none"):
    """As in Hugging Face's Llama and GPT-J: the angles are computed in float32."""
    dim = x.shape[-1] if dim is None else dim
    steps = framework.arange(0, dim, 2, dtype=framework.int64, device=x.device).float()
    rates, size = 1.0 / (base ** (steps / dim)), 1.0
    if scaling != "none":
        scaled, size = scaled_rates(rates.cpu().numpy(), base, dim, scaling)
        rates = framework.tensor(scaled).to(x.device)
    angles = position.unsqueeze(-1).float() * rates
    cos, sin = (angles.cos() * size).to(x.dtype), (angles.sin() * size).to(x.dtype)
    own, unrotated = x[..., :dim], x[..., dim:]
    if layout == "half":
        cos, sin = framework.cat([cos, cos], -1), framework.cat([sin, sin], -1)
        turned = framework.cat([-own[..., dim // 2 :], own[..., : dim // 2]], -1)
    else:
        cos, sin = (framework.stack([table, table], -1).flatten(-2) for table in (cos, sin))
        turned = framework.stack([-own[..., 1::2], own[..., ::2]], -1).flatten(-2)
    y = own * cos + turned * sin
    return y if dim == x.shape[-1] else framework.cat([y, unrotated], -1)


def pieces(framework, grads, tensor):
    """One parameter for each tensor, with its part of the gradients."""
    parts = framework.split(grads, np.bincount(tensor.cpu().numpy()).tolist())
    parameters = [framework.nn.Parameter(framework.zeros_like(part)) for part in parts]
    for parameter, grad in zip(parameters, parts):
        parameter.grad = grad.clone()
    return parameters


def clip_all(framework, grads, tensor, max_norm=1.0, eps=1e-6, way="eps", norm_type=2.0):
    if way != "eps" or eps != 1e-6:
        call = framework.__name__ + ".nn.utils.clip_grad_norm_"
        raise NotImplementedError("%s has only way='eps' and eps=1e-6" % call)
    parameters = pieces(framework, grads, tensor)
    norm = framework.nn.utils.clip_grad_norm_(parameters, max_norm, norm_type)
    clipped = framework.cat([parameter.grad for parameter in parameters])
    return {"clipped": clipped, "norm": norm}


def clip_values(framework, grads, max_value=1.0):
    parameter = framework.nn.Parameter(framework.zeros_like(grads))
    parameter.grad = grads.clone()
    framework.nn.utils.clip_grad_value_(parameter, max_value)
    return parameter.grad


def one_step(framework, kind, param, grad, state, step=None, name=None, **options):
    """A step of the framework's own optimizer; `state` is {our name: (its name, tensor or None)}.
    It sees no parameter's name."""
    param = framework.nn.Parameter(param)
    param.grad = grad
    stepper = getattr(framework.optim, kind)([param], **options)
    own = getattr(stepper, "_state", None)  # OneFlow's, with one step for all
    held = (stepper.state if own is None else own)[param]
    held.update({name: value for name, value in state.values() if value is not None})
    if own is not None:
        own["step"] = (step or 1) - 1
    elif step is not None:
        held["step"] = framework.tensor(float(step - 1))
    stepper.step()
    new = {ours: held.get(name) for ours, (name, _) in state.items()}
    return {"param": param, **{ours: value for ours, value in new.items() if value is not None}}


def adam_step(framework, kind, param, grad, m, v, vmax=None, beta1=0.9, beta2=0.999, **options):
    state = {"m": ("exp_avg", m), "v": ("exp_avg_sq", v), "vmax": ("max_exp_avg_sq", vmax)}
    options.update(betas=(beta1, beta2), step=options.get("step", 1))
    if kind != "LAMB":
        options["amsgrad"] = vmax is not None
    return one_step(framework, kind, param, grad, state, **options)


def adagrad_step(framework, param, grad, accum, step=1, lr=0.01, **options):
    state = {"accum": ("sum", accum)}
    return one_step(framework, "Adagrad", param, grad, state, step, lr=lr, **options)


def rms_step(
    framework, param, grad, accum, mean=None, buf=None, rho=0.99, momentum=0.9, lr=0.01, **options
):
    state = {"accum": ("square_avg", accum), "mean": ("grad_avg", mean)}
    state["buf"] = ("momentum_buffer", buf)
    if buf is not None and framework.__name__ == "oneflow":
        raise NotImplementedError("OneFlow's RMSprop has no momentum")
    options["momentum"] = 0.0 if buf is None else momentum
    options.update(centered=mean is not None, lr=lr, alpha=rho)
    return one_step(framework, "RMSprop", param, grad, state, 1, **options)

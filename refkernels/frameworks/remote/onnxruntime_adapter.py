"""ONNX Runtime 1.20 and newer: each op as a graph of one ONNX operator; inference only."""

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper
from shared import attention_mask, both_ends, each_axis

OPSET = 23
IRS = {OPSET: 10, 24: 11}  # the formats of models that hold these operators
OPTIONS = {"threads": 0, "optimize": "all"}
FLAGS = {
    "num_threads": (lambda: OPTIONS["threads"], lambda v: OPTIONS.update(threads=int(v))),
    "graph_optimization": (
        lambda: OPTIONS["optimize"],
        lambda v: OPTIONS.update(optimize={"all": "all", "none": "none"}[v]),
    ),
}
FORMULAS = {"linear": "ONNX operators", "rotary": "ONNX operators"}
SESSIONS = {}
PLACE = {"device": "cpu"}
TYPES = {
    "float16": TensorProto.FLOAT16,
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
    "int64": TensorProto.INT64,
    "bool": TensorProto.BOOL,
}


def run(kind, *inputs, outputs=1, opset=OPSET, **attributes):
    """The outputs of one operator; None stands for an input that is left out."""
    arrays = [array for array in inputs if array is not None]
    form = tuple(None if array is None else (str(array.dtype), array.ndim) for array in inputs)
    key = (kind, form, outputs, opset, repr(sorted(attributes.items())), PLACE["device"])
    if key not in SESSIONS:
        SESSIONS[key] = session_of(kind, form, outputs, opset, attributes)
    names = ["x%d" % at for at, array in enumerate(inputs) if array is not None]
    try:
        answers = SESSIONS[key].run(None, dict(zip(names, arrays)))
    except Exception as error:
        raise classified(error) from error
    return answers[0] if outputs == 1 else answers


def session_of(kind, form, outputs, opset, attributes):
    names = ["x%d" % at if kind is not None else "" for at, kind in enumerate(form)]
    while not names[-1]:  # LayerNormalization crashes on an empty name at the end
        names.pop()
    results = ["y%d" % at for at in range(outputs)]
    input_infos = [
        helper.make_tensor_value_info(name, TYPES[kind[0]], [None] * kind[1])
        for name, kind in zip(names, form)
        if name
    ]
    output_infos = [helper.make_empty_tensor_value_info(name) for name in results]
    node = helper.make_node(kind, names, results, **attributes)
    graph = helper.make_graph([node], kind, input_infos, output_infos)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=IRS[opset]
    )
    options = ort.SessionOptions()
    options.intra_op_num_threads = OPTIONS["threads"]
    options.log_severity_level = 3
    if OPTIONS["optimize"] == "none":
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    kind = "CPU" if PLACE["device"] == "cpu" else "CUDA"
    try:
        return ort.InferenceSession(
            model.SerializeToString(), options, providers=["%sExecutionProvider" % kind]
        )
    except Exception as error:
        raise classified(error) from error


def classified(error):
    """The exception to raise: NotImplementedError for a kernel or type that is missing."""
    text = str(error)
    newer = "under development" in text or "Unsupported model IR version" in text
    if "NOT_IMPLEMENTED" in text or ("is invalid" in text and "Type '" in text) or newer:
        return NotImplementedError(text.partition("NOT_IMPLEMENTED : ")[2] or text)
    return error


def whole(numbers):
    return np.asarray(numbers, np.int64)


def reduced(kind):
    def function(x, axis=-1):
        listed = None if axis is None else whole([axis] if isinstance(axis, int) else list(axis))
        return run(kind, x, listed, keepdims=0)

    return function


def linear(x, weight, bias=None):
    """Gemm, which takes rows."""
    y = run("Gemm", x.reshape(-1, x.shape[-1]), weight, bias, transB=1)
    return y.reshape((*x.shape[:-1], len(weight)))


def layernorm(x, weight=None, bias=None, eps=1e-5, normalized_shape=None):
    shape = x.shape[-1:] if normalized_shape is None else tuple(normalized_shape)
    weight = np.ones(shape, x.dtype) if weight is None else weight
    y, mean, rstd = run(
        "LayerNormalization", x, weight, bias, outputs=3, axis=-len(shape), epsilon=float(eps)
    )
    leading = x.shape[: x.ndim - len(shape)]
    return {"y": y, "mean": mean.reshape(leading), "rstd": rstd.reshape(leading)}


def rms_norm(x, weight=None, eps=1e-5):
    weight = np.ones(x.shape[-1:], x.dtype) if weight is None else weight
    return run("RMSNormalization", x, weight, axis=-1, epsilon=float(eps))


def channels(kind, x, weight, bias, eps, **attributes):
    weight = np.ones(x.shape[1], x.dtype) if weight is None else weight
    bias = np.zeros(x.shape[1], x.dtype) if bias is None else bias
    return run(kind, x, weight, bias, epsilon=float(eps), **attributes)


def batch_norm(
    x, weight=None, bias=None, running_mean=None, running_var=None, training=True, momentum=0.1,
    eps=1e-5, biased=False,
):  # fmt: skip
    if training or running_mean is None or running_var is None:
        raise NotImplementedError("ONNX Runtime's BatchNormalization is for inference")
    weight = np.ones(x.shape[1], x.dtype) if weight is None else weight
    bias = np.zeros(x.shape[1], x.dtype) if bias is None else bias
    return run("BatchNormalization", x, weight, bias, running_mean, running_var, epsilon=float(eps))


def group_norm(x, weight=None, bias=None, num_groups=1, eps=1e-5):
    return channels("GroupNormalization", x, weight, bias, eps, num_groups=num_groups)


def instance_norm(x, weight=None, bias=None, eps=1e-5):
    return channels("InstanceNormalization", x, weight, bias, eps)


def attention(q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"):
    """Attention takes one mask; it has no lengths and aligns causal masks top left. Others are
    passed as that mask."""
    if q.ndim != 4:
        raise NotImplementedError("ONNX's Attention takes (batch, heads, rows, width)")
    rows, keys = q.shape[-2], k.shape[-2]
    is_causal = causal == "top_left" or (causal == "bottom_right" and rows == keys)
    keep = attention_mask(q, k, keep, lengths, "none" if is_causal else causal)
    if mask is None:
        masked = keep if keep is None else np.broadcast_to(keep, (*keep.shape[:-2], rows, keys))
    else:
        masked = mask if keep is None else np.where(keep, mask, mask.dtype.type(-np.inf))
    chosen = {} if scale is None else {"scale": float(scale)}
    return run("Attention", q, k, v, masked, is_causal=int(is_causal), **chosen)


def rotary(x, position, base=10000.0, layout="half", dim=None):
    """RotaryEmbedding takes tables of cosines and sines: as in models, their angles are computed in
    float32."""
    dim = x.shape[-1] if dim is None else dim
    steps = np.arange(0, dim, 2, dtype=np.float32) / np.float32(dim)
    lanes = x.reshape(-1, 1, 1, x.shape[-1])  # each row a batch of its own
    angles = position.reshape(-1, 1, 1).astype(np.float32) / np.float32(base) ** steps
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    options = {"interleaved": int(layout != "half"), "rotary_embedding_dim": dim}
    return run("RotaryEmbedding", lanes, cos, sin, **options).reshape(x.shape)


def loss_of(kind, x, target, weight=None, reduction="mean", ignore_index=-100):
    rows, labels = x.reshape(-1, x.shape[-1]), target.reshape(-1)
    loss = run(kind, rows, labels, weight, reduction=reduction, ignore_index=ignore_index)
    return loss.reshape(target.shape) if reduction == "none" else loss


def cross_entropy(x, target, label_smoothing=0.0, z_loss=0.0, softcap=None, **options):
    if label_smoothing or z_loss or softcap is not None:
        raise NotImplementedError("ONNX's SoftmaxCrossEntropyLoss has no such option")
    return loss_of("SoftmaxCrossEntropyLoss", x, target, **options)


def nll(x, target, **options):
    return loss_of("NegativeLogLikelihoodLoss", x, target, **options)


def conv(x, weight, bias=None, stride=1, padding="valid", dilation=1, groups=1):
    rank = weight.ndim - 2
    steps, wide = (each_axis(numbers, rank) for numbers in (stride, dilation))
    options = {"strides": steps, "dilations": wide, "group": groups}
    if isinstance(padding, str):
        options["auto_pad"] = {"valid": "VALID", "same": "SAME_UPPER"}[padding]
    else:
        ends = both_ends(padding, rank)
        options["pads"] = ends[::2] + ends[1::2]
    return run("Conv", x, weight, bias, **options)


def embedding(weight, indices, padding_idx=None):
    if padding_idx is not None:
        raise NotImplementedError("ONNX's Gather has no padding_idx")
    return run("Gather", weight, indices, axis=0)


def clip_by_value(grads, max_value=1.0):
    low, high = (np.asarray(value, grads.dtype) for value in (-max_value, max_value))
    return run("Clip", grads, low, high)


OPS = {}  # calls.txt


def devices():
    cuda = "CUDAExecutionProvider" in ort.get_available_providers()
    return [("cpu", "")] + ([("cuda:0", "")] if cuda else [])


def information():
    return {"threads": OPTIONS["threads"] or None, "blas": "MLAS", "opset": OPSET}


def unsupported(op, direction, dtype, device):
    if dtype == "bfloat16" or dtype.startswith("float8"):
        return "ONNX Runtime takes NumPy's arrays, which have no %s" % dtype
    return None


def tensor(array, dtype, device):
    PLACE["device"] = device
    return array

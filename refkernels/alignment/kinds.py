"""The op of a captured layer or watched function, by the name that frameworks give its type.

`LayerNorm`, `layer_norm` and `nn.LayerNorm` are one name here; so are `MSELoss` and `mse_loss`. A
layer's settings are its hyper-parameters and the arguments of its call that are not tensors; the
op's params are read from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from refkernels import registry
from refkernels.alignment.run import Layer, LayerCall, Rank

HELD = "self."  # prefix of a tensor that a layer holds as a plain attribute
Settings = Mapping[str, Any]
Params = Callable[[Settings], "dict[str, Any] | str"]
ROLES = {"gelu_tanh": "gelu"}
"""The op that has the same role in a model, by another formula."""


def _no_params(settings: Settings) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class LayerKind:
    """How a type is judged. `takes`: the op's inputs by position; `weights`: the inputs that are
    parameters of a layer; `arguments`: a function's arguments by position, where it does not name
    them; `params`: gives the op's params, or the reason why they are unknown; `joins`: whether the
    rows of several calls may be concatenated; `turned`: frameworks that hold the weight
    transposed; `classes`: whether x has an axis of classes that is not the last; `with_axis`: the
    frameworks that have an argument for that axis; `masks`: the op's input for a mask, by the kind
    of the mask's dtype.
    """

    op: str
    takes: tuple[str, ...] = ("x",)
    weights: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    params: Params = _no_params
    joins: bool = True
    turned: tuple[str, ...] = ()
    classes: bool = False
    with_axis: tuple[str, ...] = ()
    masks: Mapping[str, str] = field(default_factory=dict)


def kind_of(layer: Layer, settings: Settings) -> LayerKind | str:
    """The kind of a layer, or the reason why it is not judged."""
    name = layer.type.rpartition(".")[2].lower().replace("_", "").removesuffix("loss")
    kind = KINDS.get(name)
    if kind is None:
        return "no oracle is known for this type of layer"
    if kind.op == "gelu" and settings.get("approximate", "none") in (True, "tanh"):
        kind = replace(kind, op="gelu_tanh")
    if settings.get("activation") is not None:
        return "an activation is fused into it"
    return kind if kind.op in registry.ops() else f"refkernels has no oracle for {kind.op}"


def settings_of(rank: Rank, layer: Layer, call: LayerCall | None) -> dict[str, Any]:
    """A layer's hyper-parameters, and the arguments of a call that are not tensors, by name."""
    settings = {"framework": rank.framework, **layer.hyperparameters}
    if call is None:
        return settings
    names = _names(layer)
    arguments: dict[str, Any] = {}
    for path, value in call.scalars.items():
        head, _, inner = path.partition(".")
        name = names.get(head, head)
        if inner:
            arguments.setdefault(name, []).append(value)
        else:
            arguments[name] = value
    return {**settings, **arguments}


def tensor_names(layer: Layer, call: LayerCall) -> dict[str, str]:
    """The paths of a call's input tensors by argument and by position; those of tensors that the
    layer holds besides its parameters and buffers, by attribute."""
    names = _names(layer)
    by_position = {
        str(position): path for position, path in enumerate(call.inputs) if path.isdigit()
    }
    by_argument = [path for path in call.inputs if not path.startswith(HELD)]
    by_attribute = {path.removeprefix(HELD): path for path in call.inputs if path.startswith(HELD)}
    return by_attribute | by_position | {names.get(path, path): path for path in by_argument}


def _names(layer: Layer) -> dict[str, str]:
    """A function's or a layer's arguments by position."""
    kind_without_signature = KINDS.get(layer.type.rpartition(".")[2].lower().replace("_", ""))
    names = layer.signature or (kind_without_signature.arguments if kind_without_signature else ())
    return {str(position): name for position, name in enumerate(names)}


def _first(settings: Settings, *names: str, default: Any = None) -> Any:
    return next((settings[name] for name in names if settings.get(name) is not None), default)


def _eps(settings: Settings) -> dict[str, Any]:
    return {"eps": float(_first(settings, "eps", "epsilon", "variance_epsilon", default=1e-5))}


def _eps_or_none(settings: Settings) -> dict[str, Any] | str:
    """eps; None where PyTorch takes the format's own."""
    eps = _first(settings, "eps", "epsilon", "variance_epsilon")
    if eps is None and settings.get("framework") != "torch":
        return "its eps was not recorded"
    return {"eps": None if eps is None else float(eps)}


def _normalised(settings: Settings) -> dict[str, Any]:
    shape = _first(settings, "normalized_shape")
    shape = tuple(shape) if isinstance(shape, list | tuple) else (shape,) if shape else None
    return {**_eps(settings), "normalized_shape": shape}


def _groups(settings: Settings) -> dict[str, Any]:
    return {**_eps(settings), "num_groups": int(settings["num_groups"])}


def _axis(settings: Settings) -> dict[str, Any] | str:
    axis = _first(settings, "dim", "axis", "_axis")
    if axis is None and settings.get("framework") in ("torch", "oneflow"):
        return "its axis is not given, and depends on how many axes there are"
    axis = -1 if axis is None else axis
    return {"axis": int(axis)} if isinstance(axis, int) else f"its axis is {axis!r}"


def _padding(settings: Settings) -> dict[str, Any] | str:
    if settings.get("max_norm") is not None or settings.get("scale_grad_by_freq"):
        return "it renormalises its rows or scales their gradients"
    padding = settings.get("padding_idx")
    return {} if padding is None else {"padding_idx": int(padding)}


def _windows(settings: Settings) -> dict[str, Any] | str:
    if settings.get("padding_mode", "zeros") != "zeros":
        return f"its padding is {settings['padding_mode']}"
    if _first(settings, "data_format", default="NC")[:2] != "NC":
        return "its channels come last"
    params: dict[str, Any] = {"groups": int(_first(settings, "groups", "group", default=1))}
    for name, default in (("stride", 1), ("padding", 0), ("dilation", 1)):
        value = _first(settings, name, default=default)
        params[name] = tuple(value) if isinstance(value, list) else value
    mode = settings.get("pad_mode", "pad")  # MindSpore's word
    if mode == "valid":
        params["padding"] = 0
    elif mode == "same":
        if params["stride"] not in (1, (1,), (1, 1)):
            return "its padding depends on its stride"
        params["padding"] = "same"
    elif mode != "pad":
        return f"its padding is {mode}"
    sides = params["padding"]
    if isinstance(sides, tuple) and len(sides) == 4:
        if sides[0] != sides[1] or sides[2] != sides[3]:
            return "its padding is not the same on both sides"
        params["padding"] = (sides[0], sides[2])
    return params


def _attention(settings: Settings) -> dict[str, Any] | str:
    if _first(settings, "dropout_p", default=0.0):
        return "it applies dropout"
    if _first(settings, "enable_gqa", default=False):
        return "its heads are grouped"
    causal = "top_left" if _first(settings, "is_causal", default=False) else "none"
    return {"scale": _first(settings, "scale"), "causal": causal}


def _one_beta(settings: Settings) -> dict[str, Any] | str:
    return {} if _first(settings, "beta", default=1) == 1 else "its beta is not 1"


def _alpha(settings: Settings) -> dict[str, Any]:
    return {"alpha": float(_first(settings, "alpha", default=1.0))}


def _reduced(*names: str) -> Params:
    def params(settings: Settings) -> dict[str, Any] | str:
        if settings.get("soft_label") or settings.get("use_softmax") is False:
            return "its labels are soft, or its inputs are not logits"
        if any(settings.get(name) is not None for name in ("weight", "pos_weight")):
            return "its weight is not a tensor that was recorded"
        if settings.get("is_huber") is True and _first(settings, "delta", default=1.0) != 1.0:
            return "its delta is not 1"
        chosen = {name: settings[name] for name in names if settings.get(name) is not None}
        return {"reduction": str(_first(settings, "reduction", default="mean")), **chosen}

    return params


def _loss(op: str, *names: str, weights: tuple[str, ...] = (), classes: bool = False) -> LayerKind:
    arguments = ("input", "target", "weight", "size_average")
    params = _reduced(*names)
    return LayerKind(op, ("x", "target"), weights, arguments, params, joins=False, classes=classes)


def _masked(settings: Settings) -> dict[str, Any] | str:
    """No framework has BERT's loss as a layer: without a recorded eps the definition is unknown."""
    eps = _first(settings, "eps", "epsilon")
    return "its eps was not recorded" if eps is None else {"eps": float(eps), "reduction": "mean"}


_LINEAR = LayerKind(
    "linear", weights=("weight", "bias"), arguments=("input", "weight", "bias"), turned=("paddle",)
)
_BCE = _loss("bce_with_logits", weights=("weight", "pos_weight"))
_MASKED = LayerKind(
    "masked_lm_loss",
    ("x", "target", "weights"),
    (),
    ("logits", "labels", "weights"),
    _masked,
    False,
)
_BY_AXIS = ("input", "dim")
_CONV = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
_NORM = ("input", "normalized_shape", "weight", "bias", "eps")
_SDPA = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale")
KINDS: dict[str, LayerKind] = {
    **{name: LayerKind(name) for name in ("tanh", "sigmoid", "silu", "hardswish", "mish", "selu")},
    **{name: LayerKind(name) for name in ("softsign", "hardsigmoid", "erf", "exp", "sin", "cos")},
    "swish": LayerKind("silu"),
    "hswish": LayerKind("hardswish"),
    "hsigmoid": LayerKind("hardsigmoid"),
    "logsigmoid": LayerKind("log_sigmoid"),
    "softplus": LayerKind("softplus", arguments=("input", "beta", "threshold"), params=_one_beta),
    "elu": LayerKind("elu", arguments=("input", "alpha"), params=_alpha),
    "gelu": LayerKind("gelu", arguments=("input", "approximate")),
    "linear": _LINEAR,
    "dense": _LINEAR,
    "conv1d": LayerKind("conv1d", ("x",), ("weight", "bias"), _CONV, _windows),
    "conv2d": LayerKind("conv2d", ("x",), ("weight", "bias"), _CONV, _windows),
    "layernorm": LayerKind("layernorm", ("x",), ("weight", "bias"), _NORM, _normalised),
    "rmsnorm": LayerKind("rms_norm", ("x",), ("weight",), _NORM, _eps_or_none),
    "groupnorm": LayerKind("group_norm", ("x",), ("weight", "bias"), (), _groups),
    "embedding": LayerKind("embedding", ("indices",), ("weight",), ("input", "weight"), _padding),
    "softmax": LayerKind("softmax", arguments=_BY_AXIS, params=_axis),
    "logsoftmax": LayerKind("log_softmax", arguments=_BY_AXIS, params=_axis),
    "scaleddotproductattention": LayerKind(
        "attention",
        ("q", "k", "v"),
        (),
        _SDPA,
        _attention,
        masks={"b": "keep", "f": "mask", "V": "mask"},
    ),
    "crossentropy": replace(
        _loss(
            "cross_entropy", "ignore_index", "label_smoothing", weights=("weight",), classes=True
        ),
        with_axis=("paddle",),
    ),
    "nll": _loss("nll", "ignore_index", weights=("weight",), classes=True),
    "maskedlm": _MASKED,
    "mse": _loss("mse"),
    "l1": _loss("l1"),
    "huber": _loss("huber", "delta"),
    "smoothl1": _loss("smooth_l1", "beta"),
    "kldiv": _loss("kl_div", "log_target"),
    "bcewithlogits": _BCE,
    "binarycrossentropywithlogits": _BCE,
}

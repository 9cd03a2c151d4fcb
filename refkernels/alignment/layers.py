"""Captured layers as questions: which op a layer is, and which of its tensors are what.

A layer is known by its type's name. Its weights come by the names that frameworks give them
(`weight`, `gamma`, `embedding_table`), its params by its hyper-parameters. All calls of a layer in
a step are one question, row after row: the gradient of its parameters is the sum over them all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from refkernels import registry
from refkernels.alignment.question import Array, Place, Question, Read, Unjudged, joined
from refkernels.alignment.run import Call, Layer, Rank, StepTensors

Hyper = Mapping[str, Any]
_WEIGHTS = {  # the op's name: the frameworks' names
    "weight": ("weight", "gamma", "embedding_table"),
    "bias": ("bias", "beta"),
}


@dataclass(frozen=True)
class Kind:
    """How a type of layers is judged. `takes`: the op's inputs by position; `params`: the op's,
    from the layer's hyper-parameters, or the reason why they cannot be had."""

    op: str
    takes: tuple[str, ...] = ("x",)
    weights: tuple[str, ...] = ()
    params: Callable[[Hyper], dict[str, Any] | str] = lambda hyper: {}
    rows: bool = True  # whether calls may be joined
    transposed: tuple[str, ...] = ()  # frameworks that hold the weight the other way


def _first(hyper: Hyper, *names: str, default: Any = None) -> Any:
    return next((hyper[name] for name in names if hyper.get(name) is not None), default)


def _normalised(hyper: Hyper) -> dict[str, Any]:
    shape = _first(hyper, "normalized_shape")
    shape = tuple(shape) if isinstance(shape, list | tuple) else (shape,) if shape else None
    return {"eps": float(_first(hyper, "eps", default=1e-5)), "normalized_shape": shape}


def _eps(hyper: Hyper) -> dict[str, Any]:
    return {"eps": float(_first(hyper, "eps", "variance_epsilon", default=1e-5))}


def _groups(hyper: Hyper) -> dict[str, Any]:
    return {**_eps(hyper), "num_groups": int(hyper["num_groups"])}


def _axis(hyper: Hyper) -> dict[str, Any] | str:
    axis = _first(hyper, "dim", "axis", "_axis", default=-1)
    return {"axis": int(axis)} if isinstance(axis, int) else f"its axis is {axis!r}"


def _padding(hyper: Hyper) -> dict[str, Any] | str:
    if hyper.get("max_norm") is not None or hyper.get("scale_grad_by_freq"):
        return "it renormalises its rows or scales their gradients"
    padding = hyper.get("padding_idx")
    return {} if padding is None else {"padding_idx": int(padding)}


def _reduced(*names: str) -> Callable[[Hyper], dict[str, Any] | str]:
    def params(hyper: Hyper) -> dict[str, Any] | str:
        if hyper.get("soft_label") or hyper.get("use_softmax") is False:
            return "its labels are soft, or its inputs are no logits"
        kept = {name: hyper[name] for name in names if hyper.get(name) is not None}
        return {"reduction": str(hyper.get("reduction", "mean")), **kept}

    return params


_LOGITS = Kind("cross_entropy", ("x", "target"), params=_reduced("ignore_index", "label_smoothing"))
_PAIR = {"takes": ("x", "target"), "rows": False}
_ONE = {
    "Tanh": "tanh", "Sigmoid": "sigmoid", "SiLU": "silu", "Swish": "silu", "Hardswish": "hardswish",
    "HSwish": "hardswish", "Softplus": "softplus", "Mish": "mish", "ELU": "elu", "SELU": "selu",
    "Softsign": "softsign", "LogSigmoid": "log_sigmoid", "Hardsigmoid": "hardsigmoid",
    "HSigmoid": "hardsigmoid",
}  # fmt: skip
_LINEAR = Kind("linear", weights=("weight", "bias"), transposed=("paddle",))
_SOFTMAX = Kind("softmax", params=_axis)
KINDS: dict[str, Kind] = {
    **{name: Kind(op) for name, op in _ONE.items()},
    "Linear": _LINEAR,
    "Dense": _LINEAR,
    "LayerNorm": Kind("layernorm", weights=("weight", "bias"), params=_normalised),
    "RMSNorm": Kind("rms_norm", weights=("weight",), params=_eps),
    "GroupNorm": Kind("group_norm", weights=("weight", "bias"), params=_groups),
    "Embedding": Kind("embedding", ("indices",), ("weight",), _padding),
    "Softmax": _SOFTMAX,
    "LogSoftmax": Kind("log_softmax", params=_axis),
    "CrossEntropyLoss": _LOGITS,
    "NLLLoss": Kind("nll", ("x", "target"), params=_reduced("ignore_index")),
    "MSELoss": Kind("mse", **_PAIR, params=_reduced()),  # type: ignore[arg-type]
    "L1Loss": Kind("l1", **_PAIR, params=_reduced()),  # type: ignore[arg-type]
    "HuberLoss": Kind("huber", **_PAIR, params=_reduced("delta")),  # type: ignore[arg-type]
    "SmoothL1Loss": Kind("smooth_l1", **_PAIR, params=_reduced("beta")),  # type: ignore[arg-type]
    "KLDivLoss": Kind("kl_div", **_PAIR, params=_reduced("log_target")),  # type: ignore[arg-type]
    "BCEWithLogitsLoss": Kind("bce_with_logits", **_PAIR, params=_reduced()),  # type: ignore[arg-type]
}
for _name in ("CrossEntropyLoss", "NLLLoss"):
    KINDS[_name] = Kind(**{**vars(KINDS[_name]), "rows": False})


def kind_of(layer: Layer) -> Kind | str:
    """How the layer is judged, or why it is not."""
    if layer.type == "GELU":
        approximate = layer.hyperparameters.get("approximate", "none")
        by_tanh = approximate in (True, "tanh")
        return Kind("gelu_tanh" if by_tanh else "gelu")
    kind = KINDS.get(layer.type)
    if kind is None:
        return "no oracle is known for this type of layer"
    if kind.op == "softplus" and _first(layer.hyperparameters, "beta", default=1) != 1:
        return "its beta is not 1"
    if layer.hyperparameters.get("activation") is not None:
        return "an activation is fused into it"
    return kind if kind.op in registry.ops() else f"refkernels has no oracle of {kind.op}"


def read_layers(rank: Rank, step: int, tensors: StepTensors) -> Read:
    """The questions of a step's layers, forward and backward."""
    uses = Counter(name for layer in rank.layers.values() for name in layer.parameters.values())
    questions: list[Question] = []
    unjudged: list[Unjudged] = []
    for order, layer in enumerate(rank.layers.values()):
        calls = tensors.calls(layer.name)
        if not calls or rank.contains(layer.name):
            continue
        kind = kind_of(layer)
        if isinstance(kind, str):
            unjudged.append(Unjudged(layer.name, layer.type, kind))
            continue
        try:
            place = Place(step, "forward", layer.name, order, rank.rank)
            questions += _questions(rank, layer, kind, calls, tensors, place, uses)
        except _NotJudged as reason:
            unjudged.append(Unjudged(layer.name, layer.type, str(reason)))
    return Read(tuple(questions), tuple(unjudged))


class _NotJudged(Exception):
    """Why a layer is not judged."""


def _questions(
    rank: Rank, layer: Layer, kind: Kind, calls: tuple[Call, ...], tensors: StepTensors,
    place: Place, uses: Counter[str],
) -> Iterator[Question]:  # fmt: skip
    params = kind.params(layer.hyperparameters)
    if isinstance(params, str):
        raise _NotJudged(params)
    op = registry.get(kind.op)
    groups = [calls] if kind.rows or len(calls) == 1 else [(call,) for call in calls]
    weights = dict(_weights(rank, layer, kind, tensors))
    for group in groups:
        given = {name: _input(group, at) for at, name in enumerate(kind.takes)}
        outputs = joined([_output(call) for call in group])
        if outputs is None:
            raise _NotJudged("its calls have different shapes")
        inputs = {**given, **weights}
        asked = (kind.op, params, layer.type)
        yield _question(place, asked, "forward", inputs, {op.outputs[0]: outputs})
        cotangents = [call.cotangents.get("0") for call in group]
        if "backward" not in op.directions or any(one is None for one in cotangents):
            continue
        cotangent = joined([one for one in cotangents if one is not None])
        of_weights = () if len(groups) > 1 else _named(layer, kind)
        alone = [(word, name) for word, name in of_weights if uses[name] == 1]
        gradients = dict(_gradients(rank, kind, group, tensors, alone))
        if cotangent is not None and gradients:
            behind = Place(place.step, "backward", place.name, place.order, place.rank)
            taken = op.takes("backward")
            whole = {op.cotangent: cotangent, **inputs}
            whole = {name: array for name, array in whole.items() if name in taken}
            yield _question(behind, asked, "backward", whole, gradients)


def _question(
    place: Place, asked: tuple[str, dict[str, Any], str], direction: Any,
    inputs: Mapping[str, Array], outputs: Mapping[str, Array],
) -> Question:  # fmt: skip
    op, params, kind = asked
    return Question(place, op, direction, inputs, params, outputs, kind)


def _input(calls: tuple[Call, ...], at: int) -> Array:
    arrays = [list(call.inputs.values())[at] for call in calls if len(call.inputs) > at]
    together = joined(arrays) if len(arrays) == len(calls) else None
    if together is None:
        raise _NotJudged("its inputs were not recorded, or do not fit together")
    return together


def _output(call: Call) -> Array:
    if len(call.outputs) != 1:
        raise _NotJudged(f"it has {len(call.outputs)} recorded outputs")
    return next(iter(call.outputs.values()))


def _weights(
    rank: Rank, layer: Layer, kind: Kind, tensors: StepTensors
) -> Iterator[tuple[str, Array]]:
    for word, name in _named(layer, kind):
        array = tensors.parameter(name)
        if array is None:
            raise _NotJudged(f"its {word} was not recorded")
        yield word, _turned(rank.framework, kind, word, array)


def _named(layer: Layer, kind: Kind) -> Iterator[tuple[str, str]]:
    """The op's name of each weight, and the parameter's name."""
    for word in kind.weights:
        for own in _WEIGHTS[word]:
            if own in layer.parameters:
                yield word, layer.parameters[own]


def _turned(framework: str, kind: Kind, word: str, array: Array) -> Array:
    turn = framework in kind.transposed and word == "weight"
    return np.ascontiguousarray(array.T) if turn else array


def _gradients(
    rank: Rank, kind: Kind, calls: tuple[Call, ...], tensors: StepTensors,
    weights: list[tuple[str, str]],
) -> Iterator[tuple[str, Array]]:  # fmt: skip
    """By the op's names: of the first input, and of the weights that no other layer shares."""
    of_input = [call.input_gradients.get("0") for call in calls]
    if kind.takes[0] == "x" and all(one is not None for one in of_input):
        together = joined([one for one in of_input if one is not None])
        if together is not None:
            yield "dx", together
    for word, name in weights:
        gradient = tensors.gradient(name, "backward")
        if gradient is not None:
            yield f"d{word}", _turned(rank.framework, kind, word, gradient)

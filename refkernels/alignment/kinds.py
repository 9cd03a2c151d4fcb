"""The op of a captured layer or watched function, by the name that frameworks give its type.

`LayerNorm`, `layer_norm` and `nn.LayerNorm` are one name here; so are `MSELoss` and `mse_loss`
(kinds.json). A layer's settings are its hyper-parameters and the arguments of its call that are not
tensors; the op's params are read from them, by the op's names or their usual synonyms.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from refkernels import registry
from refkernels.alignment.run import Layer, LayerCall, Rank
from refkernels.frameworks.synonyms import SYNONYMS

HELD = "self."  # prefix of a tensor that a layer holds as a plain attribute
Settings = Mapping[str, Any]
WEIGHTS = ("weight", "bias", "pos_weight")


@dataclass(frozen=True)
class LayerKind:
    """How a type is judged, an entry of kinds.json. `arguments`: a function's arguments by
    position, where it does not name them; `only`: by setting, the values with which the op is
    known, and else the reason why it is not; `absent`: by param, what leaving it out means, in the
    frameworks where that is known; `words`: a param's words for False and True; `forms`: by setting
    and its value, another op; `turned`: frameworks that hold the weight transposed; `classes`:
    whether x has an axis of classes that is not the last; `with_axis`: the frameworks that have an
    argument for that axis; `masks`: the op's input for a mask, by the kind of the mask's dtype.
    """

    op: str
    arguments: str = ""
    only: Mapping[str, tuple[list[Any], str]] = field(default_factory=dict)
    absent: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    words: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    forms: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    turned: tuple[str, ...] = ()
    classes: bool = False
    with_axis: tuple[str, ...] = ()
    masks: Mapping[str, str] = field(default_factory=dict)

    @property
    def takes(self) -> tuple[str, ...]:
        """The op's inputs that each call must have."""
        op = registry.get(self.op)
        return tuple(name for name in op.inputs if name not in (*WEIGHTS, *op.optional))

    @property
    def weights(self) -> tuple[str, ...]:
        """The op's inputs that are parameters of a layer."""
        return tuple(name for name in registry.get(self.op).inputs if name in WEIGHTS)

    def params(self, settings: Settings) -> dict[str, Any] | str:
        """The op's params, or the reason why they are unknown."""
        for name, (known, reason) in self.only.items():
            if settings.get(name) is not None and settings[name] not in known:
                return reason
        known_params = registry.get(self.op).params
        given = _windows(settings) if "padding" in known_params else settings
        if isinstance(given, str):
            return given
        params = {}
        for name, default in known_params.items():
            value = next((given[n] for n in synonyms(name) if given.get(n) is not None), None)
            absent = self.absent.get(name)
            if value is None and absent is not None:
                if given.get("framework") not in absent:
                    return f"its {name} was not recorded"
                value = params[name] = absent[given["framework"]]
            if isinstance(value, bool) and name in self.words:
                value = self.words[name][value]
            if value is not None:
                params[name] = float(value) if isinstance(default, float) else _tuple(value)
        return params


KINDS = {
    name: LayerKind(**entry)
    for name, entry in json.loads(Path(__file__).with_suffix(".json").read_text("utf-8")).items()
}


def _type_name(layer: Layer) -> str:
    return layer.type.rpartition(".")[2].lower().replace("_", "").removesuffix("loss")


def kind_of(layer: Layer, settings: Settings) -> LayerKind | str:
    """The kind of a layer, or the reason why it is not judged."""
    kind = KINDS.get(_type_name(layer))
    if kind is None:
        return "no oracle is known for this type of layer"
    for setting, ops in kind.forms.items():
        kind = replace(kind, op=ops.get(str(settings.get(setting)), kind.op))
    return kind if settings.get("activation") is None else "an activation is fused into it"


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
    by_position = {str(k): path for k, path in enumerate(call.inputs) if path.isdigit()}
    by_argument = [path for path in call.inputs if not path.startswith(HELD)]
    by_attribute = {path.removeprefix(HELD): path for path in call.inputs if path.startswith(HELD)}
    return by_attribute | by_position | {names.get(path, path): path for path in by_argument}


def _names(layer: Layer) -> dict[str, str]:
    """A function's or a layer's arguments by position."""
    kind = KINDS.get(_type_name(layer))
    names = layer.signature or (kind.arguments.split() if kind else ())
    return {str(position): name for position, name in enumerate(names)}


def synonyms(name: str) -> tuple[str, ...]:
    """An op's word and what libraries call it."""
    return (name, *SYNONYMS.get(name, "").split())


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _windows(settings: Settings) -> Settings | str:
    """The settings of a convolution with its padding in PyTorch's words."""
    if settings.get("padding_mode", "zeros") != "zeros":
        return f"its padding is {settings['padding_mode']}"
    if (settings.get("data_format") or "NC")[:2] != "NC":
        return "its channels come last"
    padding, stride = _tuple(settings.get("padding", 0)), _tuple(settings.get("stride", 1))
    mode = settings.get("pad_mode", "pad")  # MindSpore's word
    if mode == "same" and stride not in (1, (1,), (1, 1)):
        return "its padding depends on its stride"
    if mode not in ("pad", "valid", "same"):
        return f"its padding is {mode}"
    if mode == "pad" and isinstance(padding, tuple) and len(padding) == 4:
        if padding[0] != padding[1] or padding[2] != padding[3]:
            return "its padding is not the same on both sides"
        padding = padding[::2]
    groups = settings.get("groups", settings.get("group"))
    return {**settings, "padding": {"pad": padding, "valid": 0}.get(mode, mode), "groups": groups}

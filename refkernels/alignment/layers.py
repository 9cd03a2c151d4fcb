"""Captured layers and watched functions as questions: which of their tensors are what.

Weights come by the names that frameworks give them (`weight`, `gamma`, `embedding_table`), or among
a function's arguments. All calls of a layer in a step are one question, row after row: the gradient
of its parameters is the sum over them all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from refkernels import registry
from refkernels.alignment.kinds import LayerKind, kind_of, settings_of, tensor_names
from refkernels.alignment.question import Array, CapturedQuestion, Place, Read, Unjudged, joined
from refkernels.alignment.run import Call, Layer, Rank, StepTensors
from refkernels.op import Direction, Op

_NAMES = {  # the op's name of an input: the frameworks' names
    "x": ("input", "x", "input_x"),
    "target": ("target", "label", "labels"),
    "indices": ("input", "indices", "ids", "x"),
    "weight": ("weight", "gamma", "embedding_table"),
    "bias": ("bias", "beta"),
    "pos_weight": ("pos_weight",),
    "q": ("query", "q"),
    "k": ("key", "k"),
    "v": ("value", "v"),
}
_MASKS = {"attention": {"b": "keep", "f": "mask", "V": "mask"}}  # by dtype kind


def read_layers(rank: Rank, step: int, tensors: StepTensors) -> Read:
    """The questions of a step's layers, forward and backward."""
    uses = Counter(name for layer in rank.layers.values() for name in layer.parameters.values())
    questions: list[CapturedQuestion] = []
    unjudged: list[Unjudged] = []
    for order, layer in enumerate(rank.layers.values()):
        calls = tensors.calls(layer.name)
        if not calls or rank.contains(layer.name):
            continue
        place = Place(step, "forward", layer.name, order, rank.rank)
        groups = list(_set_alike(rank, layer, calls))
        for settings, group in groups:
            try:
                kind = kind_of(layer, settings)
                if isinstance(kind, str):
                    raise _NotJudged(kind)
                params = kind.params(settings)
                if isinstance(params, str):
                    raise _NotJudged(params)
                params = _of_format(params, group[0])
                reader = _Reader(rank, layer, kind, params, settings, tensors, uses)
                questions += reader.questions(group, place, len(groups) == 1)
            except _NotJudged as reason:
                unjudged.append(Unjudged(layer.name, layer.type, str(reason)))
    return Read(tuple(questions), tuple(dict.fromkeys(unjudged)))


def _set_alike(
    rank: Rank, layer: Layer, calls: tuple[Call, ...]
) -> Iterator[tuple[dict[str, Any], tuple[Call, ...]]]:
    """The calls of a layer by their settings: a function may be called with others each time."""
    settings = [settings_of(rank, layer, call) for call in calls]
    for at, one in enumerate(settings):
        if one not in settings[:at]:
            same = (call for call, other in zip(calls, settings, strict=True) if other == one)
            yield one, tuple(same)


def _same(one: Array, other: Array) -> bool:
    return one.shape == other.shape and one.tobytes() == other.tobytes()


def _of_format(params: dict[str, Any], call: Call) -> dict[str, Any]:
    """With the eps of the input's format where none is given."""
    if params.get("eps", 0.0) is not None:
        return params
    dtype = next((one.dtype for one in call.inputs.values()), None)
    if dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise _NotJudged(f"its eps is that of {dtype}")
    return {**params, "eps": float(np.finfo(dtype).eps)}


class _NotJudged(Exception):
    """Why a layer is not judged."""


@dataclass(frozen=True)
class _Reader:
    """One layer in one step."""

    rank: Rank
    layer: Layer
    kind: LayerKind
    params: dict[str, Any]
    settings: Mapping[str, Any]
    tensors: StepTensors
    uses: Counter[str]

    @property
    def op(self) -> Op:
        return registry.get(self.kind.op)

    def questions(
        self, calls: tuple[Call, ...], place: Place, whole: bool
    ) -> Iterator[CapturedQuestion]:
        """Of calls that were set alike; `whole`: whether these are all calls of the layer."""
        joins = self.kind.joins and len({tuple(self._paths(call)) for call in calls}) == 1
        groups = [calls] if joins or len(calls) == 1 else [(call,) for call in calls]
        weights = dict(self._weights())
        for group in groups:
            outputs = self._joined([self._output(call) for call in group])
            inputs = {**self._inputs(group), **weights}
            yield self._question(place, "forward", inputs, {self.op.outputs[0]: outputs})
            cotangents = [call.cotangents.get("0") for call in group]
            if "backward" not in self.op.directions or any(one is None for one in cotangents):
                continue
            gradients = dict(self._input_gradients(group))
            gradients |= self._weight_gradients() if whole and len(groups) == 1 else {}
            if gradients:
                behind = Place(place.step, "backward", place.name, place.order, place.rank)
                cotangent = self._joined([one for one in cotangents if one is not None])
                asked = {self.op.cotangent: cotangent, **inputs}
                yield self._question(behind, "backward", asked, gradients)

    def _question(
        self, place: Place, direction: Direction, inputs: Mapping[str, Array],
        outputs: Mapping[str, Array],
    ) -> CapturedQuestion:  # fmt: skip
        takes = self.op.takes(direction)
        asked = {name: array for name, array in inputs.items() if name in takes}
        if self.kind.classes:
            axis = self._axis_of_classes(asked)
            asked = {name: self._by_class(name, one, axis, asked) for name, one in asked.items()}
            outputs = {
                name: self._by_class(name, one, axis, asked) for name, one in outputs.items()
            }
        return CapturedQuestion(
            place, self.op.name, direction, asked, self.params, outputs, self.layer.type
        )

    def _axis_of_classes(self, inputs: Mapping[str, Array]) -> int:
        """The second; in Paddle what its cross entropy is given, the last by default."""
        last = inputs["x"].ndim - 1
        if self.rank.framework == "paddle" and self.kind.op == "cross_entropy":
            axis = self.settings.get("axis", -1)
            return int(axis) % max(last + 1, 1) if isinstance(axis, int) else last
        return min(1, last)

    def _by_class(self, name: str, array: Array, axis: int, inputs: Mapping[str, Array]) -> Array:
        """x and its gradient with the classes last; a target without an axis of one element."""
        if name in ("x", "dx"):
            return np.moveaxis(array, axis, -1)
        single = name == "target" and array.ndim == inputs["x"].ndim and array.ndim > axis
        return array.squeeze(axis) if single and array.shape[axis] == 1 else array

    def _paths(self, call: Call) -> dict[str, str]:
        """The op's name of each input tensor of a call, and its path. Raises _NotJudged for one
        that is not known."""
        names = tensor_names(self.layer, call)
        found: dict[str, str] = {}
        for position, name in enumerate(self.kind.takes):
            for own in (*_NAMES.get(name, ()), str(position)):
                if own in names:
                    found.setdefault(name, names[own])
        for name in self.kind.weights:
            for own in _NAMES[name]:
                if own in names and name not in self._own and names[own] not in found.values():
                    found[name] = names[own]
        for path in set(call.inputs) - set(found.values()):
            kinds = _MASKS.get(self.kind.op, {})
            mask = kinds.get(call.inputs[path].dtype.kind)
            if mask is None:
                raise _NotJudged(f"its input {path} is not known")
            found[mask] = path
        if missing := [name for name in self.kind.takes if name not in found]:
            raise _NotJudged(f"its input {missing[0]} was not recorded")
        return found

    def _inputs(self, calls: tuple[Call, ...]) -> dict[str, Array]:
        paths = self._paths(calls[0])
        shared = [name for name in paths if name in self.kind.weights]
        return {
            name: calls[0].inputs[path]
            if name in shared
            else self._joined([call.inputs[path] for call in calls])
            for name, path in paths.items()
        }

    def _joined(self, arrays: list[Array]) -> Array:
        together = joined(arrays)
        if together is None:
            raise _NotJudged("its calls have different shapes")
        return together

    def _output(self, call: Call) -> Array:
        if len(call.outputs) != 1:
            raise _NotJudged(f"it has {len(call.outputs)} recorded outputs")
        return next(iter(call.outputs.values()))

    @property
    def _own(self) -> dict[str, str]:
        """The layer's parameters by the op's names."""
        return {
            name: self.layer.parameters[own]
            for name in self.kind.weights
            for own in _NAMES[name]
            if own in self.layer.parameters
        }

    @property
    def _buffers(self) -> dict[str, str]:
        """The layer's buffers that take the place of weights, by the op's names."""
        return {
            own.lstrip("_"): name
            for own, name in self.layer.buffers.items()
            if own.lstrip("_") in self.kind.weights
        }

    def _weights(self) -> Iterator[tuple[str, Array]]:
        known = {*self._own.values(), *(self._buffers.values())}
        for own, name in (*self.layer.parameters.items(), *self.layer.buffers.items()):
            if name not in known:
                raise _NotJudged(f"its {own} is not known")
        for name, parameter in self._own.items():
            array = self.tensors.parameter(parameter)
            if array is None:
                raise _NotJudged(f"its {name} was not recorded")
            yield name, self._turned(name, array)
        for name, buffer in self._buffers.items():
            array = self.tensors.buffer(buffer)
            if array is None:
                raise _NotJudged(f"its {name} was not recorded")
            yield name, array

    def _turned(self, name: str, array: Array) -> Array:
        turned = self.rank.framework in self.kind.turned and name == "weight"
        return np.ascontiguousarray(array.T) if turned else array

    def _input_gradients(self, calls: tuple[Call, ...]) -> Iterator[tuple[str, Array]]:
        paths = self._paths(calls[0])
        given = {name: calls[0].inputs[path] for name, path in paths.items()}
        for name, path in paths.items():
            if any(_same(given[name], given[other]) for other in given if other != name):
                continue  # given twice, it has one gradient: the sum over its uses
            gradients = [call.input_gradients.get(path) for call in calls]
            known = [one for one in gradients if one is not None]
            shared = name in self.kind.weights and len(calls) > 1
            if f"d{name}" in self.op.gradients and len(known) == len(calls) and not shared:
                yield f"d{name}", self._joined(known)

    def _weight_gradients(self) -> dict[str, Array]:
        """Of the parameters that no other layer has."""
        found = {}
        for name, parameter in self._own.items():
            gradient = self.tensors.gradient(parameter, "backward")
            if gradient is not None and self.uses[parameter] == 1:
                found[f"d{name}"] = self._turned(name, gradient)
        return found

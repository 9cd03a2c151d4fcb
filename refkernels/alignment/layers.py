"""Captured layers and watched functions as questions: the role of each of their tensors.

Weights are found by the names that frameworks give them (`weight`, `gamma`, `embedding_table`), or
among a function's arguments. All calls of a layer in a step are one question, row after row: the
gradient of its parameters is the sum over all calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from refkernels import registry
from refkernels.alignment.kinds import LayerKind, kind_of, settings_of, synonyms, tensor_names
from refkernels.alignment.question import CapturedQuestion, NotJudged, Place, Read, Unjudged
from refkernels.alignment.recorded import ROOT
from refkernels.alignment.run import Layer, LayerCall, Rank, StepTensors
from refkernels.alignment.tensors import Array
from refkernels.op import Direction, Op


def read_layers(rank: Rank, step: int, tensors: StepTensors) -> Read:
    """The questions of a step's layers, forward and backward."""
    uses = Counter(name for layer in rank.layers.values() for name in layer.parameters.values())
    for order, layer in enumerate(rank.layers.values()):
        calls, some = tensors.calls(layer.name), layer.name in tensors.listed("items")
        if layer.name in tensors.listed("left_out"):
            yield Unjudged(layer.name, layer.type, "the step has others of its kind, and no room")
        if some and layer.parameters:
            yield Unjudged(layer.name, layer.type, "its weights' gradients are sums over more rows")
        if not calls or rank.contains(layer.name):
            if calls and layer.parameters and layer.name != ROOT:
                yield Unjudged(layer.name, layer.type, "it has layers and weights of its own")
            continue
        place = Place(step, "forward", layer.name, order, rank.rank)
        groups = list(_by_settings(rank, layer, calls))
        for settings, group in groups:
            try:
                kind = kind_of(layer, settings)
                if isinstance(kind, str):
                    raise NotJudged(kind)
                params = kind.params(settings)
                if isinstance(params, str):
                    raise NotJudged(params)
                params = _of_format(params, group[0])
                axes = [array.ndim for array in group[0].outputs.values()]
                if some and params.get("axis", -1) in (0, *(-count for count in axes)):
                    raise NotJudged("each answer depends on more rows than are kept")
                reader = _LayerReader(rank, layer, kind, params, settings, tensors, uses)
                yield from reader.questions(group, place, len(groups) == 1 and not some)
            except NotJudged as reason:
                yield Unjudged(layer.name, layer.type, str(reason))


def _by_settings(
    rank: Rank, layer: Layer, calls: tuple[LayerCall, ...]
) -> Iterator[tuple[dict[str, Any], tuple[LayerCall, ...]]]:
    """The calls of a layer by their settings: a function may be called with new ones each time."""
    settings = [settings_of(rank, layer, call) for call in calls]
    for k, chosen in enumerate(settings):
        if chosen not in settings[:k]:
            pairs = zip(calls, settings, strict=True)
            yield chosen, tuple(call for call, other in pairs if other == chosen)


def _beyond_lookups(inputs: Mapping[str, Array], gradients: Mapping[str, Array]) -> bool:
    """Whether rows of a weight that were not looked up have a gradient: something else uses it."""
    indices, gradient = inputs.get("indices"), gradients.get("dweight")
    if indices is None or gradient is None:
        return False
    unused = np.ones(len(gradient), bool)
    unused[indices[(indices >= 0) & (indices < len(gradient))]] = False
    return bool(np.any(gradient[unused]))


def _of_format(params: dict[str, Any], call: LayerCall) -> dict[str, Any]:
    """The params, with the eps of the input's format where none is given."""
    if params.get("eps", 0.0) is not None:
        return params
    dtype = next((array.dtype for array in call.inputs.values()), None)
    if dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise NotJudged(f"its eps is that of {dtype}")
    return {**params, "eps": float(np.finfo(dtype).eps)}


@dataclass(frozen=True)
class _LayerReader:
    """Reads the questions of one layer in one step."""

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

    def questions(self, calls: tuple[LayerCall, ...], place: Place, all_calls: bool) -> Read:
        """The questions of calls with the same settings; `all_calls`: whether the layer has no
        others."""
        alike = len({tuple(self._paths(call)) for call in calls}) == 1
        joins = len(calls) == 1 or (alike and self.op.outputs != ("loss",))  # row after row
        groups = [calls] if joins else [(call,) for call in calls]
        weights = dict(self._weights())
        for group in groups:
            if several := [len(call.outputs) for call in group if len(call.outputs) != 1]:
                raise NotJudged(f"it has {several[0]} recorded outputs")
            outputs = self._joined([next(iter(call.outputs.values())) for call in group])
            inputs = {**self._inputs(group), **weights}
            yield self._question(place, "forward", inputs, {self.op.outputs[0]: outputs})
            cotangents = [call.cotangents.get("0") for call in group]
            if "backward" not in self.op.directions or any(array is None for array in cotangents):
                continue
            gradients = dict(self._input_gradients(group))
            gradients |= self._weight_gradients() if all_calls and len(groups) == 1 else {}
            if gradients:
                backward_place = Place(place.step, "backward", place.name, place.order, place.rank)
                cotangent = self._joined([array for array in cotangents if array is not None])
                backward_inputs = {self.op.cotangent: cotangent, **inputs}
                question = self._question(backward_place, "backward", backward_inputs, gradients)
                yield replace(question, elsewhere=_beyond_lookups(inputs, gradients))

    def _question(
        self, place: Place, direction: Direction, inputs: Mapping[str, Array],
        outputs: Mapping[str, Array],
    ) -> CapturedQuestion:  # fmt: skip
        takes = self.op.takes(direction)
        taken = {name: array for name, array in inputs.items() if name in takes}
        if self.kind.classes:
            axis = self._axis_of_classes(taken)
            taken, outputs = (
                {name: self._by_class(name, values, axis, taken) for name, values in side.items()}
                for side in (taken, outputs)
            )
        return CapturedQuestion(
            place, self.op.name, direction, taken, self.params, outputs, self.layer.type,
            users=self.layer.module.partition(".")[0] not in ("", "builtins", self.rank.framework),
        )  # fmt: skip

    def _axis_of_classes(self, inputs: Mapping[str, Array]) -> int:
        """The second axis; where a framework has an argument for it, that one, the last by
        default."""
        last = inputs["x"].ndim - 1
        if self.rank.framework in self.kind.with_axis:
            axis = self.settings.get("axis", -1)
            return int(axis) % max(last + 1, 1) if isinstance(axis, int) else last
        return min(1, last)

    def _by_class(self, name: str, array: Array, axis: int, inputs: Mapping[str, Array]) -> Array:
        """x or its gradient with the classes last; a target without its axis of one element."""
        if name in ("x", "dx"):
            return np.moveaxis(array, axis, -1)
        single = name == "target" and array.ndim == inputs["x"].ndim and array.ndim > axis
        return array.squeeze(axis) if single and array.shape[axis] == 1 else array

    def _paths(self, call: LayerCall) -> dict[str, str]:
        """The path of each input tensor of a call, by the op's name. Raises NotJudged for an
        unknown tensor."""
        names = tensor_names(self.layer, call)
        paths: dict[str, str] = {}
        for position, name in enumerate((*self.kind.takes, *self.kind.weights)):
            held = name in self._parameters
            place = (str(position),) if name in self.kind.takes else ()
            for framework_name in (*synonyms(name), *place) if not held else ():
                if (path := names.get(framework_name)) is not None and path not in paths.values():
                    paths.setdefault(name, path)
        for path in set(call.inputs) - set(paths.values()):
            mask = self.kind.masks.get(call.inputs[path].dtype.kind)
            if mask is None:
                raise NotJudged(f"its input {path} is not known")
            paths[mask] = path
        if missing := [name for name in self.kind.takes if name not in paths]:
            raise NotJudged(f"its input {missing[0]} was not recorded")
        return paths

    def _inputs(self, calls: tuple[LayerCall, ...]) -> dict[str, Array]:
        paths = self._paths(calls[0])
        shared = [name for name in paths if name in self.kind.weights]
        return {
            name: calls[0].inputs[path]
            if name in shared
            else self._joined([call.inputs[path] for call in calls])
            for name, path in paths.items()
        }

    def _joined(self, arrays: list[Array]) -> Array:
        """The arrays of several calls, row after row."""
        if len(arrays) == 1:
            return arrays[0]
        if len({array.shape[1:] for array in arrays}) > 1 or any(not one.ndim for one in arrays):
            raise NotJudged("its calls have different shapes")
        return np.concatenate(arrays)

    @property
    def _parameters(self) -> dict[str, str]:
        """The layer's parameters by the op's names."""
        return self._by_op(self.layer.parameters)

    def _by_op(self, held: Mapping[str, str]) -> dict[str, str]:
        """The names of tensors that are weights of the op, of those that the layer holds."""
        words = {name: (*synonyms(name), f"_{name}") for name in self.kind.weights}
        return {name: held[word] for name in words for word in words[name] if word in held}

    def _weights(self) -> Iterator[tuple[str, Array]]:
        parameters, buffers = self._parameters, self._by_op(self.layer.buffers)
        for word, name in (*self.layer.parameters.items(), *self.layer.buffers.items()):
            if name not in (*parameters.values(), *buffers.values()):
                raise NotJudged(f"its {word} is not known")
        recorded = {name: self.tensors.parameter(n) for name, n in parameters.items()}
        recorded |= {name: self.tensors.buffer(n) for name, n in buffers.items()}
        for name, array in recorded.items():
            if array is None:
                raise NotJudged(f"its {name} was not recorded")
            if f"parameters/{parameters.get(name)}/begin" in self.tensors.file:
                raise NotJudged(f"its {name} changes within the step")
            yield name, self._turned(name, array)

    def _turned(self, name: str, array: Array) -> Array:
        turned = self.rank.framework in self.kind.turned and name == "weight"
        return np.ascontiguousarray(array.T) if turned else array

    def _input_gradients(self, calls: tuple[LayerCall, ...]) -> Iterator[tuple[str, Array]]:
        paths = self._paths(calls[0])
        tensors = {name: calls[0].inputs[path] for name, path in paths.items()}
        for name, path in paths.items():
            if [tensor.tobytes() for tensor in tensors.values()].count(tensors[name].tobytes()) > 1:
                continue  # a tensor given twice has one gradient: the sum over its uses
            gradients = [call.input_gradients.get(path) for call in calls]
            recorded = [gradient for gradient in gradients if gradient is not None]
            shared = name in self.kind.weights and len(calls) > 1
            if f"d{name}" in self.op.gradients and len(recorded) == len(calls) and not shared:
                yield f"d{name}", self._joined(recorded)

    def _weight_gradients(self) -> dict[str, Array]:
        """The gradients of the parameters that no other layer has."""
        gradients = {}
        for name, parameter in self._parameters.items():
            gradient = self.tensors.gradient(parameter, "backward")
            if gradient is not None and self.uses[parameter] == 1:
                gradients[f"d{name}"] = self._turned(name, gradient)
        return gradients

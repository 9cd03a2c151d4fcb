"""A training step of a formula in a context: loss, gradients, clipping, update.

    loss(xp, weights, batch) -> a value of one element

The update is the formula of an op of `refkernels.optimizer_ref`, the clipping that of
`refkernels.clip_ref`, both in the same context. They run over all parameters concatenated, as in
the judged captures; an op whose step depends on a tensor's norm (lamb) runs tensor by tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels import registry
from refkernels.contexts import Gradient, RoundedArithmetic
from refkernels.contexts.gradient import Taped
from refkernels.contexts.working import RoundedValue
from refkernels.op import Op
from refkernels.training.arithmetic import answers

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]
Loss = Callable[[Any, Mapping[str, Any], Mapping[str, Any]], Any]
_STATES = {  # the states that an optimizer keeps, zeros before the first step
    "sgd": (), "momentum": ("buf",), "adam": ("m", "v"), "adamw": ("m", "v"), "lamb": ("m", "v"),
    "adagrad": ("accum",), "lion": ("m",),
}  # fmt: skip
OPTIMIZERS = tuple(_STATES)
_TENSOR_BY_TENSOR = ("lamb",)  # the step depends on norms of single tensors


@dataclass
class Training:
    """A training in progress: `weights` by name, and the optimizer's states.

    xp          the arithmetic: `RoundedArithmetic`, `Shuffled`
    optimizer   an op of `refkernels.optimizer_ref`; `params` are its hyper-parameters
    undecayed   the weights whose weight decay is 0
    max_norm    of `clip_by_global_norm`, with its `way`; None leaves the gradients unclipped
    """

    xp: RoundedArithmetic
    loss: Loss
    weights: dict[str, Array]
    optimizer: str = "adamw"
    params: Mapping[str, Any] = field(default_factory=dict)
    undecayed: frozenset[str] = frozenset()
    max_norm: float | None = None
    way: str = "eps"
    taken: int = 0
    state: dict[str, dict[str, Array]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.optimizer not in _STATES:
            optimizers = ", ".join(OPTIMIZERS)
            raise ValueError(
                f"There is no optimizer {self.optimizer!r} to train with: {optimizers}."
            )
        self.weights = {name: self._stored(array) for name, array in self.weights.items()}
        if unknown := sorted(self.undecayed - self.weights.keys()):
            raise ValueError(f"There is no weight {unknown[0]!r} to leave undecayed.")

    def step(self, batch: Mapping[str, Any], lr: float) -> float:
        """Take a step; returns the loss of the batch before it."""
        loss, gradients = self.gradients(batch)
        self.update(self.clipped(gradients), lr)
        return loss

    def gradients(self, batch: Mapping[str, Any]) -> tuple[float, dict[str, Array]]:
        """The loss, and its gradients by weight."""
        tape = Gradient(self.xp)
        nodes = {name: Taped(tape, self.xp.array(array)) for name, array in self.weights.items()}
        value = self.loss(tape, nodes, batch)
        cotangent = tape.below.broadcast(tape.below.number(1), value.shape)
        gradients = tape.pull(value, cotangent, list(nodes.values()))
        return float(_data(value.value).item()), dict(
            zip(nodes, map(_data, gradients), strict=True)
        )

    def clipped(self, gradients: Arrays) -> dict[str, Array]:
        """The gradients, clipped by their global norm."""
        if self.max_norm is None:
            return dict(gradients)
        sizes = [gradient.size for gradient in gradients.values()]
        tensor = np.repeat(np.arange(len(sizes)), sizes)
        inputs = {"grads": _joined(gradients), "tensor": tensor}
        params = {"max_norm": self.max_norm, "way": self.way}
        outputs = self._read("clip_by_global_norm", inputs, params)
        return _split(outputs["clipped"], gradients)

    def update(self, gradients: Arrays, lr: float) -> None:
        """Update the weights by one step of the optimizer."""
        self.taken += 1
        decayed = [name for name in self.weights if name not in self.undecayed]
        for names in (decayed, [name for name in self.weights if name in self.undecayed]):
            groups = [[name] for name in names] if self.optimizer in _TENSOR_BY_TENSOR else [names]
            for group in groups:
                if group:
                    self._update_group(group, gradients, lr, names is decayed)

    def _update_group(self, names: list[str], gradients: Arrays, lr: float, decayed: bool) -> None:
        params = dict(self.params, lr=lr)
        op = _op(self.optimizer)
        if "step" in op.params:
            params["step"] = self.taken
        if not decayed:
            params["weight_decay"] = 0.0
        weights = {name: self.weights[name] for name in names}
        inputs = {"param": _joined(weights), "grad": _joined({n: gradients[n] for n in names})}
        states = _STATES[self.optimizer]
        if self.optimizer == "sgd" and params.get("momentum"):
            states = ("buf",)
        for state_name in states:
            stored = self.state.setdefault(state_name, {})
            zeros = {name: np.zeros_like(self.weights[name]) for name in names}
            inputs[state_name] = _joined({name: stored.get(name, zeros[name]) for name in names})
        outputs = self._read(self.optimizer, inputs, params)
        self.weights |= _split(outputs["param"], weights)
        for state_name in states:
            self.state[state_name] |= _split(outputs[state_name], weights)

    def _read(self, op: str, inputs: Arrays, params: Mapping[str, Any]) -> dict[str, Array]:
        """The outputs of an op's first form in this arithmetic."""
        return answers(self.xp)(op, "forward", inputs, params) or {}

    def _stored(self, array: Any) -> Array:
        return _data(self.xp.store(self.xp.array(np.asarray(array))))


def _op(name: str) -> Op:
    return registry.get(name)


def _data(value: Any) -> Array:
    assert isinstance(value, RoundedValue)
    return value.data


def _joined(arrays: Arrays) -> Array:
    return np.concatenate([array.reshape(-1) for array in arrays.values()])


def _split(flat: Array, like: Arrays) -> dict[str, Array]:
    ends = np.cumsum([array.size for array in like.values()])[:-1]
    parts = np.split(flat.reshape(-1), ends)
    return {
        name: part.reshape(array.shape)
        for part, (name, array) in zip(parts, like.items(), strict=True)
    }

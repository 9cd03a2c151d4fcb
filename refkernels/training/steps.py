"""A training step of a formula in a context: loss, gradients, clipping, update.

    loss(xp, weights, batch) -> a value of one element

The update of each weight is the formula of an op of `refkernels.optimizer_ref`, the clipping of all
gradients that of `refkernels.clip_ref`, both in the same context.
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
from refkernels.op import Direction

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]
Loss = Callable[[Any, Mapping[str, Any], Mapping[str, Any]], Any]


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
    state: dict[tuple[str, str], Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if registry.get(self.optimizer).inputs[:2] != ("param", "grad"):
            raise ValueError(f"{self.optimizer} is not an optimizer to train with.")
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
        arrays = dict(zip(nodes, map(_data, gradients), strict=True))
        return float(_data(value.value).item()), arrays

    def clipped(self, gradients: Arrays) -> dict[str, Array]:
        """The gradients, clipped by their global norm."""
        if self.max_norm is None:
            return dict(gradients)
        flat = [gradient.reshape(-1) for gradient in gradients.values()]
        tensor = np.repeat(np.arange(len(flat)), [gradient.size for gradient in flat])
        inputs = {"grads": np.concatenate(flat), "tensor": tensor}
        params = {"max_norm": self.max_norm, "way": self.way}
        clipped = answers(self.xp, "clip_by_global_norm", inputs, params)["clipped"].reshape(-1)
        parts = np.split(clipped, np.cumsum([gradient.size for gradient in flat])[:-1])
        pairs = zip(parts, gradients.items(), strict=True)
        return {name: part.reshape(like.shape) for part, (name, like) in pairs}

    def update(self, gradients: Arrays, lr: float) -> None:
        """Update the weights by one step of the optimizer."""
        self.taken += 1
        op = registry.get(self.optimizer)
        states = [word for word in op.outputs[1:] if word not in op.optional]
        if "buf" in op.optional and self.params.get("momentum"):
            states.append("buf")
        for name, weight in self.weights.items():
            params = {**self.params, "lr": lr}
            if "step" in op.params:
                params["step"] = self.taken
            if name in self.undecayed:
                params["weight_decay"] = 0.0
            kept = {word: self.state.get((name, word), np.zeros_like(weight)) for word in states}
            inputs = {"param": weight, "grad": gradients[name], **kept}
            outputs = answers(self.xp, self.optimizer, inputs, params)
            self.weights[name] = outputs["param"]
            self.state |= {(name, word): outputs[word] for word in states}

    def _stored(self, array: Any) -> Array:
        return _data(self.xp.store(self.xp.array(np.asarray(array))))


def _data(value: Any) -> Array:
    assert isinstance(value, RoundedValue)
    return value.data


def answers(
    xp: RoundedArithmetic, op: str, inputs: Arrays, params: Mapping[str, Any],
    direction: Direction = "forward",
) -> dict[str, Any]:  # fmt: skip
    """The outputs of an op's first form in an arithmetic, by name; none of an op that is no
    formula."""
    formulas = registry.get(op).definition
    if formulas is None:
        return {}
    first = formulas.first(direction)
    return formulas.computed(direction, first, inputs, params, xp.format, xp)

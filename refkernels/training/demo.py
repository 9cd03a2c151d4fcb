"""Two captured runs of a small model, one of which does not compute the LayerNorm that it declares.

The model: embedding, linear, GELU, linear, LayerNorm, linear, cross entropy; AdamW. Every layer is
one formula over `Gradient(RoundedArithmetic("float32"))`, so a run has everything that
`refkernels.capture` writes for a framework: inputs, outputs and cotangents of every layer, weights,
gradients, states. It needs only NumPy. B declares eps = 1e-12 and computes with 1e-5.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.contexts import Gradient, RoundedArithmetic
from refkernels.contexts.gradient import Taped
from refkernels.training import writing
from refkernels.training.steps import Training, data_of, pulled

Array = npt.NDArray[Any]
WORDS, WIDTH, INNER, ROWS, LENGTH = 23, 16, 40, 6, 5
DECLARED, PLANTED = 1e-12, 1e-5  # eps of B's LayerNorm: as declared, and as computed
LR, STEPS = 1e-3, 3
SIZES = {"up": (INNER, WIDTH), "down": (WIDTH, INNER), "head": (WORDS, WIDTH)}


class Recorded:
    """The model's formula, which records the inputs and outputs of its layers."""

    def __init__(self, eps: float) -> None:
        self.eps = eps
        self.calls: dict[str, tuple[tuple[Any, ...], Any]] = {}

    def __call__(self, xp: Any, weights: Mapping[str, Any], batch: Mapping[str, Array]) -> Any:
        self.calls = {}
        x = self._call("embed", xp.take(weights["embed.weight"], batch["ids"], 0), batch["ids"])
        x = self._linear(xp, weights, "up", x)
        x = self._call("act", x * xp.erfc(-x / xp.sqrt(xp.number(2))) / 2, x)
        x = self._linear(xp, weights, "down", x)
        x = self._norm(xp, weights, x)
        logits = self._linear(xp, weights, "head", xp.reshape(x, (ROWS * LENGTH, WIDTH)))
        labels = batch["labels"].reshape(-1)
        top = xp.pivot(logits)
        losses = xp.log(xp.sum(xp.exp(logits - top))) + top
        losses = losses - xp.take_along_axis(logits, labels[:, None])
        loss = xp.reshape(xp.mean(xp.reshape(losses, (labels.size,))), ())
        return self._call("loss", loss, logits, labels)

    def _call(self, name: str, output: Any, *inputs: Any) -> Any:
        self.calls[name] = inputs, output
        return output

    def _linear(self, xp: Any, weights: Mapping[str, Any], name: str, x: Any) -> Any:
        product = xp.matmul(x, xp.transpose(weights[f"{name}.weight"], (1, 0)))
        return self._call(name, product + weights[f"{name}.bias"], x)

    def _norm(self, xp: Any, weights: Mapping[str, Any], x: Any) -> Any:
        centred = x - xp.mean(x)
        rstd = xp.rsqrt(xp.mean(xp.square(centred)) + xp.number(self.eps))
        return self._call("norm", centred * rstd * weights["norm.weight"] + weights["norm.bias"], x)


def write_runs(folder: Path) -> tuple[Path, Path]:
    """Capture both runs, in run_a and run_b."""
    return _run(folder / "run_a", DECLARED), _run(folder / "run_b", PLANTED)


def _run(folder: Path, eps: float) -> Path:
    rng = np.random.default_rng(1)
    weights = {"embed.weight": rng.standard_normal((WORDS, WIDTH)) / 8}
    for name, shape in SIZES.items():
        weights[f"{name}.weight"] = rng.standard_normal(shape) / shape[1] ** 0.5
        weights[f"{name}.bias"] = rng.standard_normal(shape[0]) / 8
    weights |= {"norm.weight": np.ones(WIDTH), "norm.bias": np.zeros(WIDTH)}
    params = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.01}
    model = Recorded(eps)
    xp = RoundedArithmetic("float32", order="pairwise", scalars="binary64")
    training = Training(xp, model, weights, "adamw", params)
    run = writing.described(
        "Demonstration", training.weights, "AdamW", {"lr": LR, **params}, layers=_layers()
    )
    lines = []
    for step in range(STEPS):
        shape = ROWS, LENGTH
        batch = {"ids": rng.integers(0, WORDS, shape), "labels": rng.integers(0, WORDS, shape)}
        value, tensors = _step(training, model, batch)
        lines.append(writing.line(step, value, [LR], batch, captured=step == 0))
        if step == 0:
            writing.write_tensors(folder, step, tensors)
    return writing.write_run(folder, run, lines)


def _step(
    training: Training, model: Recorded, batch: Mapping[str, Array]
) -> tuple[float, dict[str, Array]]:
    """The loss of a step, and its tensors by the names of docs/capture.md."""
    tape = Gradient(training.xp)
    weights = {
        name: Taped(tape, training.xp.array(weight)) for name, weight in training.weights.items()
    }
    loss = model(tape, weights, batch)
    tensors: dict[str, Array] = {f"batch/{name}": array for name, array in batch.items()}
    wanted: dict[str, Any] = {f"gradients/{name}/backward": node for name, node in weights.items()}
    for name, (inputs, output) in model.calls.items():
        tensors[f"layers/{name}/forward/0/outputs/0"] = data_of(output)
        wanted[f"layers/{name}/backward/0/cotangents/0"] = output
        for place, value in enumerate(inputs):
            is_node = isinstance(value, Taped)
            tensors[f"layers/{name}/forward/0/inputs/{place}"] = (
                data_of(value) if is_node else value
            )
            if is_node:
                wanted[f"layers/{name}/backward/0/inputs/{place}"] = value
    tensors |= pulled(tape, loss, wanted)
    gradients = {name: tensors[f"gradients/{name}/backward"] for name in weights}
    tensors |= {f"gradients/{name}/update": array for name, array in gradients.items()}
    for when in ("before", "after"):
        tensors |= {f"parameters/{name}/{when}": array for name, array in training.weights.items()}
        for state_name, state in training.state.items():
            tensors |= {f"state/{name}/{state_name}/{when}": array for name, array in state.items()}
        if when == "before":
            training.update(gradients, LR)
    return float(data_of(loss).item()), tensors


def _layers() -> list[dict[str, Any]]:
    """The layers as in run.json: each with its hyper-parameters and its weights."""
    layers: dict[str, tuple[str, dict[str, Any]]] = {
        "embed": ("Embedding", {}),
        "up": ("Linear", {}),
        "act": ("GELU", {"approximate": "none"}),
        "down": ("Linear", {}),
        "norm": ("LayerNorm", {"normalized_shape": [WIDTH], "eps": DECLARED}),
        "head": ("Linear", {}),
        "loss": ("CrossEntropyLoss", {"reduction": "mean"}),
    }
    weights_of = {
        "Embedding": ["weight"],
        "Linear": ["weight", "bias"],
        "LayerNorm": ["weight", "bias"],
    }
    return [
        {
            "name": name, "type": kind, "module": f"demonstration.{kind}", "calls": 1,
            "recorded": True, "training": True, "hyperparameters": params,
            "parameters": {weight: f"{name}.{weight}" for weight in weights_of.get(kind, ())},
            "buffers": {},
            "signature": ["input", "target"] if kind == "CrossEntropyLoss" else ["input"],
        }
        for name, (kind, params) in layers.items()
    ]  # fmt: skip

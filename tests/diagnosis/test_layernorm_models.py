"""The LayerNorm models match their descriptions; no framework is needed."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from refkernels import layernorm_ref
from refkernels.arithmetic import formats
from refkernels.diagnosis.models.layernorm import MODELS, Model
from refkernels.diagnosis.models.layernorm.torch_moments import moments

Arrays = dict[str, npt.NDArray[Any]]
FORMATS = ("float16", "bfloat16", "float32", "float64")


def named(name: str) -> Model:
    (model,) = (model for model in MODELS if model.name == name)
    return model


def inputs_of(dtype: str, rows: int = 6, n: int = 37, mean: float = 0.0, seed: int = 0) -> Arrays:
    rng = np.random.default_rng(seed)
    drawn = {
        "x": rng.standard_normal((rows, n)) + mean,
        "weight": rng.standard_normal(n),
        "bias": rng.standard_normal(n),
        "dy": rng.standard_normal((rows, n)),
    }
    storage = formats.get(dtype).storage
    return {name: values.astype(storage) for name, values in drawn.items()}


def run(model: Model, inputs: Arrays, dtype: str, direction: str = "forward", eps: float = 1e-5):
    return model.run(inputs, {"eps": eps}, direction, dtype)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", FORMATS)
def test_answers_have_the_caller_s_shapes_and_dtype(dtype: str) -> None:
    flat = inputs_of(dtype, rows=6, n=15)
    whole = {"x": (2, 3, 5, 3), "dy": (2, 3, 5, 3), "weight": (5, 3), "bias": (5, 3)}
    inputs = {name: flat[name].reshape(shape) for name, shape in whole.items()}
    shapes = {"y": (2, 3, 5, 3), "dx": (2, 3, 5, 3), "dweight": (5, 3), "dbias": (5, 3)}
    spoke = 0
    for model in MODELS:
        for direction in ("forward", "backward"):
            answers = model.run(inputs, {"normalized_shape": (5, 3)}, direction, dtype)  # type: ignore[arg-type]
            spoke += bool(answers)
            for name, values in answers.items():
                assert values.shape == shapes.get(name, (2, 3)), (model.name, name)
                if name in shapes:
                    assert values.dtype == formats.get(dtype).storage, (model.name, name)
    assert spoke >= 6


@pytest.mark.parametrize("mean", [0.0, 3.0, 1e3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_models_without_a_cause_stay_inside_the_rounding_bound(dtype: str, mean: float) -> None:
    inputs = inputs_of(dtype, mean=mean)
    forward = {name: inputs[name] for name in ("x", "weight", "bias")}
    backward = {name: inputs[name] for name in ("dy", "x", "weight", "bias")}
    exact = {"y": layernorm_ref.forward(**forward).y}
    bound = {"y": layernorm_ref.forward_bound(**forward, format=dtype).y}
    exact.update(layernorm_ref.backward(**backward)._asdict())
    bound.update(layernorm_ref.backward_bound(**backward, format=dtype)._asdict())
    compared = 0
    for model in MODELS:
        if model.cause is not None:
            continue
        for direction in ("forward", "backward"):
            for name, got in run(model, inputs, dtype, direction).items():
                if name in exact:
                    error = np.abs(got.astype(np.float64) - np.asarray(exact[name]))
                    assert np.all(error <= bound[name]), (model.name, name)
                    compared += 1
    assert compared >= 12


@pytest.mark.parametrize("lanes", [1, 3, 8])
@pytest.mark.parametrize("halves", [1, 2])
@pytest.mark.parametrize("n", [1, 2, 17, 100, 16 * 8, 16 * 8 * 7 + 5, 5000])
def test_a_cascade_of_any_width_counts_every_element_once(lanes: int, halves: int, n: int) -> None:
    """Of small integers, float64 gives the moments to a few units of rounding."""
    x = np.random.default_rng(n).integers(-8, 8, (3, n)).astype(np.float64)
    mean, var = moments(x, lanes=lanes, halves=halves)
    assert np.allclose(mean, x.mean(1), rtol=0, atol=1e-13)
    assert np.allclose(var, x.var(1), rtol=1e-12, atol=0)

"""The models of PyTorch's LayerNorm: NumPy gives small arrays the bits of the kernels."""

import numpy as np
import pytest
from twin_runs import both, same_bits

from refkernels.arithmetic import formats
from refkernels.diagnosis.models.layernorm import torch_cpu


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("n", [1, 5, 16, 31, 130, 1031])
def test_a_models_twin_has_the_kernels_bits(
    dtype: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng([n, len(dtype)])
    storage = formats.get(dtype).storage
    x = rng.standard_normal((5, n)) + rng.choice([0.0, 5.0, 1000.0], (5, 1))
    x[0, 0] = rng.choice([1.0, np.inf, np.nan, -0.0])
    x[1] *= 2.0**-130
    inputs = {"x": x.astype(storage), "dy": rng.standard_normal((5, n)).astype(storage)}
    affine = {name: rng.standard_normal(n).astype(storage) for name in ("weight", "bias")}
    tried = 0
    for arrays in (inputs, inputs | affine, inputs | {"bias": affine["bias"]}):
        for model in torch_cpu.MODELS:
            for direction in ("forward", "backward"):
                task = arrays, {"eps": 1e-5}, direction, dtype
                kernel, twin = both(monkeypatch, model.run, *task)
                for name in kernel:
                    assert same_bits(kernel[name], twin[name]), f"{model.name}, {name}"
                    tried += 1
    assert tried >= 3 * len(("y", "mean", "rstd", "dx")) * len(torch_cpu.MODELS)

"""Block sizes x dtypes x ragged shapes, each held to the bound that the formula proves.

Shapes break tiles: one column, one column less and one more than a block, a prime number of them.
"""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from layer_norm import layernorm  # noqa: E402

from refkernels.testing import assert_kernel, cases  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("block", [16, 64, 128])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 15), (2, 64), (2, 65), (5, 127), (1, 2, 257)])
def test_any_block_and_shape(block, dtype, shape):
    if dtype == "bfloat16" and DEVICE == "cpu":
        pytest.skip("Triton's interpreter cuts bits off where a GPU rounds to bfloat16 (3.9)")
    draws = torch.Generator().manual_seed(sum(shape))
    drawn = [torch.randn(size, generator=draws) for size in (shape, shape[-1:], shape[-1:])]
    x, weight, bias = (array.to(DEVICE, getattr(torch, dtype)) for array in drawn)
    inputs = {"x": x, "weight": weight, "bias": bias}
    assert_kernel("layernorm", inputs, layernorm(**inputs, block=block), {"eps": 1e-5})


@pytest.mark.parametrize("case", cases("layernorm", directions=["forward"]))
def test_the_op_s_own_hard_cases(case):
    if case.params["normalized_shape"] not in (None, case.inputs["x"].shape[-1:]):
        pytest.skip("the kernel normalises the last axis")
    inputs = {name: torch.from_numpy(a.copy()).to(DEVICE) for name, a in case.inputs.items()}
    case.check(layernorm(**inputs, eps=case.params["eps"]))

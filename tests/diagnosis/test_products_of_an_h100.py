"""Products of inputs with 11 significant bits: TF32 by either rule for ties, float16, an H100."""

from pathlib import Path

import numpy as np
import pytest

from refkernels import explain
from refkernels.arithmetic import formats
from refkernels.reporting.answer.facts import says

DATA = Path(__file__).parents[1] / "data"
ROUND = {"even": formats.round_to, "away": formats.round_ties_away}


@pytest.mark.parametrize("ties", [*ROUND, None])
def test_the_rule_for_ties_is_named_where_an_element_is_one(ties: str | None) -> None:
    rng, n = np.random.default_rng(3), 200 if ties else 16
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((16, n), (n, 16)))
    if ties:
        a.view(np.uint32)[:, ::20] &= np.uint32(0xFFFFC000)
        a.view(np.uint32)[:, ::20] |= np.uint32(0x1000)  # ties, below which lies an even number
    c = np.matmul(*(ROUND[ties or "even"](array, "tf32").astype(np.float64) for array in (a, b)))
    found = explain("matmul", {"a": a, "b": b}, {"c": c.astype(np.float32)})
    assert (found.cause, found.confidence) == ("tf32_inputs", "proven")
    assert found.candidates[0].details.get("ties") == ties
    rule = {"even": "(ties to even)", "away": "(ties away from zero)", None: ""}[ties]
    candidate = {"cause": "tf32_inputs", "details": found.candidates[0].details}
    assert says(candidate, "en").endswith(rule)


def test_float16_is_named_only_where_its_range_shows() -> None:
    """Numbers of ordinary size are the same in both: what is proven is 11 significant bits."""
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal((16, 64)).astype(np.float32) for _ in range(2))
    for scale, cause in ((1.0, "tf32_inputs"), (2.0**-18, "fp16_inputs")):
        narrow = [(array * np.float32(scale)).astype(np.float16) for array in (a, b)]
        c = narrow[0].astype(np.float64) @ narrow[1].astype(np.float64).T
        inputs = {"a": a * np.float32(scale), "b": b.T * np.float32(scale)}
        found = explain("matmul", inputs, {"c": c.astype(np.float32)})
        assert (found.cause, found.confidence) == (cause, "proven"), scale


def test_a_product_of_an_h100_rounds_ties_to_even() -> None:
    """A layer of examples/train_bert.py on an H100, torch 2.11 with CUDA 13.0, --tf32."""
    with np.load(DATA / "h100-linear-tf32.npz", allow_pickle=False) as file:
        inputs = {name: file[name] for name in ("x", "weight", "bias")}
        found = explain("linear", inputs, {"y": file["y"]})
    assert (found.cause, found.confidence) == ("tf32_inputs", "proven")
    assert found.candidates[0].details["ties"] == "even"


@pytest.mark.parametrize(
    ("layer", "order"),
    [
        ("q", "blocks of 16 in sequence, FMA, the bias added last"),
        ("pool", "16 lanes, combined one after the other, FMA, the bias added last"),
    ],
)
def test_the_order_of_an_h100_s_float32_sums_is_found(layer: str, order: str) -> None:
    """Two layers of that training without TF32: 64 products are split into parts."""
    with np.load(DATA / "h100-linear.npz", allow_pickle=False) as file:
        inputs = {name: file[f"{layer}_{name}"] for name in ("x", "weight", "bias")}
        found = explain("linear", inputs, {"y": file[f"{layer}_y"]})
    best = found.candidates[0]
    assert (found.cause, best.model, best.confidence) == ("summation_order", order, "proven")

"""An order of summation is proven by the bits, and an unproven order is not named."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import refkernels
from refkernels.diagnosis import orders
from refkernels.diagnosis.summation import known, replay
from refkernels.diagnosis.summation.orders import name_of

Array = npt.NDArray[Any]
RNG = np.random.default_rng(11)
K, N = 500, 24
X, WEIGHT, BIAS = (RNG.standard_normal(s).astype(np.float32) for s in ((16, K), (N, K), (N,)))
INPUTS = {"x": X, "weight": WEIGHT, "bias": BIAS}
PLAIN = {"x": X, "weight": WEIGHT, "bias": np.zeros(N, np.float32)}


def linear(products: str, bias: orders.Place) -> Array:
    order = next(
        order
        for order in orders.candidates(K, True)
        if (order.products, order.bias) == (products, bias)
    )
    a = np.hstack([X, np.ones((len(X), 1), np.float32)])
    return replay(order.tree, a, np.vstack([WEIGHT.T, BIAS]))


BLOCKS = "blocks of 384 in sequence, FMA"
HALVED = "blocks of 384 in sequence, the last two halved, FMA"


@pytest.mark.parametrize(
    ("products", "bias", "cause"),
    [
        (BLOCKS, "last", "summation_order"),
        (BLOCKS, "first", "bias_first"),
        (HALVED, "first", "bias_first"),
        ("in sequence, FMA", "start", "bias_first"),
        ("8 lanes, combined neighbours first", "last", "summation_order"),
        ("NumPy's pairwise sum", "last", "summation_order"),
    ],
)
def test_the_order_and_the_bias_s_place_are_proven(
    products: str, bias: orders.Place, cause: str
) -> None:
    explanation = refkernels.explain("linear", INPUTS, {"y": linear(products, bias)})
    assert (explanation.verdict, explanation.cause) == ("rounding", cause)
    first = explanation.candidates[0]
    assert (first.confidence, first.equal, first.elements) == ("proven", 16 * N, 16 * N)
    assert str(first.model).startswith(products)


def test_two_kernels_differ_in_where_the_bias_enters() -> None:
    outputs = {"a": {"y": linear(BLOCKS, "first")}, "b": {"y": linear(BLOCKS, "last")}}
    apart = refkernels.explain("linear", INPUTS, outputs).differences["a", "b"]
    assert (apart.cause, apart.confidence) == ("bias_first", "proven")
    assert apart.details["order"] == BLOCKS
    assert set(apart.details["models"]["y"]) == {"a", "b"}


def test_two_kernels_differ_in_their_order() -> None:
    outputs = {"a": {"y": linear(HALVED, "last")}, "b": {"y": linear(BLOCKS, "last")}}
    apart = refkernels.explain("linear", INPUTS, outputs).differences["a", "b"]
    assert (apart.cause, apart.confidence) == ("summation_order", "proven")


def test_equal_kernels_differ_in_nothing() -> None:
    y = replay(known.blocks(K, 384, fma=True), X, np.ascontiguousarray(WEIGHT.T))
    explanation = refkernels.explain("linear", PLAIN, {"a": {"y": y}, "b": {"y": y.copy()}})
    assert explanation.differences["a", "b"].equal
    assert explanation.differences["a", "b"].cause is None
    assert {explained.cause for explained in explanation.kernels.values()} == {"summation_order"}


def test_an_order_that_is_not_known_is_not_named() -> None:
    y = replay(known.lanes(K, 7, combine="sequence"), X, np.ascontiguousarray(WEIGHT.T))
    explanation = refkernels.explain("linear", PLAIN, {"y": y})
    assert (explanation.verdict, explanation.cause) == ("rounding", None)
    nearest = [c for c in explanation.candidates if c.cause == "summation_order"]
    assert len(nearest) == 1
    assert nearest[0].details["sampled"]
    assert not nearest[0].exact


def test_gradients_are_sums_too() -> None:
    dy = RNG.standard_normal((16, N)).astype(np.float32)
    outputs = {
        "dx": replay(known.lanes(N, 4, combine="fold"), dy, WEIGHT),
        "dweight": replay(known.sequential(16, fma=True), np.ascontiguousarray(dy.T), X),
        "dbias": replay(known.pairwise(16), np.ascontiguousarray(dy.T)),
    }
    explanation = refkernels.explain("linear", {**INPUTS, "dy": dy}, outputs, direction="backward")
    assert explanation.cause == "summation_order"
    proven = {c.output: c.model for c in explanation.candidates if not c.ruled_out}
    assert proven["dweight"] == "in sequence, FMA"
    assert proven["dx"] == "4 lanes, combined upper half onto lower half"
    assert proven["dbias"] == "pairwise"


@pytest.mark.parametrize("terms", [1, 2, 5, 17, 385, 500, 768, 769])
def test_every_order_is_a_tree_whose_name_is_its_own(terms: int) -> None:
    tried = 0
    for order in orders.candidates(terms, True):
        assert order.tree.leaves == terms + 1
        if terms == 500 and "halved" not in order.name:
            assert name_of(order.tree, bias=True) == order.name
        tried += 1
    assert tried > 5


@pytest.mark.parametrize("unroll", [0, 1, 4, 16])
def test_blocks_hold_all_terms(unroll: int) -> None:
    for terms in (1, 383, 384, 385, 500, 767, 768, 769, 1200):
        sizes = orders.block_sizes(terms, 384, unroll)
        assert sum(sizes) == terms
        assert all(0 < size <= 384 for size in sizes)
    assert orders.block_sizes(500, 384, 4) == [252, 248]
    assert orders.block_sizes(501, 384, 1) == [251, 250]

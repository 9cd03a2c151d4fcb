"""An op's order, revealed through its outputs alone, is named and holds for every output."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from refkernels.diagnosis.summation import SummationTree, known, replay
from refkernels.diagnosis.summation.boxes import OpBox
from refkernels.diagnosis.summation.orders import RevealedOrder, name_of, reveal_order

Arrays = dict[str, npt.NDArray[Any]]


def linear_box(tree: SummationTree, k: int, bias: bool) -> OpBox:
    """A linear whose every output adds its products, and its bias, in the tree's order."""

    def run(inputs: Arrays) -> Arrays:
        a, b = inputs["x"], inputs["weight"].T
        if bias:
            a = np.hstack([a, np.ones((len(a), 1), a.dtype)])
            b = np.vstack([b, inputs["bias"]])
        return {"y": replay(tree, a, np.ascontiguousarray(b))}

    return OpBox(run, "linear", k, m=2, n=3, bias=bias)


def with_bias(k: int, size: int, first: bool) -> SummationTree:
    """Blocks in sequence; the bias (leaf k) added to the first block, or to the sum of all."""
    nodes: list[tuple[int, ...]] = []

    def chain(terms: list[int]) -> int:
        total = terms[0]
        for term in terms[1:]:
            nodes.append((total, term))
            total = k + len(nodes)
        return total

    parts = [list(range(start, min(start + size, k))) for start in range(0, k, size)]
    fused = [leaf for part in parts for leaf in part[1:]]
    sums = [chain(part) for part in parts]
    chain([sums[0], k, *sums[1:]] if first else [*sums, k])
    return SummationTree.of(k + 1, nodes, fused)


@pytest.mark.parametrize(
    ("first", "where"), [(True, "added to the first block"), (False, "added last")]
)
def test_the_place_where_the_bias_enters_is_found(first: bool, where: str) -> None:
    tree = with_bias(20, 8, first)
    order = reveal_order(linear_box(tree, 20, bias=True))
    assert order.tree == tree
    assert order.name == f"blocks of 8 in sequence, FMA, the bias {where}"
    assert order.proven
    assert (order.equal, order.outputs) == (6, 6)
    assert order.questions > 20


def test_an_accumulator_that_starts_at_the_bias_is_found() -> None:
    nodes = [(6, 0), *((6 + k, k) for k in range(1, 6))]
    assert name_of(SummationTree.of(7, nodes), bias=True) == "in sequence, starting at the bias"


def test_without_a_bias_the_order_is_the_products_own() -> None:
    order = reveal_order(linear_box(known.lanes(21, 4), 21, bias=False))
    assert order.name == "4 lanes, combined neighbours first"
    assert order.proven


def test_an_order_that_is_not_that_of_all_outputs_is_not_proven() -> None:
    def run(inputs: Arrays) -> Arrays:
        a, b = inputs["a"], inputs["b"]
        c = replay(known.sequential(30), a, b)
        c[1:] = replay(known.pairwise(30), a[1:], b)
        return {"c": c}

    order = reveal_order(OpBox(run, "matmul", 30, m=4, n=4))
    assert order.name == "in sequence"
    assert not order.proven
    assert 4 <= order.equal < order.outputs == 16


def test_a_mean_with_a_wide_accumulator_is_named() -> None:
    def run(inputs: Arrays) -> Arrays:
        total = replay(known.sequential(50), inputs["x"].astype(np.float64))
        return {"y": inputs["x"], "mean": (total / 50).astype(np.float32)}

    order = reveal_order(OpBox(run, "layernorm", 50, m=9))
    assert (order.name, order.accumulator) == ("in sequence", "float64")
    assert order.proven


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_order_of_equal_indices_in_a_table_s_gradient_is_revealed(dtype: str) -> None:
    m, k, n = 3, 19, 4

    def run(inputs: Arrays) -> Arrays:
        dy, indices = inputs["dy"].astype(np.float32), inputs["indices"]
        values = np.stack([dy[indices == r].T for r in range(m)])  # (m, n, k)
        total = replay(known.lanes(k, 4), values.reshape(m * n, k))
        return {"dweight": total.reshape(m, n).astype(inputs["dy"].dtype)}

    order = reveal_order(OpBox(run, "embedding", k, m=m, n=n, row=2, column=1, dtype=dtype))
    assert order.name == "4 lanes, combined neighbours first"
    assert (order.equal, order.outputs) == ((m * n, m * n) if dtype == "float32" else (0, 0))


def test_a_sum_of_16_bit_values_has_an_order_and_no_replay() -> None:
    def run(inputs: Arrays) -> Arrays:
        return {"y": replay(known.pairwise(11), inputs["x"].astype(np.float32)).astype("float16")}

    order = reveal_order(OpBox(run, "sum", 11, m=2, dtype="float16"))
    assert order == RevealedOrder(known.pairwise(11), "pairwise", order.questions, 0, 0, "float16")
    assert not order.proven


@pytest.mark.parametrize(("m", "k", "n"), [(1, 9, 1), (3, 40, 5), (17, 33, 16)])
def test_numpys_matmul_has_one_order_in_all_its_outputs(m: int, k: int, n: int) -> None:
    box = OpBox(lambda inputs: {"c": inputs["a"] @ inputs["b"]}, "matmul", k, m=m, n=n)
    order = reveal_order(box)
    assert order.outputs == m * n
    assert order.equal >= 1

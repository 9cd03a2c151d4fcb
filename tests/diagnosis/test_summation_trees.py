"""The revealer finds the summation tree of any box that has one; a replay has the box's bits."""

import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refkernels.arithmetic import formats
from refkernels.arithmetic.fma import fma
from refkernels.arithmetic.jit import njit
from refkernels.diagnosis.summation import (
    RevealError,
    SummationTree,
    known,
    replay,
    reveal,
    reveal_fused,
)
from refkernels.diagnosis.summation.boxes import OpBox

NAMED = {
    "in sequence": known.sequential(37),
    "in sequence from the last to the first": known.sequential(37, backwards=True),
    "pairwise": known.pairwise(37),
    "NumPy's pairwise sum": known.numpy_pairwise(37),
    "blocks of 12 in sequence": known.blocks(37, 12),
    "blocks of 20, 9, 8 in sequence": known.blocks(37, [20, 9, 8]),
    "4 lanes, combined one after the other": known.lanes(37, 4, combine="sequence"),
    "16 lanes, combined neighbours first": known.lanes(37, 16),
    "8 lanes, combined upper half onto lower half": known.lanes(37, 8, combine="fold"),
}


@njit
def fused(a: Any, b: Any, c: Any) -> Any:
    return fma(a, b, c)


def box_of(tree: SummationTree) -> Callable[[npt.NDArray[np.float64]], float]:
    """Sums in float32 in the tree's order, by an evaluation that shares nothing with replay. A node
    of several children aligns them to the largest and drops what lies 2^-26 below, as hardware."""

    def box(values: npt.NDArray[np.float64]) -> float:
        parts = [np.float32(value) for value in values]
        for children in tree.nodes:
            if len(children) == 2:
                parts.append(parts[children[0]] + parts[children[1]])
                continue
            terms = [float(parts[child]) for child in children]
            step = 2.0 ** (np.floor(np.log2(max(map(abs, terms)) or 1.0)) - 26)
            parts.append(np.float32(sum(np.trunc(term / step) * step for term in terms)))
        return float(parts[-1])

    return box


def product_box_of(
    tree: SummationTree,
) -> Callable[[npt.NDArray[np.float64], npt.NDArray[np.float64]], float]:
    def box(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float:
        left, right = a.astype(np.float32), b.astype(np.float32)
        parts = [np.float32(x * y) for x, y in zip(left, right, strict=True)]
        for k, children in enumerate(tree.nodes):
            leaf = tree.fused[k]
            first, second = children
            if leaf < 0:
                parts.append(np.float32(parts[first] + parts[second]))
            else:
                sum_so_far = second if first == leaf else first
                parts.append(np.float32(fused(left[leaf], right[leaf], parts[sum_so_far])))
        return float(parts[-1])

    return box


@st.composite
def trees(draw: st.DrawFn, widest: int = 2) -> SummationTree:
    """Any tree of up to 40 leaves: values taken from a pool, and their sum put back."""
    n = draw(st.integers(1, 40))
    pool, nodes = list(range(n)), []
    while len(pool) > 1:
        width = draw(st.integers(2, min(widest, len(pool))))
        children = [pool.pop(draw(st.integers(0, len(pool) - 1))) for _ in range(width)]
        nodes.append(children)
        pool.append(n + len(nodes) - 1)
    return SummationTree.of(n, nodes)


@pytest.mark.parametrize("name", NAMED)
def test_a_known_order_is_revealed_and_named(name: str) -> None:
    tree = NAMED[name]
    assert reveal(box_of(tree), 37) == tree
    assert known.name_of(tree) == name


@given(trees())
def test_any_tree_of_ordinary_additions_is_revealed(tree: SummationTree) -> None:
    assert reveal(box_of(tree), tree.leaves) == tree


@given(trees(widest=6))
def test_any_tree_with_fused_additions_is_revealed(tree: SummationTree) -> None:
    assert reveal(box_of(tree), tree.leaves) == tree


@given(trees(), st.data())
def test_products_that_are_not_rounded_are_found(tree: SummationTree, data: st.DataObject) -> None:
    leaves = [c for node in tree.nodes for c in node if c < tree.leaves]
    chosen = data.draw(st.sets(st.sampled_from(leaves))) if leaves else set()
    marked = tree.with_fused(chosen)
    assert reveal_fused(tree, product_box_of(marked), 24) == marked


@given(trees(), st.data(), st.integers(0, 2**32 - 1))
def test_a_replay_has_the_bits_of_its_box(
    tree: SummationTree, data: st.DataObject, seed: int
) -> None:
    leaves = [c for node in tree.nodes for c in node if c < tree.leaves]
    marked = tree.with_fused(data.draw(st.sets(st.sampled_from(leaves))) if leaves else set())
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, tree.leaves)).astype(np.float32)
    expected = np.float32(product_box_of(marked)(a.astype(float), b.astype(float)))
    assert replay(marked, a[None, :], b[:, None])[0, 0] == expected


@pytest.mark.parametrize("n", [1, 7, 8, 128, 129, 300])
def test_numpys_sum_is_revealed_named_and_replayed(n: int) -> None:
    tree = reveal(lambda values: float(values.astype(np.float32).sum()), n)
    assert tree == known.numpy_pairwise(n)
    data = np.random.default_rng(n).standard_normal((5, n)).astype(np.float32)
    assert np.array_equal(replay(tree, data), data.sum(axis=1))


def test_a_sum_in_sequence_takes_one_question_per_value() -> None:
    counts: list[int] = []
    reveal(box_of(known.sequential(100)), 100, progress=counts.append)
    assert counts == list(range(1, 100))


def test_a_deep_tree_needs_no_deep_recursion() -> None:
    n = 400
    tree = known.sequential(n, backwards=True)
    sizes_from_the_last = {j: n - j for j in range(n)}

    def quick(values: npt.NDArray[np.float64]) -> float:
        """What a sum from the last value on says, without adding them each time."""
        places = np.flatnonzero(np.abs(values) > 1.0)
        return float(n - sizes_from_the_last[int(places.min())] if places.size else n)

    allowed = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + n // 2)
    try:
        revealed = reveal(quick, n)
    finally:
        sys.setrecursionlimit(allowed)
    assert revealed == tree
    assert tree.depth == n - 1


@pytest.mark.parametrize(
    ("box", "said"),
    [
        (lambda v: float(np.float64(sum(map(int, v)))), "order of summation depends on the values"),
        (lambda v: float(np.float32(v.mean())), "its format cannot hold the count"),
        (lambda v: float("nan") if (v < 0).any() else 9.0, "no order of 9 ordinary additions"),
    ],
    ids=["exact", "mean", "nan"],
)
def test_a_box_that_is_not_a_tree_is_refused_in_one_sentence(
    box: Callable[[npt.NDArray[np.float64]], float], said: str
) -> None:
    with pytest.raises(RevealError, match=said):
        reveal(box, 9)


def test_a_trees_figures() -> None:
    tree = known.sequential(5, fma=True)
    assert (tree.depth, tree.roundings(), tree.widest) == (4, 5, 2)
    assert known.sequential(5).roundings() == 5
    assert known.pairwise(8).roundings() == 4
    u = formats.BINARY32.u
    assert tree.bound(formats.BINARY32) == 5 * u / (1 - 5 * u)
    assert SummationTree.of(1, ()).depth == 0


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([(0, 1), (0, 3)], "taken already"),
        ([(0, 1)], "do not join all leaves"),
        ([(0, 4), (1, 2)], "not a tree"),
        ([(0,), (1, 3), (2, 4)], "not a tree"),
    ],
)
def test_nodes_that_do_not_form_a_tree_are_refused(nodes: list[tuple[int, ...]], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        SummationTree.of(3, nodes)


@pytest.mark.parametrize(
    "numbers", [{"mask": np.inf}, {"mask": 3.0}, {"unit": 0.0}, {"unit": -1.0}, {"unit": np.nan}]
)
def test_units_that_cannot_vanish_beside_the_mask_are_refused(numbers: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="3 units must be positive and vanish beside a finite"):
        reveal(lambda values: float(sum(values)), 3, **numbers)


def test_a_replay_refuses_what_it_cannot_run() -> None:
    tree = known.sequential(3)
    a = np.ones((2, 3), np.float32)
    with pytest.raises(ValueError, match=r"adds 3 products: a is \(M, 3\)"):
        replay(tree, a[:, :2])
    with pytest.raises(ValueError, match="float32 or float64"):
        replay(tree, a.astype(np.float16))
    wide = SummationTree.of(3, [(0, 1, 2)])
    with pytest.raises(ValueError, match="adds 3 values at once"):
        replay(wide, a)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numpys_matmul_and_linear_are_replayed_bit_for_bit(dtype: str) -> None:
    """A revealed order is the kernel's own: on random data it gives the kernel's bits."""

    def run(inputs: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        return {"y": inputs["x"] @ inputs["weight"].T + inputs["bias"]}

    box = OpBox(run, "linear", 24, m=3, n=5, row=1, column=2, dtype=dtype, bias=True)
    tree = reveal(box.total, box.leaves, unit=box.unit, mask=box.mask)
    tree = reveal_fused(tree, box.products, formats.get(dtype).p)
    rng = np.random.default_rng(3)
    x, weight = rng.standard_normal((3, 24)), rng.standard_normal((5, 24))
    inputs = {"x": x, "weight": weight, "bias": rng.standard_normal(5)}
    inputs = {name: array.astype(dtype) for name, array in inputs.items()}
    a = np.append(inputs["x"][1], np.ones(1, dtype))[None, :]
    b = np.append(inputs["weight"][2], inputs["bias"][2:3])[:, None]
    assert replay(tree, a, b)[0, 0] == run(inputs)["y"][1, 2]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"op": "cos"}, "reveal knows sum, matmul"),
        ({"op": "matmul", "row": 3}, "no element"),
        ({"op": "matmul", "bias": True}, "matmul has no bias"),
    ],
)
def test_a_box_for_what_is_not_a_sum_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        OpBox(lambda inputs: {}, k=4, **options)

"""How a summation tree is written in lines and drawn."""

import re

import pytest

from refkernels.diagnosis.summation import SummationTree, known
from refkernels.reporting.figures.trees import draw_tree, tree_lines


def lines_of(tree: SummationTree, **options: object) -> list[str]:
    fused = [leaf for leaf in tree.fused if leaf >= 0]
    return tree_lines(tree.leaves, tree.nodes, fused, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tree", "lines"),
    [
        (SummationTree.of(1, ()), ["0"]),
        (known.sequential(3), ["0 + 1 + 2"]),
        (known.sequential(3, fma=True), ["0 + 1 + 2 (FMA)"]),
        (known.sequential(64), ["0 + 1 + … + 63, 64 values in sequence"]),
        (
            known.blocks(768, 384, fma=True),
            [
                "the sum of two: 768 values",
                "├─ 0 + 1 + … + 383 (FMA), 384 values in sequence",
                "└─ 384 + 385 + … + 767 (FMA), 384 values in sequence",
            ],
        ),
        (
            known.blocks(25, 10),
            [
                "in sequence: 25 values",
                "├─ 0 + 1 + … + 9, 10 values in sequence",
                "├─ 10 + 11 + … + 19, 10 values in sequence",
                "└─ 20 + 21 + … + 24, 5 values in sequence",
            ],
        ),
        (known.pairwise(4), ["the sum of two: 4 values", "├─ 0 + 1", "└─ 2 + 3"]),
        (
            SummationTree.of(5, [(0, 1, 2, 3), (5, 4)]),
            ["the sum of two: 5 values", "├─ 0 + 1 + 2 + 3, all at once", "└─ then 4"],
        ),
    ],
)
def test_lines_show_blocks_and_lanes_and_fold_what_is_in_sequence(
    tree: SummationTree, lines: list[str]
) -> None:
    assert lines_of(tree)[: len(lines)] == lines


@pytest.mark.parametrize(
    "tree", [known.numpy_pairwise(300), known.lanes(70, 16), known.pairwise(9)]
)
def test_every_value_is_shown_once(tree: SummationTree) -> None:
    shown: list[int] = []
    for line in lines_of(tree, most=1000):
        body = re.sub(r", \d+ values in sequence|: \d+ values", "", line)
        numbers = [int(text) for text in re.findall(r"\d+", body)]
        if "…" in body:
            first, second, last = numbers
            numbers = list(range(first, last + 1, second - first))
        if "values" not in line or ("sequence" in line and "+" in line):
            shown += numbers
    assert sorted(shown) == list(range(tree.leaves))


def test_too_many_lines_are_counted_not_shown() -> None:
    whole = lines_of(known.pairwise(64), most=1000)
    cut = lines_of(known.pairwise(64), most=10)
    assert len(cut) == 10
    assert cut[-1] == f"… and {len(whole) - 9} more lines"


def test_a_value_can_have_a_name() -> None:
    assert lines_of(known.blocks(9, [4, 4, 1]), names={8: "bias"})[-1] == "└─ then bias"
    fused = known.sequential(9).with_fused(range(1, 8))
    assert lines_of(fused, names={8: "bias"}) == ["0 + 1 + … + bias (FMA), 9 values in sequence"]


def test_a_drawing_has_a_line_for_every_child_and_equal_bytes_every_time() -> None:
    tree = known.lanes(19, 4, fma=True)
    fused = [leaf for leaf in tree.fused if leaf >= 0]
    first, second = (draw_tree(tree.leaves, tree.nodes, "t", "title", fused) for _ in range(2))
    assert first == second
    assert "added unrounded (FMA)" in first.svg
    rounded = draw_tree(tree.leaves, tree.nodes, "t", "title")
    assert "added unrounded (FMA)" not in rounded.svg

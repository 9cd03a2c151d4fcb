"""`refkernels reveal`: its output and its status."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import planted_faults
import pytest
from command_helpers import said

from refkernels.diagnosis.summation import SummationTree, known
from refkernels.reporting import orders

refkernels_says = partial(said, "reveal")
fakes = planted_faults.fixture("import_error")


def revealed(*arguments: str) -> dict[str, Any]:
    result = refkernels_says(*arguments, "--json")
    assert result.exit_code == 0, result.output
    record: dict[str, Any] = json.loads(result.stdout)
    return record


def test_numpys_pairwise_sum_is_revealed_named_and_proven() -> None:
    record = revealed("sum", "--framework", "numpy", "--k", "150", "--m", "5", "--row", "3")
    tree = SummationTree.of(record["leaves"], record["nodes"], record["fused"])
    assert tree == known.numpy_pairwise(150)
    assert record["name"] == "NumPy's pairwise sum"
    assert record["replay"] == {"equal": 5, "outputs": 5, "accumulator": "float32"}
    assert record["depth"] == record["roundings"] == tree.depth
    assert record["bound"] == pytest.approx(tree.depth * 2.0**-24, rel=1e-5)
    assert record["version"] == record["environment"]["version"]


def test_a_product_s_tree_its_depth_its_bound_and_its_proof_are_printed(tmp_path: Path) -> None:
    drawing = tmp_path / "deep" / "tree.svg"
    result = refkernels_says(
        "matmul", "--framework", "numpy", "--k", "12", "--m", "4", "--n", "3", "--column", "2",
        "--svg", drawing, "--set", "OMP_NUM_THREADS=1",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    first, _, *lines = result.stdout.splitlines()
    assert first.startswith("numpy ")
    assert first.endswith(": matmul of (4, 12) by (12, 3), float32, element (0, 2)")
    facts = dict(line.split(None, 1) for line in lines if line[:1].islower())
    assert {"order", "depth", "bound", "proof", "questions"} <= set(facts)
    assert any(line.startswith("FMA ") for line in lines)
    assert "of 12 outputs of random data" in facts["proof"]
    assert drawing.read_text(encoding="utf-8").lstrip().startswith("<?xml")
    assert str(drawing) in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["exp", "--framework", "numpy"],
            "reveal knows sum, matmul, linear, embedding, layernorm, not 'exp'",
        ),
        (["embedding", "--framework", "numpy", "--m", "9999", "--n", "9999"], "--m 9999, --n 9999"),
        (["sum"], "Name one --framework or one --kernel: that whose order is revealed."),
        (["sum", "--framework", "nunpy"], "no framework is named 'nunpy'"),
        (["sum", "--framework", "numpy", "--dtype", "float8"], "There is no dtype 'float8'"),
        (["sum", "--framework", "numpy", "--row", "99"], "There is no element (99, 0)"),
        (["matmul", "--framework", "numpy", "--bias"], "matmul has no bias"),
        (["sum", "--framework", "numpy", "--set", "FOO"], "--set 'FOO' is not NAME=VALUE"),
    ],
)
def test_a_question_without_an_answer_is_one_sentence(arguments: list[str], said: str) -> None:
    result = refkernels_says(*arguments, "--k", "5")
    assert result.exit_code == 2, result.output
    (sentence,) = result.stderr.splitlines()
    assert sentence.startswith(f"refkernels: {said}")
    assert result.stdout == ""


def test_a_table_s_gradient_is_told_with_its_element() -> None:
    order = {
        "op": "embedding", "framework": "torch", "version": "2.13.0", "device": "cpu",
        "dtype": "float32", "k": 3, "row": 1, "column": 2, "bias": False, "direction": "backward",
        "output": "dweight", "inputs": {"dy": [12, 5], "weight": [4, 5]}, "products": False,
        "leaves": 3, "nodes": [[0, 1], [3, 2]], "fused": [], "name": "in sequence", "questions": 7,
        "depth": 2, "roundings": 2, "bound": 1.2e-7,
        "replay": {"equal": 20, "outputs": 20, "accumulator": "float32"},
    }  # fmt: skip
    first, *lines = orders.order_lines(order)
    assert first == (
        "torch 2.13.0 on cpu: embedding's dweight, 3 equal indices, of (12, 5), float32, "
        "element (1, 2)"
    )
    assert any("in sequence" in line for line in lines)


@pytest.mark.framework("torch")
def test_the_order_of_torch_s_embedding_gradient_is_revealed_and_proven() -> None:
    record = revealed("embedding", "--framework", "torch", "--k", "40", "--m", "5", "--n", "3",
                      "--row", "4", "--column", "1")  # fmt: skip
    assert (record["output"], record["direction"]) == ("dweight", "backward")
    assert record["name"] == "in sequence"
    assert record["replay"] == {"equal": 15, "outputs": 15, "accumulator": "float32"}


@pytest.mark.parametrize("framework", ["libm", "fake_import_error"])
def test_a_framework_that_fails_ends_with_1(framework: str) -> None:
    result = refkernels_says("matmul", "--framework", framework, "--k", "5")
    assert result.exit_code == 1, result.output
    (sentence,) = result.stderr.splitlines()
    assert framework in sentence


def test_a_drawing_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = refkernels_says(
        "sum", "--framework", "numpy", "--k", "3", "--svg", tmp_path / "file" / "tree.svg"
    )
    assert result.exit_code == 2
    assert "cannot be read or written" in result.stderr

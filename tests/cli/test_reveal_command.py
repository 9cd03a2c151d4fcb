"""`refkernels reveal`: its output and its status."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import planted_faults
import pytest
from typer.testing import CliRunner

from refkernels.cli.app import app
from refkernels.diagnosis.summation import SummationTree, known


@pytest.fixture(scope="module", autouse=True)
def fakes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    framework = planted_faults.framework("import_error", tmp_path_factory.mktemp("fakes"))
    with planted_faults.registered(framework):
        yield


def refkernels_says(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, ["reveal", *[str(argument) for argument in arguments]])


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
        (["exp", "--framework", "numpy"], "reveal knows sum, matmul, linear, layernorm, not 'exp'"),
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
    assert "choose another --svg" in result.stderr

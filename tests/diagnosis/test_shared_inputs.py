"""Before two kernels' outputs are compared: did they have the same inputs?"""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from refkernels import explain, question
from refkernels.cli.app import app

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
OTHER = X.copy()
OTHER[1, 0] = 7.0


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (OTHER, r"torch and paddle got different inputs: x differs in 1 of 6 elements, first at "
         r"\[1, 0\]: 0\.2\d* and 7\.0"),
        (X.T.copy(), r"x has shape \(2, 3\) and \(3, 2\)"),
        (X.astype(np.float64), "x has dtype float32 and float64"),
        (np.where(X < -0.9, np.nan, X).astype(np.float32), r"first at \[0, 0\]: -1\.0 and nan"),
    ],
)  # fmt: skip
def test_inputs_that_differ_are_reported_first(other: np.ndarray, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        question.shared({"torch": {"x": X}, "paddle": {"x": other}})


def test_inputs_of_the_same_bits_are_one_question() -> None:
    alike = {"torch": {"x": X}, "paddle": {"x": X.copy(), "weight": None}}
    assert set(question.shared(alike)) == {"x"}
    y = np.abs(X).astype(np.float32)
    apart = explain("softsign", alike, {"torch": {"y": y}, "paddle": {"y": y}})
    assert set(apart.kernels) == {"torch", "paddle"}


def test_the_command_reports_differing_inputs_before_anything_else(tmp_path: Path) -> None:
    for name, array in (("mine", X), ("theirs", OTHER)):
        np.save(tmp_path / f"{name}.npy", array)
    words = ["explain", "--oracle", "softsign"]
    for kernel in ("mine", "theirs"):
        words += ["--input", f"{kernel}:x={tmp_path / kernel}.npy"]
        words += ["--output", f"{kernel}:y={tmp_path / kernel}.npy"]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 2
    assert "mine and theirs got different inputs: x differs in 1 of 6" in ran.output

"""A probe's inputs separate the fitting explanations, and it gives the prediction of each."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_helpers import refused
from typer.testing import CliRunner

import refkernels
from refkernels.cli.app import app
from refkernels.diagnosis import casefile

X = np.float32([10, 20, 31])
SEED = np.array([[-1.83965693, -1.82964566]], np.float32)
SAID = np.array([[-0.84543723, 0.84541708]], np.float32)


def reduced(x: Any) -> Any:
    """sin with pi / 2 as one float32: wrong for all but small arguments."""
    k = np.rint(x * np.float32(2 / np.pi))
    r = (x - k * np.float32(np.pi / 2)).astype(np.float64) + np.fmod(k, 4) * (np.pi / 2)
    return np.sin(r).astype(np.float32)


def test_a_probe_separates_a_reduction_from_a_right_sine() -> None:
    assert refkernels.explain("sin", {"x": X}, {"y": reduced(X)}).confidence in (None, "consistent")
    probe = refkernels.probe("sin", {"x": X}, {"y": reduced(X)})
    assert probe.inputs["x"].size == 64
    assert all(probe.apart[pair] for pair in probe.apart if "right" in pair)
    for name, y in probe.predictions.items():
        explanation = refkernels.explain("sin", probe.inputs, {"y": y})
        right = name == "right"
        assert explanation.cause == (None if right else "argument_reduction")
        assert explanation.confidence in ((None,) if right else ("proven", "matched"))
    right = np.sin(probe.inputs["x"].astype(np.float64)).astype(np.float32)
    assert refkernels.explain("sin", probe.inputs, {"y": right}).cause is None


def test_a_probe_separates_models_of_layernorm() -> None:
    probe = refkernels.probe("layernorm", {"x": SEED}, {"y": SAID}, {"eps": 1e-5})
    names = [name for name in probe.predictions if "paddle" in name]
    assert names == ["summation_order: paddle CPU"]
    y = probe.predictions[names[0]]
    explanation = refkernels.explain("layernorm", probe.inputs, {"y": y}, {"eps": 1e-5})
    models = [candidate.model for candidate in explanation.candidates if not candidate.ruled_out]
    assert "paddle CPU" in models
    assert len(models) < len(probe.predictions)


def test_the_survivors_of_a_product_are_orders() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 6), (6, 3)))
    c = np.add.accumulate(a[:, :, None] * b, axis=1, dtype=np.float32)[:, -1]
    probe = refkernels.probe("matmul", {"a": a, "b": b}, {"c": c})
    assert "summation_order: in sequence" in probe.predictions
    assert probe.inputs["a"].shape == a.shape
    assert json.dumps(probe.to_dict(), allow_nan=False)


def test_what_nothing_explains_has_no_probe() -> None:
    x = np.random.default_rng(2).standard_normal((4, 8)).astype(np.float32)
    noise = np.random.default_rng(3).standard_normal((4, 8)).astype(np.float32)
    with pytest.raises(ValueError, match="Nothing that was tried fits"):
        refkernels.probe("layernorm", {"x": x}, {"y": noise})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    np.save("y.npy", reduced(X))
    return tmp_path


def says(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["probe", *arguments])


def test_the_command_writes_inputs_that_explain_reads(folder: Path) -> None:
    result = says("sin", "--input", "x=x.npy", "--output", "y=y.npy", "--out", "next")
    assert result.exit_code == 0, result.output
    assert "argument_reduction" in result.stdout
    assert "Written: next/x.npy" in result.stdout
    x = np.load("next/x.npy", allow_pickle=False)
    np.save("again.npy", reduced(x))
    again = ["--input", "x=next/x.npy", "--output", "y=again.npy", "--json"]
    answer = CliRunner().invoke(app, ["explain", "sin", *again])
    assert json.loads(answer.stdout)["cause"] == "argument_reduction"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sine", "--input", "x=x.npy"], "There is no op 'sine': did you mean 'sin'?"),
        (["sin", "--input", "x=x.npy"], "no kernel's answer to probe: give --output NAME=FILE.npy"),
    ],
)
def test_a_question_that_lacks_something_is_one_sentence(
    folder: Path, arguments: list[str], said: str
) -> None:
    assert said in refused(says(*arguments))


def test_a_case_s_kernel_is_named_and_one_npz_holds_all(folder: Path) -> None:
    outputs = {"mine": {"y": reduced(X)}, "other": {"y": np.sin(X)}}
    casefile.save("case.npz", casefile.CaseFile("sin", "forward", {"x": X}, outputs))
    assert "give --kernel, one of mine, other" in refused(says("case.npz"))
    result = says("case.npz", "--kernel", "mine", "--out", "probe.npz", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["survivors"][0]["name"] == "right"
    with np.load("probe.npz", allow_pickle=False) as archive:
        assert archive["x"].shape == (64,)

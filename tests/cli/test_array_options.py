"""--input and --output: arrays in .npy, .npz and .pt files, and a sentence for everything else."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refkernels.cli.shared.arrays import read_inputs, read_outputs
from refkernels.diagnosis import casefile

X = np.random.default_rng(3).standard_normal((3, 5)).astype(np.float32)
Y = np.sin(X)


def no_tensors(path: str, key: str | None) -> Mapping[str, Any]:
    raise AssertionError(f"{path} was given to torch")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with x.npy, one.npz (x), two.npz (x and bfloat16 z), out.npz (y)."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    np.savez("one.npz", x=X)
    np.savez("two.npz", x=X, z=X.astype(ml_dtypes.bfloat16))
    np.savez_compressed("out.npz", y=Y)
    return tmp_path


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["x=x.npy"], {"x"}),
        (["x=one.npz"], {"x"}),
        (["w=two.npz:x", "v=two.npz:z"], {"w", "v"}),
        (["two.npz"], {"x", "z"}),
        (["two.npz", "w=one.npz:x"], {"x", "z", "w"}),
    ],
)
def test_inputs_are_read_by_name(folder: Path, texts: list[str], names: set[str]) -> None:
    arrays = read_inputs(texts, no_tensors)
    assert set(arrays) == names
    for name, array in arrays.items():
        narrow = name in ("z", "v")
        assert array.dtype == (ml_dtypes.bfloat16 if narrow else np.float32)
        assert np.array_equal(array, X.astype(array.dtype))


@pytest.mark.parametrize(
    ("texts", "kernels"),
    [
        (["y=out.npz"], {"kernel"}),
        (["out.npz"], {"kernel"}),
        (["mine:out.npz", "torch==2.6.0:y=out.npz:y"], {"mine", "torch==2.6.0"}),
        (["torch==2.13.0+cpu:out.npz", "a:b:y=out.npz"], {"torch==2.13.0+cpu", "a:b"}),
        (
            ["torch==2.6.0@A=1,B=2:cuda:0:y=out.npz", "torch@A=1:out.npz", "./k.py:f:y=out.npz:y"],
            {"torch==2.6.0@A=1,B=2:cuda:0", "torch@A=1", "./k.py:f"},
        ),
    ],
)
def test_outputs_are_read_by_kernel(folder: Path, texts: list[str], kernels: set[str]) -> None:
    answers = read_outputs(texts, no_tensors)
    assert set(answers) == kernels
    assert all(np.array_equal(outputs["y"], Y) for outputs in answers.values())


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["x.npy"], "'x.npy' is not one of NAME=FILE.npy, NAME=FILE.npz:ARRAY, FILE.npz"),
        (["x="], "'x=' is not one of"),
        (["=x.npy"], "'=x.npy' is not one of"),
        (["one.npz:x"], "has no name here: write NAME=one.npz:x"),
        (["x=two.npz"], r"two.npz holds several arrays \(x, z\): write two.npz:ARRAY"),
        (["x=two.npz:w"], "two.npz has no array 'w': it has x, z"),
        (["x=x.npy", "one.npz"], "gives 'x' twice"),
        (["x=missing.npz:x"], "There is no file missing.npz"),
        (["x=text.npz"], "text.npz is not a .npz file"),
        (["x=objects.npz"], "holds Python objects"),
        (["x=empty.npz"], r"empty.npz holds no arrays"),
        (["case.npz"], "case.npz is a case file: give it in OP's place"),
    ],
)
def test_what_is_no_array_is_a_sentence(folder: Path, texts: list[str], said: str) -> None:
    Path("text.npz").write_text("hello")
    np.savez("objects.npz", x=np.array([None]), allow_pickle=True)
    np.savez("empty.npz")
    casefile.save("case.npz", casefile.CaseFile("sin", "forward", {"x": X}, {"a": {"y": Y}}))
    with pytest.raises(ValueError, match=said):
        read_inputs(texts, no_tensors)
    if not any(sign in said for sign in ("twice", "not one of", "no name")):
        with pytest.raises(ValueError, match=said):
            read_outputs(texts, no_tensors)


@given(st.lists(st.text("x=:.npzt/\0\n é", max_size=12), min_size=1, max_size=3))
def test_any_text_is_arrays_or_a_sentence(texts: list[str]) -> None:
    for read in (read_inputs, read_outputs):
        with pytest.raises(ValueError) as error:  # noqa: PT011 (there is no such file)
            read(texts, no_file)
        assert str(error.value).strip()


def no_file(path: str, key: str | None) -> Mapping[str, Any]:
    raise ValueError(f"There is no file {path}.")


def test_tensors_are_asked_for_by_key(folder: Path) -> None:
    requests: list[tuple[str, str | None]] = []

    def tensors(path: str, key: str | None) -> Mapping[str, Any]:
        requests.append((path, key))
        return {"x": X, "z": X} if key is None else {key: X}

    texts = ["a=x.pt", "b=deep.pth:layer.0.weight", "both.pt"]
    assert set(read_inputs(texts, tensors)) == {"a", "b", "x", "z"}
    assert requests == [("x.pt", ""), ("deep.pth", "layer.0.weight"), ("both.pt", None)]

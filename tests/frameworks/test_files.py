"""Files of a framework's own, read in its interpreter: torch's .pt."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from refkernels.cli.shared.arrays import read_inputs, tensors_of_torch
from refkernels.frameworks import environments
from refkernels.frameworks.catalog import Framework, FrameworkError
from refkernels.frameworks.gateway import Session

X = np.random.default_rng(3).standard_normal((3, 5)).astype(np.float32)
Fake = Callable[[str], Framework]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def reading(fake: Fake, tmp_path: Path) -> Framework:
    """A framework whose files are .npz files under another name."""
    framework = fake("correct")
    loading = (
        "def load(file):\n"
        "    if isinstance(file, str) and file.endswith('bad.pt'):\n"
        "        raise ValueError('it is bad')\n"
        "    with np.load(file) as archive:\n"
        "        return dict(archive)\n"
    )
    source = framework.adapter.read_text(encoding="utf-8")
    adapter = tmp_path / "reading_adapter.py"
    adapter.write_text(source + "\n\n" + loading, encoding="utf-8")
    return Framework("reading", adapter, module="numpy", python=framework.python)


def test_a_session_reads_its_framework_s_files(
    reading: Framework, fake: Fake, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = np.random.default_rng(5).standard_normal((300, 300))
    for name, arrays in {"one": {"x": X}, "two": {"x": X, "w": large}, "none": {}}.items():
        np.savez(f"{name}.npz", **arrays)
        os.rename(f"{name}.npz", f"{name}.pt")
    Path("bad.pt").touch()
    with Session(reading) as session:
        assert np.array_equal(session.load("one.pt", "").outputs["x"], X)
        whole = session.load("two.pt", None).outputs
        assert np.array_equal(whole["w"], large)
        assert set(whole) == {"x", "w"}
        assert set(session.load("two.pt", "w").outputs) == {"w"}
        for path, key, sentence in [
            ("two.pt", "", "two.pt holds several tensors (x, w): write two.pt:KEY"),
            ("two.pt", "v", "two.pt has no tensor 'v': it has x, w"),
            ("none.pt", None, "none.pt holds no tensors"),
            ("bad.pt", "x", "bad.pt: it is bad"),
            ("missing.pt", "x", "No such file"),
        ]:
            reply = session.load(path, key)
            assert (reply.status, sentence in str(reply.reason)) == ("error", True), reply.reason
        monkeypatch.setattr(session._worker._arrays, "path", None)  # as of another machine
        assert np.array_equal(session.load("one.pt", "x").outputs["x"], X)
        assert "missing.pt cannot be read" in str(session.load("missing.pt", "x").reason)
        assert session.starts == 1
    with Session(fake("correct")) as session:
        reply = session.load("one.pt", "")
        assert (reply.status, "reads no files" in str(reply.reason)) == ("unsupported", True)


WRITTEN = """
import os, pickle, torch
x = torch.arange(15.0).reshape(3, 5)
torch.save(x.bfloat16(), "x.pt")
torch.save({"model": {"layers": [x, torch.nn.Parameter(2 * x)]}, "step": 3}, "deep.pt")
torch.save(x, "legacy.pt", _use_new_zipfile_serialization=False)
class Stranger:
    def __reduce__(self):
        return os.system, ("touch pwned",)
torch.save(Stranger(), "stranger.pt")
pickle.dump(Stranger(), open("pickle.pt", "wb"))
torch.save([1, 2], "none.pt")
torch.save(x.to_sparse(), "sparse.pt")
open("text.pt", "w").write("hello")
open("empty.pt", "w")
"""


@pytest.mark.framework("torch")
def test_torch_s_files_are_read_without_running_what_they_hold(
    session_for: Callable[[str], Session], here: Path
) -> None:
    session_for("torch")
    python = environments.find("torch").python
    subprocess.run([python, "-c", WRITTEN], check=True, capture_output=True)
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    with tensors_of_torch("torch", 60.0) as tensors:
        texts = ["a=x.pt", "b=deep.pt:model.layers.1", "c=legacy.pt", "deep.pt"]
        arrays = read_inputs(texts, tensors)
        assert arrays["a"].dtype == ml_dtypes.bfloat16
        wanted = {"a": x, "b": 2 * x, "c": x, "model.layers.0": x, "model.layers.1": 2 * x}
        assert {name: array.tolist() for name, array in arrays.items()} == {
            name: array.tolist() for name, array in wanted.items()
        }
        for name, sentence in {
            "stranger": "not a file of tensors only", "pickle": "not a file of tensors only",
            "text": "not a file of tensors only", "empty": "not a file of tensors only",
            "none": "holds no tensors", "sparse": "Sparse",
            "deep": r"several tensors \(model.layers.0, model.layers.1\): write deep.pt:KEY",
        }.items():  # fmt: skip
            with pytest.raises(FrameworkError, match=sentence) as error:
                read_inputs([f"x={name}.pt"], tensors)
            assert "\n" not in str(error.value)
            assert "weights_only=False" not in str(error.value)
        with pytest.raises(ValueError, match=r"no file missing\.pt"):
            read_inputs(["x=missing.pt"], tensors)
    assert not Path("pwned").exists()

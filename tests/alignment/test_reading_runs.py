"""Runs in the format of docs/capture.md are read; damage is named, and the rest is read."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from captured import safetensors, written_by_hand
from command_helpers import said

from refkernels.alignment import align
from refkernels.alignment.run import CaptureError, Run
from refkernels.alignment.tensors import TensorFile
from refkernels.capture import Capture, _repeated, write_safetensors
from refkernels.reporting.alignment import page

HEADERS = [
    ({"dtype": "F32", "shape": [1], "data_offsets": [0, 8]}, "8 bytes, but not that shape"),
    ({"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}, "one behind the other"),
    ({"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}, "do not fill it"),
    ({"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}, "x.shape must be a count"),
    ({"dtype": "F32", "shape": [2**62, 0], "data_offsets": [0, 8]}, "not that shape"),
    ({"dtype": "F33", "shape": [2], "data_offsets": [0, 8]}, "x.dtype must be BOOL or"),
    ({"dtype": ["F32"], "shape": [2], "data_offsets": [0, 8]}, "x.dtype must be BOOL or"),
    ({"shape": [2]}, "x.dtype must be"),
    ({"dtype": "BOOL", "shape": [8], "data_offsets": [0, 8]}, "is boolean and holds 2"),
]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return written_by_hand(tmp_path / "run")


def test_a_run_written_by_hand_is_read(run: Path) -> None:
    capture = Run.read(run)
    assert capture.remarks == ()
    rank = capture.first
    assert (rank.framework, rank.steps, rank.complete) == ("torch", (0, 2), True)
    assert rank.parameters["head.weight"].group == 0
    assert rank.optimizer is not None
    assert rank.optimizer.groups[0].hyperparameters == {"lr": 0.1, "momentum": 0.9}
    assert rank.layers["head"].parameters == {"weight": "head.weight"}
    line = rank.lines[3]
    assert (line.loss, line.gradient_norm, line.lr, line.captured) == (1.5, np.inf, (0.1,), False)
    tensors = rank.tensors(2)
    weight = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(tensors.parameter("head.weight"), weight)
    np.testing.assert_array_equal(tensors.parameter("head.weight", "after"), weight + 2)
    np.testing.assert_array_equal(tensors.gradient("head.weight"), weight * 2)
    assert tensors.gradient("head.weight", "clipped") is None
    buf = tensors.state("head.weight", "after")["buf"]
    assert (buf.dtype, float(buf[0, 0])) == (ml_dtypes.bfloat16, 1.0)
    (call,) = tensors.calls("head")
    assert call.scalars == {"scale": 0.5}
    assert {key: value.shape for key, value in call.input_gradients.items()} == {"0": (2, 2)}
    assert tensors.file.get("batch/x").dtype == np.int64
    assert tensors.file.get("nothing").shape == (0, 3)
    assert not tensors.file.get("mask").flags.writeable


def test_what_the_probe_writes_is_read_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    tensors = {
        "a/b": ("F64", rng.standard_normal((2, 3))),
        "scalar": ("F32", np.array(1.5, np.float32)),
        "bits": ("BF16", rng.integers(0, 2**16, 7).astype(np.uint16)),
        "flags": ("BOOL", np.array([[True], [False]])),
        "empty": ("I64", np.zeros((3, 0), np.int64)),
        "名前/é": ("U8", np.arange(3, dtype=np.uint8)),
        "output": ("F32", rng.standard_normal((7, 60)).astype(np.float32)),
    }
    tensors["other"] = "F32", tensors["output"][1] + 1
    tensors["input"] = "F32", tensors["output"][1].copy().reshape(70, 6)
    path = tmp_path / "x.safetensors"
    repeated = _repeated(tensors)
    assert repeated == {"input": ["output", [70, 6]]}
    write_safetensors(str(path), tensors, {"step": "1"}, repeated)
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_size < 2 * tensors["output"][1].nbytes + 2000  # it is there once
    file = TensorFile(path)
    assert file.metadata["step"] == "1"
    assert set(file) == set(tensors)
    for name, (_, array) in tensors.items():
        assert file[name].shape == array.shape
        assert file[name].tobytes() == array.tobytes()
        assert file[name].flags.aligned


def test_what_a_step_begins_with_may_be_in_the_file_of_an_earlier_one(tmp_path: Path) -> None:
    array = np.arange(300, dtype=np.float32)
    pair, twin, wide = ("F32", array), ("F32", array.copy()), ("F32", array.reshape(3, 100))
    kept = {"w/before": (pair, ["w/after", [300], 0]), "v/before": (twin, ["v/after", [300], 0])}
    tensors = {"w/before": twin, "v/before": wide, "w/after": twin}
    probe, gathered = Capture.__new__(Capture), []
    host = lambda name, *_: gathered.append(name) or tensors[name]  # noqa: E731
    probe._framework, probe._tensors, probe._kept = SimpleNamespace(host=host), {}, kept
    for name in tensors:
        probe._put(name, name)
    assert gathered == [*tensors]  # once: processes that share a model gather together
    repeated = _repeated(probe._tensors, kept)  # v has moved since
    places = ["w/after", [300], 0], ["w/after", [3, 100], 0], ["w/after", [300], 0]
    assert repeated == dict(zip(tensors, places, strict=True))
    first, second = (tmp_path / f"step_{step:06d}.safetensors" for step in (0, 1))
    write_safetensors(str(first), {"w/after": pair}, {}, {})
    write_safetensors(str(second), tensors, {}, repeated)
    file = TensorFile(second)
    assert all(np.array_equal(file[name], expected) for name, (_, expected) in tensors.items())
    first.unlink()
    with pytest.raises(CaptureError, match="step_000000"):
        TensorFile(second)


@pytest.mark.parametrize("place", [["none", [420]], ["output", [421]], 3, ["output", [420], -1]])
def test_a_tensor_that_repeats_no_other_is_refused(tmp_path: Path, place: object) -> None:
    path = tmp_path / "step_000000.safetensors"
    words = {"repeated": json.dumps({"input": place})}
    write_safetensors(str(path), {"output": ("F32", np.ones(420, np.float32))}, words, {})
    with pytest.raises(CaptureError, match="input"):
        TensorFile(path)


@pytest.mark.parametrize("cut", [0, 5, 8, 100, -1])
def test_a_step_that_is_cut_off_is_named_and_the_others_stay(run: Path, cut: int) -> None:
    path = run / "rank_0" / "step_000000.safetensors"
    path.write_bytes(path.read_bytes()[:cut])
    rank = Run.read(run).first
    assert rank.steps == (2,)
    (remark,) = rank.remarks
    assert "step_000000.safetensors is not a whole safetensors file" in remark
    with pytest.raises(CaptureError, match="not a whole safetensors file"):
        rank.tensors(0)
    assert tuple(n for n in rank.layers if rank.tensors(2).calls(n)) == ("head",)
    reason, _ = align(run, run).verdict.reasons
    assert (reason.word, reason.details) == ("unreadable", {"run": "run", "steps": "0"})


def test_a_run_that_was_killed_keeps_its_whole_steps(run: Path) -> None:
    rank, whole = run / "rank_0", shutil.copytree(run, run.with_name("whole"))
    record = json.loads((rank / "run.json").read_text())
    (rank / "run.json").write_text(json.dumps({**record, "complete": False}))
    lines = (rank / "steps.jsonl").read_text().splitlines(keepends=True)
    (rank / "steps.jsonl").write_text("".join(lines[:2]) + lines[2][:40])
    (rank / "step_000004.safetensors.partial").write_bytes(b"half")
    capture = Run.read(run)
    assert [line.step for line in capture.first.lines] == [0, 1]
    assert capture.first.steps == (0,)
    words = " ".join(capture.remarks)
    assert "was killed" in words
    assert "ends within a line" in words
    assert "step_000002.safetensors belongs to a step that was not finished" in words
    printed = page.brief(align(run, steps=[0]).to_dict())
    assert "step\\_000002.safetensors belongs to a step that was not finished" in printed
    answer = said("align", str(whole), str(run), "--step", "0")
    assert (answer.exit_code, "run stopped after 2 steps" in answer.stdout) == (2, True)


def test_a_damaged_line_costs_no_other(run: Path) -> None:
    path = run / "rank_0" / "steps.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(lines[0] + "{]\n" + "".join(lines[1:3]) + lines[1] + lines[3])
    rank = Run.read(run).first
    assert [line.step for line in rank.lines] == [0, 1, 2, 3]
    assert len(rank.remarks) == 2
    assert "line 2 is not JSON" in rank.remarks[0]
    assert "step 1 does not follow 2" in rank.remarks[1]


def test_foreign_folders_and_files_are_refused_in_a_sentence(run: Path, tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="holds no captured run"):
        Run.read(tmp_path)
    with pytest.raises(CaptureError, match="is not a folder"):
        Run.read(tmp_path / "nowhere")
    path = run / "rank_0" / "run.json"
    text = path.read_text()
    for broken, words in [
        (text.replace("refkernels-capture", "other"), "format must be refkernels-capture"),
        (text.replace('"format_version": 1', '"format_version": 2'), "format_version must be 1"),
        (text.replace('"rank": 0', '"rank": 1'), "says that it is rank 1"),
        (text.replace('"rank": 0, ', ""), "rank must be a count"),
        (text.replace('"rank": 0', '"rank": -1'), "rank must be a count"),
        (text.replace('"calls": 1', '"calls": "1"'), "calls must be a count"),
        (text[:50], "is not JSON"),
        ("[]", "it must be an object"),
    ]:
        assert broken != text
        path.write_text(broken)
        with pytest.raises(CaptureError, match=words):
            Run.read(run)


def test_steps_of_another_run_and_steps_that_were_not_captured_are_not_read(run: Path) -> None:
    with pytest.raises(CaptureError, match=r"judge: 7; captured steps: 0, 2\. Choose"):
        align(run, steps=[7])
    rank = run / "rank_0"
    (rank / "step_000002.safetensors").write_bytes((rank / "step_000000.safetensors").read_bytes())
    capture = Run.read(run).first
    assert capture.steps == (0,)
    assert "claims to be step '0'" in capture.damaged[2]
    (rank / "step_000000.safetensors").write_bytes(safetensors({}, {"format": "pt"}))
    assert "was not written by refkernels.capture" in Run.read(run).first.damaged[0]


@pytest.mark.parametrize(("entry", "words"), HEADERS)
def test_headers_are_checked_against_the_file(tmp_path: Path, entry: dict, words: str) -> None:
    text = json.dumps({"x": entry}).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"\1\2" + bytes(6))
    with pytest.raises(CaptureError, match=words):
        _ = TensorFile(path)["x"]


@pytest.mark.parametrize(
    ("dtype", "decay", "lost"),
    [("BF16", 0.0195, True), ("BF16", 0.0196, False), ("F32", 2.9e-7, True), ("F32", 3e-7, False)],
)
def test_a_decay_below_half_an_ulp_is_told(run: Path, dtype: str, decay: float, lost: bool) -> None:
    """The learning rate is 0.1; 2^-9 of a bfloat16 number, 2^-25 of one in float32."""
    path = run / "rank_0" / "run.json"
    record = json.loads(path.read_text())
    record["optimizer"]["type"] = "AdamW"
    record["optimizer"]["groups"][0]["weight_decay"] = decay
    record["parameters"][0]["dtype"] = dtype
    path.write_text(json.dumps(record))
    for pair in ([run], [run, run]):
        printed = page.brief(align(*pair, steps=[0]).to_dict())
        assert ("head.weight cannot change by it" in printed) == lost

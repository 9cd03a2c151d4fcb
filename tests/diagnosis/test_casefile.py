"""A case file returns what was saved; any other file is refused in one sentence."""

import functools
import json
import os
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from refkernels.diagnosis.casefile import CaseFile, CaseFileError, load, save
from refkernels.records import array_files

X = np.random.default_rng(3).standard_normal((3, 7)).astype(np.float32)
CASE = CaseFile(
    "layernorm",
    "forward",
    {"x": X},
    {"torch": {"y": X, "mean": X[:, 0]}, "paddle==3.3.1": {"y": X[::-1]}},
    {"eps": 1e-5, "normalized_shape": [7]},
    {"torch": {"version": "2.13.0", "device": "cpu"}},
    {"torch": "-0.8428"},
    "https://example.org/thread",
)


def meta(**changes: Any) -> Any:
    dtypes = {"input.x": "float32", "output.a.y": "float32"}
    record = {"schema": 1, "kind": "case", "op": "sin", "direction": "forward", "dtypes": dtypes}
    return np.frombuffer(json.dumps({**record, **changes}).encode(), np.uint8)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_every_bit_comes_back(tmp_path: Path, kind: Any) -> None:
    values = np.array([[0.0, -0.0, np.nan], [np.inf, 1e-7, -2.5]]).astype(kind)
    case = CaseFile("sin", "forward", {"x": values}, {"mine": {"y": values[::-1]}})
    back = load(save(tmp_path / "case.npz", case))
    assert back.inputs["x"].dtype == values.dtype
    assert back.inputs["x"].tobytes() == values.tobytes()
    assert back.outputs["mine"]["y"].tobytes() == values[::-1].tobytes()


def test_names_params_and_meta_come_back(tmp_path: Path) -> None:
    back = load(path := save(tmp_path / "deep" / "case.npz", CASE))
    assert set(back.outputs) == {"torch", "paddle==3.3.1"}
    assert set(back.outputs["torch"]) == {"y", "mean"}
    for name in ("op", "direction", "params", "environment", "reported", "source"):
        assert getattr(back, name) == getattr(CASE, name)
    assert [*(tmp_path / "deep").iterdir()] == [path]
    with np.load(path, allow_pickle=False) as archive:
        assert archive["output.torch.y"].dtype == np.float32


class Opened:
    """An object whose pickle runs code when it is loaded."""

    def __reduce__(self) -> Any:
        return os.abort, ()


GOOD = {"input.x": X, "output.a.y": X}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "pickled": (
        {"meta": meta(), "input.x": np.array([Opened()], object), "output.a.y": X},
        r"input\.x: it holds Python objects \(pickle\), which are never read",
    ),
    "foreign": ({"arr_0": X}, "no 'meta', so it is not a case file"),
    "no json": ({"meta": np.frombuffer(b"{,", np.uint8), **GOOD}, "'meta' is not JSON"),
    "no utf-8": ({"meta": np.frombuffer(b"\xff\xfe", np.uint8), **GOOD}, "'meta' is not JSON"),
    "meta of floats": ({"meta": X, **GOOD}, "'meta' is not JSON as bytes"),
    "list": ({"meta": np.frombuffer(b"[]", np.uint8), **GOOD}, "'meta' is not that of a case"),
    "newer": ({"meta": meta(schema=2), **GOOD}, "schema 2 where this version reads 1"),
    "unknown op": ({"meta": meta(op="sine"), **GOOD}, "no op 'sine': did you mean 'sin'?"),
    "no direction": ({"meta": meta(direction="up"), **GOOD}, "its direction is 'up'"),
    "params": ({"meta": meta(params=[1]), **GOOD}, "its params are not a JSON object"),
    "environment": ({"meta": meta(environment={"a": 1}), **GOOD}, "one JSON object for each"),
    "settings": (
        {"meta": meta(environment={"a": {"settings": "x"}}), **GOOD},
        "settings that are not a JSON object",
    ),
    "source": ({"meta": meta(source=1), **GOOD}, "its source is not a string"),
    "no inputs": ({"meta": meta(), "output.a.y": X}, "it has no inputs"),
    "no outputs": ({"meta": meta(), "input.x": X}, "it has no outputs"),
    "stray": (
        {"meta": meta(dtypes=dict.fromkeys((*GOOD, "z"), "float32")), "z": X, **GOOD},
        "z is neither input.NAME nor output.KERNEL.NAME",
    ),
    "nameless": (
        {"meta": meta(dtypes={"input.x": "float32", "output.y": "float32"}), "input.x": X,
         "output.y": X},
        r"output\.y is not output\.KERNEL\.NAME",
    ),
    "wrong dtype": ({"meta": meta(), "input.x": X.astype(int), "output.a.y": X}, "dtype int64"),
    "complex": ({"meta": meta(), "input.x": X + 1j, "output.a.y": X}, "dtype complex64"),
    "text": ({"meta": meta(), "input.x": np.array(["1"]), "output.a.y": X}, "has dtype <U1"),
    "record": (
        {"meta": meta(), "input.x": np.zeros(2, [("a", "f4")]), "output.a.y": X},
        "it holds records",
    ),
    "other dtype": (
        {"meta": meta(), "input.x": X.astype(np.float64), "output.a.y": X},
        r"input\.x is stored as float64 where float32 is float32",
    ),
    "unnamed dtype": ({"meta": meta(dtypes={}), **GOOD}, "is declared None, which is not one of"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_what_is_wrong_with_a_file_is_one_sentence(tmp_path: Path, kind: str) -> None:
    arrays, message = BAD[kind]
    np.savez(path := tmp_path / "case.npz", **arrays)
    with pytest.raises(CaseFileError, match=message) as error:
        load(path)
    assert "\n" not in str(error.value)
    assert "case.npz" in str(error.value)


def test_files_that_are_not_archives_are_one_sentence(tmp_path: Path) -> None:
    for content in (b"", b"PK", b"hello", np.float32(1).tobytes() * 500):
        (tmp_path / "case.npz").write_bytes(content)
        with pytest.raises(CaseFileError, match=r"case\.npz is not a \.npz file, or is truncated"):
            load(tmp_path / "case.npz")
    with pytest.raises(CaseFileError, match="There is no file"):
        load(tmp_path / "missing.npz")
    with pytest.raises(CaseFileError, match="is a folder"):
        load(tmp_path)
    with zipfile.ZipFile(tmp_path / "zip.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(CaseFileError, match=r"holds 'readme\.txt', which is not an array"):
        load(tmp_path / "zip.npz")


def npy(shape: str, content: bytes = b"") -> bytes:
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + content


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (npy("(2,)", b"1234"), "fewer bytes than its shape"),
        (npy("(1,)", b"12345678"), "more bytes than its shape"),
        (npy("(10**12,)"), "its header cannot be read"),
        (npy("(1000000000000,)"), "more than"),
        (npy(f"({10**18}, {10**18}, 0)"), "has the impossible shape"),
        (npy("(-1,)"), "its header cannot be read"),
        (npy("('a',)"), "its header cannot be read"),
        (b"\x93NUMPY\x09\x00", "it does not begin like one"),
        (b"", "it does not begin like one"),
        (b"hello" * 9, "it does not begin like one"),
    ],
)
def test_headers_that_lie_are_one_sentence(tmp_path: Path, member: bytes, said: str) -> None:
    np.savez(path := tmp_path / "case.npz", **{"meta": meta(), "output.a.y": X})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("input.x.npy", member)
    with pytest.raises(CaseFileError, match=said):
        load(path)


def test_a_file_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(tmp_path / "case.npz", CASE)
    monkeypatch.setattr(array_files, "MOST_BYTES", 200)
    with pytest.raises(CaseFileError, match="it would unpack to"):
        load(path)


HALF = "\ud800"
NOT_KEPT: tuple[dict[str, Any], ...] = (
    {"source": HALF}, {"source": 3}, {"reported": HALF}, {"reported": {1.0}},
    {"reported": float("nan")}, {"environment": {HALF: {}}}, {"environment": {"a": {"x": HALF}}},
    {"environment": {"a": {"x": object()}}}, {"environment": {"a": "x"}}, {"environment": "x"},
    {"environment": {1: {}}}, {"environment": {"a": {"settings": "x"}}}, {"params": {HALF: 1}},
    {"params": {1: 2}}, {"params": {"eps": float("inf")}}, {"params": {"eps": {1}}},
    {"params": {"eps": 10**400}}, {"params": {"eps": [[1]]}}, {"params": {"eps": "x" * 300}},
    {"outputs": {HALF: {"y": X}}}, {"outputs": {"a": {HALF: X}}}, {"inputs": {HALF: X}},
    {"op": "layernrom"}, {"direction": "sideways"}, *(
        {"reported": functools.reduce(lambda a, _: [a], range(n), 1.0)} for n in (3000, 50)),
)  # fmt: skip


@pytest.mark.parametrize("changed", NOT_KEPT, ids=range(len(NOT_KEPT)))
def test_what_could_not_be_loaded_is_not_saved(tmp_path: Path, changed: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)) as failure:
        save(tmp_path / "case.npz", replace(CASE, **changed))
    message = str(failure.value)
    assert message.isprintable()
    assert message.endswith(".")
    assert type(failure.value) in (TypeError, ValueError, CaseFileError)
    assert not list(tmp_path.iterdir())


def test_numpys_numbers_are_params(tmp_path: Path) -> None:
    params = {"eps": np.float32(1e-5), "normalized_shape": np.array([7])}
    back = load(save(tmp_path / "case.npz", replace(CASE, params=params)))
    assert back.params == {"eps": float(np.float32(1e-5)), "normalized_shape": [7]}


def test_what_cannot_be_saved_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="int64"):
        save(tmp_path / "case.npz", CaseFile("sin", "forward", {"x": np.arange(3)}, {}))
    with pytest.raises(CaseFileError, match="without '/'"):
        save(tmp_path / "case.npz", CaseFile("sin", "forward", {"x": X}, {"a/b": {"y": X}}))
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="directory"):
        save(tmp_path / "taken", CASE)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]

"""Files of arrays: whole or not at all, back bit for bit, or refused in one sentence."""

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from refkernels.records.array_files import MOST_BYTES, ArrayFileError, load_npy, load_npz
from refkernels.records.files import write_whole

X = np.random.default_rng(5).standard_normal((2, 3, 7)).astype(np.float32)
HEADER = "{{'descr': '<f4', 'fortran_order': False, 'shape': {}, }}"
ATTACKS = {
    "brackets": "(" * 4,
    "many brackets": "(" * 9000,
    "minus signs": "-" * 9000 + "1",
    "negations": HEADER.format("(" + "-" * 8000 + "1,)"),
    "lists": HEADER.format("[" * 4000 + "]" * 4000),
    "too large": HEADER.format(f"({4 * 10**12},)"),
    "larger than any integer": HEADER.format(f"({10**18}, {10**18}, {10**18})"),
    "a length of 9,000 digits": HEADER.format(f"({'9' * 9000},)"),
    "many axes": HEADER.format("(" + "1, " * 100 + ")"),
    "no dtype": "{'fortran_order': False, 'shape': (1,), }",
    "a dtype of text": HEADER.format("(1,)").replace("<f4", "<U9"),
    "a dtype of time": HEADER.format("(1,)").replace("<f4", "<M8[ns]"),
    "an endless dtype": HEADER.format("(1,)").replace("<f4", "f4," * 2000),
    "an impossible dtype": HEADER.format("(1,)").replace("<f4", "<f999"),
    "records": HEADER.format("(1,)").replace("'<f4'", "[('a', '<f4')]"),
    "an expression": HEADER.format("(__import__('os').abort(),)"),
}


def npy(header: str, content: bytes = b"") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content


def refusal(path: Path, load: Any = load_npy) -> str:
    with pytest.raises(ArrayFileError) as error:
        load(path)
    message = str(error.value)
    assert message.endswith(".")
    assert "\n" not in message
    assert path.name in message
    return message


@given(
    arrays_of.arrays(
        st.sampled_from(["<f2", "<f4", ">f4", "<f8", ">f8", "<i8", "|u1", "|b1", "<c16"]),
        arrays_of.array_shapes(min_dims=0, min_side=0, max_side=4),
    ),
    st.booleans(),
)
def test_what_numpy_saves_is_what_is_loaded(array: Any, fortran: bool) -> None:
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"refkernels-saved-{os.getpid()}.npy"
    np.save(path, np.array(array, order="F" if fortran else "C"))
    try:
        loaded = load_npy(path)
    finally:
        path.unlink()
    assert loaded.dtype == array.dtype.newbyteorder("=")
    assert loaded.shape == array.shape
    assert np.array_equal(loaded, array, equal_nan=True)
    assert loaded.flags.writeable


def test_bfloat16_comes_back(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X.astype(ml_dtypes.bfloat16))
    np.savez(tmp_path / "x.npz", a=X.astype(ml_dtypes.bfloat16), b=X)
    assert load_npy(tmp_path / "x.npy").dtype == ml_dtypes.bfloat16
    arrays = load_npz(tmp_path / "x.npz")
    assert arrays["a"].tobytes() == X.astype(ml_dtypes.bfloat16).tobytes()
    assert arrays["b"].tobytes() == X.tobytes()


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_the_format_is_read(tmp_path: Path, version: tuple[int, int]) -> None:
    with (tmp_path / "x.npy").open("wb") as file:
        np.lib.format.write_array(file, X, version)
    assert load_npy(tmp_path / "x.npy").tobytes() == X.tobytes()


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_header_is_read_and_not_evaluated(tmp_path: Path, attack: str) -> None:
    (tmp_path / "x.npy").write_bytes(npy(ATTACKS[attack], b"1234"))
    refusal(tmp_path / "x.npy")


def test_the_limit_is_reported(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(npy(ATTACKS["too large"]))
    assert f"more than {MOST_BYTES:,}" in refusal(tmp_path / "x.npy")
    header = b"\x93NUMPY\x02\x00" + (2**31).to_bytes(4, "little")
    (tmp_path / "x.npy").write_bytes(header)
    assert "header of 2,147,483,648 bytes, more than 10,000" in refusal(tmp_path / "x.npy")


def test_nothing_is_allocated_on_a_promise(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    (tmp_path / "x.npy").write_bytes(npy(HEADER.format("(500000000,)"), b"1234"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "fewer bytes" in refusal(tmp_path / "x.npy")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB of 2 GB


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes in its folders")
def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "is a device, pipe or socket" in refusal(tmp_path / "pipe")
    assert "is a device, pipe or socket" in refusal(Path("/dev/zero"))
    assert "is a folder" in refusal(tmp_path)
    assert "There is no file" in refusal(tmp_path / "missing.npy")
    with pytest.raises(ArrayFileError, match="unprintable"):
        load_npy("x\0y")


def test_an_archive_is_refused_as_an_array(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=X)
    assert "is an archive" in refusal(tmp_path / "x.npz")
    np.save(tmp_path / "y.npy", X)
    assert "is not a .npz file" in refusal(tmp_path / "y.npy", load_npz)
    with zipfile.ZipFile(tmp_path / "z.npz", "w") as archive:
        for number in range(1001):
            archive.writestr(f"{number}.npy", b"")
    assert "1,001 files, more than 1,000" in refusal(tmp_path / "z.npz", load_npz)


BYTES = {"npy": io.BytesIO(), "npz": io.BytesIO()}
np.save(BYTES["npy"], X)
np.savez_compressed(BYTES["npz"], x=X, y=X[0])


def test_writing_whole_leaves_the_old_file_when_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_whole(path, "old")

    def fail(self: Path, target: Path) -> None:
        raise OSError("no space")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]

"""Arrays in transport: no bit is lost, and no file is left behind."""

import os
import subprocess
import sys
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from refkernels.frameworks import transport
from refkernels.frameworks.transport import Inline, SharedFolder, pack, unpack


def worker_arrays(folder: str | None):
    """The worker's side of the transport, from its source."""
    path = Path(transport.__file__).parent / "remote" / "worker.py"
    namespace = {"__name__": "worker"}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), namespace)
    return namespace["Arrays"](folder, transport.INLINE_BYTES)


ARRAYS = {
    "small": np.arange(6, dtype=np.float32).reshape(2, 3),
    "zero_d": np.array(2.5),
    "empty": np.zeros((0, 3), np.float16),
    "strided": np.arange(60, dtype=np.float64).reshape(6, 10)[::2, ::-3],
    "large": np.random.default_rng(1).standard_normal((300, 301)),
    "large_strided": np.random.default_rng(2).standard_normal((400, 301)).T.astype(np.float32),
    "bits": np.arange(65536, dtype=np.uint16).view(ml_dtypes.bfloat16),
}


@pytest.mark.parametrize("shared", [True, False])
def test_arrays_arrive_and_return_bit_for_bit(shared: bool, tmp_path: Path) -> None:
    host = SharedFolder(tmp_path) if shared else Inline()
    worker = worker_arrays(str(host.path) if shared else None)
    received = {key: worker.receive(message) for key, message in host.send(ARRAYS).items()}
    returned = host.receive(worker.send(received))
    host.close()
    assert set(returned) == set(ARRAYS)
    for key, array in ARRAYS.items():
        assert returned[key].dtype == array.dtype
        assert returned[key].shape == array.shape
        assert returned[key].tobytes() == np.asarray(array, order="C").tobytes()
        assert received[key][1].ctypes.data % 64 == 0 or array.size == 0
    assert list(tmp_path.iterdir()) == []


def test_what_the_worker_writes_into_an_input_stays_there(tmp_path: Path) -> None:
    host = SharedFolder(tmp_path)
    worker = worker_arrays(str(host.path))
    array = np.ones((300, 300))
    messages = host.send({"x": array})
    assert messages["x"][2] == "mapped"
    worker.receive(messages["x"])[1][...] = 7
    assert np.all(worker.receive(messages["x"])[1] == 1)
    assert np.all(array == 1)
    host.close()


def test_inputs_reuse_their_file_and_outputs_remove_theirs(tmp_path: Path) -> None:
    host = SharedFolder(tmp_path)
    worker = worker_arrays(str(host.path))
    for size in (20_000, 10_000, 90_000, 50_000):
        x = np.full(size, float(size))
        received = {k: worker.receive(m) for k, m in host.send({"x": x}).items()}
        assert np.array_equal(host.receive(worker.send(received))["x"], x)
        assert host.path is not None
        assert sorted(p.name for p in host.path.iterdir())[-1] == "lock"
        assert len(list(host.path.iterdir())) == 2
    host.close()


def test_without_room_arrays_travel_inline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, offset: int, size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    host = SharedFolder(tmp_path)
    worker = worker_arrays(str(host.path))
    x = np.ones(100_000)
    messages = host.send({"x": x})
    assert messages["x"][2] == "inline"
    answer = worker.send({"x": ("float64", x)})
    assert answer["x"][2] == "inline"
    assert np.array_equal(host.receive(answer)["x"], x)
    host.close()


def test_the_folder_of_a_killed_host_is_removed_by_the_next_one(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, signal, sys; from refkernels.frameworks.transport import SharedFolder;"
        "folder = SharedFolder(pathlib.Path(sys.argv[1])); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    (left,) = tmp_path.iterdir()
    living = SharedFolder(tmp_path)
    assert left.exists(), "a folder that may just have been made is let be"
    assert living.path is not None
    old = time.time() - 60
    os.utime(left / "lock", (old, old))
    os.utime(living.path / "lock", (old, old))
    third = SharedFolder(tmp_path)
    assert not left.exists()
    assert living.path.exists(), "its host lives"
    living.close()
    third.close()


def test_other_dtypes_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match="dtype complex128 cannot be sent: give one of float16"):
        pack(np.arange(3) * 1j)


def test_bfloat16_travels_as_its_bits() -> None:
    name, bits = pack(np.array([1.0, -0.0, np.nan], ml_dtypes.bfloat16))
    assert (name, bits.dtype) == ("bfloat16", np.uint16)
    assert unpack(name, bits).dtype == ml_dtypes.bfloat16

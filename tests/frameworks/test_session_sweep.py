"""Session.sweep: the interpreter makes the inputs itself, and answers into one window."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from refkernels.frameworks import transport
from refkernels.frameworks.catalog import Framework
from refkernels.frameworks.gateway import Session


def expected(first: int, count: int, dtype: type, bits: type) -> np.ndarray:
    x = np.arange(first, first + count, dtype=np.uint64).astype(bits).view(dtype)
    with np.errstate(all="ignore"):
        return np.sin(x.astype(np.float64)).astype(dtype)


@pytest.mark.parametrize("window", [True, False], ids=["window", "inline"])
def test_the_answers_are_those_to_every_pattern(
    fake: Callable[[str], Framework], monkeypatch: pytest.MonkeyPatch, window: bool
) -> None:
    if not window:
        monkeypatch.setattr(transport.SharedFolder, "window", transport.Inline.window)
    with Session(fake("correct")) as session:
        for first, count in ((0, 5000), (0x3F800000, 5000), (2**32 - 700, 700), (0x7F7FFFF0, 40)):
            reply = session.sweep("sin", "float32", first, count)
            assert reply.ok, reply.reason
            wanted = expected(first, count, np.float32, np.uint32)
            np.testing.assert_array_equal(reply.outputs[""], wanted)
        half = session.sweep("sin", "float16", 0, 65536).outputs[""]
        np.testing.assert_array_equal(half, expected(0, 65536, np.float16, np.uint16))


@pytest.mark.parametrize(
    ("fault", "status", "said"),
    [
        ("crash", "killed", "ended by SIGKILL"),
        ("exception", "error", "sweeping sin on cpu raised RuntimeError: planted"),
        ("oom", "oom", "sweeping sin on cpu ran out of memory"),
        ("wrong_shape", "error", r"answers shape \(1, 64\) for 64 inputs"),
    ],
)
def test_faults_are_statuses(
    fake: Callable[[str], Framework], fault: str, status: str, said: str
) -> None:
    with Session(fake(fault)) as session:
        reply = session.sweep("sin", "float32", 0, 64)
        assert reply.status == status
        assert reply.reason is not None
        assert re.search(said, reply.reason)
        if fault != "wrong_shape":  # it strikes at every op
            assert session.sweep("cos", "float32", 0, 64).ok


def test_what_the_adapter_does_not_offer_is_unsupported(fake: Callable[[str], Framework]) -> None:
    with Session(fake("correct")) as session:
        assert session.sweep("sin", "bfloat16", 0, 64).reason == (
            "fake_correct: the fakes have no bfloat16"
        )
        assert session.sweep("sinus", "float32", 0, 64).status == "unsupported"
        assert "no device named cuda:9" in str(session.sweep("sin", "float32", 0, 64, "cuda:9"))

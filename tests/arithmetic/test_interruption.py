"""Ctrl-C does not interrupt the compiling or the reading of a kernel; it comes afterwards."""

import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from refkernels.arithmetic.interruption import deferred
from refkernels.arithmetic.jit import njit


def ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture(autouse=True)
def python_s_handler() -> Iterator[None]:
    """A shell's background jobs ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


def interrupting(kernel: Any, step: str, owner: Any) -> Any:
    """The kernel, in whose step (a method of `owner`) Ctrl-C comes."""
    original = getattr(owner, step)

    def stepping(*arguments: Any) -> Any:
        ctrl_c()
        return original(*arguments)

    setattr(owner, step, stepping)
    return kernel


@pytest.mark.parametrize("step", ["load_overload", "save_overload"])
def test_a_kernel_is_whole_before_ctrl_c_comes(step: str) -> None:
    @njit(cache=False)
    def twice(x: float) -> float:
        return 2.0 * x

    kernel = interrupting(twice, step, twice.dispatcher._cache)
    with pytest.raises(KeyboardInterrupt):
        kernel(1.0)
    assert len(kernel.signatures) == 1
    assert kernel(1.5) == 3.0


def test_a_kernel_called_by_a_kernel_does_not_let_it_through() -> None:
    @njit(cache=False)
    def half(x: float) -> float:
        return 0.5 * x

    @njit(cache=False)
    def quarter(x: float) -> float:
        return half(half(x))

    interrupting(half, "load_overload", half.dispatcher._cache)
    with pytest.raises(KeyboardInterrupt):
        quarter(1.0)
    assert len(quarter.signatures) == 1
    assert quarter(8.0) == 2.0


def test_other_handlers_are_called_once_and_kept() -> None:
    calls: list[int] = []

    def handler(number: int, frame: FrameType | None) -> None:
        calls.append(number)

    signal.signal(signal.SIGINT, handler)
    with deferred(), deferred():
        ctrl_c()
        ctrl_c()
        assert calls == []
    assert calls == [signal.SIGINT]
    assert signal.signal(signal.SIGINT, signal.default_int_handler) is handler


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_what_is_no_python_function_stays(handler: signal.Handlers) -> None:
    signal.signal(signal.SIGINT, handler)
    with deferred():
        assert signal.getsignal(signal.SIGINT) is handler
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_another_thread_needs_no_handler() -> None:
    failures: list[BaseException] = []

    def block() -> None:
        try:
            with deferred():
                assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=block)
    thread.start()
    thread.join()
    assert failures == []


def test_an_error_in_the_block_is_not_lost() -> None:
    def fails() -> None:
        with deferred():
            ctrl_c()
            raise ValueError("the block's own")

    with pytest.raises(KeyboardInterrupt) as caught:
        fails()
    assert isinstance(caught.value.__context__, ValueError)

"""The floating-point mode that every proof here needs: round to nearest, gradual underflow.

A thread may run in another: torch.set_flush_denormal(True), and libraries built with -ffast-math,
set the processor's FTZ and DAZ bits; fesetround sets the direction of rounding. So every public
function, and every task that runs on a thread of its own, works in the default mode and gives its
thread the old one back.

Arithmetic detects the mode; C's fesetenv(FE_DFL_ENV) (C23, 7.6.6.3) sets it, FTZ and DAZ on x86 and
FZ on ARM included. Where no such call is known, RuntimeError is raised.
"""

import functools
import sys
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_CALLER = threading.local()
_NOTED: dict[str, str | None] = {"before": None, "flushed": None}
_BYTES = 64  # fenv_t has 32 on x86-64, 8 to 28 elsewhere
# Variables and exact powers, so that neither a compiler nor the mode at import changes them.
_one, _half = 1.0, 0.5
_little, _least_normal = float.fromhex("0x1p-55"), float.fromhex("0x1p-1022")


def with_default_fenv(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """The function, run in the default mode on whichever thread calls it.

    Raises RuntimeError where the thread's mode is another and cannot be set.
    """

    @functools.wraps(function)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        __tracebackhide__ = True  # pytest shows an assertion's caller
        if is_default():
            return function(*args, **kwargs)
        outer, _CALLER.flushes = flushing(), _least_normal * _half == 0.0
        saved = enter()
        try:
            return function(*args, **kwargs)
        finally:
            leave(saved)
            _CALLER.flushes = outer

    return run


def flushing() -> bool:
    """Whether the caller's mode, which is restored afterwards, flushes subnormal numbers."""
    return getattr(_CALLER, "flushes", False)


def imported(name: str) -> None:
    """Notes that an import begins, and in which mode."""
    if _NOTED["flushed"] is None and not flushing():
        _NOTED["before" if is_default() else "flushed"] = name


def since() -> str | None:
    """The last module whose import began before the process flushed: it, or something later, set
    the mode. None if the process flushed before this package was imported."""
    return _NOTED["before"]


def is_default() -> bool:
    """Whether this thread rounds to nearest and keeps subnormals, detected by arithmetic."""
    gradual = _least_normal * _half != 0.0  # zero by FTZ; equal to zero by DAZ
    return gradual and _one + _little == _one and _one - _little == _one


def enter() -> Any:
    """Sets the default mode on this thread. Returns what `leave` needs to undo it, None where
    nothing changed."""
    if is_default():
        return None
    saved = None
    fegetenv, fesetenv, default = _environment()
    if fegetenv is not None:
        saved = _buffer()
        fegetenv(saved)
        fesetenv(default)
    if not is_default():
        leave(saved)
        raise RuntimeError(
            "This thread flushes subnormal numbers or does not round to nearest, which cannot be "
            "changed from here, and no certificate would hold: undo torch.set_flush_denormal(True) "
            "or fesetround, or work in a process without the library that set them."
        )
    return saved


def leave(saved: Any) -> None:
    """Gives the thread back the mode that it had before `enter`."""
    if saved is not None:
        _environment()[1](saved)


def _buffer() -> Any:
    import ctypes

    return (ctypes.c_char * _BYTES)()


@functools.cache
def _environment() -> tuple[Any, Any, Any]:
    """C's fegetenv, fesetenv and FE_DFL_ENV, where they are known; None thrice elsewhere.

    ctypes is imported here, because most threads never need it.
    """
    import ctypes
    import platform

    try:
        libm = ctypes.PyDLL(None)  # keeps the GIL: a call takes a fraction of a microsecond
        if sys.platform == "darwin":
            default: Any = ctypes.byref((ctypes.c_char * _BYTES).in_dll(libm, "_FE_DFL_ENV"))
        elif sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64"):
            default = ctypes.c_void_p(-1)  # glibc and musl
        else:
            return None, None, None
        return libm.fegetenv, libm.fesetenv, default
    except (OSError, TypeError, AttributeError, ValueError):  # no such library or symbol
        return None, None, None

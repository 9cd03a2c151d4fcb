"""`python -m refkernels` and the console script."""

from __future__ import annotations

import _thread
import atexit
import contextlib
import gc
import os
import signal
import sys
import threading
import warnings
from typing import Any, NoReturn


def main() -> None:
    """Run the command line. From here on, Ctrl-C ends it with one line and status 130."""
    # Runs last: Python then restores its own handlers, and Ctrl-C would fail a finished command.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    sys.unraisablehook = _interrupt_again
    try:
        _run()
    except KeyboardInterrupt:  # before a command can handle it
        _stop()
    except Exception as error:
        if not _is_interrupt(error):
            raise
        _stop()
    finally:
        with contextlib.suppress(OSError, ValueError):  # the reader has gone
            sys.stdout.flush()
        signal.signal(signal.SIGINT, _stop)  # while Python shuts down


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C caused an error: Python 3.11 and older wrap an exception that `__set_name__`
    raises, while a class is created, in a RuntimeError."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None


def _interrupt_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Raise KeyboardInterrupt again after a callback or a finaliser that Ctrl-C interrupted has
    returned. It cannot propagate from there: Python prints it and goes on."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        threading.Timer(0.01, _interrupt).start()
    else:
        sys.__unraisablehook__(unraisable)


def _interrupt() -> None:
    """Ctrl-C for the main thread, wherever it waits; on Windows when it no longer waits."""
    if os.name == "posix":
        os.kill(os.getpid(), signal.SIGINT)
    else:
        _thread.interrupt_main()


def _stop(*_: Any) -> NoReturn:
    with contextlib.suppress(OSError):
        os.write(2, b"refkernels: stopped.\n")
    os._exit(130)


def _run() -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # Characters that the terminal's encoding lacks, and lone surrogates, are escaped.
            stream.reconfigure(errors="backslashreplace")
    # Python's own handler raises KeyboardInterrupt, which is lost if it interrupts a callback of
    # an import. So stop at once during the import: there is nothing to clean up yet.
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    from refkernels.cli.app import app

    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, handler)
    # What a command reads is not garbage: collecting as often as Python does takes a fifth of the
    # time.
    gc.set_threshold(50_000)
    usual = warnings.formatwarning
    warnings.formatwarning = lambda said, kind, *place: (  # ours are about an answer, not a line
        f"refkernels: {said}\n" if hasattr(kind, "flag") else usual(said, kind, *place)
    )
    # At exit, a last search for garbage would take as long as a small command.
    atexit.register(gc.freeze)
    app()


if __name__ == "__main__":
    main()

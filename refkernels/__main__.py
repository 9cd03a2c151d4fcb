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
from typing import Any, NoReturn


def main() -> None:
    """Run the command line; Ctrl-C ends it in one line, with status 130, from here on."""
    # Last of all: Python then takes its handlers back, and Ctrl-C would kill what has ended well.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    sys.unraisablehook = _interrupt_again
    try:
        _run()
    except KeyboardInterrupt:  # before there are commands that could meet it
        _stop()
    except Exception as error:
        if not _is_interrupt(error):
            raise
        _stop()
    finally:
        with contextlib.suppress(OSError, ValueError):  # nobody listens any more
            sys.stdout.flush()
        signal.signal(signal.SIGINT, _stop)  # while Python takes itself apart


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error: while a class is made, Python 3.11 and older raise a
    RuntimeError from what `__set_name__` raises."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None


def _interrupt_again(unraisable: sys.UnraisableHookArgs) -> None:
    """A callback or a finaliser that Ctrl-C meets cannot pass KeyboardInterrupt on, and Python
    prints it and goes on: it is raised again as soon as the callback has returned."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        threading.Timer(0.01, _thread.interrupt_main).start()
    else:
        sys.__unraisablehook__(unraisable)


def _stop(*_: Any) -> NoReturn:
    with contextlib.suppress(OSError):
        os.write(2, b"refkernels: stopped.\n")
    os._exit(130)


def _run() -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A name that the terminal's encoding lacks, or half a character, is printed anyway.
            stream.reconfigure(errors="backslashreplace")
    # Python's own handler raises KeyboardInterrupt, which imports lose where one of their callbacks
    # meets it. Nothing has begun that would have to be cleaned up.
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    from refkernels.cli.app import app

    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, handler)
    # What a command reads is not garbage: collecting at Python's pace takes a fifth of its time.
    gc.set_threshold(50_000)
    # The process is about to go: a last search for garbage would take as long as a small command.
    atexit.register(gc.freeze)
    app()


if __name__ == "__main__":
    main()

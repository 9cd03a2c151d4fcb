"""The names of signals, for sentences about processes that one ended."""

import signal


def name(number: int) -> str:
    """`SIGTERM` of 15."""
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"

"""The rates of the frameworks' own schedules at every step, from their interpreters."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.frameworks import catalog, environments

FRAMEWORKS = ("torch", "paddle", "oneflow", "mindspore")
_SOURCE = Path(environments.__file__).parent / "remote" / "schedulers.py"


class SchedulersError(RuntimeError):
    """The framework could not give its rates; the message says why."""


def rates(
    framework: str, *, min_lr: float, max_lr: float, decay_steps: int, warmup_steps: int = 0,
    timeout: float = 120.0,
) -> dict[str, npt.NDArray[Any]]:  # fmt: skip
    """The rates of steps 0 to decay_steps, by the name of the scheduler, and those of the "formula"
    min_lr + (max_lr - min_lr) / 2 (1 + cos(pi t / T)) in the framework's own float32 ops.

    With warm-up steps: the framework's linear warm-up instead, followed by a linear decay that ends
    at step decay_steps, if the framework can combine the two.

    Schedulers that are stepped in Python give float64, those made of ops float32.
    Raises SchedulersError if the framework is not one of the four, is not installed, or fails.
    """
    numbers = float(min_lr), float(max_lr), decay_steps
    if warmup_steps:
        return _rates_of(framework, "warmed", (*numbers, warmup_steps), timeout)
    return _rates_of(framework, "cosine", numbers, timeout)


def decays(
    framework: str, *, max_lr: float, decay_steps: int, step_size: int, gamma: float, power: float,
    timeout: float = 120.0,
) -> dict[str, npt.NDArray[Any]]:  # fmt: skip
    """The rates of steps 0 to decay_steps by the framework's step, exponential and polynomial
    decays, in this order, by the name of the scheduler. Otherwise as `rates`."""
    numbers = float(max_lr), decay_steps, step_size, float(gamma), float(power)
    return _rates_of(framework, "decays", numbers, timeout)


def _rates_of(
    framework: str, kind: str, numbers: tuple[float, ...], timeout: float
) -> dict[str, npt.NDArray[Any]]:
    """The rates of one kind of schedule."""
    if framework not in FRAMEWORKS:
        known = ", ".join(FRAMEWORKS)
        raise SchedulersError(f"{framework!r} has no schedulers known here: choose from {known}.")
    try:
        python = environments.find(catalog.get(framework))
    except catalog.FrameworkError as error:
        raise SchedulersError(str(error)) from error
    if not python.local:
        raise SchedulersError(f"{framework} is on another machine: schedules run only on this one.")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rates.npz"
        question = [framework, str(file), kind, *map(repr, numbers)]
        _run([python.python, str(_SOURCE), *question], framework, timeout)
        with np.load(file, allow_pickle=False) as arrays:
            return dict(arrays)


def _run(command: list[str], framework: str, timeout: float) -> None:
    removed = ("PYTHONPATH", "PYTHONHOME")
    environment = {name: text for name, text in os.environ.items() if name not in removed}
    try:
        process = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        raise SchedulersError(f"{framework} gave no schedule within {timeout:g} s.") from None
    except OSError as error:
        raise SchedulersError(f"{framework}: {command[0]} does not run: {error}.") from error
    if process.returncode:
        last = process.stderr.strip().splitlines()[-1:] or ["no message"]
        raise SchedulersError(f"{framework} ended with status {process.returncode}: {last[0]}")

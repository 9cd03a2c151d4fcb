"""A framework under every instruction set that it and the CPU have, each as its own target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from refkernels.arguments import as_names, as_seconds, as_settings
from refkernels.frameworks.catalog import FrameworkError
from refkernels.runs.measurement.targets import close_all, opened
from refkernels.target_names import merged, parse


def with_instruction_sets(
    frameworks: Iterable[str], settings: Mapping[str, str], timeout: float
) -> tuple[str, ...]:
    """The targets, and after each the same target under each instruction set, by name:
    torch, torch@ATEN_CPU_CAPABILITY=default, torch@ATEN_CPU_CAPABILITY=avx2, ...

    Starts each framework to ask for its instruction sets. A variable that a target's name or
    `settings` already sets is left unchanged. Raises FrameworkError if there is nothing to choose;
    TypeError and ValueError for arguments that are not names, settings or seconds.
    """
    settings, timeout = as_settings(settings), as_seconds(timeout, "timeout")
    names = [parse(name) for name in as_names(frameworks, "frameworks")]
    sessions = opened([str(name) for name in names], settings, timeout)
    try:
        choices = {
            name: session.info.get("instruction_sets", []) for name, session in sessions.items()
        }
    finally:
        close_all(sessions.values())
    if not any(choices.values()):
        reasons = [session.reason for session in sessions.values() if session.reason]
        why = reasons[0] if reasons else "none of its libraries has instruction sets to choose"
        raise FrameworkError(f"--isa: {', '.join(sessions)}: {why}")
    targets = []
    for name in names:
        targets.append(str(name))
        for variable, value in choices[str(name)]:
            if variable not in settings and variable not in dict(name.settings):
                chosen = tuple(merged({variable: value}, name).items())
                targets.append(str(replace(name, settings=chosen)))
    return tuple(targets)

"""What all judgements of a process share: the truths of an op's challenges, which take seconds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hunting import HUNT
from plain_interpreter import PlainInterpreter, in_one_process

from refkernels.judging.examination import Examinations
from refkernels.judging.judge import LEVELS
from refkernels.programs import sources

KEPT = Examinations()._kept


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, plain: Callable[..., PlainInterpreter]) -> None:
    """Kernels of an op, a seed and a domain share challenges; a quick judgement, but in a hunt,
    makes the fewest calls; one process exports all tasks, and nothing that changes its draws."""
    monkeypatch.setattr(sources, "subprocess", in_one_process(lambda name: plain(name, "exports")))
    monkeypatch.setattr(Examinations, "__init__", lambda self: setattr(self, "_kept", KEPT))
    if HUNT == 1:
        monkeypatch.setitem(LEVELS, "quick", LEVELS["quick"]._replace(calls=0.0))

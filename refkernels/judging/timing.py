"""A kernel's time, measured apart from its judging: calls of one shape, each with new content.

The judge measures from its message to the last byte of the answer: transfers are in every time, and
nothing that the kernel reports. The answers are judged like all others.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from refkernels.frameworks.cells import CellCall, CellReply
from refkernels.judging.challenges import Drawer
from refkernels.judging.running import call_of
from refkernels.judging.standard import Challenge

CALLS = 6  # the first one, which may compile, is judged but not counted
WORK = 24  # the product of all lengths is 2^24 at most
LONGEST = 1024
ELEMENTS = 1 << 18  # of the first input, by its leading axes


def challenges(drawer: Drawer, rng: np.random.Generator) -> list[Challenge]:
    """Typical numbers in the kernel's own shapes, else in a large one, or in one of the op's cases
    if only these have shapes."""
    arguments = drawer.roles.arguments.values()
    letters = list(dict.fromkeys(x for argument in arguments for x in argument.own))
    usual = min(LONGEST, 2 ** (WORK // max(len(letters), 1)))
    lengths = {x: max((drawer.domain.lengths or {}).get(x, [usual])) for x in letters}
    rows = ELEMENTS // math.prod(lengths.values()) if len(letters) < 2 else 0
    large = drawer.large(rng, lengths, (max(rows, 1),) if rows else ())
    first = next(itertools.chain(drawer.own(rng, ELEMENTS), large), None)
    if first is None:
        return []
    return [first, *(drawer.again(first, "typical", rng) for _ in range(CALLS - 1))]


def calls(timed: Sequence[Challenge]) -> list[CellCall]:
    """The calls, one after another at the same pointers, without poisoned memory."""
    return [replace(call_of(c, key), sizes=()) for key, c in enumerate(timed, 1 << 23)]


def record(timed: Sequence[Challenge], replies: Sequence[CellReply]) -> dict[str, Any]:
    """The median and the least time of the calls that count, in seconds, and their inputs."""
    seconds = [reply.waited for reply in replies[1:]]
    figures = {"seconds": statistics.median(seconds), "least": min(seconds), "calls": len(seconds)}
    return {**figures, "inputs": timed[0].name.partition(": ")[2]}

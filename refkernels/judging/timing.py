"""A kernel's time, measured apart from its judging: calls of one shape, each with new content.

The judge measures the time from its message to the last byte of the answer. So a time includes the
transfers to the kernel's process and back, which are the same for every kernel of the op, and
relies on nothing that the kernel reports. The answers are judged like all others: a kernel that
answers wrongly while it is timed is refused.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from refkernels.frameworks.cells import CellCall, CellReply
from refkernels.judging.standard import Challenge

if TYPE_CHECKING:
    from refkernels.judging.challenges import Drawer

CALLS = 6  # the first one, which may compile, is judged but not counted
WORK = 24  # the product of all lengths is 2^24 at most
LONGEST = 1024
ELEMENTS = 1 << 18  # of the first input, by its leading axes


def challenges(drawer: Drawer, rng: np.random.Generator) -> list[Challenge]:
    """Typical numbers in a large shape, or in one of the op's cases if only these have shapes."""
    arguments = drawer.roles.arguments.values()
    letters = list(dict.fromkeys(x for argument in arguments for x in argument.own))
    usual = min(LONGEST, 2 ** (WORK // max(len(letters), 1)))
    lengths = {x: max((drawer.lengths or {}).get(x, [usual])) for x in letters}
    rows = ELEMENTS // math.prod(lengths.values()) if len(letters) < 2 else 0
    first = next(iter(drawer.large(rng, lengths, (max(rows, 1),) if rows else ())), None)
    if first is None:
        return []
    return [first, *(drawer.again(first, "typical", rng) for _ in range(CALLS - 1))]


def calls(timed: Sequence[Challenge]) -> list[CellCall]:
    """The calls, one after another at the same pointers, without poisoned memory."""
    return [
        CellCall(challenge.direction, challenge.inputs, dict(challenge.params), key=key, sizes=())
        for key, challenge in enumerate(timed, 1 << 23)
    ]


def record(timed: Sequence[Challenge], replies: Sequence[CellReply]) -> dict[str, Any]:
    """The median and the least time of the calls that count, in seconds, and their inputs."""
    seconds = [reply.waited for reply in replies[1:]]
    inputs = timed[0].name.partition(": ")[2]
    return {
        "seconds": statistics.median(seconds), "least": min(seconds), "calls": len(seconds),
        "inputs": inputs,
    }  # fmt: skip

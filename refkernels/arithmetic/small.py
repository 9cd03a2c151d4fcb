"""Small arrays go through NumPy first, so that a first answer does not wait for a compiler.

A kernel takes about a second to compile and saves milliseconds on a few thousand elements. So some
kernels have a *twin*: the same operations on whole arrays in NumPy, with the same bits. A process
gives a twin its small arrays until they add up to what compiling would have cost; from then on, and
for larger arrays at once, the kernel is used. Nothing but time depends on which of the two it was.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

SMALL = 1 << 16  # elements
_ALLOWANCE = 1 << 20  # elements of one process: about half a second of a twin's time
_OVERHEAD = 1 << 10  # elements that take a twin as long as a call with none
_STEP = 1 << 6  # ... and as one step of a recurrence


class Allowance:
    """How many elements each twin may have in this process; how often one was asked for."""

    def __init__(self, elements: int) -> None:
        self.elements = elements
        self.asked = 0
        self._used: Counter[Callable[..., Any]] = Counter()

    def covers(self, twin: Callable[..., Any], size: int, steps: int = 0) -> bool:
        """Whether the twin takes these elements, which are then counted, in so many steps."""
        if size > SMALL:
            return False
        self.asked += 1
        self._used[twin] += max(size, _OVERHEAD, steps * _STEP)
        return self._used[twin] <= self.elements


allowance = Allowance(_ALLOWANCE)

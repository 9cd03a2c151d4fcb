"""Small arrays go through NumPy first, so that a first answer does not wait for a compiler.

A kernel takes seconds to compile and saves a tenth of one on a hundred thousand elements. So some
kernels have a *fallback*: the same operations on whole arrays in NumPy, with the same bits. A
process gives small arrays to it until they add up to the cost of compiling the kernel, or of
reading it from disk where an earlier process has compiled it; a process's first kernel costs as
much in either case, because Numba is imported for it. From then on, and for larger arrays at
once, the kernel runs. Only the time depends on which of the two runs.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from refkernels.arithmetic import jit

SMALL = 5 << 16  # elements
_ALLOWANCE = 1 << 23  # elements of one process: as long as a large kernel takes to compile
_READ = 1 << 8  # how many times faster a kernel is read from disk than compiled
_OVERHEAD = 1 << 10  # the cost of a fallback's call, in elements
_STEP = 1 << 6  # ... and of one step of a recurrence


class Allowance:
    """How many elements each fallback may have in this process; `asked` counts the questions."""

    def __init__(self, elements: int) -> None:
        self.elements = elements
        self.asked = 0
        self._used: Counter[Callable[..., Any]] = Counter()
        self._kept: dict[Callable[..., Any], bool] = {}

    def covers(
        self, fallback: Callable[..., Any], size: int, steps: int = 0, kernel: Any = None
    ) -> bool:
        """Whether the fallback, in that many steps, takes these elements, not the kernel. Counts
        the elements."""
        if size > SMALL:
            return False
        self.asked += 1
        self._used[fallback] += max(size, _OVERHEAD, steps * _STEP)
        if fallback not in self._kept:
            self._kept[fallback] = isinstance(kernel, jit.Kernel) and kernel.is_kept
        quick = self._kept[fallback] and jit.Kernel.in_use
        return self._used[fallback] <= (self.elements // _READ if quick else self.elements)


allowance = Allowance(_ALLOWANCE)

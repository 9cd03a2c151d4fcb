"""How many elements each tier answered: oracles report it, `counted` collects it.

    with tiers.counted() as tally:
        matmul_ref.forward(a, b, certify=("rounding", "float32"))
    tally      # {"float64": 1048449, "slices": 127}

The tiers, cheapest first: "float64" (one pass with a rigorous bound), "slices" (error-free slices
in float64 products), "double_double", "exact" (multiple precision or integers). An element is
counted once, under the tier whose answer the caller gets.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

NAMES = ("float64", "slices", "double_double", "exact")
_TALLY: ContextVar[dict[str, int] | None] = ContextVar("tally", default=None)


@contextmanager
def counted() -> Iterator[dict[str, int]]:
    """The number of elements that oracles answer inside the block, by tier; tiers without answers
    are absent. Blocks nest: the outer one does not see the inner one's counts."""
    tally: dict[str, int] = {}
    token = _TALLY.set(tally)
    try:
        yield tally
    finally:
        _TALLY.reset(token)


def answered(tier: str, elements: int) -> None:
    """Adds that many elements to the tier's count (a negative number where a later tier takes
    elements over). Oracles call it."""
    tally = _TALLY.get()
    if tally is None or not elements:
        return
    if tier not in NAMES:
        raise ValueError(f"There is no tier {tier!r}: choose one of {', '.join(NAMES)}.")
    tally[tier] = tally.get(tier, 0) + elements
    if not tally[tier]:
        del tally[tier]

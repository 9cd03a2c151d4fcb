"""Makes the helpers beside these tests importable, and the truth of all functions."""

import sys
from collections.abc import Iterator
from pathlib import Path

import flint
import pytest

for folder in (Path(__file__).parent, Path(__file__).parents[1] / "elementwise"):
    sys.path.insert(0, str(folder))


@pytest.fixture(autouse=True)
def _arb_precision() -> Iterator[None]:
    """Arb's precision is as it was after each test."""
    with flint.ctx.workprec(flint.ctx.prec):
        yield

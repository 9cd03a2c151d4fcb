"""Makes the helpers beside these tests importable, and sets Arb's precision for them."""

import sys
from pathlib import Path

import flint
import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _arb_precision():
    import arb

    before = flint.ctx.prec
    flint.ctx.prec = arb.PRECISION
    yield
    flint.ctx.prec = before

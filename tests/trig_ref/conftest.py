"""Arb's precision is as it was after each test."""

from collections.abc import Iterator

import flint
import pytest


@pytest.fixture(autouse=True)
def _arb_precision() -> Iterator[None]:
    with flint.ctx.workprec(flint.ctx.prec):
        yield

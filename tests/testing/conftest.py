"""Fixtures for the tests of assertions."""

import pytest

from refkernels.testing import cause


@pytest.fixture(autouse=True)
def no_causes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Causes are not looked for: they have tests of their own."""
    monkeypatch.setattr(cause, "SECONDS", 0.0)


@pytest.fixture
def causes(no_causes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Causes are looked for, whatever other tests have spent."""
    monkeypatch.setattr(cause, "SECONDS", 600.0)
    monkeypatch.setattr(cause, "_spent", 0.0)

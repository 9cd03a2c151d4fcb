"""The fakes, and an empty home."""

from collections.abc import Callable
from pathlib import Path

import planted_faults
import pytest

from refkernels.frameworks.catalog import Framework


@pytest.fixture(scope="session")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Framework]:
    """fake(fault): a framework with a planted fault."""
    folder = tmp_path_factory.mktemp("fakes")
    return lambda fault: planted_faults.framework(fault, folder)


@pytest.fixture
def fake_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in the place of the user's cache."""
    monkeypatch.setenv("REFKERNELS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"

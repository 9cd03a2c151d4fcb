"""What all tests share: hypothesis hunts on every run and prints how to reproduce what it finds;
in CI it tries the same examples each time, so that a change fails for what it changed."""

import os

import pytest
from hypothesis import HealthCheck, settings

from refkernels.arithmetic import small

settings.register_profile(
    "hunt",
    deadline=None,
    print_blob=True,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("quick", parent=settings.get_profile("hunt"), max_examples=8)
settings.load_profile("hunt")

# Tests try the kernels, whatever the size of the array; the twins are compared with them.
small.allowance.elements = 0


@pytest.fixture
def judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that several tests compare with are judged once: for runs that do not change."""
    from judged_once import install

    install(monkeypatch)

"""A notebook that needs a framework which is not installed is skipped, with the cure; in CI, where
REFKERNELS_REQUIRE names the frameworks, it runs and fails."""

from pathlib import Path

import pytest

from refkernels.frameworks import environments

NEEDED = ("torch", "paddle", "oneflow", "mindspore")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    missing = [reason for name in NEEDED if (reason := why_missing(name)) is not None]
    for item in items:
        if missing and item.path.parent == here and item.path.suffix == ".ipynb":
            item.add_marker(pytest.mark.skip(reason="; ".join(missing)))


def why_missing(name: str) -> str | None:
    """Why the framework cannot be asked and need not be; None where it can, or must."""
    if name in environments.required():
        return None
    try:
        environments.find(name)
    except environments.FrameworkError as error:
        return str(error)
    return None

"""A GPU's tests need a torch with CUDA in the running Python; elsewhere they are skipped."""

from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def torch() -> ModuleType:
    """torch, where it has a GPU."""
    module: ModuleType = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("no GPU: the running Python's torch has no CUDA device")
    return module

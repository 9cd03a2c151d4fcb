"""A GPU's tests need a torch with CUDA in the running Python; elsewhere they are skipped."""

import importlib.util
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def torch() -> ModuleType:
    return with_cuda()


def with_cuda() -> ModuleType:
    """torch, where it has a GPU."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("no GPU: torch is not installed in the running Python")
    import torch

    if not torch.cuda.is_available():
        pytest.skip("no GPU: the running Python's torch has no CUDA device")
    return torch

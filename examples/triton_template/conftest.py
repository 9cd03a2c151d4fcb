"""Without a GPU, Triton interprets its kernels; it reads this when it is imported."""

import os

try:
    import torch

    if not torch.cuda.is_available():
        os.environ.setdefault("TRITON_INTERPRET", "1")
except ImportError:
    pass

"""The question that a sweep asks a framework; every chunk needs it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from refkernels.frameworks.catalog import Framework, Spec

# Workers must not compete for the cores: each framework computes on one thread.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "runtime_num_threads": "1",
}


@dataclass(frozen=True)
class SweepQuestion:
    """An op, a framework, a device and a format. `call` limits the inputs of one call of the
    framework; an answer may depend on its position in the array, so it is part of the question.
    `target` is the framework as the user named it (`target_names`); `settings` include its own."""

    op: str
    framework: str | Spec | Framework
    device: str
    dtype: str
    settings: Mapping[str, str] = field(default_factory=dict)
    call: int = 1 << 20
    timeout: float = 120.0
    target: str = ""

    @property
    def name(self) -> str:
        """The framework's name in records."""
        return self.target or str(self.framework)

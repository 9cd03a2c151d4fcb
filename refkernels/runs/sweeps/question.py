"""What a sweep asks whom: the part of it that every chunk needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from refkernels.frameworks.catalog import Framework, Spec

# Two workers on two cores must not fight: each framework computes on one thread.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "runtime_num_threads": "1",
}


@dataclass(frozen=True)
class Question:
    """Who is asked what. `call` is how many inputs one call of the framework gets at most: where an
    answer depends on the position in its array, it is part of the question. `seat`: the framework
    as the user named it, with settings of its own (`seat_names`), which are among `settings`."""

    op: str
    framework: str | Spec | Framework
    device: str
    dtype: str
    settings: Mapping[str, str] = field(default_factory=dict)
    call: int = 1 << 20
    timeout: float = 120.0
    seat: str = ""

    @property
    def name(self) -> str:
        """What records call it."""
        return self.seat or str(self.framework)

"""How matrix instructions add products (`contexts.tensor_cores`); how far off their sums are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.formats import BFLOAT16, BINARY16, Format

Doubles = npt.NDArray[np.float64]


class Core(NamedTuple):
    """k products an instruction, F fraction bits, an accumulator of p bits, cut or to nearest: then
    it is float16, bfloat16 or float32. `rounds`: each product is rounded like the accumulator. With
    no products an instruction, it is none: they are summed in float64."""

    k: int
    fraction: int
    p: int = 24
    nearest: bool = False
    rounds: bool = False

    @property
    def narrow(self) -> Format | None:
        """The accumulator's format where that has 16 bits."""
        return next((f for f in (BINARY16, BFLOAT16) if self.nearest and f.p == self.p), None)


CORES = {"hopper": Core(16, 25), "ampere": Core(8, 24), "volta": Core(4, 23)}
"""For factors of 16 bits, accumulated in float32; of TF32 an instruction takes half as many, of
float8 twice as many. Volta errs most where all terms have one sign: it cuts the products; the
others also cut the sum, always towards zero, and err most on mixed signs."""
NO_CORE = Core(0, 52, 53)
FLOAT8 = {
    "hopper": Core(32, 13, 14),
    "ada": Core(16, 13, 14),
    "blackwell": Core(32, 25),
    "blackwell float4": Core(64, 35),
}
"""For float8; numbers of MXFP8, MXFP4 and NVFP4 are taken with their scales."""


def instructed(terms: int | Doubles) -> Doubles:
    """A sum of K exact products by matrix instructions is off by at most this times Σ |p|.

    K 2^-F + ceil(K / k) 2^-23: an instruction cuts as many terms as it has products, by 2^-F of the
    largest term, whose own digits all stay, and the sum by 2^-23 of itself (`CORES`;
    the largest of all). The accumulator that the next one takes is larger by as much.
    """
    lost = np.max(
        [terms * 2.0**-c.fraction + np.ceil(terms / c.k) * 2.0**-23 for c in CORES.values()], axis=0
    )
    return np.asarray(lost * (1.0 + lost))

"""Frameworks' ops as black boxes: one output element as the sum of its products.

The other rows and columns hold ones, so that the kernel that M, N and K choose is the one that a
user's data of that shape gets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats

Run = Callable[[dict[str, npt.NDArray[Any]]], dict[str, npt.NDArray[Any]]]
OPS = ("sum", "matmul", "linear", "layernorm")
_WIDE = (1.0, 2.0**50)  # factors of a unit and of the mask: products 1 and 2^100
_HALF = (2.0**-7, 2.0**15)  # float16's range: products 2^-14 and 2^30
_HALF_UNIT = 2.0**-24  # and the smallest value, where there are no products


@dataclass(frozen=True)
class OpBox:
    """`run` asks the framework (inputs by name -> outputs by name); the element (row, column) of
    its (M, N) output is watched. `bias` makes linear's bias the last value."""

    run: Run
    op: str
    k: int
    m: int = 1
    n: int = 1
    row: int = 0
    column: int = 0
    dtype: str = "float32"
    bias: bool = False

    def __post_init__(self) -> None:
        if self.op not in OPS:
            raise ValueError(f"reveal knows {', '.join(OPS)}, not {self.op!r}.")
        if not (0 <= self.row < self.m and 0 <= self.column < self.n and self.k >= 1):
            raise ValueError(
                f"There is no element ({self.row}, {self.column}) in a ({self.m}, {self.n}) output "
                f"of K = {self.k}."
            )
        if self.bias and self.op != "linear":
            raise ValueError(f"Only linear has a bias, {self.op} has none.")

    @property
    def leaves(self) -> int:
        """How many values the element is the sum of."""
        return self.k + self.bias

    @property
    def unit(self) -> float:
        """One of the small values: a product of two factors, where there are products."""
        return _HALF_UNIT if self._narrow_sum else self._factors[0] ** 2

    @property
    def mask(self) -> float:
        """The large value that swallows all others."""
        return _HALF[1] if self._narrow_sum else self._factors[1] ** 2

    @property
    def _factors(self) -> tuple[float, float]:
        return _HALF if self.dtype == "float16" else _WIDE

    @property
    def _narrow_sum(self) -> bool:
        return self.dtype == "float16" and self.op in ("sum", "layernorm")

    def total(self, values: npt.NDArray[np.float64]) -> float:
        """The box for `reveal`: values are units and masks of either sign."""
        factor = np.where(np.abs(values) == self.mask, self._factors[1], self._factors[0])
        if self.op in ("sum", "layernorm"):  # no products there: the values themselves
            return self._asked(values, np.ones_like(values))
        return self._asked(np.copysign(factor, values), factor)

    def products(self, a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float:
        """The box for `reveal_fused`: any factors that the format holds."""
        return self._asked(a, b)

    def _asked(self, a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float:
        storage = formats.get(self.dtype).storage
        inputs = {name: array.astype(storage) for name, array in self._inputs(a, b).items()}
        outputs = self.run(inputs)
        if self.op == "layernorm":
            return self._from_mean(outputs)
        answer = next(iter(outputs.values()))
        return float(answer.reshape(self.m, self.n)[self.row, self.column])

    def _inputs(
        self, a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]
    ) -> dict[str, npt.NDArray[np.float64]]:
        rows = np.ones((self.m, self.k))
        rows[self.row] = a[: self.k]
        if self.op in ("sum", "layernorm"):
            return {"x": rows}
        columns = np.ones((self.k, self.n))
        columns[:, self.column] = b[: self.k]
        if self.op == "matmul":
            return {"a": rows, "b": columns}
        inputs = {"x": rows, "weight": np.ascontiguousarray(columns.T)}
        if self.bias:
            inputs["bias"] = np.ones(self.n)
            inputs["bias"][self.column] = a[self.k] * b[self.k]
        return inputs

    def _from_mean(self, outputs: dict[str, npt.NDArray[Any]]) -> float:
        """K times the mean, a whole number of units where the mean is a sum divided by K."""
        if "mean" not in outputs:
            raise ValueError("This framework does not give LayerNorm's mean.")
        total = float(outputs["mean"].reshape(-1)[self.row]) * self.k
        nearest = round(total) if np.isfinite(total) else 0
        # Dividing by K and rounding moves the count by less than K u, far less than this.
        return float(nearest) if abs(total - nearest) < 2.0**-6 else total

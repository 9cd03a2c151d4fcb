"""Frameworks' ops as black boxes: one output element as the sum of its products or values.

All other rows and columns hold ones. A table's gradient is a sum of K rows with one index; each of
its M rows has K of them, in turn. So the framework chooses its kernel by M, N and K, as it does for
a user's data of that shape.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.op import Direction, Op, Sum

Run = Callable[[dict[str, npt.NDArray[Any]]], dict[str, npt.NDArray[Any]]]
SUM = "sum"  # over the last axis of x: a plain sum, which frameworks have
_WIDE = (1.0, 2.0**50)  # factors of a unit and of the mask: products 1 and 2^100
_HALF = (2.0**-7, 2.0**15)  # float16's range: products 2^-14 and 2^30
_HALF_UNIT = 2.0**-24  # and the smallest value, where there are no products


@dataclass(frozen=True)
class OpBox:
    """`run` asks the framework (inputs by name -> outputs by name); the box gives the element (row,
    column) of its (M, N) output. `bias` makes the op's bias the last value."""

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
        if self.op != SUM and not (self.product or self.mean or self.scatter):
            raise ValueError(f"reveal knows {', '.join(known())}, not {self.op!r}.")
        if not (0 <= self.row < self.m and 0 <= self.column < self.n and self.k >= 1):
            raise ValueError(
                f"There is no element ({self.row}, {self.column}) in a ({self.m}, {self.n}) output "
                f"of K = {self.k}."
            )
        if self.bias and (self.product is None or len(self.product.terms) < 3):
            raise ValueError(f"{self.op} has no bias.")

    @property
    def product(self) -> Sum | None:
        """The letters of a sum of products; None for a sum of values."""
        return product_of(self.op)

    @property
    def mean(self) -> str | None:
        """The output that is a mean over the last axis, where the op has one."""
        op = _op(self.op)
        return op.means[0] if op is not None and op.means else None

    @property
    def scatter(self) -> tuple[str, str] | None:
        """The table and its indices, where the sum is of rows with one index."""
        return scatter_of(self.op)

    @property
    def direction(self) -> Direction:
        """The direction in which the framework is asked."""
        return "backward" if self.scatter else "forward"

    @property
    def output(self) -> str | None:
        """The output's name, unless it is the op's first."""
        return f"d{self.scatter[0]}" if self.scatter else self.mean

    @property
    def rows(self) -> int:
        """The number of sums in the question, for sums of values; for products, of their rows."""
        return self.m * self.n if self.scatter else self.m

    @property
    def shapes(self) -> dict[str, list[int]]:
        """The shapes of the inputs that hold rows or columns, by name."""
        k, n = self.k, self.n
        arrays = self.named(np.empty((self.rows, k)), np.empty((k, n)), np.empty(n))
        return {name: list(array.shape) for name, array in arrays.items() if array.ndim > 1}

    @property
    def leaves(self) -> int:
        """The number of values in the element's sum."""
        return self.k + self.bias

    @property
    def unit(self) -> float:
        """The small value: a product of two factors, where there are products."""
        return _HALF_UNIT if self._narrow_sum else self._factors[0] ** 2

    @property
    def mask(self) -> float:
        """The large value, which absorbs all others."""
        return _HALF[1] if self._narrow_sum else self._factors[1] ** 2

    @property
    def _factors(self) -> tuple[float, float]:
        return _HALF if self.dtype == "float16" else _WIDE

    @property
    def _narrow_sum(self) -> bool:
        return self.dtype == "float16" and self.product is None

    def total(self, values: npt.NDArray[np.float64]) -> float:
        """The box for `reveal`: values are units and masks of either sign."""
        factor = np.where(np.abs(values) == self.mask, self._factors[1], self._factors[0])
        if self.product is None:  # the values themselves
            return self._element(values, np.ones_like(values))
        return self._element(np.copysign(factor, values), factor)

    def products(self, a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float:
        """The box for `reveal_fused`: any factors that the format holds."""
        return self._element(a, b)

    def _element(self, a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float:
        storage = formats.get(self.dtype).storage
        inputs = {
            name: array if array.dtype.kind == "i" else array.astype(storage)
            for name, array in self._inputs(a, b).items()
        }
        outputs = self.run(inputs)
        if self.mean is not None:
            return self._from_mean(self.mean, outputs)
        answer = next(iter(outputs.values()))
        return float(answer.reshape(self.m, self.n)[self.row, self.column])

    def _inputs(
        self, a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]
    ) -> dict[str, npt.NDArray[Any]]:
        rows, columns, bias = (
            np.ones((self.rows, self.k)),
            np.ones((self.k, self.n)),
            np.ones(self.n),
        )
        rows[self.row * self.n + self.column if self.scatter else self.row] = a[: self.k]
        columns[:, self.column] = b[: self.k]
        if self.bias:
            bias[self.column] = a[self.k] * b[self.k]
        return self.named(rows, columns, bias)

    def named(
        self, rows: npt.NDArray[Any], columns: npt.NDArray[Any], bias: npt.NDArray[Any]
    ) -> dict[str, npt.NDArray[Any]]:
        """The op's inputs by name: rows (M, K); for a product columns (K, N), perhaps a bias; for
        the gradient of a table (M, N) rows (M N, K)."""
        if self.scatter:
            return self._scattered(rows, *self.scatter)
        if self.product is None:
            return {"x": rows}
        row, column = tuple(self.product.letters)
        inputs = {}
        for name, letters in self.product.terms.items():
            if letters[0] == row:
                inputs[name] = rows
            elif len(letters) > 1:
                inputs[name] = np.ascontiguousarray(columns.T) if letters[0] == column else columns
            elif self.bias:
                inputs[name] = bias
        return inputs

    def _scattered(
        self, rows: npt.NDArray[Any], table: str, indices: str
    ) -> dict[str, npt.NDArray[Any]]:
        """Index j M + r is r: the j-th value of the sums of the table's row r."""
        values = np.moveaxis(rows.reshape(self.m, self.n, self.k), -1, 0)
        op = registry.get(self.op)
        return {
            op.cotangent: np.ascontiguousarray(values.reshape(self.k * self.m, self.n)),
            table: np.zeros((self.m, self.n), rows.dtype),
            indices: np.tile(np.arange(self.m), self.k),
        }

    def _from_mean(self, mean: str, outputs: dict[str, npt.NDArray[Any]]) -> float:
        """K times the mean: a whole number of units where the mean is a sum divided by K."""
        if mean not in outputs:
            raise ValueError(f"This framework does not give {self.op}'s {mean}.")
        total = float(outputs[mean].reshape(-1)[self.row]) * self.k
        nearest = round(total) if np.isfinite(total) else 0
        # Dividing by K and rounding moves the count by less than K u, far less than this.
        return float(nearest) if abs(total - nearest) < 2.0**-6 else total


def product_of(op: str) -> Sum | None:
    """The letters of the op's first output, where that is a sum of products."""
    record = _op(op)
    return None if record is None else record.sums.get(record.outputs[0])


def scatter_of(op: str) -> tuple[str, str] | None:
    """The op's table and its indices, if the table's gradient is a sum of rows."""
    record = _op(op)
    return None if record is None else record.scatter


def known() -> list[str]:
    """The ops that have a sum to reveal."""
    ops = registry.ops().values()
    products = [op.name for op in ops if op.outputs[0] in op.sums]
    return [SUM, *products, *(op.name for op in ops if op.means or op.scatter)]


@functools.cache
def _op(name: str) -> Op | None:
    if name == SUM:
        return None
    try:
        return registry.get(name)
    except ValueError:
        return None

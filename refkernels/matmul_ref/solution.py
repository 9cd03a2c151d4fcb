"""Answers of products with the bounds and the condition numbers that follow from them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.arithmetic.question import Certify
from refkernels.matmul_ref import bounds, oracle
from refkernels.matmul_ref.contraction import Contraction

Floats = bounds.Floats


@dataclass(frozen=True)
class ProductSolution:
    """A `refkernels.op.Solution`. `parts`: one product for each output; `enclosures` and `arrays`
    combine the outputs into the op's result."""

    parts: tuple[Contraction, ...]
    certify: Certify
    enclosures: Callable[..., Any]
    arrays: Callable[..., Any]

    @property
    def answer(self) -> Any:
        return self.enclosures(*self._answers)

    @with_default_fenv
    def bound(self, format: Format) -> Any:
        parts = zip(self.parts, self._answers, self._magnitudes, strict=True)
        return self.arrays(*(bounds.rounding_bound(p, format, z, total) for p, z, total in parts))

    @with_default_fenv
    def condition(self) -> Any:
        parts = zip(self.parts, self._answers, self._magnitudes, strict=True)
        return self.arrays(*(bounds.condition(p, z, total) for p, z, total in parts))

    @cached_property
    @with_default_fenv
    def _answers(self) -> tuple[Enclosure, ...]:
        return tuple(oracle.evaluate(part, self.certify) for part in self.parts)

    @cached_property
    @with_default_fenv
    def _magnitudes(self) -> tuple[Floats, ...]:
        return tuple(map(bounds.magnitudes, self.parts))


def alone(output: Any) -> Any:
    """The result of an op with one output."""
    return output


def solver(
    products: Callable[..., Any], enclosures: Any = alone, arrays: Any = alone
) -> Callable[..., ProductSolution]:
    """What solves an op whose arrays `products` makes a product of, or one for each gradient."""

    def solve(*, certify: Certify, **named: Any) -> ProductSolution:
        parts = products(**named)
        parts = parts if isinstance(parts, tuple) else (parts,)
        return ProductSolution(parts, certify, enclosures, arrays)

    return solve

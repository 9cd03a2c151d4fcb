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


def each(reading: Callable[..., Any], products: Any, *others: Any, **options: Any) -> Any:
    """A reading of a product, or of each one of a named tuple of products; `others` are read beside
    them."""
    if isinstance(products, Contraction):
        return reading(products, *others, **options)
    rows = zip(products, *others, strict=True)
    return type(products)(*(reading(*row, **options) for row in rows))


@dataclass(frozen=True)
class ProductSolution:
    """A `refkernels.op.Solution` of a product, or of a named tuple of them."""

    products: Any
    certify: Certify

    @cached_property
    @with_default_fenv
    def answer(self) -> Any:
        return each(oracle.evaluate, self.products, certify=self.certify)

    @cached_property
    @with_default_fenv
    def _magnitudes(self) -> Any:
        return each(bounds.magnitudes, self.products)

    @with_default_fenv
    def bound(self, format: Format) -> Any:
        def read(product: Contraction, exact: Enclosure, total: Floats) -> Floats:
            return bounds.rounding_bound(product, format, exact, total)

        return each(read, self.products, self.answer, self._magnitudes)

    @with_default_fenv
    def condition(self) -> Any:
        return each(bounds.condition, self.products, self.answer, self._magnitudes)


def solver(products: Callable[..., Any]) -> Callable[..., ProductSolution]:
    """What solves an op whose arrays `products` makes a product of, or one for each gradient."""
    return lambda *, certify, **named: ProductSolution(products(**named), certify)

"""How sharp an answer the caller wants, so that an oracle does no more work than needed."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.scalars import as_real
from refkernels.arithmetic.wording import shown

Certify: TypeAlias = "str | tuple[str, Format | str] | tuple[str, Format | str, float] | Question"


@dataclass(frozen=True)
class Question:
    """kind "enclosure": as tight as the fast tiers give.
    "rounding": the correct rounding to `format`, certified in every element.
    "ulp": a radius of at most `uncertainty` ulp of `format` in every element."""

    kind: str
    format: Format = formats.BINARY64
    uncertainty: float = 0.0

    @staticmethod
    def parse(certify: Certify) -> "Question":
        """From "enclosure", ("rounding", format) or ("ulp", format, uncertainty).

        Raises ValueError for anything else, TypeError for an uncertainty that is not a real number.
        """
        asked: Any = tuple(certify) if isinstance(certify, list | tuple) else certify
        match asked:
            case Question() as question:
                return question
            case str("enclosure"):
                return Question("enclosure")
            case (str("rounding"), format):
                return Question("rounding", formats.get(format))
            case (str("ulp"), format, uncertainty) if as_real(uncertainty, "uncertainty") > 0.0:
                return Question("ulp", formats.get(format), as_real(uncertainty, "uncertainty"))
        raise ValueError(
            f"certify={shown(certify)} is not a question an oracle knows: use 'enclosure', "
            "('rounding', format) or ('ulp', format, uncertainty > 0)."
        )

    def undecided(self, enclosure: Enclosure) -> npt.NDArray[np.bool_]:
        """Where the interval is too wide for the question."""
        if self.kind == "rounding":
            return enclosure.undecided(self.format)
        if self.kind == "ulp":
            return enclosure.wider_than(self.uncertainty, self.format)
        return np.zeros(enclosure.shape, np.bool_)

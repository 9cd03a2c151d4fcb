"""Frequencies of rotary embedding that are scaled for longer contexts.

With f_i = base^(-2 i / D), the frequency of pair i is

    linear    f_i / factor
    llama3    f_i ((1 - s) / factor + s),  s = (L f_i / 2 π - low) / (high - low), cut to [0, 1]
    yarn      f_i (r / factor + 1 - r),    r = (i - a) / (b - a), cut to [0, 1],
              a = floor(c(beta_fast)), b = ceil(c(beta_slow)),
              c(n) = D log(L / (2 π n)) / (2 log base)

where L is original_max_position_embeddings, low and high are low_freq_factor and high_freq_factor.
YaRN multiplies cosines and sines by attention_factor, 0.1 log(factor) + 1 by default. a and b are
those of binary64. NTK-aware scaling is another base.

Sources: Chen et al. (2023), arXiv:2306.15595 (linear); Llama Team (2024), arXiv:2407.21783; Peng et
al. (2023), arXiv:2309.00071 (YaRN). The keys are those of `rope_scaling` in Hugging Face's models.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from refkernels.arithmetic.scalars import as_real
from refkernels.arithmetic.wording import shown

_LENGTH = "original_max_position_embeddings"
REQUIRED = {
    "linear": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", _LENGTH),
    "yarn": ("factor", _LENGTH),
}
DEFAULTS: dict[str, dict[str, float]] = {"yarn": {"beta_fast": 32.0, "beta_slow": 1.0}}


@dataclass(frozen=True)
class FrequencyScaling:
    """Which scaling, its numbers by their keys, and YaRN's a and b."""

    kind: str
    numbers: Mapping[str, Fraction]
    ends: tuple[int, int] = (0, 0)

    def frequencies(self, xp: Any, plain: Any) -> Any:
        factor = xp.number(self.numbers["factor"])
        if self.kind == "linear":
            return plain / factor
        share = self._share(xp, plain)
        return xp.either(
            plain * ((1 - share) / factor + share), (1 - share) * (plain / factor) + share * plain
        )

    def _share(self, xp: Any, plain: Any) -> Any:
        """The share of the frequency that stays."""
        if self.kind == "yarn":
            first, last = self.ends
            place = np.arange(plain.shape[-1])
            ramp = [Fraction(int(i) - first, max(last - first, 1)) for i in place]
            kept = [float(min(max(1 - r, Fraction(0)), Fraction(1))) for r in ramp]
            inner = np.array([0.0 < share < 1.0 for share in kept])
            exact = (xp.array(last - place[None].astype(float))) / xp.number(max(last - first, 1))
            return xp.where(inner[None], exact, xp.array(np.array(kept)[None]))
        low, high = (xp.number(self.numbers[f"{end}_freq_factor"]) for end in ("low", "high"))
        turns = xp.number(self.numbers[_LENGTH]) * plain / (2 * xp.pi())
        return xp.clip((turns - low) / (high - low), 0, 1)

    def magnitude(self, xp: Any, table: Any) -> Any:
        """The cosines or sines, as they are multiplied into x."""
        if self.kind != "yarn":
            return table
        if "attention_factor" in self.numbers:
            return table * xp.number(self.numbers["attention_factor"])
        return table * (xp.log(xp.number(self.numbers["factor"])) / 10 + 1)


def as_scaling(given: Any, base: float, dim: int) -> FrequencyScaling | None:
    """The scaling of a dict with the keys of `rope_scaling`, or of its JSON; None for "none".
    Raises ValueError for anything else."""
    if isinstance(given, str) and given == "none":
        return None
    if isinstance(given, str):
        with contextlib.suppress(json.JSONDecodeError):
            given = json.loads(given)
    kind = given.get("rope_type", given.get("type")) if isinstance(given, Mapping) else None
    if not isinstance(kind, str) or kind not in (*REQUIRED, "default"):
        raise ValueError(
            f"scaling is {shown(given)}: it must be a dict whose rope_type is one of default, "
            f"{', '.join(REQUIRED)}."
        )
    if kind == "default":
        return None
    numbers = {**DEFAULTS.get(kind, {}), **given}
    for key in REQUIRED[kind]:
        if key not in numbers:
            raise ValueError(f"scaling has no {key}, which {kind} needs.")
    exact = {
        key: Fraction(as_real(value, f"scaling's {key}"))
        for key, value in numbers.items()
        if key not in ("rope_type", "type") and value is not None
    }
    if min(exact.values()) <= 0 or exact.get("high_freq_factor", 2) <= exact.get(
        "low_freq_factor", 1
    ):
        raise ValueError(
            "scaling has a number that is not above 0, or a high_freq_factor that is not above "
            "low_freq_factor."
        )
    ends = (0, 0)
    if kind == "yarn":
        length, steep = float(exact[_LENGTH]), 2.0 * math.log(base)
        if not steep:
            raise ValueError("base is 1, for which YaRN is not defined.")
        ends = tuple(
            dim * math.log(length / (float(exact[beta]) * 2.0 * math.pi)) / steep
            for beta in ("beta_fast", "beta_slow")
        )  # type: ignore[assignment]
        ends = max(math.floor(ends[0]), 0), min(math.ceil(ends[1]), dim - 1)
    return FrequencyScaling(kind, exact, ends)

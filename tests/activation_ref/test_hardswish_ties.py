"""hardswish compared with exact fractions where its value is a tie."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from refkernels.activation_ref import OPS, hardswish
from refkernels.arithmetic import formats
from refkernels.op import DTYPES

OP = OPS[0]


def by_hand(x: Any) -> Fraction:
    z = Fraction(float(x))
    return max(z, Fraction(0)) if abs(z) >= 3 else z * (z + 3) / 6


@pytest.mark.parametrize("dtype", DTYPES)
def test_ties_are_ties_and_rounded_to_even(dtype: str) -> None:
    (case,) = (entry for entry in OP.cases() if entry.regime == "ties")
    x = np.unique(case.build(dtype)[0]["x"])
    rounded, certified = hardswish(x, certify=("rounding", dtype)).round(dtype)
    target, ties = formats.get(dtype), 0
    for got, at in zip(rounded.astype(np.float64), x.astype(np.float64), strict=True):
        value = by_hand(at)
        ulp = Fraction(2) ** (int(np.floor(np.log2(float(abs(value))))) - target.p + 1)
        ties += value % ulp == ulp / 2
        assert Fraction(got) % (2 * ulp) == 0
        assert abs(Fraction(got) - value) == ulp / 2
    assert certified.all()
    assert ties == x.size > (2 if dtype == "bfloat16" else 5)

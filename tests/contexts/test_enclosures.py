"""Every rule holds the exact value, against rationals or Arb at a point of each input's interval,
and no kernel exceeds its bound: a small run of benchmarks/enclosures.py. REFKERNELS_HUNT multiplies
the number of elements."""

import enclosures
import pytest
from hunting import HUNT

ELEMENTS = {"Ball": 400 * HUNT, "DoubleDouble": 400 * HUNT, "Bound": 4_000 * HUNT}


@pytest.mark.parametrize("reading", ELEMENTS)
@pytest.mark.parametrize("name", enclosures.RULES)
def test_every_rule_holds_the_exact_value(name: str, reading: str) -> None:
    if (name, reading) != ("real power", "Bound"):  # whose kernels compute no power
        checked = enclosures.counted(reading, name, ELEMENTS[reading], seed=1)
        assert checked >= ELEMENTS[reading] // 10

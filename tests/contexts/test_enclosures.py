"""Every rule holds the exact value, against rationals or Arb at a point of each input's interval: a
small run of benchmarks/enclosures.py. REFKERNELS_HUNT multiplies the number of enclosures."""

import enclosures
import pytest
from hunting import HUNT

N = 400 * HUNT


@pytest.mark.parametrize("reading", ["Ball", "DoubleDouble"])
@pytest.mark.parametrize("name", enclosures.RULES)
def test_every_rule_holds_the_exact_value(name: str, reading: str) -> None:
    assert enclosures.counted(reading, name, N, seed=1) >= N // 10

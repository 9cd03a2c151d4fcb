"""How many kernels a first answer compiles: times differ from machine to machine, counts do not."""

import cold_start
import pytest

CEILINGS = {"layernorm_ref.forward": 9, "assert_kernel": 9, "explain": 9}


@pytest.mark.parametrize("name", CEILINGS)
def test_a_first_answer_compiles_no_more_kernels_than_before(name: str) -> None:
    compiled = cold_start.kernels(name)
    assert 0 < compiled <= CEILINGS[name], "python benchmarks/cold_start.py --kernels names them"


def test_every_first_answer_has_a_ceiling() -> None:
    assert set(CEILINGS) == set(cold_start.FIRST_ANSWERS)

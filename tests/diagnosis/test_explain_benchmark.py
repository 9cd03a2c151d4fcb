"""Planted faults are named first, right kernels are not blamed: a small run of the benchmark."""

import diagnosis
import faults
import pytest


@pytest.mark.parametrize("cause", faults.FAULTS)
def test_a_planted_fault_is_named_first(cause: str) -> None:
    number = list(faults.FAULTS).index(cause)
    examined = 0
    for kind, (build, dtypes) in enumerate(faults.FAULTS[cause]):
        for dtype in dtypes:
            rng = faults.generator(number, kind, faults.SHAPES[0], 100)
            record = diagnosis.examine(cause, build(rng, faults.SHAPES[0], dtype))
            assert not diagnosis.missed(record), record
            examined += 1
    assert examined


def test_right_kernels_are_not_blamed() -> None:
    records = [diagnosis.examine(name, kernel) for name, kernel in faults.right(15)]
    assert len(records) == 15
    assert not [record for record in records if diagnosis.missed(record)]


def test_the_matrix_counts_every_kernel() -> None:
    records = [diagnosis.examine(name, kernel) for name, kernel in faults.right(2)]
    lines = diagnosis.matrix(records)
    assert len(lines) == 3
    assert lines[-1].startswith("| nothing (right kernels) | 2 |")

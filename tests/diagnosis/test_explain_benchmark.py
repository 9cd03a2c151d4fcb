"""Planted faults are named first, right kernels are not blamed: a small run of the benchmark."""

from collections.abc import Iterator

import diagnosis
import every_op
import fault_matrix
import faults
import pytest
from hunting import one_in
from planted import Planted

from refkernels import registry


@pytest.mark.parametrize("cause", one_in(2, faults.FAULTS))
def test_a_planted_fault_is_named_first(cause: str) -> None:
    """In every other format; `benchmarks/diagnosis.py` tries all."""
    number, kinds = list(faults.FAULTS).index(cause), enumerate(faults.FAULTS[cause])
    planted = [(kind, build, dtype) for kind, (build, dtypes) in kinds for dtype in dtypes]
    for kind, build, dtype in one_in(2, planted):
        rng = faults.generator(number, kind, faults.SHAPES[0], 100)
        record = diagnosis.examine(cause, build(rng, faults.SHAPES[0], dtype))
        assert not diagnosis.missed(record), record
        assert record["wrong"] == []


def test_truncation_past_a_number_is_no_rounding_to_nearest() -> None:
    """One of these 576 elements was truncated to the number before: the exact one lies that near
    to a float16. The others are truncated, whatever that one shows."""
    kinds, kind = faults.FAULTS["truncated_output"], 5
    rng = faults.generator(list(faults.FAULTS).index("truncated_output"), kind, (24, 64), 0)
    planted = kinds[kind][0](rng, (24, 64), faults.FLOAT32)
    record = diagnosis.examine("truncated", planted)
    assert (record["op"], record["named"]) == ("linear", "truncated_output")


def of_every_op(name: str, cause: str) -> Iterator[Planted]:
    """The first kernel with the fault in each direction."""
    op = registry.get(name)
    yield from (kernel for _, kernel in every_op.planted_in(op, 1) if kernel.cause == cause)


@pytest.mark.parametrize(
    ("op", "cause"),
    [
        ("nll", "all_rows_denominator"),  # one number, 5.8 times the plain algorithm's error
        ("group_norm", "naive_variance"),  # inside the bound of a form that folds
        ("hardsigmoid", "slope_of_a_fifth"),  # all 0 beside the bend, as of x in float16
        ("atan2", "sign_of_abscissa_gradient"),  # the sign of one of two outputs
        ("soft_cross_entropy", "sum_instead_of_mean"),  # 32 times everything
        ("adamw", "decay_ignored"),  # 1e-4 of a parameter
        ("sgd", "float32_hyperparameters"),  # seen in float64 alone
    ],
)
def test_a_fault_of_an_op_is_named_first(op: str, cause: str) -> None:
    records = [diagnosis.examine(op, planted) for planted in of_every_op(op, cause)]
    assert any(record["shows"] for record in records)
    assert not [record for record in records if diagnosis.missed(record) or record["wrong"]]


def test_no_fault_is_left_out_without_a_word() -> None:
    """Also one that is rounding wherever it is planted, which the page lists."""
    op = registry.get("softsign")
    kernels = [kernel for _, kernel in every_op.planted_in(op, 1)]
    causes = {fault.cause for fault in op.formulas.faults} | {"slope_not_squared"}
    assert {kernel.cause for kernel in kernels} == causes
    records = [
        {"op": kernel.op, "direction": kernel.direction, "planted": kernel.cause, "shows": shows}
        for kernel in kernels
        for shows in ((False,) if kernel.cause == "tanh_instead" else (False, True))
    ]
    hidden = ["softsign forward tanh_instead", "softsign backward tanh_instead"]
    assert diagnosis.hidden(records) == hidden


@pytest.mark.parametrize("fault", ["lost tail", "clamped value", "narrow value"])
def test_what_any_op_may_have_is_planted_and_named(fault: str) -> None:
    entry = fault_matrix.cell(registry.get("log_softmax"), "backward", fault)
    assert entry["state"] == "proven", entry


def test_right_kernels_are_not_blamed() -> None:
    records = [diagnosis.examine(name, kernel) for name, kernel in faults.right(15)]
    assert len(records) == 15
    assert not [record for record in records if diagnosis.missed(record)]

"""The default measurement represents all cases, and a first table comes early."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from refkernels import registry
from refkernels.runs import measurement
from refkernels.runs.measurement import invariance
from refkernels.runs.measurement.plan import Unit, is_large


def test_the_default_has_every_regime_of_every_op_in_every_format_that_is_not_large() -> None:
    everything, default = measurement.select(), measurement.select(full=False)
    keys = {unit.key for unit in default.units}
    assert keys < {unit.key for unit in everything.units}
    assert 3 * len(keys) < 2 * len(everything.units)

    def regimes(units: Iterable[Unit]) -> set[tuple[str, str, str, str]]:
        cases = [(unit, unit.case) for unit in units if unit.case is not None]
        return {(u.op.name, case.regime, u.dtype, u.direction) for u, case in cases}

    assert not any(is_large(unit.case) for unit in default.units if unit.case is not None)
    small = [u for u in everything.units if u.case is not None and not is_large(u.case)]
    # A regime may have cases of some formats only, and the first of it need not have them.
    lost = regimes(small) - regimes(default.units)
    assert not [one for one in lost if one[2] == "float32"]
    assert len(lost) < 0.05 * len(regimes(small))
    assert len(regimes(everything.units) - regimes(small)) < 0.05 * len(regimes(small))


def test_a_case_that_is_not_large_has_no_more_than_some_ten_thousand_elements() -> None:
    """But for those of published threads, which keep their shapes."""
    counted = 0
    for op in registry.ops().values():
        for case in op.cases():
            if not is_large(case) and not case.regime.startswith("seed_"):
                arrays, _ = case.build(case.dtypes[0])
                assert sum(array.size for array in arrays.values()) < 1 << 16, case.name
                counted += 1
    assert counted > 800


def test_large_cases_take_part_in_the_invariance() -> None:
    """Kernels use several threads on large arrays only."""
    units = measurement.select(["sum"], ["float32"], full=False).units
    (invariant,) = [unit for unit in units if unit.case is None]
    assert any(is_large(case) for case in invariant.cases)


def test_a_pattern_takes_all_that_it_matches() -> None:
    pattern = ["matmul/k_sweep*"]
    units = measurement.select(cases=pattern, full=False).units
    assert len(units) > 8
    assert [u.key for u in units] == [u.key for u in measurement.select(cases=pattern).units]


def test_one_case_of_each_op_is_measured_and_shown_first(tmp_path: Path) -> None:
    plan = measurement.select(["sin", "hardswish"], ["float32"], ["sin/specials*", "hardswish/*"])
    assert [unit.op.name for unit in plan.first] == ["hardswish", "sin"]  # by their units
    assert sorted(u.key for u in plan.order) == sorted(u.key for u in plan.units)
    shown: list[list[dict[str, object]]] = []
    outcome = measurement.measure(plan, tmp_path, frameworks=["numpy"], glance=shown.append)
    (first,) = shown
    measured = [record["op"] for record in first if record["kind"] == "measurement"]
    assert measured == ["hardswish", "sin"]
    assert len(outcome.records) > len(first)


def test_a_run_of_one_case_has_no_first_table(tmp_path: Path) -> None:
    plan = measurement.select(["sin"], ["float32"], ["sin/specials*"])
    plan = measurement.Plan(plan.ops, plan.dtypes, plan.units[:1])
    shown: list[list[dict[str, object]]] = []
    measurement.measure(plan, tmp_path, frameworks=["numpy"], glance=shown.append)
    assert shown == []


def test_an_op_without_rows_has_no_position_and_no_batch() -> None:
    """Of every op whose elements take whole arrays; LAMB's trust ratio is of all of them."""
    whole = [op for op in registry.ops().values() if not op.row_inputs]
    assert {op.name for op in whole} >= {"batch_norm", "group_norm", "lamb"}
    for op in whole:
        unit = Unit(op, None, "float32", "forward")
        questions = list(invariance._questions(unit))
        assert questions
        with pytest.raises(invariance.NoAnswer, match="no rows that are computed one by one"):
            invariance._rows_question(unit, questions)

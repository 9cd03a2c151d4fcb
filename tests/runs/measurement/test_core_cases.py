"""The default measurement represents all cases, and a first table comes early."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from refkernels import registry
from refkernels.runs import measurement
from refkernels.runs.measurement import invariance
from refkernels.runs.measurement.plan import Unit, is_large


def test_the_default_has_every_regime_that_is_not_large() -> None:
    """Forward in float32, and backward in float32 or float64; of specials, in both."""
    everything, default = measurement.select(), measurement.select(full=False)
    keys = {unit.key for unit in default.units}
    assert keys < {unit.key for unit in everything.units}
    assert 3 * len(keys) < len(everything.units)

    def regimes(units: Iterable[Unit]) -> set[tuple[str, str, str, str]]:
        cases = [(unit, unit.case) for unit in units if unit.case is not None]
        return {(u.op.name, case.regime, u.direction, u.dtype) for u, case in cases}

    assert not any(is_large(unit.case) for unit in default.units if unit.case is not None)
    small = [
        unit
        for unit in everything.units
        if unit.case is not None and not is_large(unit.case) and "16" not in unit.dtype
    ]
    measured, missing = regimes(default.units), regimes(small) - regimes(default.units)
    other = {"float32": "float64", "float64": "float32"}
    assert missing
    for op, regime, direction, dtype in missing:
        assert regime != "specials"
        assert (op, regime, direction, other[dtype]) in measured
    assert not any(place[2:] == ("forward", "float32") for place in missing)
    asked = {(op, direction, dtype) for op, _, direction, dtype in measured}
    assert {(op, direction, dtype) for op, _, direction, dtype in missing} <= asked


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_default_in_16_bits_has_long_sums_and_the_specials_in_each_direction(
    dtype: str,
) -> None:
    for op in registry.ops().values():
        cases = [case for case in op.cases() if not case.regime.startswith("seed_")]
        small = [case for case in cases if dtype in case.dtypes and not is_large(case)]
        units = measurement.select([op.name], [dtype], full=False, invariance=False).units
        for direction in op.directions if small else ():
            there = [case for case in small if direction in case.directions]
            chosen = [u.case for u in units if u.case is not None and u.direction == direction]
            regimes = {case.regime for case in there} & {"specials", there[0].regime}
            assert {case.regime for case in chosen} >= regimes
            first = [case.name for case in there if case.regime == there[0].regime]
            least = first[-1:] if dtype == "bfloat16" else [first[0], first[-1]]
            assert {*least} <= {case.name for case in chosen}
        assert len({unit.key for unit in units}) <= 6 * len(op.directions)
    units = measurement.select(["matmul", "sum"], [dtype], full=False).units
    names = {unit.key.split(",")[0] for unit in units}
    assert names >= {"matmul/k_sweep[K=768", "sum/row_length[n=1000"}


def test_a_published_thread_is_measured_whole_in_float32() -> None:
    cases = [case for case in registry.get("matmul").cases() if case.regime == "seed_linear"]
    units = measurement.select(["matmul"], ["float32"], full=False).units
    measured = [unit.case for unit in units if unit.case and unit.case.regime == "seed_linear"]
    assert len(cases) > 1
    assert len(measured) == len(cases) * len(cases[0].directions)


def test_a_plan_counts_what_it_leaves_out() -> None:
    question = (["sin", "softmax"], ["float32", "bfloat16"])
    everything, default = measurement.select(*question), measurement.select(*question, full=False)
    assert everything.left_out == 0
    counts = [sum(unit.case is not None for unit in plan.units) for plan in (everything, default)]
    assert default.left_out == counts[0] - counts[1] > 0


def test_a_run_says_in_its_records_what_it_leaves_out(tmp_path: Path) -> None:
    plan = measurement.select(["sqrt"], ["float32"], full=False)
    outcome = measurement.measure(plan, tmp_path, frameworks=["numpy"])
    cases = [unit for unit in plan.units if unit.case is not None]
    scope = {"units": len(cases), "left_out": plan.left_out}
    assert [r["plan"] for r in outcome.records if r["kind"] == "environment"] == [scope]


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
    outcome = measurement.measure(
        plan, tmp_path, frameworks=["numpy"], on_first_results=shown.append
    )
    (first,) = shown
    measured = [record["op"] for record in first if record["kind"] == "measurement"]
    assert measured == ["hardswish", "sin"]
    assert len(outcome.records) > len(first)


def test_the_first_table_waits_for_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the first unit takes, and whatever cannot answer: NumPy calls no hardswish."""
    monkeypatch.setattr("refkernels.runs.measurement.run.FIRST_TABLE_SECONDS", -1.0)
    plan = measurement.select(["sin", "hardswish"], ["float32"], ["sin/specials*", "hardswish/*"])
    shown: list[list[dict[str, object]]] = []
    measurement.measure(plan, tmp_path, frameworks=["numpy"], on_first_results=shown.append)
    (first,) = shown
    answered = [record["op"] for record in first if record.get("status") == "ok"]
    assert answered == ["sin"]


def test_a_run_of_one_case_has_no_first_table(tmp_path: Path) -> None:
    plan = measurement.select(["sin"], ["float32"], ["sin/specials*"])
    plan = measurement.Plan(plan.ops, plan.dtypes, plan.units[:1])
    shown: list[list[dict[str, object]]] = []
    measurement.measure(plan, tmp_path, frameworks=["numpy"], on_first_results=shown.append)
    assert shown == []


def test_an_op_without_rows_has_no_position_and_no_batch() -> None:
    """Of every op whose elements take whole arrays; LAMB's trust ratio is of all of them."""
    whole = [op for op in registry.ops().values() if not op.row_inputs]
    assert {op.name for op in whole} >= {"batch_norm", "clip_by_norm", "lamb"}
    for op in whole:
        unit = Unit(op, None, "float32", "forward")
        questions = list(invariance._questions(unit))
        assert questions
        with pytest.raises(invariance.NoAnswer, match="no rows that are computed one by one"):
            invariance._rows_question(unit, questions)

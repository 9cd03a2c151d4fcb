"""Searches over pairs: planted errors are found, right kernels are blamed for nothing."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sweep_helpers import comparable, in_this_process

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.runs import sweeps
from refkernels.runs.sweeps import chunk, kept, pairs, patterns, records, run, search
from refkernels.runs.sweeps.patterns import Span
from refkernels.runs.sweeps.tally import SweepTally

Kernel = Callable[[Any, Any], Any]


def searched(
    monkeypatch: pytest.MonkeyPatch, kernel: Kernel, op: str = "hypot", tries: int = 1 << 12
) -> dict:
    """The record of one restart, answered by `kernel` in this process."""

    def answer(name: str, direction: str, inputs: dict, *_: Any) -> Any:
        with np.errstate(all="ignore"):
            y = kernel(*inputs.values())
        return SimpleNamespace(ok=True, outputs={"y": y}, seconds=0.0)

    @contextlib.contextmanager
    def taken(_: Any) -> Iterator[Any]:
        yield SimpleNamespace(run=answer, info={"version": "1"}, spec="planted")

    question = chunk.SweepQuestion(op, "planted", "cpu", "float32")
    with monkeypatch.context() as patched:
        patched.setattr(kept, "taken", taken)
        patched.setattr(search, "BATCH", 1 << 10)
        result = pairs.run_pair_restart(question, 0, 0, tries)
        tally = SweepTally.from_json(result["tally"])
        span = Span(0, 1 << 32)
        return records.record(question, result, tally, [span], [], {"method": "search"})


def right(a: Any, b: Any) -> Any:
    """Wrong by one rounding of float64 at most, before the one that counts."""
    return np.hypot(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)


def test_a_right_kernel_raises_no_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    record = searched(monkeypatch, right)
    assert record["verdict"] in ("correctly_rounded", "rounding")
    assert record["ulp"]["max"] < 0.5 + 2.0**-27
    assert record["firsts"] == {}
    assert record["counts"]["inputs"] > 3000


def test_an_error_planted_in_a_corner_is_found_with_its_pair(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def kernel(a: Any, b: Any) -> Any:
        y, wrong = right(a, b), (a > 2.0**100) & (b > 0.5 * a) & (b < 2 * a)
        return np.where(wrong, y + 7 * np.spacing(y), y).astype(y.dtype)

    record = searched(monkeypatch, kernel)
    assert 6.4 < record["ulp"]["max"] < 7.6
    a, b = (float(number) for number in record["ulp"]["input"]["decimal"].split(", "))
    assert a > 2.0**100
    assert 0.5 * a < b < 2 * a
    bits = [int(number, 16) for number in record["ulp"]["input"]["hex"].split(", ")]
    same = [patterns.value_of(pattern, formats.get("float32")) for pattern in bits]
    assert [np.float32(number) for number in (a, b)] == same
    exact = np.hypot(*same)
    got = float(np.float32(record["ulp"]["got"]["decimal"]))
    assert (got - exact) / np.spacing(np.float32(exact)) == pytest.approx(
        record["ulp"]["error"], abs=0.1
    )


def test_an_intermediate_that_overflows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    record = searched(monkeypatch, lambda a, b: np.sqrt(a * a + b * b))
    assert record["verdict"] in ("special_value_mismatch", "exceeds_bound")
    assert record["counts"]["overflows"]


def test_climbing_raises_the_largest_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that grows towards one pair: drawing alone does not come so near."""

    def kernel(a: Any, b: Any) -> Any:
        y = right(a, b)
        far = np.abs(a / np.float32(1.25) - 1) + np.abs(b / np.float32(2.5) - 1)
        size = np.nan_to_num(np.clip(-np.log2(far + 2.0**-23), 0, 23))
        return (y + np.round(size) * np.spacing(y)).astype(y.dtype)

    climbed = searched(monkeypatch, kernel)["ulp"]["max"]
    monkeypatch.setattr(search, "_DRAWN", 1.0)
    assert climbed > searched(monkeypatch, kernel)["ulp"]["max"] + 1


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_tallies_of_pairs_read_back_and_pairs_are_drawn_everywhere(dtype: str) -> None:
    format, op = formats.get(dtype), registry.get("atan2")
    random = np.random.default_rng(1)
    drawn = pairs.drawn(4096, pairs._regimes(op, format), format, random)
    assert drawn.shape == (4096, 2)
    assert int(drawn.max()) < 1 << patterns.width(format)
    with np.errstate(all="ignore"):
        a, b = (patterns.values_of(side, format).astype(np.float64) for side in drawn.T)
        assert (np.abs(a) == np.abs(b)).sum() > 50
        for strange in (np.isnan(a), np.isinf(b), a == 0, b == 0, np.abs(a / b) > 1e4):
            assert strange.sum() > 5
    bit = np.uint64(1 << (format.p - 2))
    assert np.all(drawn[np.isnan(a), 0] & bit)  # what a signalling NaN gives is left to the library
    tally = SweepTally(format, 2)
    last = patterns.numbered([int(pattern) for pattern in drawn[-1]], format)
    tally.counts[3, 0] = 5
    tally.worst[3], tally.worst_bits[3], tally.firsts[6] = (2.0, -2.0, 0.0), (last, 7), (last, 9)
    tally.add_violations("sign", 2, last, 8)
    again = SweepTally.from_json(tally.to_json())
    assert again.to_json() == tally.to_json()
    assert patterns.parts(again.worst_bits[3, 0], format, 2) == drawn[-1].tolist()


def test_stopped_and_resumed_the_answer_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "RESTART", 1 << 9)
    plan = sweeps.plan(["hypot"], ["numpy"], ["float32", "float16"], tries=3 << 9, seed=4)

    def stop(now: sweeps.Progress) -> None:
        if now.done > 1 << 9:
            raise KeyboardInterrupt

    def swept(name: str, **options: Any) -> list:
        with in_this_process() as pool:
            return sweeps.sweep(plan, tmp_path / name, pool=pool, **options)

    whole = comparable(swept("whole"))
    with pytest.raises(KeyboardInterrupt):
        swept("stopped", progress=stop)
    assert comparable(swept("stopped", resume=True)) == whole
    assert [record["method"] for record in whole] == ["search", "search"]
    assert (whole[0]["takes"], whole[0]["tries"], whole[0]["seed"]) == (["a", "b"], 3 << 9, 4)


def test_a_range_of_pairs_is_refused() -> None:
    with pytest.raises(ValueError, match="--range is for functions of one number: pow takes x and"):
        sweeps.plan(["pow"], ["numpy"], range="0:1")

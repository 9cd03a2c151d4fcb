"""Kernels whose answers depend on what they must not, and one whose do not: each property is
distinguished from the others."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

from refkernels import registry
from refkernels.frameworks.gateway import Reply, Session
from refkernels.op import Direction
from refkernels.runs.measurement import invariance
from refkernels.runs.measurement.dispatcher import Dispatcher
from refkernels.runs.measurement.invariance import PROPERTIES, ThreadedTargets, ask_invariance
from refkernels.runs.measurement.plan import Unit
from refkernels.runs.measurement.targets import Target
from refkernels.runs.measurement.unanswered import TargetQuestion

Array = npt.NDArray[Any]


class Kernel:
    """In the place of a session: float32 by way of float64, with one planted dependence."""

    limit = 120.0

    def __init__(self, fault: str, threads: int = 0, calls: int = 0) -> None:
        self.fault, self.threads, self.calls = fault, threads, calls

    def run(
        self,
        op: str,
        direction: str,
        inputs: Mapping[str, Array],
        params: Any,
        device: str,
        leaves: Any = None,
    ) -> Reply:
        self.calls += 1
        if self.fault == "refuses":
            return Reply("error", "planted")
        if self.fault == "dies" and self.calls > 3:
            return Reply("killed", "planted")
        x = inputs["x"].astype(np.float64) if op == "sin" else inputs["a"].astype(np.float64)
        with np.errstate(all="ignore"):
            outputs = {"y": np.sin(x)} if op == "sin" else product(direction, inputs)
            outputs = {name: y.astype(np.float32) for name, y in outputs.items()}
        for y in outputs.values():
            self.disturb(y)
        return Reply("ok", None, outputs)

    def disturb(self, y: Array) -> None:
        """The next float for some elements; 0 and NaN stay as they are."""
        rows = y.reshape(len(y), -1)
        chosen = {
            "run_to_run": slice(self.calls % 2, None, 2),
            "position": slice(len(rows) // 8 * 8, None),  # a tail that is computed otherwise
            "batch": slice(None) if len(rows) == 1 else slice(0, 0),
            "threads": slice(None) if self.threads == 2 else slice(0, 0),
            "first calls": slice(None) if self.calls > 5 else slice(0, 0),
        }.get(self.fault, slice(0, 0))
        with np.errstate(all="ignore"):
            rows[chosen] = np.nextafter(rows[chosen], np.float32(np.inf) * np.sign(rows[chosen]))


def product(direction: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
    a, b = (inputs[name].astype(np.float64) for name in ("a", "b"))
    if direction == "forward":
        return {"c": np.einsum("...ij,...jk->...ik", a, b)}
    dc = inputs["dc"].astype(np.float64)
    da = np.einsum("...ik,...jk->...ij", dc, b)
    return {"da": summed(da, a), "db": summed(np.einsum("...ij,...ik->...jk", a, dc), b)}


def summed(gradient: Array, target: Array) -> Array:
    """Over the axes along which the target was broadcast."""
    gradient = gradient.sum(axis=tuple(range(gradient.ndim - target.ndim)))
    axes = tuple(i for i, n in enumerate(target.shape) if n == 1 and gradient.shape[i] != 1)
    return gradient.sum(axis=axes, keepdims=True)


class Threaded(ThreadedTargets):
    def pair(self, target: Target) -> tuple[Target, Target]:
        fault = cast(Kernel, target.session).fault
        single, double = (target_of_kernel(Kernel(fault, threads)) for threads in (1, 2))
        return single, double


def target_of_kernel(kernel: Kernel) -> Target:
    return Target(cast(Session, kernel), kernel.fault, "1.0", "cpu", {}, "none")


def invariance_of(unit: Unit, kernel: Kernel) -> list[dict[str, Any]]:
    with Dispatcher([target_of_kernel(kernel)]) as dispatcher:
        return ask_invariance(unit, dispatcher, Threaded(1.0)).records()


def properties_of(
    fault: str, op: str = "sin", direction: Direction = "forward"
) -> dict[str, dict[str, Any]]:
    unit = Unit(registry.get(op), None, "float32", direction)
    records = invariance_of(unit, Kernel(fault))
    assert [record["property"] for record in records] == list(PROPERTIES)
    assert {(r["op"], r["direction"], r["dtype"]) for r in records} == {(op, direction, "float32")}
    return {record["property"]: record for record in records}


@pytest.mark.parametrize(("cores", "device"), [(2, "cpu"), (3, "cpu"), (1, "cuda"), (2, "cuda")])
def test_interpreters_start_ahead_where_processors_are_idle(
    monkeypatch: pytest.MonkeyPatch, cores: int, device: str
) -> None:
    started: list[str] = []
    start = lambda session: started.append(session.settings["OMP_NUM_THREADS"])  # noqa: E731
    monkeypatch.setattr(Session, "start", start)
    monkeypatch.setattr(invariance, "usable_cores", lambda: cores)
    threaded = ThreadedTargets(1.0)
    threaded.begin([Target(Session("numpy"), "numpy", "2", device, {}, "none")])
    threaded.close()
    assert sorted(started) == {3: ["1", "2"], 2: [] if device == "cpu" else ["2"], 1: []}[cores]


@pytest.mark.parametrize(
    ("op", "direction"), [("sin", "forward"), ("matmul", "forward"), ("matmul", "backward")]
)
def test_a_kernel_that_depends_on_nothing_holds_everything(op: str, direction: Direction) -> None:
    records = properties_of("nothing", op, direction)
    assert all(record["holds"] is True for record in records.values())
    assert all(record["different"] == 0 < record["elements"] for record in records.values())
    assert all(record["case"] is None for record in records.values())


@pytest.mark.parametrize(
    ("fault", "broken"),
    [
        ("run_to_run", {"run_to_run", "position", "batch", "threads"}),
        ("position", {"position", "batch"}),
        ("batch", {"batch"}),
        ("threads", {"threads"}),
    ],
)
def test_a_planted_dependence_is_named(fault: str, broken: set[str]) -> None:
    """A kernel that differs from run to run may seem to depend on anything."""
    records = properties_of(fault)
    violated = {name for name, record in records.items() if not record["holds"]}
    assert fault in violated
    assert violated <= broken
    assert 0 < records[fault]["different"] <= records[fault]["elements"]
    assert records[fault]["case"].startswith("sin/")
    assert records[fault]["case"].endswith(": y")


def test_a_batch_that_changes_a_matmul_is_named() -> None:
    records = properties_of("batch", "matmul")
    assert not records["batch"]["holds"]
    assert records["batch"]["different"] == records["batch"]["elements"] == 37 * 24  # every row
    assert records["position"]["holds"]


def test_a_kernel_that_settles_after_some_calls_is_named() -> None:
    """Also where the interpreter that is measured has settled long before."""
    unit = Unit(registry.get("sin"), None, "float32", "forward")
    first, *_ = invariance_of(unit, Kernel("first calls", calls=100))
    assert first["property"] == "run_to_run"
    assert not first["holds"]
    assert first["case"] == "the first calls in an interpreter: y"
    assert 0 < first["different"] < first["elements"]


def test_an_emulated_target_is_asked_in_one_interpreter() -> None:
    unit = Unit(registry.get("sin"), None, "float32", "forward")
    target = replace(target_of_kernel(Kernel("first calls")), emulated=True)
    with Dispatcher([target]) as dispatcher:  # `ThreadedTargets` would start two more
        records = ask_invariance(unit, dispatcher, cast(ThreadedTargets, None)).records()
    held = {record["property"]: (record["status"], record["holds"]) for record in records}
    assert held["run_to_run"][0] == held["position"][0] == held["batch"][0] == "ok"
    assert held["threads"] == ("unsupported", None)


@pytest.mark.parametrize(("fault", "status"), [("refuses", "error"), ("dies", "killed")])
def test_a_framework_without_answers_has_a_status_and_no_property(fault: str, status: str) -> None:
    records = properties_of(fault)
    for name in ("run_to_run", "position", "batch"):
        assert records[name]["holds"] is None
        assert (records[name]["status"], records[name]["reason"]) == (status, "planted")


class Slowly(Kernel):
    """Needs 11 s for more than 500 elements, it says."""

    largest = 0

    def run(self, op: str, direction: str, inputs: Mapping[str, Array], *rest: Any,
            **more: Any) -> Reply:  # fmt: skip
        reply = super().run(op, direction, inputs, *rest, **more)
        size = inputs["x"].size
        self.largest = max(self.largest, size)
        return replace(reply, seconds=11.0 if size > 500 else 0.1)


def test_a_case_that_took_the_target_long_is_not_asked_again() -> None:
    unit = Unit(registry.get("sin"), None, "float32", "forward")
    target = target_of_kernel(Slowly("nothing"))
    with Dispatcher([target]) as dispatcher:
        target.run("sin", "forward", {"x": np.ones(501, np.float32)}, {})
        cast(Slowly, target.session).largest = 0
        records = ask_invariance(unit, dispatcher, Threaded(1.0)).records()
        assert cast(Slowly, target.session).largest <= 500
        by_property = {record["property"]: record for record in records}
        assert by_property["run_to_run"]["elements"] > 0

        least = TargetQuestion.of("sin", "forward", {"x": np.ones(0, "f4")}, {})
        target.unanswered.slow.append((least, Reply("ok", seconds=0.0)))
        records = ask_invariance(unit, dispatcher, Threaded(1.0)).records()
    assert {record["status"] for record in records} == {"timeout"}

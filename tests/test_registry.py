"""Every op is complete: its record, its cases, and its place in each adapter."""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.frameworks import catalog
from refkernels.frameworks.adapters import ops_of
from refkernels.frameworks.catalog import Framework
from refkernels.op import DIRECTIONS, DTYPES, Case, Op
from refkernels.runs.measurement.invariance import REGIME

OPS = registry.ops()
NO_ROWS = {  # an element takes whole arrays
    *("batch_norm", "lamb", "adafactor", "muon", "soap", "clip_by_global_norm", "clip_by_norm"),
    *("load_balancing_loss", "router_z_loss", "spectral_norm"),
}
each = pytest.mark.parametrize("op", OPS.values(), ids=OPS)


def lacking(ops: Iterable[str], frameworks: tuple[Framework, ...]) -> list[str]:
    """The ops that no adapter calls."""
    called = {name for f in frameworks for name, why in ops_of(f.adapter).items() if why is None}
    return [name for name in ops if name not in called]


def test_an_adapter_calls_every_op_and_no_other() -> None:
    missing = lacking(OPS, catalog.BUILTIN)
    assert not missing, f"a line in OPS of an adapter calls none of {', '.join(missing)}"
    assert len(catalog.BUILTIN) == 9
    for framework in catalog.BUILTIN:
        assert set(ops_of(framework.adapter)) <= set(OPS), framework.name


def test_an_op_that_no_adapter_calls_is_named() -> None:
    (torch,) = [framework for framework in catalog.BUILTIN if framework.name == "torch"]
    assert lacking(["lamb", "sin", "no_such_op"], (torch,)) == ["lamb", "no_such_op"]
    assert "scaled_matmul" not in lacking(OPS, catalog.BUILTIN)


def test_an_unknown_op_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no op 'sine': did you mean 'sin'\? It is one of \d+; `"):
        registry.get("sine")
    with pytest.raises(TypeError, match="Give an op's name, not a list"):
        registry.get(["sin"])  # type: ignore[arg-type]


@each
def test_the_names_of_a_record_fit_together(op: Op) -> None:
    assert op.inputs
    assert op.cotangent == f"d{op.outputs[0]}"
    assert set(op.differentiated) <= set(op.inputs) - set(op.kinds)
    assert op.gradients == tuple(f"d{name}" for name in op.differentiated)
    none = op.outputs[0] in ("param", "clipped") or op.any_format
    assert op.gradients or none  # steps, clipping, products of narrow operands
    assert set(op.optional) < set(op.inputs)
    assert op.row_inputs or op.name in NO_ROWS
    assert set(op.row_inputs) <= set(op.inputs)
    assert set(op.row_gradients) == {
        f"d{name}" for name in op.row_inputs if name in op.differentiated
    }
    assert not set(op.params) & {*op.inputs, op.cotangent, "format", "certify"}
    assert (op.limit is None) == (not op.limit_source)
    if op.elementwise:
        for direction in op.directions:
            inputs = {
                name: np.full(
                    2, 0.5, {"bool": bool, "int": int}.get(op.kinds.get(name, ""), np.float32)
                )
                for name in op.takes(direction)
            }
            forms = op.forms(direction, inputs, {}, formats.BINARY32)
            assert bool(forms) == (op.limit is None or direction == "backward")
    for invariant in op.invariants:
        assert invariant.output in op.names(invariant.direction)
        assert invariant.name
        assert invariant.statement
    names = [(i.name, i.direction, i.output) for i in op.invariants]
    assert len(names) == len(set(names))


@each
def test_case_names_are_unique_and_tell_op_regime_parameters_and_seed(op: Op) -> None:
    cases = op.cases()
    names = [case.name for case in cases]
    assert len(names) == len(set(names)) >= 4
    assert len({case.regime for case in cases}) >= 4
    for case in cases:
        assert case.op == op.name
        assert case.name.startswith(f"{op.name}/{case.regime}[")
        assert case.name.endswith(f"seed={case.seed}]")
        assert all(f"{key}=" in case.name for key in case.parameters)
        assert set(case.dtypes) <= set(DTYPES)
        assert {"float32", "float64"} & set(case.dtypes)
        assert set(case.directions) <= set(DIRECTIONS)
        assert case.directions


def built(op: Op) -> Iterator[tuple[Case, str, dict[str, npt.NDArray[Any]], dict[str, Any]]]:
    for case in op.cases():
        for dtype in case.dtypes:
            yield case, dtype, *case.build(dtype)


@each
def test_every_case_builds_the_declared_inputs_in_all_its_dtypes(op: Op) -> None:
    required = {*op.inputs} - {*op.optional}
    count = 0
    for case, dtype, inputs, params in built(op):
        assert required <= set(inputs) <= {*op.inputs, op.cotangent}, case.name
        if "backward" in case.directions:
            assert op.cotangent in inputs, case.name
        floats = {a.dtype for name, a in inputs.items() if name not in op.kinds}
        assert floats == {formats.get(dtype).dtype} or not floats, case.name
        assert set(params) <= set(op.params), case.name
        count += 1
    assert count >= 16  # at least four regimes in four dtypes


@each
def test_a_case_is_the_same_whenever_it_is_built(op: Op) -> None:
    for case in op.cases():
        (first, params), (second, again) = case.build(case.dtypes[-1]), case.build(case.dtypes[-1])
        assert params == again
        assert list(first) == list(second)
        for name in first:
            assert first[name].tobytes() == second[name].tobytes(), f"{case.name}: {name}"


@each
def test_the_invariance_case_has_rows_that_stand_alone(op: Op) -> None:
    """A row moved or asked alone has the same exact answer: what invariance compares is the
    framework's own doing."""
    if op.name in NO_ROWS:
        pytest.skip(f"{op.name} takes its arrays as a whole")
    (case,) = [case for case in op.cases() if case.regime == REGIME]
    assert set(case.dtypes) == set(DTYPES)
    inputs, params = case.build("float32")
    rows = len(inputs[op.row_inputs[0]])
    assert rows % 2 == 1  # leaves a remainder in every vector width
    moving = {*op.row_inputs, op.cotangent}
    for direction in op.directions:
        arrays = {name: inputs[name] for name in op.takes(direction) if name in inputs}
        last = {name: a[-1:] if name in moving else a for name, a in arrays.items()}
        whole, alone = (op.evaluate(direction, q, params) for q in (arrays, last))
        for name in op.outputs if direction == "forward" else op.row_gradients:
            if name not in whole:  # the new value of a state that is not there
                continue
            rounded, _ = whole[name].round(formats.BINARY32)
            rounded_alone, _ = alone[name].round(formats.BINARY32)
            assert np.array_equal(rounded[-1:], rounded_alone), name


NAMESAKES = [name for name in OPS if f"{name}_ref" in registry.families()]
_LOADED = f"""
import sys
from refkernels import registry
for name in {NAMESAKES}:
    assert registry.get(name).name == name
    assert "refkernels.schedule_ref" not in sys.modules, name
"""


def test_an_op_of_its_familys_name_is_found_without_all_families() -> None:
    """schedule_ref: a family that no oracle imports."""
    assert {"layernorm", "matmul", "softmax"} <= set(NAMESAKES)
    done = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

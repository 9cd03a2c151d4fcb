"""One question is put to its oracle once, and everything else follows from that answer."""

import functools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hunting import one_in

from refkernels import registry
from refkernels.arithmetic import formats, tiers
from refkernels.arithmetic.formats import Format
from refkernels.layernorm_ref import oracle as layernorm
from refkernels.matmul_ref import oracle as matmul
from refkernels.op import DIRECTIONS, DTYPES, Direction, Op
from refkernels.truth import Truth, holds

OPS = tuple(registry.ops().values())
WAYS = [(op, direction) for op in OPS for direction in op.directions]
Arrays = dict[str, npt.NDArray[Any]]


@functools.cache
def question(name: str, direction: Direction, dtype: str) -> tuple[Arrays, dict[str, Any]]:
    """The first of the op's ordinary cases: small, finite, without special values."""
    op = registry.get(name)
    for case in op.cases():
        if dtype not in case.dtypes or direction not in case.directions:
            continue
        arrays, params = case.build(dtype)
        inputs = {name: arrays[name] for name in op.takes(direction) if name in arrays}
        size = sum(array.size for array in inputs.values())
        if 64 <= size <= 1 << 14 and all(np.isfinite(values).all() for values in inputs.values()):
            return inputs, params
    raise AssertionError(f"{name} has no ordinary {direction} case in {dtype}")


def turns(op: Op, direction: Direction, dtypes: Sequence[str]) -> list[str]:
    """A format for each pass of each op in turn, all in a hunt."""
    turn = WAYS.index((op, direction)) % len(dtypes)
    return one_in(len(dtypes), (*dtypes[turn:], *dtypes[:turn]))


def everything(truth: Truth) -> None:
    names = set(truth.reference)  # a state that is not given has no new one
    assert names
    assert names <= set(truth.op.names(truth.direction))
    for part in (truth.bound(), truth.condition, truth.plain()):
        assert set(part) == names


@pytest.mark.parametrize(("op", "direction"), WAYS, ids=lambda value: getattr(value, "name", value))
def test_the_oracle_answers_every_element_once(
    op: Op, direction: Direction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted by what the tiers report that they answered, to themselves or not."""
    answered: Counter[str] = Counter()
    monkeypatch.setattr(tiers, "answered", lambda tier, n: answered.update({tier: n}))
    for dtype in turns(op, direction, ("bfloat16", "float32", "float64")):
        inputs, params = question(op.name, direction, dtype)
        truth = Truth(op, direction, inputs, params, formats.get(dtype))
        answered.clear()
        everything(truth)
        once = sum(enclosure.size for enclosure in truth.reference.values())
        besides = 0
        if op.elementwise and direction == "backward":
            # f(x), where frameworks form a slope from their own rounded y; and f'(x), where forms
            # leave the format's range, and for the plain algorithm
            besides = 2 * once
        if op.name == "layernorm":
            rows = math.prod(inputs["x"].shape[:-1])
            besides = inputs["x"].size + 2 * rows  # mean and rstd, in a pass of their own
        assert once <= answered.total() <= once + besides, f"{op.name} {direction} {dtype}"
        everything(truth)
        assert once <= answered.total() <= once + besides


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_layernorm_and_its_statistics_take_one_pass_each(
    direction: Direction, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = count(monkeypatch, layernorm, "solve", "statistics_of")
    for runs, dtype in enumerate(DTYPES, start=1):
        inputs, params = question("layernorm", direction, dtype)
        everything(Truth(registry.get("layernorm"), direction, inputs, params, formats.get(dtype)))
        assert passes == {"solve": runs, "statistics_of": runs}


@pytest.mark.parametrize("op", ["matmul", "linear"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_product_is_evaluated_once(
    op: str, direction: Direction, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = count(monkeypatch, matmul, "evaluate")
    for number, dtype in enumerate(DTYPES, start=1):
        record = registry.get(op)
        inputs, params = question(op, direction, dtype)
        everything(Truth(record, direction, inputs, params, formats.get(dtype)))
        assert runs.total() == number * len(record.names(direction))


def count(monkeypatch: pytest.MonkeyPatch, module: Any, *names: str) -> Counter[str]:
    """How often functions of a module are called from here on."""
    calls: Counter[str] = Counter()
    for name in names:
        original = getattr(module, name)

        def counted(*args: Any, original: Any = original, name: str = name, **named: Any) -> Any:
            calls.update([name])
            return original(*args, **named)

        monkeypatch.setattr(module, name, counted)
    return calls


@pytest.mark.parametrize(("op", "direction"), WAYS, ids=lambda value: getattr(value, "name", value))
def test_what_follows_from_the_answer_is_what_the_op_says_by_itself(
    op: Op, direction: Direction
) -> None:
    """Equal up to what a sharper answer changes: 2^-40 of a bound; of a condition number the three
    digits that a product's answer is asked for, where it cancels."""
    for dtype in turns(op, direction, DTYPES):
        inputs, params = question(op.name, direction, dtype)
        format = formats.get(dtype)
        truth = Truth(op, direction, inputs, params, format)
        alone = op.evaluate(direction, inputs, params, ("rounding", format))
        for name, exact in truth.reference.items():
            assert np.array_equal(exact.round(format)[0], alone[name].round(format)[0], True)
        named = op.bound(direction, inputs, params, format)  # infinite beyond the format's range
        bounds = truth.bound().items()
        same({n: np.where(np.isinf(named[n]), np.inf, b) for n, b in bounds}, named, 2.0**-40)
        same(truth.condition, op.condition(direction, inputs, params), 2.0**-8)
        for name, plain in op.plain(direction, inputs, params, format).items():
            assert plain.tobytes() == truth.plain()[name].tobytes()


def same(answer: Any, wanted: Any, tolerance: float) -> None:
    assert set(answer) == set(wanted)
    for name in answer:
        np.testing.assert_allclose(answer[name], wanted[name], rtol=tolerance, atol=0.0)


def test_nothing_is_computed_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    op = registry.get("layernorm")
    inputs, params = question("layernorm", "forward", "float32")
    passes = count(monkeypatch, layernorm, "solve", "statistics_of")
    truth = Truth(op, "forward", inputs, params, formats.BINARY32)
    assert not passes
    assert sum(truth.tiers.values()) == sum(
        enclosure.size for enclosure in truth.reference.values()
    )
    assert truth.seconds > 0.0
    assert passes.total() == 1


def test_another_formats_bound_asks_no_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    op = registry.get("layernorm")
    inputs, params = question("layernorm", "backward", "float32")
    passes = count(monkeypatch, layernorm, "solve", "statistics_of")
    truth = Truth(op, "backward", inputs, params, formats.BINARY32)
    wide, narrow = truth.bound(), truth.bound(formats.BFLOAT16)
    assert all(np.all(narrow[name] > wide[name]) for name in wide)
    assert truth.bound(formats.BFLOAT16) is narrow
    assert truth.plain(formats.BFLOAT16)["dx"].dtype == formats.BFLOAT16.dtype
    assert passes == {"solve": 1, "statistics_of": 1}


def test_no_part_of_a_truth_can_be_changed() -> None:
    op = registry.get("sin")
    truth = Truth(op, "forward", {"x": np.ones(3, np.float32)}, {}, formats.BINARY32)
    with pytest.raises(TypeError):
        truth.reference["y"] = truth.reference["y"]  # type: ignore[index]
    with pytest.raises(TypeError):
        truth.bound()["y"] = truth.bound()["y"]  # type: ignore[index]
    with pytest.raises(AttributeError):
        truth.format = formats.BINARY64  # type: ignore[misc]


def test_an_op_without_solvers_has_a_truth_too() -> None:
    op = registry.get("layernorm")
    inputs, params = question("layernorm", "backward", "float32")
    plain = Truth(replace(op, solvers={}), "backward", inputs, params, formats.BINARY32)
    shared = Truth(op, "backward", inputs, params, formats.BINARY32)
    everything(plain)
    for name, bound in plain.bound().items():
        np.testing.assert_allclose(shared.bound()[name], bound, rtol=2.0**-40)
    assert dict(plain.tiers) == dict(shared.tiers)


@pytest.mark.parametrize(
    ("format", "dtype", "held"),
    [
        (formats.BINARY32, "float16", True),
        (formats.BINARY32, "bfloat16", True),
        (formats.BINARY16, "bfloat16", False),
        (formats.BFLOAT16, "float16", False),
        (formats.BINARY32, "float64", False),
    ],
)
def test_a_format_holds_another_or_does_not(format: Format, dtype: str, held: bool) -> None:
    array = np.ones(2, formats.get(dtype).storage)
    assert holds(format, {"x": array, "index": np.arange(2)}) is held
    x = np.full(3, math.pi).astype(array.dtype)
    truth = Truth(registry.get("sin"), "forward", {"x": x}, {}, format)
    alone = registry.get("sin").bound("forward", {"x": x}, {}, format)["y"]
    extra = 0.0 if held else format.min_subnormal / 2.0
    np.testing.assert_array_equal(truth.bound()["y"], alone + extra)
    assert truth.plain()["y"].dtype == format.dtype

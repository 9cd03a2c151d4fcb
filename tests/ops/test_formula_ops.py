"""One suite that every op that is a formula has to pass."""

from __future__ import annotations

from typing import Any

import flint
import numpy as np
import pytest
from formula_draws import draw
from formula_suite import DEFINED, OPS, QUESTIONS, each_way, first, questions
from hunting import HUNT
from numba_threads import each_number_of_threads

from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.contexts.arb import Arb
from refkernels.contexts.objects import data
from refkernels.contexts.working import RoundedArithmetic
from refkernels.op import Direction, Op
from refkernels.ops import readings
from refkernels.ops.formula import derived, several
from refkernels.ops.readings import Reading

CHOOSING = ("soft_cross_entropy", "adamw_8bit", "table_quantize")
NOT_OF_NOTHING = ("mean", "var", "std", "max", "argmax", "logsumexp")
BY_DEFINITION = ("padding_idx",)  # whose row gets no gradient, whatever the forward pass does
BITS = 300
ORDERS = ("sequential", "pairwise", "random", "reversed")
Balls = dict[str, Any]


def in_arb(
    op: Op, direction: Direction, formula: Any, inputs: Any, params: Any, xp: Arb | None = None
) -> Balls:
    """A formula read whole in Arb, by output, in its users' shape."""
    assert op.definition is not None
    question = op.definition.question(direction, inputs, params)
    names = op.definition.names(direction, question)
    with xp or Arb(BITS) as context:
        arguments = Reading(context, lambda value: ()).arguments(question.arrays, question.params)
        values = dict(zip(question.shapes, several(formula(context, **arguments)), strict=True))
        return {
            n: question.restore(n, np.broadcast_to(data(values[n]), question.shapes[n]))
            for n in names
        }


def overlapping(left: Balls, right: Balls) -> int:
    """How many finite balls were compared; they overlap."""
    compared = 0
    for name in left:
        pairs = zip(left[name].reshape(-1), right[name].reshape(-1), strict=True)
        for a, b in pairs:
            assert a.overlaps(b)
            compared += a.is_finite() and b.is_finite()
    return compared


def ends(enclosure: Enclosure, place: Any) -> tuple[Any, Any]:
    """As balls: a fraction of e^-1e17 has 1e17 digits."""
    hi, lo, radius = (
        flint.arb(float(part[place])) for part in (enclosure.hi, enclosure.lo, enclosure.radius)
    )
    unit = flint.arb(2) ** int(enclosure.scale[place])
    return (hi + lo - radius) * unit, (hi + lo + radius) * unit


def holds(enclosure: Enclosure, balls: Any) -> int:
    """How many elements an Enclosure has in common with finite balls of Arb: all of them."""
    compared = 0
    for place in np.ndindex(enclosure.shape):
        ball = balls[place]
        if not ball.is_finite() or not np.isfinite(enclosure.radius[place]):
            continue
        with flint.ctx.workprec(2 * BITS):
            low, high = ends(enclosure, place)
            assert not ball < low  # certainly, that is
            assert not ball > high
        compared += 1
    return compared


@each_way
def test_the_answer_holds_the_value_of_the_definition(name: str, direction: Direction) -> None:
    """Of every tier: no question, tight ones and correct roundings."""
    compared = 0
    for dtype, inputs, params in questions(name, direction, 1):
        exact = in_arb(OPS[name], direction, first(OPS[name], direction), inputs, params)
        for question in ("enclosure", ("ulp", "float64", 2.0**-20), ("rounding", dtype)):
            answer = OPS[name].evaluate(direction, inputs, params, question)
            assert set(answer) == set(exact)
            compared += sum(holds(answer[output], exact[output]) for output in answer)
    assert compared > QUESTIONS


@each_way
def test_all_forms_are_the_same_function(name: str, direction: Direction) -> None:
    op, compared = OPS[name], 0
    assert op.definition is not None
    way = op.definition.of(direction)
    for _, inputs, params in questions(name, direction, 2):
        exact = in_arb(op, direction, way.truth, inputs, params)
        for formula in way.forms.values():
            compared += overlapping(exact, in_arb(op, direction, formula, inputs, params))
    assert compared >= (QUESTIONS // 2 if scalar(name, direction) else QUESTIONS)


@pytest.mark.parametrize("name", [name for name, way in DEFINED if way == "backward"])
def test_the_backward_pass_is_that_of_the_forward_pass(name: str) -> None:
    op, compared = OPS[name], 0
    assert op.definition is not None
    assert op.definition.backward is not None
    gradient = derived(
        op.definition.forward.truth,
        op.outputs,
        {op.cotangent: op.cotangent[1:]},
        tuple(slope[1:] for slope in op.gradients),
    )
    for _, inputs, drawn in questions(name, "backward", 3):
        params = {param: value for param, value in drawn.items() if param not in BY_DEFINITION}
        exact = in_arb(op, "backward", op.definition.backward.truth, inputs, params)
        compared += overlapping(exact, in_arb(op, "backward", gradient, inputs, params))
    assert compared >= QUESTIONS


class _ShiftedPivot(Arb):
    """Another pivot, on which no result may depend; `asked` counts the pivots."""

    asked = 0

    def pivot(self, a: Any, axis: int = -1) -> Any:
        self.asked += 1
        return super().pivot(a, axis) + 1


@each_way
def test_no_result_depends_on_a_pivot(name: str, direction: Direction) -> None:
    op, asked, compared = OPS[name], 0, 0
    assert op.definition is not None
    for _, inputs, params in questions(name, direction, 4):
        for formula in op.definition.of(direction).forms.values():
            context = _ShiftedPivot(BITS)
            shifted = in_arb(op, direction, formula, inputs, params, context)
            if context.asked:
                exact = in_arb(op, direction, formula, inputs, params)
                compared += overlapping(exact, shifted)
                asked += 1
    assert compared >= asked // 2


@each_way
def test_every_form_keeps_to_the_bound(name: str, direction: Direction) -> None:
    """In every format, order of summation, and with FMA. A run tries two orders in each format, a
    hunt all four."""
    op, compared = OPS[name], 0
    assert op.definition is not None
    for number, (dtype, inputs, params) in enumerate(questions(name, direction, 5)):
        exact = op.evaluate(direction, inputs, params, ("ulp", "float64", 2.0**-10))
        bound = op.bound(direction, inputs, params, dtype)
        for formula in op.definition.of(direction).forms.values():
            for order in ORDERS if HUNT > 1 else ORDERS[number % 2 :: 2]:
                how = {"order": order, "fma": order != "pairwise"}
                answer = op.definition.computed(direction, formula, inputs, params, dtype, **how)
                for output, got in answer.items():
                    compared += kept(got, exact[output], bound[output])
    assert compared > QUESTIONS


def kept(got: Any, exact: Enclosure, bound: Any) -> int:
    """How many elements keep to their bound: all whose bound says something."""
    with np.errstate(all="ignore"):
        wide = got.astype(np.float64)
        finite = np.isfinite(bound) & np.isfinite(exact.radius) & (exact.scale == 0)
        off = np.abs((wide - exact.hi) - exact.lo) - exact.radius
        slack = np.abs(wide - exact.hi) * 2.0**-50
    assert np.all(np.isfinite(wide[finite]))
    assert np.all(off[finite] - slack[finite] <= bound[finite])
    return int(finite.sum())


@each_way
def test_an_element_depends_on_its_cone_alone(name: str, direction: Direction) -> None:
    op, compared = OPS[name], 0
    assert op.definition is not None
    rng = np.random.default_rng(6)
    for dtype, inputs, params in questions(name, direction, 6, ("float32",), layout=False):
        exact = in_arb(op, direction, first(op, direction), inputs, params)
        drawn = draw_like(rng, inputs)
        for output, balls in exact.items():
            if not balls.size:
                continue
            place = tuple(int(rng.integers(n)) for n in balls.shape)
            mixed = {key: array.copy() for key, array in drawn.items()}
            flat = op.definition.dependencies(direction, output, place, inputs, params)
            for key, array in inputs.items():
                where = flat.get(key, np.arange(array.size))  # all of whole numbers
                np.put(mixed[key], where, array.take(where))
            again = in_arb(op, direction, first(op, direction), mixed, params)
            assert balls[place].overlaps(again[output][place])
            compared += 1
        assert dtype == "float32"
    assert compared >= QUESTIONS


def scalar(name: str, direction: Direction) -> bool:
    """Whether all that the op gives by default is one number: the mean of all losses."""
    return direction == "forward" and OPS[name].outputs == ("loss",)


def draw_like(rng: np.random.Generator, inputs: Any) -> Any:
    return {
        name: rng.standard_normal(array.shape).astype(array.dtype)
        if array.dtype.kind != "i" and name != "draws"  # which are refused beyond [0, 1)
        else rng.permutation(array.reshape(-1)).reshape(array.shape)
        for name, array in inputs.items()
    }


@each_way
def test_special_values_are_the_definition_s(name: str, direction: Direction) -> None:
    """Where a row holds NaN or +inf; the other rows keep their certified values."""
    op, checked = OPS[name], 0
    rng = np.random.default_rng(7)
    assert op.definition is not None
    for asked in range(5 * QUESTIONS):
        if asked >= QUESTIONS and checked:
            break
        inputs = draw(op, direction, rng, "float32", "normal")
        takes = op.definition.of(direction).signature.takes.values()
        floats = [
            argument.name
            for argument in takes
            if argument.name in inputs and formats.is_one(inputs[argument.name].dtype)
            if not argument.name.endswith(("draws", "table"))  # of which NaN is none
        ]
        if not floats:
            continue
        chosen = str(rng.choice(floats))
        spoilt = {key: array.copy() for key, array in inputs.items()}
        at = tuple(int(rng.integers(n)) for n in spoilt[chosen].shape)
        spoilt[chosen][at] = rng.choice([np.nan, np.inf])
        answer = op.evaluate(direction, spoilt, {}, ("rounding", "float32"))
        question = op.definition.question(direction, spoilt, {})
        reading = readings.working(RoundedArithmetic("float64"))
        ieee = readings.read(
            first(op, direction), reading, question, op.definition.names(direction, question)
        )
        for output, enclosure in answer.items():
            values = question.restore(output, ieee[output][0])
            # A row of LayerNorm's dx is NaN as a whole where an infinity enters its sums.
            special = (
                np.isnan(values) if output == "dx" and name == "layernorm" else ~np.isfinite(values)
            )
            np.testing.assert_array_equal(np.asarray(enclosure)[special], values[special])
            assert np.all(enclosure.radius[special] == 0.0)
            checked += int(special.sum())
    assert checked > 0 or name in ("quantize", "argmax")  # whose integers have no NaN


@each_way
@pytest.mark.parametrize("sizes", [((0,), 3), ((2,), 0), ((0, 2), 0)], ids=str)
def test_empty_inputs_have_empty_answers(
    name: str, direction: Direction, sizes: tuple[tuple[int, ...], int]
) -> None:
    op = OPS[name]
    inputs = draw(op, direction, np.random.default_rng(3), "float32", "normal", sizes)
    assert op.definition is not None
    nothing = sizes[0] == (2,) or name not in ("embedding", "grouped_matmul")
    indexed = "int" in op.kinds.values() and "tensor" not in op.kinds
    indexed &= name not in (
        "attention", "scaled_attention", "combine_experts", "rotary", "quantize", "dequantize",
        "scaled_matmul",
    )  # fmt: skip  # which count, or place
    chooses = not sizes[1] and nothing and (indexed or name in CHOOSING)
    largest = name in NOT_OF_NOTHING and direction == "forward" and sizes == ((2,), 0)
    largest |= name in ("layernorm", "rfft", "irfft") and not sizes[1]
    if chooses or largest:
        with pytest.raises(ValueError, match="has"):  # there is none to choose
            op.evaluate(direction, inputs, {})
        return
    shapes = {n: array.shape for n, array in op.plain(direction, inputs, {}, "float32").items()}
    assert len(shapes) > 0
    for answer in (
        op.evaluate(direction, inputs, {}, ("rounding", "float32")),
        op.bound(direction, inputs, {}, "float32"),
        op.condition(direction, inputs, {}),
    ):
        assert {n: array.shape for n, array in answer.items()} == shapes


@each_way
def test_the_number_of_threads_changes_nothing(name: str, direction: Direction) -> None:
    op, rng = OPS[name], np.random.default_rng(9)
    assert op.definition is not None
    takes = op.definition.of(direction).signature.takes.values()
    letters = {letter for argument in takes for letter in argument.own} or {""}
    length = round(500 ** (1 / len(letters)))
    inputs = draw(op, direction, rng, "float32", "normal", ((150,), length))
    assert max(array.size for array in inputs.values()) > 20
    certify = ("rounding", "float32")
    answers = [op.evaluate(direction, inputs, {}, certify) for _ in each_number_of_threads()]
    for output, enclosure in answers[0].items():
        threaded = answers[1][output]
        for part in ("hi", "lo", "radius", "scale"):
            np.testing.assert_array_equal(getattr(enclosure, part), getattr(threaded, part))
    assert answers[0]
    if not scalar(name, direction):
        assert max(enclosure.size for enclosure in answers[0].values()) > 20

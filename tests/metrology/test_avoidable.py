"""Avoidable errors: permitted by the op's named forms, and far beyond what one of them makes."""

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hunting import HUNT, one_in

import refkernels
from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import BINARY32, Format
from refkernels.metrology import outputs
from refkernels.metrology.avoidable import certain_errors
from refkernels.metrology.judgement import judge
from refkernels.metrology.ulp_errors import ulp
from refkernels.op import Direction, Op
from refkernels.reporting.words.forms import FORMS, avoidable, form_name
from refkernels.testing import assert_kernel
from refkernels.truth import Truth

Arrays = dict[str, npt.NDArray[Any]]
Question = tuple[str, Direction, Arrays, dict[str, Any], Arrays]


def log_softmax(x: npt.NDArray[np.float32], apart: bool) -> npt.NDArray[np.float32]:
    m = x.max(axis=-1, keepdims=True)
    log = np.log(np.exp(x - m).sum(axis=-1, keepdims=True))
    return (x - m) - log if apart else x - (m + log)


def cross_entropy(apart: bool) -> Question:
    """Logits that share a large offset."""
    rng = np.random.default_rng(1)
    x = (rng.standard_normal((32, 7)) + 1e4).astype(np.float32)
    target = rng.integers(0, 7, 32)
    loss = -np.take_along_axis(log_softmax(x, apart), target[:, None], -1)[:, 0]
    return "cross_entropy", "forward", {"x": x, "target": target}, {"reduction": "none"}, {
        "loss": loss
    }  # fmt: skip


def its_gradient(stored: bool) -> Question:
    """Confident rows in bfloat16; the softmax stored in bfloat16 before 1 is subtracted, or not."""
    rng = np.random.default_rng(2)
    target = rng.integers(0, 16, 32)
    x = rng.standard_normal((32, 16))
    x[np.arange(32), target] += rng.uniform(8, 12, 32)
    x = x.astype(ml_dtypes.bfloat16)
    p = np.exp(log_softmax(x.astype(np.float32), apart=True))
    p = p.astype(ml_dtypes.bfloat16).astype(np.float32) if stored else p
    p[np.arange(32), target] -= 1
    dx = (p / 32).astype(ml_dtypes.bfloat16)
    inputs = {"dloss": np.float32(1), "x": x, "target": target}
    return "cross_entropy", "backward", inputs, {}, {"dx": dx}


def batch_norm(centred: bool) -> Question:
    """A mean that is large beside the deviation."""
    mean, var = np.full(3, 1e8, np.float32), np.full(3, 1e-4, np.float32)
    x = np.full((1, 3, 1, 2), 1e8, np.float32)
    scale = (1 / np.sqrt(var + np.float32(1e-5)))[:, None, None]
    m = mean[:, None, None]
    product = x.astype(np.float64) * scale  # an FMA: only m's product is rounded
    y = (x - m) * scale if centred else (product - m * scale).astype(np.float32)
    inputs = {"x": x, "running_mean": mean, "running_var": var}
    return "batch_norm", "forward", inputs, {"training": False}, {"y": y}


EXAMPLES = {
    "cross entropy": (cross_entropy, "logsumexp", "shifted"),
    "its gradient": (its_gradient, "by_log_softmax", "fused"),
    "batch norm": (batch_norm, "folded", "centred"),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_form_that_loses_accuracy_is_told_with_the_one_that_keeps_it(name: str) -> None:
    kernel, form, better = EXAMPLES[name]
    op, direction, inputs, params, answers = kernel(name == "its gradient")
    explanation = refkernels.explain(op, inputs, answers, params, direction)
    assert explanation.verdict in ("rounding", "ill_conditioned")  # some gradients are all wrong
    assert "avoidable" in explanation.flags
    (output,) = answers
    measured = explanation.to_dict()["evidence"]["outputs"][output]
    assert measured["bound"]["form"] == form
    assert measured["bound"]["better"]["form"] == better
    for lang, clause, all_well in (
        ("en", "avoidable: ", "Nothing is wrong"),
        ("zh", "可避免：", "无需修复"),
    ):
        page = explanation.to_markdown(lang)
        assert clause in page
        assert FORMS[better][lang] in page
        assert all_well not in page
    assert_kernel(op, inputs, answers, params, direction, max_over_plain=np.inf)
    with pytest.raises(AssertionError, match=rf"avoidable: .* the form “{better}” \("):
        assert_kernel(op, inputs, answers, params, direction, fail_on_avoidable=True)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_other_form_passes(name: str) -> None:
    op, direction, inputs, params, answers = EXAMPLES[name][0](name != "its gradient")
    explanation = refkernels.explain(op, inputs, answers, params, direction)
    assert explanation.verdict in ("rounding", "correctly_rounded")
    assert "avoidable" not in explanation.flags
    assert_kernel(op, inputs, answers, params, direction, fail_on_avoidable=True)


def test_what_is_no_truth_value_is_refused() -> None:
    x = np.ones(3, np.float32)
    with pytest.raises(TypeError, match="fail_on_avoidable is of type str, not True or False"):
        assert_kernel("sin", {"x": x}, np.sin(x), fail_on_avoidable="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_kernel_is_compared_with_forms_that_use_what_it_is_given(dtype: str) -> None:
    """log_softmax's gradient by the saved y, which errs by |y| roundings: it cannot do better."""
    format = formats.get(dtype)
    rng = np.random.default_rng(3)
    x = formats.round_to(rng.normal(0.0, 30.0, (8, 40)), format)
    dy = formats.round_to(np.eye(40)[rng.integers(0, 40, 8)], format)  # a label's
    wide, above = x.astype(np.float32), dy.astype(np.float32)
    y = formats.round_to(log_softmax(wide, apart=True).astype(np.float64), format)
    total = above.sum(axis=-1, keepdims=True)
    dx = formats.round_to((above - np.exp(y.astype(np.float32)) * total).astype(np.float64), format)
    truth = outputs.ask(
        registry.get("log_softmax"), "backward", {"dy": dy, "x": x}, {}, {"dx": format}
    ).truths["dx"]
    limits, _ = truth.op.attainable("backward", truth.inputs, {}, format)
    exact = truth.reference["dx"]
    errors = certain_errors(dx, exact)
    from_inputs = np.minimum.reduce([bounds["dx"] for bounds in limits.values()])
    beyond = (errors > 8 * from_inputs) & (errors > 8 * ulp(np.asarray(exact), format))
    record = judged(truth, "dx", dx)
    assert beyond.any() == (dtype == "bfloat16")  # so that it matters what the kernel is given
    assert record["verdict"] == "rounding"
    assert "avoidable" not in record["flags"]


# --- over the registry ------------------------------------------------------------------------


def judged(truth: Truth, output: str, got: npt.NDArray[Any]) -> dict[str, Any]:
    return judge(
        truth.op, truth.direction, output, got, truth.reference[output],
        bound=truth.bound()[output], inputs=truth.inputs, params=truth.params,
        attainable=lambda: truth.attainable(output),
    )  # fmt: skip


def questions(op: Op, direction: Direction, format: Format) -> list[tuple[Arrays, dict[str, Any]]]:
    """A small case of some regimes, of all in a hunt."""
    found = []
    for _, cases in itertools.groupby(op.cases(), key=lambda case: case.regime):
        for case in cases:
            if format.name not in case.dtypes or direction not in case.directions:
                continue
            arrays, params = case.build(format.name)
            inputs = {name: arrays[name] for name in op.takes(direction) if name in arrays}
            if sum(array.size for array in inputs.values()) <= 1024:
                found.append((inputs, params))
                break
    return found[:: max(len(found) // (3 * HUNT), 1)]


CHOICES = [
    (op.name, direction)
    for op in registry.ops().values()
    for direction in op.directions
    if op.definition is not None and len(op.definition.of(direction).forms) > 1
]
FORMATS = ("float32", "bfloat16")  # a run takes each choice in one of them
ASKED = [(*way, f) for k, way in enumerate(CHOICES) for f in FORMATS[:: (-1) ** (k + k // 2)]]


@pytest.mark.parametrize(("name", "direction", "dtype"), one_in(6, ASKED))
def test_the_form_that_is_called_better_is_better(
    name: str, direction: Direction, dtype: str
) -> None:
    """Computed without rounding to 16 bits on the way, it is nearer to the truth, 8 times at the
    least, wherever another form is said to err avoidably."""
    op, format = registry.get(name), formats.get(dtype)
    definition = op.definition
    assert definition is not None
    forms = definition.of(direction).forms
    asked = 0
    for inputs, params in questions(op, direction, format):
        truths: dict[tuple[str, Format], Truth] = {}
        for formula in forms.values():
            question = direction, formula, inputs, params, format
            for output, got in definition.computed(*question).items():
                asked += 1
                key = output, formats.of(got)
                if key not in truths:
                    answer = outputs.ask(op, direction, inputs, params, dict([key]))
                    truths[key] = answer.truths[output]
                record = judged(truths[key], output, got)
                if "avoidable" not in record["flags"]:
                    continue
                better = record["bound"]["better"]
                wide = definition.computed(
                    direction, forms[better["form"]], inputs, params, BINARY32
                )
                asked_again = outputs.ask(op, direction, inputs, params, {output: format})
                exact = asked_again.reference[output]
                own = certain_errors(got, exact)
                limit = asked_again.attainable(output)[0][better["form"]]
                with np.errstate(all="ignore"):
                    large = own > 8 * ulp(np.asarray(exact), format)
                    place = int(np.argmax(np.where(large, own / limit, -1.0)))
                rounded = formats.round_to(to_float64(wide[output]), format)
                other = certain_errors(rounded, exact).flat[place]
                assert other <= np.broadcast_to(limit, own.shape).flat[place]
                assert own.flat[place] > 8 * max(other, 0.0)
                assert FORMS[better["form"]]["en"] in str(avoidable(record, dtype))
    assert asked


def test_every_form_has_words_in_two_languages() -> None:
    named = set()
    for op in registry.ops().values():
        for direction in op.directions if op.definition else ():
            named |= set(op.definition.of(direction).forms)  # type: ignore[union-attr]
    assert set(FORMS) == named
    for form, words in FORMS.items():
        assert set(words) == {"en", "zh"}
        assert all(words.values())
        for lang in words:
            assert form in form_name(form, lang)
            assert words[lang] in form_name(form, lang)

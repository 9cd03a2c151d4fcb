"""An answer agrees with its explanation: every figure is in the evidence, no guess is proven."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import refkernels
from refkernels.diagnosis.casefile import CaseFile
from refkernels.diagnosis.explanation import Explanation
from refkernels.reporting.answer.facts import WORDS
from refkernels.reporting.answer.page import brief, markdown, summary
from refkernels.reporting.words.catalogues import LANGUAGES
from refkernels.reporting.words.causes import CAUSES
from refkernels.reporting.words.numerals import figure, ratio

Array = npt.NDArray[Any]
RNG = np.random.default_rng(11)
X = RNG.standard_normal((24, 40)).astype(np.float32)
WEIGHT = RNG.standard_normal((30, 40)).astype(np.float32)
BIAS = RNG.standard_normal(30).astype(np.float32)
LINEAR = {"x": X, "weight": WEIGHT, "bias": BIAS}
SEED = np.array([[-1.83965693, -1.82964566]], np.float32)


def sequential(first: bool) -> Array:
    """The products added in order, the bias first or last."""
    y = np.zeros((24, 30), np.float32) + (BIAS if first else np.float32(0))
    for k in range(40):
        y = y + X[:, k : k + 1] * WEIGHT[:, k]
    return y if first else y + BIAS


def layernorm(x: Array, eps: float) -> Array:
    centred = x - x.mean(axis=1, keepdims=True, dtype=np.float32)
    variance = np.mean(centred * centred, axis=1, keepdims=True, dtype=np.float32)
    return centred / np.sqrt(variance + np.float32(eps))


def naive(x: Array) -> Array:
    """One pass in float32: E[x^2] - E[x]^2."""
    mean = x.mean(axis=1, keepdims=True, dtype=np.float32)
    square = np.mean(x * x, axis=1, keepdims=True, dtype=np.float32)
    return (x - mean) / np.sqrt(np.maximum(square - mean * mean, 0) + np.float32(1e-5))


def noisy(x: Array) -> Array:
    """Wrong in no way that has a name."""
    noise = np.random.default_rng(5).standard_normal(x.shape).astype(np.float32)
    return layernorm(x, 1e-5) * (np.float32(1) + np.float32(1e-3) * noise)


@cache
def explained(kind: str) -> Explanation:
    """One explanation of each kind."""
    y = X @ WEIGHT.T + BIAS
    if kind == "rounding":
        return refkernels.explain("linear", LINEAR, {"y": y})
    if kind == "exact":
        return refkernels.explain("sqrt", {"x": np.abs(X)}, {"y": np.sqrt(np.abs(X))})
    if kind == "two kernels":
        outputs = {"early": {"y": sequential(True)}, "late": {"y": sequential(False)}}
        return refkernels.explain("linear", LINEAR, outputs)
    if kind == "equal kernels":
        return refkernels.explain("linear", LINEAR, {"a": {"y": y}, "b": {"y": y.copy()}})
    if kind == "matched":
        x = X * np.float32(0.01)
        return refkernels.explain("layernorm", {"x": x}, {"y": layernorm(x, 1e-3)}, {"eps": 1e-5})
    if kind == "naive":
        return refkernels.explain("layernorm", {"x": SEED}, {"y": naive(SEED)}, {"eps": 1e-5})
    if kind == "unexplained":
        return refkernels.explain("layernorm", {"x": X}, {"y": noisy(X)}, {"eps": 1e-5})
    if kind == "special":
        spoiled = y.copy()
        spoiled[3, 4] = np.nan
        return refkernels.explain("linear", LINEAR, {"y": spoiled})
    if kind == "impossible":
        cos = np.cos(X)
        cos[2, 3] = np.float32(-1.000004)
        return refkernels.explain("cos", {"x": X}, {"y": cos})
    if kind == "backward":
        dy = RNG.standard_normal((24, 30)).astype(np.float32)
        outputs = {"dx": dy @ WEIGHT, "dweight": dy.T @ X, "dbias": dy.sum(axis=0)}
        return refkernels.explain("linear", {"dy": dy, **LINEAR}, outputs, direction="backward")
    assert kind == "case"
    case = CaseFile(
        "layernorm", "forward", {"x": SEED}, {"torch": {"y": naive(SEED)}}, {"eps": 1e-5},
        {"torch": {"framework": "torch", "version": "1.9.0", "device": "cpu", "threads": 2}},
        {"torch": "-0.8428", "oneflow": "-0.8454"}, "https://example.org/1",
    )  # fmt: skip
    return case.explain()


KINDS = (
    "rounding", "exact", "two kernels", "equal kernels", "matched", "naive", "unexplained",
    "special", "impossible", "backward", "case",
)  # fmt: skip
kinds = pytest.mark.parametrize("kind", KINDS)
langs = pytest.mark.parametrize("lang", LANGUAGES)
NUMBER = re.compile(r"(?<![\w.])[−-]?(?:∞|\d+(?:,\d{3})*(?:\.\d+)?(?:e[+−-]?\d+)?)(?!\w)")


def forms(value: Any) -> Iterator[str]:
    """Every way in which a value of the evidence may be printed."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from NUMBER.findall(str(key))
            yield from forms(inner)
    elif isinstance(value, list | tuple):
        yield from (form for inner in value for form in forms(inner))
    elif isinstance(value, str):
        yield from NUMBER.findall(value)
        if value in ("inf", "nan"):
            yield figure(float(value))
    elif isinstance(value, int) and not isinstance(value, bool):
        yield from (f"{value:,}", str(value))
    elif isinstance(value, float):
        yield from (figure(value), ratio(value).lstrip("<>"), repr(value), str(value))


def unfenced(text: str) -> str:
    return re.sub(r"```python.*?```", "", text, flags=re.S)


@kinds
@langs
def test_every_number_is_in_the_evidence(kind: str, lang: str) -> None:
    explanation = explained(kind)
    words = [*WORDS[lang].values()]
    for cause in CAUSES.values():
        words += [cause[lang], cause["todo"][lang]]
    known = {*forms(explanation.to_dict()), *forms(words)}
    numbers = NUMBER.findall(unfenced(explanation.to_markdown(lang)))
    assert len(numbers) >= 5
    assert [number for number in numbers if number not in known] == []


@kinds
@langs
def test_nothing_is_called_proven_that_is_not(kind: str, lang: str) -> None:
    answer = explained(kind).to_dict()
    records = [*answer["kernels"].values()] or [answer]
    records += answer["differences"]
    confidences = {record["confidence"] for record in records}
    text = summary(answer, lang) + brief(answer, lang)
    for confidence in ("proven", "matched"):
        word = WORDS[lang][confidence]
        mentioned = any(mark in text for mark in (f"({word})", f"（{word}）", f"**{word}**"))
        assert mentioned == (confidence in confidences)


@kinds
@langs
def test_an_answer_is_a_sentence_and_short(kind: str, lang: str) -> None:
    explanation = explained(kind)
    sentence = summary(explanation.to_dict(), lang)
    assert "\n" not in sentence
    assert sentence.endswith("." if lang == "en" else "。")
    assert "{" not in sentence
    text = explanation.to_markdown(lang)
    assert text.count("<details>") == text.count("</details>") >= 1
    assert len(brief(explanation.to_dict(), lang)) < 3500
    assert text == explanation.to_markdown(lang)
    if lang == "en":
        assert explanation.summary == sentence
        assert re.search(r"[一-鿿]", unfenced(text)) is None


SAID = {
    "rounding": "This is rounding: every element of y is within the bound of the named float32 "
    "forms, sums in any order",
    "exact": "Nothing is wrong: every bit of y is that of the exact answer, rounded once",
    "two kernels": "because early starts its accumulator at the bias instead of adding the bias "
    "last (proven)",
    "equal kernels": "a and b agree in every bit; it is all rounding",
    "matched": "This is not rounding: an error of y is",
    "naive": "the kernel computes the variance as E[x²] - E[x]²",
    "unexplained": "it is unexplained: ",
    "special": "This is not rounding: in 1 of its elements y is NaN, infinite or finite where",
    "impossible": "This is not rounding: y has a value that mathematics forbids",
    "backward": "This is rounding: every element of ",
    "case": "torch is not rounding: ",
}


@pytest.mark.parametrize("kind", SAID)
def test_the_sentence_says_verdict_and_cause(kind: str) -> None:
    assert SAID[kind] in explained(kind).summary


def test_what_was_ruled_out_is_shown_where_nothing_fits() -> None:
    explanation = explained("unexplained")
    assert (explanation.cause, explanation.confidence) == (None, None)
    text = explanation.to_markdown()
    assert "**Unexplained**" in text
    assert "What was ruled out" in text
    assert "`fp16_inputs`" in text
    assert "Report it as a bug" in text


def test_the_script_of_your_own_kernel_leaves_room_for_its_call() -> None:
    (text,) = re.findall(r"```python\n(.*?)```", explained("unexplained").to_markdown(), re.S)
    with pytest.raises(NotImplementedError, match=r"return \{'y': \.\.\.\}"):
        exec(text, {})
    filled = re.sub("raise NotImplementedError.*", "return {'y': x}", text)
    printed: list[str] = []
    exec(filled, {"print": lambda *parts: printed.append(" ".join(map(str, parts)))})
    assert len(printed) == 1
    assert printed[0].split(" ")[0].startswith("y[")


def test_report_source_and_environment_are_shown() -> None:
    text = explained("case").to_markdown()
    assert "Reported: torch -0.8428, oneflow -0.8454" in text
    assert "Source: `https://example.org/1`" in text  # told, and no link
    assert "- torch: framework torch, version 1.9.0, device cpu, threads 2" in text
    assert f"refkernels {refkernels.__version__}" in text


def test_what_a_case_says_about_itself_is_neither_code_nor_html() -> None:
    environment = {
        "framework": "numpy",
        "settings": {"flag": "1\nimport os"},
        "device": "')\nimport os",
    }
    case = CaseFile(
        "sqrt", "forward", {"x": np.abs(X)}, {"numpy": {"y": np.sqrt(np.abs(X))}}, {},
        {"numpy": environment}, "<script>\n# title", "<script>\n# title",
    )  # fmt: skip
    text = case.explain().to_markdown()
    assert "Reported: &lt;script&gt; \\# title" in text
    assert "Source: `<script> # title`" in text
    assert text.count("<script>") == 1
    assert "\n# title" not in text
    assert "\nimport os" not in text


@langs
def test_two_orders_are_both_named(lang: str) -> None:
    late = np.zeros((24, 30), np.float32)
    for k in reversed(range(40)):
        late = late + X[:, k : k + 1] * WEIGHT[:, k]
    early = np.zeros((24, 30), np.float32)
    for k in range(40):
        early = early + X[:, k : k + 1] * WEIGHT[:, k]
    inputs = {"x": X, "weight": WEIGHT}
    explanation = refkernels.explain("linear", inputs, {"a": {"y": early}, "b": {"y": late}})
    names = {
        "en": ("“in sequence”", "“in sequence from the last to the first”"),
        "zh": ("“顺序累加”", "“从末项到首项顺序累加”"),
    }[lang]
    assert all(name in summary(explanation.to_dict(), lang) for name in names)


@langs
def test_models_that_cannot_be_distinguished_are_all_named(lang: str) -> None:
    outputs = {"oneflow": {"y": np.array([[-0.84543723, 0.84541708]], np.float32)}}
    text = refkernels.explain("layernorm", {"x": SEED}, outputs, {"eps": 1e-5}).to_markdown(lang)
    assert "“oneflow CPU”" in text  # its own model first
    assert "paddle CPU" in text
    assert "mindspore CPU" in text


def test_scripts_beyond_a_comment_s_length_are_left_out() -> None:
    rng = np.random.default_rng(0)
    inputs = {"x": rng.standard_normal((4, 1500)).astype(np.float32)}
    inputs["weight"] = rng.standard_normal((4, 1500)).astype(np.float32)
    y = inputs["x"] @ inputs["weight"].T
    names = ("torch", "paddle", "numpy", "mindspore")
    explanation = refkernels.explain("linear", inputs, {name: {"y": y} for name in names})
    text = explanation.to_markdown()
    assert len(text) < 65_536
    assert "the scripts for numpy, mindspore" in text
    assert text.count("```python") == 2


def test_a_language_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="no language 'fr': choose one of en, zh"):
        markdown(explained("rounding").to_dict(), "fr")

"""Words and numerals: every word of a record has a meaning, and every model a Chinese name."""

import math
import re

import ml_dtypes
import numpy as np
import pytest

from refkernels.diagnosis import orders
from refkernels.diagnosis.models.layernorm import MODELS, Model
from refkernels.records import words
from refkernels.reporting.words import numerals, vocabulary
from refkernels.reporting.words.model_names import model_name, statement
from refkernels.reporting.words.numerals import figure, joined, lost, ratio, share, ulp_figure, ulps
from refkernels.reporting.words.report import listed, some_of, words_of


def test_every_word_of_a_record_has_a_meaning() -> None:
    assert tuple(verdict.name for verdict in vocabulary.LEVEL_WORDS) == words.LEVELS
    meanings = {kind: tuple(by_name["en"]) for kind, by_name in vocabulary.MEANINGS.items()}
    assert sorted(meanings.pop("meaning")) == sorted(words.LEVELS)
    kinds = ("flag", "status", "property")
    expected = (words.FLAGS, words.FAULTS, words.PROPERTIES)
    assert meanings == dict(zip(kinds, expected, strict=True))


def test_ranks_follow_the_levels_and_leave_room_for_the_unknown() -> None:
    ranks = [verdict.rank for verdict in vocabulary.LEVEL_WORDS]
    assert ranks == sorted(set(ranks))
    unknown = vocabulary.verdict("a_verdict_of_tomorrow").rank
    assert vocabulary.verdict("exceeds_bound").rank < unknown < vocabulary.UNUSUAL.rank


def test_a_list_in_chinese_sets_latin_words_and_figures_off_by_a_space() -> None:
    targets = ["paddle 3.3.1", "torch 2.13.0", "numpy"]
    assert listed(words_of("en"), targets) == "paddle 3.3.1, torch 2.13.0 and numpy"
    for names, expected in (
        (targets, "paddle 3.3.1、torch 2.13.0 和 numpy"),
        (["前向", "反向"], "前向和反向"),
        (["线程数（torch）", "numpy"], "线程数（torch）和 numpy"),
        (["torch", "另外两个"], "torch 和另外两个"),
        (["torch"], "torch"),
        ([], ""),
    ):
        assert listed(words_of("zh"), names) == expected


def test_more_ops_than_fit_are_counted() -> None:
    ops = ["sin", "cos", "tan", "exp"]
    assert some_of(words_of("en"), ops, 3) == "sin, cos and 2 more"
    assert some_of(words_of("zh"), ops, 3) == "sin、cos 及其他 2 个算子"
    assert some_of(words_of("zh"), ops, 4) == "sin、cos、tan 和 exp"


def test_exact_is_one_word_in_chinese() -> None:
    rounded = vocabulary.short_of(vocabulary.verdict("correctly_rounded"), "zh")
    assert rounded == words_of("zh")["term:correct"] == "正确舍入"
    for key in ("all_fine", "some_bad"):
        assert rounded in words_of("zh")[key]


KEPT = {"FMA", "Welford", "rsqrt"}  # said so in Chinese too


def test_names_are_translated_phrase_by_phrase() -> None:
    names = (
        {model.name for model in MODELS}
        | {order.name for terms in (7, 700) for order in orders.candidates(terms, True)}
        | {order.name for order in orders.candidates(100, False)}
    )
    assert len(names) > 100
    for name in names:
        for translated, phrase in zip(
            model_name(name, "zh").split("，"), name.split(", "), strict=True
        ):
            proper = phrase in KEPT or re.fullmatch(r"(torch|paddle|mindspore|oneflow) CPU", phrase)
            assert (
                proper or re.search(r"[一-鿿]", translated) or re.fullmatch(r"float\d+", phrase)
            ), translated
        assert model_name(name, "en") == name


def test_an_accumulator_s_name_is_translated_from_the_inside() -> None:
    name = "blocks of 4 in sequence in float16, float16 inputs, products rounded"
    assert model_name(name, "zh") == "以 float16 每 4 项一块、顺序累加，输入为 float16，乘积先舍入"


def test_what_is_not_known_stays() -> None:
    assert model_name("somebody's kernel", "zh") == "somebody's kernel"


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_a_model_is_described_in_chinese_with_the_same_numbers(model: Model) -> None:
    translated = statement(model.name, model.statement, "zh")
    assert re.search(r"[一-鿿]", translated)
    assert translated.endswith("。")
    assert set(re.findall(r"\d[\d.e-]*\d|\d", translated)) <= set(
        re.findall(r"\d[\d.e-]*\d|\d", model.statement)
    )
    assert statement(model.name, model.statement, "en") == model.statement


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"), (0.0, "0"), (0.6, "0.60"), (27.13, "27.1"), (230.0, "230"),
        (70188.4, "70,188"), (419180.0, "4.2e5"), (0.0030, "0.0030"), (1.2207e-4, "1.2e−4"),
        (math.inf, "∞"), (-math.inf, "−∞"), (math.nan, "NaN"), (-0.5, "−0.50"),
    ],
)  # fmt: skip
def test_a_figure_has_two_or_three_digits(value, text):
    assert figure(value) == text


def test_a_ratio_beside_one_says_on_which_side_it_lies():
    assert [ratio(x) for x in (0.9999, 1.0, 1.0001)] == ["<1.00", "1.00", ">1.00"]


def test_a_share_is_all_only_when_nothing_is_missing():
    assert share(10**6, 10**6) == "100 %"
    assert share(10**6 - 1, 10**6) == "99.99 %"
    assert share(1, 10**6) == "<0.1 %"
    assert share(0, 10**6) == "0 %"
    assert share(0, 0) == "–"
    assert share(817, 1000) == "81.7 %"


def test_words_are_joined_as_in_speech():
    assert joined(["a"]) == "a"
    assert joined(["a", "b", "c"]) == "a, b and c"


@pytest.mark.parametrize(
    ("dtype", "bits"), [("float16", 11), ("bfloat16", 8), ("float32", 24), ("float64", 53)]
)
def test_from_a_quarter_of_the_value_on_no_digit_is_right(dtype, bits):
    most = 2.0 ** (bits - 2)
    assert not lost(most * 0.99, dtype)
    assert ulps(most * 0.99, dtype) == f"{figure(most * 0.99)} ulp"
    for value in (most, 1e300, math.inf):
        assert ulps(value, dtype) == "no digit is right"
        assert ulp_figure(value, dtype) == "no digit"
        assert ulps(value, dtype, "zh") == "没有一位数字正确"
    assert ulp_figure(None, dtype) == "–"
    assert ulp_figure(1e30, "a format of its own") == "1.0e30"


@pytest.mark.parametrize(
    ("error", "dtype", "left"),
    [
        (0.5, "float64", (16, 16)),
        (1.0, "float32", (7, 7)),
        (2.0, "float32", (6, 7)),  # 23 bits are 6.9 digits
        (2.8e8, "float64", (7, 16)),
        (2.0**22, "float32", (0, 7)),
        (math.inf, "float16", (0, 3)),
        (math.nan, "float32", None),
        (1.0, "float8", None),
    ],
)
def test_digits_that_an_error_leaves(error, dtype, left):
    assert numerals.digits(error, dtype) == left


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_ranges_are_those_of_the_formats(dtype):
    info = ml_dtypes.finfo(dtype) if dtype == "bfloat16" else np.finfo(dtype)
    least, beyond = numerals.normal_range(dtype)
    assert least == float(info.tiny)
    assert beyond > float(info.max)
    edge = numerals.squares_from(dtype)
    assert math.isinf(edge * edge) or edge * edge == beyond
    below = math.nextafter(edge, 0.0)
    assert below * below < beyond

"""Names of models in Chinese: every phrase of every name is translated."""

import re

import pytest

from refkernels.diagnosis import orders
from refkernels.diagnosis.models.layernorm import MODELS, Model
from refkernels.reporting.words.model_names import model_name, statement

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

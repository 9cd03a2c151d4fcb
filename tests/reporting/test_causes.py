"""The lists of causes in docs/ are those of the code, and every cause that is found is in them."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import refkernels.diagnosis
from refkernels import registry
from refkernels.diagnosis.models.layernorm import MODELS
from refkernels.reporting.answer.facts import says
from refkernels.reporting.words.catalogues import LANGUAGES, read_catalogue
from refkernels.reporting.words.causes import CAUSES, by_design

ROOT = Path(__file__).parent.parent.parent
_FIELD = r"\{(\w+)"
CATALOGUES = sorted(
    {path.stem for path in (ROOT / "refkernels/reporting/words").glob("*.json")}
    - {"models"}  # translations alone: the English is in the code of the models
)
TOOL: dict[str, Any] = runpy.run_path(str(ROOT / "tools" / "write_causes.py"))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_list_in_the_docs_is_that_of_the_code(lang: str) -> None:
    written = (ROOT / "docs" / TOOL["NAMES"][lang]).read_text(encoding="utf-8")
    assert written == TOOL["page"](lang), "python tools/write_causes.py writes it again"
    assert set(re.findall(r"^\| `(\w+)` \|", written, re.M)) == set(CAUSES)


@pytest.mark.parametrize("name", CATALOGUES)
def test_a_catalogue_has_every_text_in_every_language_once(name: str) -> None:
    def entries(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs), "an identifier occurs twice"
        return dict(pairs)

    path = ROOT / "refkernels" / "reporting" / "words" / f"{name}.json"
    catalogue = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=entries)
    assert catalogue == read_catalogue(name)
    for entry in catalogue.values():
        assert set(LANGUAGES) <= set(entry)
        assert all(isinstance(entry[lang], str) for lang in LANGUAGES)
        assert set(re.findall(_FIELD, entry["en"])) == set(re.findall(_FIELD, entry["zh"]))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_number_on_which_hypotheses_differ_is_left_open(lang: str) -> None:
    for cause in CAUSES:
        text = says({"cause": cause, "model": None, "details": {}}, lang)
        assert text
        assert "{" not in text, cause
        assert "()" not in text, cause


def test_every_cause_of_a_model_or_a_variant_is_listed() -> None:
    assert {model.cause for model in MODELS} - {None} <= set(CAUSES)
    causes: set[str] = set()
    for path in Path(refkernels.diagnosis.__file__).parent.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        causes.update(re.findall(r'(?:Variant|Candidate|_candidate)\(\s*"(\w+)"', source))
    assert len(causes) >= 10
    assert causes <= set(CAUSES)


def test_every_fault_of_an_op_is_listed() -> None:
    formulas = [op.formulas for op in registry.ops().values() if op.formulas is not None]
    faults = {fault.cause for formula in formulas for fault in formula.faults}
    assert len(faults) >= 10
    assert faults <= set(CAUSES)


def test_a_cause_that_needs_another_says_both() -> None:
    about = {"constants": "0.9 as float32", "with": "exponential_minus_one"}
    candidate = {"cause": "float32_constants", "details": about}
    assert says(candidate, "en") == (
        "holds its constants in float32 (0.9 as float32) although it computes in float64, and "
        + says({"cause": "exponential_minus_one", "details": {}}, "en")
    )
    assert says(candidate, "zh").endswith(
        "，而且" + says({"cause": "exponential_minus_one", "details": {}}, "zh")
    )
    assert "exponential_minus_one" not in says(candidate, "zh")


def test_what_is_told_to_be_in_use_is_no_fault() -> None:
    in_use = {name for name, cause in CAUSES.items() if "in use" in cause["todo"]["en"]}
    assert len(in_use) >= 10
    assert {name for name in in_use if by_design(name, "torch")} == in_use


@pytest.mark.parametrize("cause", ["gradient_clipped", "gradient_normalised"])
def test_lambs_definitions_are_no_faults(cause: str) -> None:
    assert "LAMB" in CAUSES[cause]["todo"]["en"]
    assert by_design(cause, "paddle")
    assert not by_design("gradient_multiplied", "paddle")

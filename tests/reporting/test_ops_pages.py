"""docs/ops follows from the code and its equations: every op, every form and every fault."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from refkernels import registry

ROOT = Path(__file__).parent.parent.parent
TOOL: dict[str, Any] = runpy.run_path(str(ROOT / "tools" / "write_ops.py"))
OPS = registry.ops()


def test_the_pages_are_those_of_the_code() -> None:
    pages = TOOL["pages"]()
    written = {path.name: path.read_text(encoding="utf-8") for path in TOOL["FOLDER"].glob("*.md")}
    assert written.keys() == pages.keys()
    stale = [name for name in pages if pages[name] != written[name]]
    assert not stale, "python tools/write_ops.py writes them again"


def test_every_op_has_equations_of_both_directions_and_words_for_its_forms() -> None:
    texts = TOOL["texts"]()
    assert texts.keys() == OPS.keys()
    for name, op in OPS.items():
        for direction in ("forward", "backward"):
            has = direction in op.directions
            assert bool(TOOL["equations"](name, direction)) == has, (name, direction)
            # The name of a form of a function is its formula.
            forms = TOOL["form_names"](op, direction) if has and op.real_function is None else []
            described = {key.split()[1] for key in texts[name] if key.startswith(f"{direction} ")}
            assert described == set(forms), (name, direction)


def test_every_op_form_and_fault_is_in_its_page() -> None:
    documented = set()
    for family in TOOL["families"]():
        text = (TOOL["FOLDER"] / f"{family}.md").read_text(encoding="utf-8")
        sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.M | re.S))
        assert sections.keys() == TOOL["ops_of"](family).keys()
        for name, section in sections.items():
            op = OPS[name]
            forms = [form for way in op.directions for form in TOOL["form_names"](op, way)]
            faults = [fault.cause for fault in op.formulas.faults] if op.formulas else []
            missing = [entry for entry in (*forms, *faults) if f"`{entry}`" not in section]
            assert not missing, (name, missing)
            documented.add(name)
    assert documented == OPS.keys()


def test_equations_hold_nothing_that_github_takes_for_markdown() -> None:
    lines = [
        line for name, op in OPS.items() for way in op.directions
        for line in TOOL["equations"](name, way)
    ]  # fmt: skip
    assert len(lines) > len(OPS)
    for line in lines:
        assert not re.search(r"\\[^a-zA-Z]|[<>*`$]", line), line
        assert line.count("{") == line.count("}"), line
        assert len(re.findall(r"\\left\b", line)) == len(re.findall(r"\\right\b", line)), line
        assert line.count(r"\begin") == line.count(r"\end"), line


def test_a_call_that_an_adapter_does_not_make_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = next(
        framework for framework in TOOL["catalog"].frameworks() if framework.name == "torch"
    )
    assert TOOL["computes"]("rms_norm", torch) == "`torch.nn.functional.rms_norm`"
    monkeypatch.setitem(TOOL["texts"]()["rms_norm"], "torch", "torch.nn.functional.layer_norm")
    with pytest.raises(ValueError, match="the adapter does not call it"):
        TOOL["computes"]("rms_norm", torch)


def test_an_op_without_equations_or_words_is_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"equations\.ini has no section \[celu\]: write one"):
        TOOL["texts_of"]("celu")
    with pytest.raises(
        ValueError, match=r"'ignored_alpha' has no words: .* tools/write_causes\.py"
    ):
        TOOL["says"]("ignored_alpha")

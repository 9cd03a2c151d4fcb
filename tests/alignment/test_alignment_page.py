"""The demonstration makes a page from nothing; no name in a capture becomes markup on it."""

import json
from pathlib import Path

import pytest
from command_helpers import said

from refkernels.reporting.alignment import html
from refkernels.reporting.rendered import blocks, inline


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("demo")
    result = said("align", "--demo", "--out", str(folder))
    assert result.exit_code == 0, result.output
    return result.stdout, folder


def test_the_demonstration_names_what_is_planted(shown: tuple[str, Path]) -> None:
    printed, folder = shown
    assert "Different definition" in printed
    assert 'Capture("run_a", model, optimizer' in printed
    record = json.loads((folder / "alignment.json").read_text())
    first = record["verdict"]["suspects"][0]
    assert (first["run"], first["where"], first["topic"]) == ("B", "norm", "forward")
    assert first["details"]["cause"] == "eps_differs"
    assert first["details"]["confidence"] == "proven"
    layers = [layer for local in record["local"] for layer in local["layers"]]
    assert {layer["name"] for layer in layers if layer["wrong"]} == {"norm"}
    assert not any(local["unjudged"] for local in record["local"])


def test_the_page_has_all_in_one_file(shown: tuple[str, Path]) -> None:
    _, folder = shown
    for name, lead in (("alignment", "Different definition."), ("alignment.zh", "定义不同。")):
        text = (folder / f"{name}.html").read_text("utf-8")
        assert f"<b>{lead}</b>" in text
        assert text.count("<svg") == 1
        assert "<script" not in text
        assert "prefers-color-scheme:dark" in text
        assert "viewport" in text
        assert text.count("<tr>") > 2 * 14 * 2  # the ops, and the layers
        for tag in ("div", "table", "section", "details", "ul", "ol", "p", "code", "b"):
            assert text.count(f"<{tag}>") + text.count(f"<{tag} ") == text.count(f"</{tag}>"), tag


def test_null_runs_are_drawn_as_a_band(shown: tuple[str, Path]) -> None:
    record = json.loads((shown[1] / "alignment.json").read_text())
    record["band"] = [[step, loss - 0.01, loss, loss + 0.01] for step, loss in record["losses"][0]]
    page = html.page(record)
    assert "null runs" in page
    assert html.page({**record, "band": []}) != page
    assert "<svg" not in html.page({**record, "losses": [[], []], "band": []})


def test_names_act_as_neither_html_nor_markdown() -> None:
    hostile = r"\<b\> &lt;script&gt; <script>alert(1)</script> \| a\_b `x<y>` **bold**"
    assert inline(hostile) == (
        "&lt;b&gt; &lt;script&gt; &lt;script&gt;alert(1)&lt;/script&gt; | a_b "
        "<code>x&lt;y&gt;</code> <b>bold</b>"
    )
    table = blocks("| a | b |\n|---|--:|\n| x \\| y | 1 |")
    assert "<td>x | y</td>" in table
    assert "<td class=n>1</td>" in table


@pytest.mark.parametrize("words", [["--demo", "somewhere"], []])
def test_demo_takes_no_folder(words: list[str]) -> None:
    result = said("align", *words)
    assert result.exit_code == 2
    assert "--demo" in result.stderr


def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judged(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr("refkernels.alignment.align", judged)
    (tmp_path / "file").touch()
    result = said("align", "run", "--out", str(tmp_path / "file" / "page"))
    assert result.exit_code == 2
    assert "file/page cannot be read or written" in result.output

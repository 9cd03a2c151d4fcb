"""Foreign text is shown as it is: none of it acts, and nothing breaks the file."""

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from refkernels.records.texts import showable
from refkernels.reporting.words.escaping import clipped, code, escaped

ANY = st.text(st.characters(exclude_categories=())) | st.text("\\`*_[]|#~<>&;:/.whtpsa(!) \n\0\x1b")
PLAIN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def shown(markdown: str) -> str:
    """The text of a rendered paragraph, which must have no tag."""
    html = PLAIN.render(f"x {markdown} x")
    inner = re.fullmatch(r"<p>x ?(.*?) ?x</p>\n", html, re.S)
    assert inner, html
    assert "<" not in inner[1], html
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        inner = re.fullmatch(r"(.*)", inner[1].replace(entity, character), re.S)
        assert inner
    return inner[1]


@given(ANY)
@example("\x1b[31mred\x1b[0m")
@example("\ud800")
@example("abc\u202egpj.exe")
def test_no_character_has_an_effect(text: str) -> None:
    shown = showable(text)
    assert len(shown) == len(text)
    assert showable(shown) == shown.encode().decode()
    assert not {c for c in shown if unicodedata.category(c) in ("Cc", "Cs")} - {"\n", "\t"}
    assert all(a in (b, "\ufffd") for a, b in zip(shown, text, strict=True))
    assert "\n" not in clipped(text)


@given(ANY)
@example("[a](https://evil.example)")
@example("<img src=x onerror=alert(1)>")
@example("&lt;b&gt; &#60;")
@example("`a` ~~b~~ **c** __d__ ![e](f)")
def test_markdown_sees_nothing_in_escaped_text(text: str) -> None:
    assert shown(escaped(text)) == clipped(text, 400)


@given(ANY.filter(lambda text: clipped(text, 400)))
@example("`")
@example("``a`b")
def test_code_is_shown_as_it_stands(text: str) -> None:
    html = PLAIN.render(f"x {code(text)} x")
    assert re.fullmatch(r"<p>x <code>[^<]*</code> x</p>\n", html), html


@pytest.mark.parametrize("address", ["https://a.example", "http://b.example", "www.c.example"])
def test_an_address_in_foreign_text_is_not_a_link(address: str) -> None:
    # GitHub makes links of addresses in text, but not where a backslash stands in their middle.
    assert address not in escaped(f"see {address} there")
    assert shown(escaped(address)) == address

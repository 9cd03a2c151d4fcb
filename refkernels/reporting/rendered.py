"""The Markdown of our own pages as HTML: headings, paragraphs, lists, tables, folded parts.

Only these are enabled. Everything else is text, and text is escaped: a name in a capture cannot
become markup.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from markdown_it import MarkdownIt

_PARSER = MarkdownIt("zero").enable([
    "backticks", "balance_pairs", "emphasis", "entity", "escape", "heading", "list", "table",
])  # fmt: skip
_FOLDED = re.compile(r"^<details><summary>(.*)</summary>$|^(</details>)$", re.MULTILINE)


def _table_open(*_: Any) -> str:
    return '<div class="scroll"><table>'  # it can be scrolled sideways


def _table_close(*_: Any) -> str:
    return "</table></div>"


def _bold(_: Any, tokens: Sequence[Any], place: int, *__: Any) -> str:
    return "<b>" if tokens[place].nesting == 1 else "</b>"


def _cell(_: Any, tokens: Sequence[Any], place: int, *__: Any) -> str:
    """A cell; one of numbers, which stand on its right, has a class."""
    return f"<{tokens[place].tag}{' class=n' * ('style' in tokens[place].attrs)}>"


def _list(_: Any, tokens: Sequence[Any], place: int, *__: Any) -> str:
    return f"<{tokens[place].tag} class=prose>"


_RULES = {
    "table": (_table_open, _table_close),
    "strong": (_bold, _bold),
    **dict.fromkeys(("th", "td"), (_cell,)),
    **dict.fromkeys(("bullet_list", "ordered_list"), (_list,)),
}
for _tag, _rules in _RULES.items():
    for _end, _rule in zip(("open", "close"), _rules, strict=False):
        _PARSER.add_render_rule(f"{_tag}_{_end}", _rule)


def inline(text: str) -> str:
    """One line: code, bold, escaped marks."""
    return str(_PARSER.renderInline(text))


def blocks(text: str) -> str:
    """Everything below a heading."""
    parts, end = [], 0
    for fold in _FOLDED.finditer(text):
        summary = fold[2] or f"<details><summary>{inline(fold[1])}</summary>"
        parts += [_PARSER.render(text[end : fold.start()]), summary]
        end = fold.end()
    return "\n".join([*parts, _PARSER.render(text[end:])])

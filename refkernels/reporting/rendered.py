"""The Markdown of our own pages as HTML: headings, paragraphs, lists, tables, folded parts.

It understands only the Markdown that our pages use. Everything else is text, and text is escaped: a
name in a capture cannot become markup.
"""

from __future__ import annotations

import html
import re

_INLINE = re.compile(
    r"(?P<fence>`+)(?P<code>.+?)(?P=fence)(?!`)|\\(?P<mark>[^A-Za-z0-9\s])|(?P<bold>\*\*)"
)
_BARE = re.compile(r"&(?!(?:amp|lt|gt);)|<|>")
_SUMMARY = re.compile(r"<details><summary>(.*)</summary>")
_CELLS = re.compile(r"(?<!\\)\|")


def inline(text: str) -> str:
    """One line: code, bold, escaped marks."""
    parts, end, bold = [], 0, False
    for mark in _INLINE.finditer(text):
        parts.append(_plain(text[end : mark.start()]))
        end = mark.end()
        if mark["code"] is not None:
            parts.append(f"<code>{html.escape(mark['code'].strip())}</code>")
        elif mark["mark"] is not None:
            parts.append(html.escape(mark["mark"]))
        else:
            bold = not bold
            parts.append("<b>" if bold else "</b>")
    return "".join([*parts, _plain(text[end:]), "</b>" if bold else ""])


def _plain(text: str) -> str:
    return _BARE.sub(lambda mark: html.escape(mark[0]), text)


def blocks(text: str) -> str:
    """Everything below a heading."""
    return "\n".join(_block(block) for block in text.split("\n\n") if block.strip())


def _block(text: str) -> str:
    lines = text.strip().splitlines()
    first = lines[0]
    if summary := _SUMMARY.fullmatch(first):
        return f"<details><summary>{inline(summary[1])}</summary>"
    if first == "</details>":
        return first
    if first.startswith("|"):
        return table(lines)
    if first.startswith("### "):
        return f"<h3>{inline(first[4:])}</h3>"
    for tag, mark in (("ul", r"- "), ("ol", r"\d+\. ")):
        if re.match(mark, first):
            items = "".join(f"<li>{inline(re.sub(mark, '', line, count=1))}</li>" for line in lines)
            return f'<{tag} class="prose">{items}</{tag}>'
    return f"<p>{inline(' '.join(lines))}</p>"


def table(lines: list[str]) -> str:
    """A table that can be scrolled sideways. A bar that does not end a cell has a backslash."""
    parts = (_CELLS.split(line.strip()[1:-1]) for line in lines)
    head, sides, *body = ([cell.replace("\\|", "|") for cell in cells] for cells in parts)
    names = ["n" if side.strip().endswith(":") else "" for side in sides]

    def row(cells: list[str], tag: str) -> str:
        return "".join(
            f'<{tag} class="{name}">{inline(cell.strip())}</{tag}>' if name
            else f"<{tag}>{inline(cell.strip())}</{tag}>"
            for cell, name in zip(cells, names, strict=True)
        )  # fmt: skip

    rows = "\n".join(f"<tr>{row(cells, 'td')}</tr>" for cells in body)
    return (
        f'<div class="scroll"><table><thead><tr>{row(head, "th")}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )

"""The page of a probe: what each surviving explanation predicts on the inputs to run next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from refkernels.reporting.answer.markdown import grid
from refkernels.reporting.words.escaping import escaped


def page(probe: Mapping[str, Any]) -> str:
    """Markdown: a table with a line for each surviving explanation, and the next step."""
    names = [f"`{probe['output']}{place}`" for place in probe["places"]]
    rows = [
        [
            escaped(survivor["name"]),
            *(value["decimal"] for value in survivor["says"]),
            _apart(probe, survivor),
        ]
        for survivor in probe["survivors"]
    ]
    columns = " | ".join(["explanation", *names, "differs from the right answer in"])
    sides = "l" + "-" * (len(names) + 1)
    return "\n\n".join(
        [
            "On these inputs, the explanations that fit predict different outputs.",
            grid(columns, rows, sides),
            "Run your kernel on the files below and explain its output.",
        ]
    )


def _apart(probe: Mapping[str, Any], survivor: Mapping[str, Any]) -> str:
    right = probe["survivors"][0]["name"]
    for pair in probe["apart"]:
        if (pair["a"], pair["b"]) == (right, survivor["name"]):
            return f"{pair['elements']:,} of {probe['elements']:,}"
    return "–"

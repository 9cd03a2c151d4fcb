"""A probe as a page: what each explanation that fits says on the inputs to be run next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from refkernels.reporting.answer.markdown import grid
from refkernels.reporting.words.escaping import escaped


def page(told: Mapping[str, Any]) -> str:
    """Markdown: a table with a line for each survivor, and what to do with it."""
    names = [f"`{told['output']}{place}`" for place in told["places"]]
    rows = [
        [escaped(one["name"]), *(value["decimal"] for value in one["says"]), _apart(told, one)]
        for one in told["survivors"]
    ]
    columns = " | ".join(["explanation", *names, "differs from the right answer in"])
    sides = "l" + "-" * (len(names) + 1)
    return "\n\n".join(
        [
            "On these inputs the explanations that fit say different things.",
            grid(columns, rows, sides),
            "Run your kernel on the files below, and explain what it gives.",
        ]
    )


def _apart(told: Mapping[str, Any], one: Mapping[str, Any]) -> str:
    right = told["survivors"][0]["name"]
    for pair in told["apart"]:
        if (pair["a"], pair["b"]) == (right, one["name"]):
            return f"{pair['elements']:,} of {told['elements']:,}"
    return "–"

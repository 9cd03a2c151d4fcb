"""Puts explanations into words, for `Explanation.summary` and `to_markdown`.

Diagnosis makes records without any wording. This module is a layer above it: it combines a record
with the wording of `reporting` and, for the scripts, the adapters' sources. The page is imported
only when it is needed, because it imports the plotting library.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from refkernels.frameworks import catalog
from refkernels.reporting.answer import sentences

Record = Mapping[str, Any]


def summary(explanation: Record) -> str:
    """The answer in one sentence."""
    return sentences.summary(explanation)


def markdown(explanation: Record, lang: str = "en") -> str:
    """The answer to paste into a thread, with a script for each framework."""
    from refkernels.reporting.answer import page

    sources = {framework.name: framework.source() for framework in catalog.frameworks()}
    return page.markdown(explanation, lang, sources)


def brief(explanation: Record) -> str:
    """The answer without its folded parts."""
    from refkernels.reporting.answer import page

    return page.brief(explanation)


def profile(record: Record, lang: str = "en") -> str:
    """A profile's tables, as Markdown."""
    from refkernels.reporting.profile import page

    return page.markdown(record, lang)


def profile_pages(record: Record) -> dict[str, str]:
    """A profile's pages, by the names of their files."""
    from refkernels.reporting.profile import page

    ends = {"": "en", ".zh": "zh"}.items()
    pages = {f"profile{end}.md": page.markdown(record, lang) for end, lang in ends}
    return pages | {f"profile{end}.html": page.html(record, lang) for end, lang in ends}

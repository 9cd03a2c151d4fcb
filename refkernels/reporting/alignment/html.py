"""The HTML page of an alignment: the Markdown page, with the losses as a plot and the layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from refkernels.reporting.alignment.page import layers_table, markdown, words_of
from refkernels.reporting.alignment.plots import draw_losses
from refkernels.reporting.rendered import blocks, inline
from refkernels.reporting.templating import document, figure_of, sections_of

STYLES = {"same": "vc", "different": "vx", "undecidable": "vu"}


def page(alignment: Mapping[str, Any], lang: str = "en") -> str:
    """The page of a record (`Alignment.to_dict`), in the language `lang`."""
    words, verdict = words_of(lang), alignment["verdict"]["word"]
    title, lead, sections = sections_of(markdown(alignment, lang))
    curve, local = words["curve"], words["local"]
    if (plot := draw_losses(alignment, words)) is not None:
        if curve not in sections:  # where the Markdown page has it: before the ops
            places = list(sections.items())
            places.insert([*sections, local].index(local), (curve, ""))
            sections = dict(places)
        sections[curve] += figure_of(plot)
    if local in sections:
        layers = blocks(layers_table(alignment, words))
        sections[local] += f"\n<h3>{inline(words['layers'])}</h3>\n{layers}"
    pill = words[f"verdict:{verdict}"], STYLES[verdict]
    return document(title, lead, sections, "align", lang, *pill)

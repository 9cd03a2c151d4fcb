"""The HTML page of an alignment: the Markdown page, with plots of the losses and a table of layers.

One self-contained file without scripts, for light and dark themes and for wide and narrow screens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from refkernels.reporting.alignment.page import layers_table, markdown, words_of
from refkernels.reporting.alignment.plots import draw_losses
from refkernels.reporting.rendered import blocks, inline
from refkernels.reporting.templating import style, template

STYLES = {"same": "vc", "different": "vx", "undecidable": "vu"}


def page(alignment: Mapping[str, Any], lang: str = "en") -> str:
    """The page of a record (`Alignment.to_dict`), in the language `lang`."""
    words = words_of(lang)
    head, *later = markdown(alignment, lang).split("\n## ")
    title, _, lead = head.removeprefix("# ").partition("\n\n")
    sections = dict(section.partition("\n\n")[::2] for section in later)
    bodies = {name: blocks(body) for name, body in sections.items()}
    plot = draw_losses(alignment, words)
    if plot is not None:
        figure = (
            f'<figure id="{plot.name}"><div class="plot">{plot.inline}</div>'
            f"<figcaption>{inline(plot.caption)}</figcaption></figure>"
        )
        if words["curve"] not in bodies:  # insert it where the Markdown page has it: before the ops
            place = list(bodies).index(words["local"]) if words["local"] in bodies else len(bodies)
            before = dict(list(bodies.items())[:place])
            bodies = {**before, words["curve"]: "", **bodies}
        bodies[words["curve"]] += figure
    if words["local"] in bodies:
        layers = blocks(layers_table(alignment, words, lang))
        folds = bodies[words["local"]]
        bodies[words["local"]] = f"{folds}\n<h3>{inline(words['layers'])}</h3>\n{layers}"
    return template("alignment.html.j2", True).render(
        lang={"en": "en", "zh": "zh-CN"}[lang],
        command="align",
        title=Markup(inline(title)),
        style=STYLES[alignment["verdict"]["word"]],
        verdict=words[f"verdict:{alignment['verdict']['word']}"],
        lead=Markup(blocks(lead)),
        sections=[
            (f"s{number}", name, Markup(body)) for number, (name, body) in enumerate(bodies.items())
        ],
        css=style(),
    )

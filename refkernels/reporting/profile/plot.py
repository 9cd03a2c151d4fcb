"""The errors through a program: each call's own, and what has come together until then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from refkernels.reporting.figures import drawing
from refkernels.reporting.figures.drawing import Drawn, colour_of, finish
from refkernels.reporting.words.catalogues import Texts

_NAMED = 3  # calls whose module stands beside their point


def draw(profile: Mapping[str, Any], words: Texts) -> Drawn:
    """Calls from left to right in the order of the program; errors over the size of the result."""
    points = profile["timeline"]
    with mpl.rc_context(drawing.STYLE):
        figure = Figure(figsize=(9.6, 3.4))
        axes = figure.add_axes((0.08, 0.2, 0.9, 0.7))
        sizes = [point[name] for point in points for name in ("accumulated", "local")]
        drawing.log_axis(axes, "y", [size for size in sizes if size > 0] or [1.0], None)
        for number, name in enumerate(("accumulated", "local")):
            found = [(k, point[name]) for k, point in enumerate(points) if point[name] > 0]
            marker = (
                {"linewidth": 1.4} if name == "accumulated" else {"linestyle": "", "marker": "."}
            )
            axes.plot(*zip(*found, strict=True) if found else ([], []), color=colour_of(number),
                      label=words[f"plot:{name}"], **marker)  # fmt: skip
        heavy = sorted(range(len(points)), key=lambda k: -points[k]["share"])[:_NAMED]
        for k in (k for k in heavy if points[k]["share"] > 0.05 and points[k]["local"] > 0):
            text = f"{points[k]['module']} {points[k]['op']}".strip()
            axes.annotate(text, (k, points[k]["local"]), xytext=(4, -12), fontsize=8,
                          textcoords="offset points", color=drawing.MUTED)  # fmt: skip
        axes.set_xlabel(words["plot:calls"])
        axes.grid(axis="y")
        axes.legend(frameon=False, loc="upper left", ncols=2)
        return finish(figure, "profile", words["plot:title"], words["plot:caption"])

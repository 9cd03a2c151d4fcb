"""The texts of a plot: inside of it, and none over another."""

from itertools import combinations
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from refkernels.reporting.measure import plots
from refkernels.reporting.measure.series import Spread
from refkernels.reporting.words.numerals import all_digits


def texts_of(monkeypatch: pytest.MonkeyPatch, *question: Any) -> tuple[list[Any], Any]:
    """The boxes of the texts of a spread plot, and the box of the figure."""
    monkeypatch.setattr(plots, "finish", lambda figure, *_: figure)
    figure: Any = plots.draw_spread(*question)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    shown = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    return [(text.get_text(), text.get_window_extent(renderer)) for text in shown], figure.bbox


@pytest.mark.parametrize("beyond", [1.0, 1e3, 1e9])
def test_no_text_of_a_spread_is_cut_or_hides_another(
    beyond: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark where no digit is right is anywhere along the axis, by what else is drawn."""
    names = ["PaddlePaddle ops", "torch"]
    panels = {
        (direction, dtype): [
            Spread(name, [(0.0, 5), (1.0, 5), (all_digits("float32") * beyond, 1)], 1e300)
            for name in names
        ]
        for direction in ("forward", "backward")
        for dtype in ("float32", "float64")
    }
    boxes, page = texts_of(monkeypatch, "op", panels, names)
    assert sum(text.strip() == "no digit is right" for text, _ in boxes) == 4
    for text, box in boxes:
        assert page.x0 <= box.x0, text
        assert box.x1 <= page.x1, text
    titles = [pair for pair in boxes if pair[0].startswith(("forward", "backward", " no digit"))]
    for (text, box), (other, second) in combinations(titles, 2):
        assert not box.overlaps(second), (text, other)

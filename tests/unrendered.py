"""Plots that are laid out and not rendered, which takes most of a page's time."""

from typing import Any

import pytest

from refkernels.reporting.figures.drawing import Drawn
from refkernels.reporting.measure import plots
from refkernels.reporting.sweep import plots as sweep_plots


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test that reads pages without their plots."""
    for module in (plots, sweep_plots):
        monkeypatch.setattr(module, "finish", _finish)


def _finish(figure: Any, name: str, title: str, caption: str) -> Drawn:
    return Drawn(name, title, caption, "<svg></svg>", b"")

"""Catalogues: words as data, a JSON file each: by identifier, by language."""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any


@functools.cache
def read_catalogue(name: str) -> dict[str, Any]:
    """The catalogue of that name: {identifier: {"en": ..., "zh": ...}}, and what else it says."""
    text = resources.files(__package__).joinpath(f"{name}.json").read_text(encoding="utf-8")
    catalogue: dict[str, Any] = json.loads(text)
    return catalogue

"""Catalogues: words as data, a JSON file each: by identifier, by language."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

LANGUAGES = ("en", "zh")


@functools.cache
def read_catalogue(name: str) -> dict[str, Any]:
    """The catalogue of that name: {identifier: {"en": ..., "zh": ...}}, and what else it says."""
    text = resources.files(__package__).joinpath(f"{name}.json").read_text(encoding="utf-8")
    catalogue: dict[str, Any] = json.loads(text)
    return catalogue


def by_language(*names: str, prefix: str = "") -> Mapping[str, Mapping[str, str]]:
    """The texts of some catalogues: by language, by identifier. With a prefix, those that begin
    with it, which then go without it."""
    entries = {key: entry for name in names for key, entry in read_catalogue(name).items()}
    return {
        lang: {
            key.removeprefix(prefix): entry[lang]
            for key, entry in entries.items()
            if key.startswith(prefix)
        }
        for lang in LANGUAGES
    }

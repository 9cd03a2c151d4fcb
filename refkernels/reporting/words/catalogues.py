"""Catalogues: words as data, a JSON file each: by identifier, by language."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any, NoReturn

from refkernels.suggestion import did_you_mean

LANGUAGES = ("en", "zh")


@functools.cache
def read_catalogue(name: str) -> dict[str, Any]:
    """The catalogue of that name: {identifier: {"en": ..., "zh": ...}}, and what else it says."""
    text = resources.files(__package__).joinpath(f"{name}.json").read_text(encoding="utf-8")
    catalogue: dict[str, Any] = json.loads(text)
    return catalogue


class Texts(dict[str, str]):
    """The texts of a language, `lang`, by identifier. A call fills in a text's details."""

    def __init__(self, lang: str, texts: Mapping[str, str]) -> None:
        super().__init__(texts)
        self.lang = lang

    def __call__(self, key: str, /, **details: Any) -> str:
        return self[key].format(**details)


class Languages(dict[str, Texts]):
    """Texts by language. Raises ValueError for a language that they do not have."""

    def __missing__(self, lang: object) -> NoReturn:
        raise ValueError(f"There is no language {lang!r}: {did_you_mean(str(lang), LANGUAGES)}.")


def by_language(*names: str, prefix: str = "") -> Languages:
    """The texts of some catalogues: by language, by identifier. With a prefix, those that begin
    with it, which then go without it."""
    entries = {key: entry for name in names for key, entry in read_catalogue(name).items()}
    chosen = {k.removeprefix(prefix): e for k, e in entries.items() if k.startswith(prefix)}
    texts = {lang: {k: entry[lang] for k, entry in chosen.items()} for lang in LANGUAGES}
    return Languages({lang: Texts(lang, texts[lang]) for lang in LANGUAGES})

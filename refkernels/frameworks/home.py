"""The folder of everything kept between runs, and the interpreters that the user has named."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from refkernels.frameworks.catalog import FrameworkError
from refkernels.records.files import write_whole
from refkernels.target_names import parse


@dataclass(frozen=True)
class NamedEnvironment:
    """An interpreter that the user added, and the versions it then reported ("" if unknown)."""

    place: str
    version: str = ""
    python: str = ""


def home() -> Path:
    """The folder of everything kept between runs: $REFKERNELS_HOME, or the user's cache folder."""
    if chosen := os.environ.get("REFKERNELS_HOME"):
        return Path(chosen).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("refkernels"))


def read_named() -> dict[str, NamedEnvironment]:
    """The named interpreters by NAME or NAME==VERSION; raise `FrameworkError` if the file is
    damaged."""
    path = _file()
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {str(parse(key)): NamedEnvironment(**value) for key, value in content.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError, AttributeError, TypeError) as error:
        raise FrameworkError(f"{path} cannot be read ({error}): repair or delete it") from None


def write_named(named: Mapping[str, NamedEnvironment]) -> None:
    """Replace the file; raise `FrameworkError` if that fails."""
    path = _file()
    content = {key: asdict(interpreter) for key, interpreter in named.items()}
    try:
        write_whole(path, json.dumps(content, indent=1, sort_keys=True))
    except OSError as error:
        raise FrameworkError(
            f"{path} cannot be written ({error.strerror}): make it writable, or set "
            "REFKERNELS_HOME to a writable folder"
        ) from None


def _file() -> Path:
    return home() / "interpreters.json"

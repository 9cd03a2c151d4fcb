"""Causes that keep the definition: they round worse, or store numbers in a narrower format."""

from __future__ import annotations

import functools
import json
from pathlib import Path

from refkernels import registry

_ANYWHERE = frozenset(json.loads(Path(__file__).with_suffix(".json").read_text("utf-8")))


def numerical(op: str, cause: str | None) -> bool:
    """Whether a cause equals the op in exact arithmetic: one that any op may have, or an unstable
    way to compute this op (`Fault.unstable`)."""
    return cause in _ANYWHERE or cause in _unstable(op)


@functools.cache
def _unstable(op: str) -> frozenset[str]:
    faults = getattr(registry.get(op).definition, "faults", ())
    return frozenset(fault.cause for fault in faults if fault.unstable)

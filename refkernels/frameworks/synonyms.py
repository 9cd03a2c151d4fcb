"""The usual names of ops' arguments: one table for kernels' parameters and for torch's calls."""

import json
from pathlib import Path

SYNONYMS: dict[str, str] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
"""By the op's name of an input, param or output, what libraries call it, in lower case."""
MEANINGS: dict[str, list[str]] = {}
for _name, _others in SYNONYMS.items():
    for _other in _others.split():
        MEANINGS.setdefault(_other, []).append(_name)

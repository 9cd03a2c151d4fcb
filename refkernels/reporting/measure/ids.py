"""The names of findings, for links and files. They are made from what a finding is about, not from
its figures: links to it work from run to run.

`mindspore-layernorm-forward-f64-y-exceeds`: target, op, pass, format, output and the first word of
the verdict. None of these holds a hyphen, and the page's script reads them back.
"""

from __future__ import annotations

import hashlib
import re

from refkernels.records.words import DTYPES, LEVELS
from refkernels.reporting.measure.inputs import level_of
from refkernels.reporting.measure.study import Measurement

ENDINGS = tuple(level.partition("_")[0] for level in LEVELS)
_LONGEST_ID = 120  # it names a file too
_LONGEST_TARGET = 20  # characters of a target that cannot stand in an id as it is
_PLAIN = re.compile(r"[A-Za-z0-9_.]+")  # what an id can hold unchanged
_DTYPES = {dtype: dtype.replace("float", "f") for dtype in DTYPES}


def finding_id(m: Measurement) -> str:
    """The finding that a measurement belongs to, the same in every run. If an id cannot hold the
    name of an op or output, all names become one part, with a digest, which is not read back."""
    parts = (m.subject, m.op, m.direction, m.dtype, m.output, level_of(m).name)
    dtype = _DTYPES.get(m.dtype, m.dtype)
    short = (target_id(m.subject), m.op, m.direction, dtype, m.output, parts[-1].partition("_")[0])
    if all(map(_PLAIN.fullmatch, short)) and sum(map(len, short)) <= _LONGEST_ID:
        return "-".join(short)
    return f"{_plain('-'.join(parts))[:80]}-{_digest(chr(0).join(parts))[:8]}"


def target_id(subject: str) -> str:
    """A target's part of an id: its name if an id can hold it, or its beginning and a digest."""
    if _PLAIN.fullmatch(subject):
        return subject
    return f"{_plain(subject)[:_LONGEST_TARGET]}.{_digest(subject)[:6]}"


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]+", "_", text)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()

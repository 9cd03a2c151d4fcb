"""A corpus of GPU kernels' answers, explained: what each computes, and what is said of it.

    python benchmarks/gpu_answers.py CORPUS.npz [--only REGEX]

CORPUS.npz holds NAME/in/x, NAME/out/y and `meta`: JSON, by name, of op, direction, params, dtypes
("in.x": "bfloat16", where an array holds bits), `truth` and `expect`: pass (nothing to blame), flag
(unusual, or a cause), cause (proven or matched), or open.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import refkernels
from refkernels.records.words import SOUND


def as_expected(expect: str, found: Any) -> bool:
    cause = None if found.cause in ("summation_order", "bias_first") else found.cause
    fine = found.verdict in SOUND and "unusual" not in found.flags
    answers = {"pass": fine and not cause, "flag": bool(cause) or not fine, "open": True}
    return answers.get(expect, bool(cause) and found.confidence in ("proven", "matched"))


def named(corpus: Any, kernel: str, side: str, dtypes: dict[str, str]) -> dict[str, Any]:
    """The arrays of one side of a kernel; those in `dtypes` are kept as their bits."""
    found, prefix = {}, f"{kernel}/{side}/"
    for key in (key for key in corpus.files if key.startswith(prefix)):
        name = key.removeprefix(prefix)
        narrow = getattr(ml_dtypes, dtypes.get(f"{side}.{name}", ""), None)
        is_narrow = narrow is not None and corpus[key].dtype.kind == "u"
        found[name] = corpus[key].view(narrow) if is_narrow else corpus[key]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--only", default="", help="kernels whose name has this pattern")
    asked = parser.parse_args()
    corpus = np.load(asked.corpus, allow_pickle=False)
    for name, kernel in json.loads(corpus["meta"].tobytes()).items():
        if re.search(asked.only, name):
            inputs, outputs = (
                named(corpus, name, side, kernel["dtypes"]) for side in ("in", "out")
            )
            question = kernel["op"], inputs, outputs, kernel["params"], kernel["direction"]
            found = refkernels.explain(*question)
            causes = (c for c in found.candidates if c.cause == found.cause and c.confidence)
            best = next(causes, None)
            bits = best.evidence.bits if best is not None and best.evidence else 0.0
            row = (
                "as expected" if as_expected(kernel["expect"], found) else "NOT",
                *(kernel["expect"], name, kernel["truth"], found.verdict, found.cause),
                *(found.confidence, round(bits), best and best.model),
            )
            print(" | ".join(map(str, row)), flush=True)


if __name__ == "__main__":
    main()

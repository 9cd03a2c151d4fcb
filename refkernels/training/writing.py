"""Writes the project's own runs in the format of `refkernels.capture` (docs/capture.md)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import refkernels
from refkernels.records.files import write_whole

Array = npt.NDArray[Any]
_DTYPES = {"float16": "F16", "float32": "F32", "float64": "F64", "int64": "I64", "bool": "BOOL"}


def described(
    model: str, weights: Mapping[str, Array], optimizer: str, params: Mapping[str, Any],
    undecayed: Sequence[str] = (), notes: Mapping[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The contents of run.json for a run of one rank; `params`: the optimizer's params, named as
    in its op."""
    decayed = [name for name in weights if name not in undecayed]
    groups = [(decayed, params), (list(undecayed), {**params, "weight_decay": 0.0})]
    groups = [(names, settings) for names, settings in groups if names]
    group_of = {name: index for index, (names, _) in enumerate(groups) for name in names}
    return {
        "format": "refkernels-capture", "format_version": 1, "complete": False,
        "framework": "refkernels",
        "versions": {"refkernels": refkernels.__version__, "numpy": np.__version__},
        "device": {"parameters": ["cpu"]}, "flags": {}, "environment": {},
        "rank": 0, "world_size": 1, "steps": [], "every": 0, "only": ["*"], "first_step": 0,
        "hash_every": 1, "notes": dict(notes or {}), "perturbed": None,
        "initial_parameters": hashed(weights), "model": model, "buffers": [],
        "parameters": [
            {"name": name, "own_name": name, "shape": list(array.shape),
             "dtype": _DTYPES[str(array.dtype)], "trainable": True, "group": group_of[name],
             "device": "cpu"}
            for name, array in weights.items()
        ],
        "layers": [], "not_captured": [],
        "optimizer": {
            "type": optimizer, "module": "refkernels.optimizer_ref",
            "hyperparameters": dict(params), "state": {},
            "groups": [
                {"parameters": names, "exempt": [], **settings} for names, settings in groups
            ],
        },
    }  # fmt: skip


def hashed(arrays: Mapping[str, Any]) -> str:
    """The SHA-256 of all bytes; integers are read as int64. `refkernels.capture` has a
    faster hash."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        widened = array.astype(np.int64) if array.dtype.kind in "iu" else array
        digest.update(f"{name} {widened.dtype} {widened.shape}".encode() + widened.tobytes())
    return digest.hexdigest()


def line(step: int, loss: float, lr: Sequence[float], batch: Mapping[str, Any]) -> dict[str, Any]:
    """The line of a step in steps.jsonl."""
    finite = loss if np.isfinite(loss) else None
    return {
        "step": step, "loss": finite, "loss_hex": float(loss).hex(), "loss_dtype": "float32",
        "lr": list(lr), "gradient_norm": None, "gradient_norm_hex": None,
        "updates": 1, "hash": {"batch": hashed(batch), "parameters": None, "gradients": None},
        "rows": None, "seconds": 0.0, "captured": False, "reason": None, "changed": None,
        "values": {},
    }  # fmt: skip


def write_run(folder: Path, run: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> Path:
    """Write a whole run: its lines first, then run.json, which says that it is complete."""
    rank_folder = folder / "rank_0"
    write_whole(rank_folder / "steps.jsonl", "".join(json.dumps(step) + "\n" for step in lines))
    complete_run = {**run, "complete": True}
    write_whole(rank_folder / "run.json", json.dumps(complete_run, indent=1) + "\n")
    return folder

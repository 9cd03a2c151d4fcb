"""Captured runs for the tests: trainings in the frameworks' interpreters, and one by hand."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from presence import interpreter_of

import refkernels.capture

HERE = Path(__file__).parent


def python_of(framework: str) -> str:
    """The interpreter of a framework on this machine; a skip that says why where there is none."""
    interpreter = interpreter_of(framework)
    if not interpreter.local:
        pytest.skip(f"{framework} is on another machine")
    return interpreter.python


def alone(folder: Path, script: str) -> Path:
    """A folder that holds a script, what its frameworks have in common and a copy of the probe."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(str(refkernels.capture.__file__), folder / "capture.py")
    for file in ("four_frameworks.py", script):
        shutil.copy(HERE / file, folder / file)
    return folder


ALL_AT_ONCE = """
import runpy, sys
_, scripts, *sys.argv[1:] = sys.argv
for script in scripts.splitlines():
    runpy.run_path(script, run_name="__main__")
"""
NEED_COMPILER = ("torch_situations.py", "two_processes.py")


def run_script(
    framework: str, folder: Path, script: str, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """A script's outcome, in a framework's interpreter and a folder of its own. `script` may be
    several, with spaces between, which run one after the other: an import takes seconds."""
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    files = script.split()
    for file in files:
        alone(folder, file)
    if framework == "torch" and script not in NEED_COMPILER:
        files.insert(0, str(HERE.parent / "without_compiler.py"))
    return subprocess.run(
        [python_of(framework), "-c", ALL_AT_ONCE, "\n".join(files), *arguments],
        cwd=folder, env={**environ, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True, text=True, timeout=900,
    )  # fmt: skip


def answer(outcome: subprocess.CompletedProcess[str]) -> Any:
    """The JSON that a script printed last."""
    assert outcome.returncode == 0, outcome.stderr[-3000:]
    return json.loads(outcome.stdout.strip().splitlines()[-1])


def apart(before: Any, after: Any) -> list[tuple[str, list[int], Any, Any]]:
    """(tensor, index, number, number) wherever two steps begin with other weights."""
    names = [name for name in before if name.startswith("parameters/") and "/before" in name]
    places = [(name, index) for name in names for index in np.argwhere(before[name] != after[name])]
    return [(n, k.tolist(), before[n][tuple(k)], after[n][tuple(k)]) for n, k in places]


DTYPES = {"float32": "F32", "float64": "F64", "int64": "I64", "bool": "BOOL", "uint16": "BF16"}


def safetensors(tensors: dict[str, np.ndarray], metadata: dict[str, str]) -> bytes:
    """A safetensors file, written after its specification; bfloat16 as its bits."""
    header: dict[str, Any] = {"__metadata__": metadata}
    content = b""
    for name, array in tensors.items():
        header[name] = {
            "dtype": DTYPES[str(array.dtype)], "shape": list(array.shape),
            "data_offsets": [len(content), len(content) + array.nbytes],
        }  # fmt: skip
        content += array.tobytes()
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + content


def written_by_hand(folder: Path, steps: int = 4, chosen: tuple[int, ...] = (0, 2)) -> Path:
    """A run as docs/capture.md describes it, of one linear layer under SGD."""
    rank = folder / "rank_0"
    rank.mkdir(parents=True)
    layer = {
        "name": "head", "type": "Linear", "module": "torch.nn.Linear", "calls": 1,
        "recorded": True, "training": True, "hyperparameters": {"in_features": 2},
        "parameters": {"weight": "head.weight"}, "buffers": {}, "signature": ["input"],
    }  # fmt: skip
    parameter = {
        "name": "head.weight", "own_name": "head.weight", "shape": [3, 2], "dtype": "F32",
        "trainable": True, "group": 0, "device": "cpu",
    }  # fmt: skip
    group = {"parameters": ["head.weight"], "exempt": [], "lr": 0.1, "momentum": 0.9}
    run = {
        "format": "refkernels-capture", "format_version": 1, "complete": True,
        "framework": "torch", "versions": {"torch": "2.0"}, "device": {"parameters": ["cpu"]},
        "flags": {}, "environment": {}, "seeds": {"torch": 2**64 - 1}, "rank": 0, "world_size": 1,
        "steps": list(chosen), "every": 0, "only": ["*"], "first_step": 0, "hash_every": 1,
        "notes": {"data": "none"}, "perturbed": None, "initial_parameters": "00",
        "model": "Tiny", "parameters": [parameter], "buffers": [], "layers": [layer],
        "optimizer": {
            "type": "SGD", "module": "torch.optim", "hyperparameters": {"lr": 0.1},
            "groups": [group], "state": {"buf": "momentum_buffer"},
        },
        "not_captured": ["nothing"],
    }  # fmt: skip
    (rank / "run.json").write_text(json.dumps(run))
    lines = []
    for step in range(steps):
        line = {
            "step": step, "loss": 1.5, "loss_hex": "0x1.8p+0", "loss_dtype": "float32",
            "lr": [0.1], "gradient_norm": None, "gradient_norm_hex": "inf",
            "updates": 1, "hash": {"batch": "b", "parameters": "p", "gradients": "g"},
            "rows": ["a", "b"], "seconds": 0.5, "captured": step in chosen, "reason": None,
            "changed": None, "values": {"scale": 2.0},
        }  # fmt: skip
        lines.append(json.dumps(line) + "\n")
    (rank / "steps.jsonl").write_text("".join(lines))
    weight = np.arange(6, dtype=np.float32).reshape(3, 2)
    for step in chosen:
        tensors = {
            "batch/x": np.arange(4, dtype=np.int64).reshape(2, 2),
            "layers/head/forward/0/inputs/0": np.ones((2, 2), np.float32),
            "layers/head/forward/0/outputs/0": np.ones((2, 3), np.float32),
            "layers/head/backward/0/cotangents/0": np.ones((2, 3), np.float32),
            "layers/head/backward/0/inputs/0": np.ones((2, 2), np.float32),
            "parameters/head.weight/before": weight,
            "parameters/head.weight/after": weight + step,
            "gradients/head.weight/update": weight * 2,
            "state/head.weight/buf/after": np.array([[0x3F80]], np.uint16),
            "mask": np.array([True, False]),
            "nothing": np.zeros((0, 3), np.float64),
        }
        metadata = {
            "format": "refkernels-capture", "format_version": "1", "step": str(step), "rank": "0",
            "scalars": json.dumps({"layers/head/forward/0/inputs/scale": 0.5}),
        }  # fmt: skip
        (rank / f"step_{step:06d}.safetensors").write_bytes(safetensors(tensors, metadata))
    return folder

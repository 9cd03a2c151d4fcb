"""What only a GPU shows: arrays on it, its faults, kernels and trainings on it."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from refkernels import testing
from refkernels.alignment import align
from refkernels.frameworks.gateway import Session

ROOT = Path(__file__).parents[2]
DEVICE = "cuda:0"


def run(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, cwd=cwd, timeout=300, check=False
    )


def command(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return run("-m", "refkernels", *words, cwd=cwd)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_an_assertion_takes_tensors_of_the_gpu(torch: ModuleType, dtype: str) -> None:
    x = torch.randn(8, 300, device=DEVICE, dtype=getattr(torch, dtype), requires_grad=True)
    testing.assert_kernel("softmax", {"x": x}, torch.softmax(x, -1))
    with pytest.raises(AssertionError):
        testing.assert_kernel("softmax", {"x": x}, torch.softmax(x, -1) * 1.1)


def test_tf32_is_refused_and_named(torch: ModuleType) -> None:
    a, b = (torch.randn(shape, device=DEVICE) for shape in ((64, 64), (64, 64)))
    torch.backends.cuda.matmul.allow_tf32 = False
    testing.assert_kernel("matmul", {"a": a, "b": b}, a @ b)
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        with pytest.raises(AssertionError, match="TF32"):
            testing.assert_kernel("matmul", {"a": a, "b": b}, a @ b)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


@pytest.mark.parametrize("library", ["cupy", "jax.numpy"])
def test_an_assertion_takes_arrays_of_jax_and_cupy(torch: ModuleType, library: str) -> None:
    arrays = pytest.importorskip(library)
    given = arrays.asarray(np.linspace(-3, 3, 100, dtype=np.float32))
    testing.assert_kernel("exp", {"x": given}, arrays.exp(given))


def test_an_assert_on_the_device_ends_one_answer_and_not_the_session(torch: ModuleType) -> None:
    weight = np.ones((4, 2), np.float32)
    with Session("torch") as session:
        assert DEVICE in session.info["devices"]
        wrong = {"weight": weight, "indices": np.array([9])}
        reply = session.run("embedding", "forward", wrong, device=DEVICE)
        assert reply.status == "error"
        right = {"weight": weight, "indices": np.array([3])}
        reply = session.run("embedding", "forward", right, device=DEVICE)
        assert reply.ok, reply.reason


KERNELS = """
import torch

@torch.compile
def _compiled(x):
    return torch.nn.functional.silu(x)

def silu(x):
    return _compiled(x)
"""
CUPY = """
import cupy

def softmax(x):
    e = cupy.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)
"""


@pytest.mark.parametrize(("needs", "source", "op"), [
    ("triton", KERNELS, "silu"), ("cupy", CUPY, "softmax"),
])  # fmt: skip
def test_a_kernel_on_the_gpu_is_measured(
    torch: ModuleType, needs: str, source: str, op: str, tmp_path: Path
) -> None:
    pytest.importorskip(needs)
    (tmp_path / "kernels.py").write_text(source)
    words = ["--device", DEVICE, "--dtype", "float32", "--python", sys.executable]
    done = command("measure", "--kernel", f"kernels.py:{op}", *words, "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-1500:]
    lines = (tmp_path / "out" / "records.jsonl").read_text().splitlines()
    records: list[dict[str, Any]] = [json.loads(line) for line in lines]
    answered = [r for r in records if r.get("status") == "ok" and r.get("direction") == "forward"]
    assert answered
    assert {r["device"] for r in answered} == {DEVICE}


def test_the_triton_template_passes_on_the_gpu(torch: ModuleType) -> None:
    pytest.importorskip("triton")
    template = str(ROOT / "examples" / "triton_template")
    done = run("-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", template)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "interpreter" not in done.stdout  # the reason why a CPU skips bfloat16


def test_the_triton_template_is_judged_on_the_gpu(torch: ModuleType) -> None:
    pytest.importorskip("triton")
    kernel = ROOT / "examples" / "triton_template" / "layer_norm.py"
    words = ["--device", DEVICE, "--python", sys.executable, "--level", "quick", "--json"]
    done = command("judge", f"{kernel}:layernorm", *words)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-1500:]


def test_the_gpu_s_training_is_the_cpu_s_and_tf32_is_named(
    torch: ModuleType, tmp_path: Path
) -> None:
    train = str(ROOT / "examples" / "train_bert.py")
    runs = {"cpu": [], "gpu": ["--device", "cuda"], "tf32": ["--device", "cuda", "--tf32"]}
    losses = {}
    for name, words in runs.items():
        options = ["--steps", "3", "--captured", "0", *words]
        done = run(train, "torch", str(tmp_path / name), *options)
        assert done.returncode == 0, done.stderr[-2000:]
        losses[name] = json.loads(done.stdout.splitlines()[-1])
    plain = run(train, "torch", str(tmp_path / "plain"), "--steps", "3", "--captured",
                "--device", "cuda")  # fmt: skip
    assert json.loads(plain.stdout.splitlines()[-1]) == losses["gpu"]  # bits: capture changes none
    same = align(tmp_path / "cpu", tmp_path / "gpu", steps=[0])
    assert same.verdict.suspects == (), same.verdict.first
    other = align(tmp_path / "gpu", tmp_path / "tf32", steps=[0])
    named = {j.cause for j in other.local[1].judgements if j.confidence == "proven"}
    assert named == {"tf32_inputs"}

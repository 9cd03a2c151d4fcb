"""A kernel in Triton is judged as any other, interpreted where there is no GPU."""

from pathlib import Path

import pytest

from refkernels.testing import judge

TEMPLATE = Path(__file__).parents[2] / "examples" / "triton_template" / "layer_norm.py"
MASKED = "tl.where(at < columns, tl.load(x + at, at < columns, 0.0).to(tl.float32) - mean, 0.0)"
UNMASKED = "tl.load(x + at, at < columns, 0.0).to(tl.float32) - mean"


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    monkeypatch.setenv("TRITON_INTERPRET", "1")


def test_the_template_is_right() -> None:
    judgement = judge(f"{TEMPLATE}:layernorm", level="quick", seed=1)
    assert judgement.right, judgement.reasons
    assert (len(judgement.killed) > 10, judgement.alive) == (True, ())


def test_a_variance_that_counts_the_padding_of_a_block_is_wrong(tmp_path: Path) -> None:
    source = TEMPLATE.read_text(encoding="utf-8")
    assert source.count(MASKED) == 1
    kernel = tmp_path / "layer_norm.py"
    kernel.write_text(source.replace(MASKED, UNMASKED), encoding="utf-8")
    judgement = judge(f"{kernel}:layernorm", level="quick", seed=1)
    assert judgement.verdict == "wrong"
    assert judgement.cause is not None
    assert judgement.cause["cause"] == "padded_variance"

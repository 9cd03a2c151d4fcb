"""Right runs that are unusual are not blamed; wrong ones that look right are named."""

from pathlib import Path

import pytest
from captured import answer, run_script
from hunting import one_in

from refkernels.alignment import align
from refkernels.alignment.verdict import decide_alone
from refkernels.reporting.alignment import page

pytestmark = [pytest.mark.framework("torch"), pytest.mark.usefixtures("judged_once")]
SAME = "class_weights class_axis rms_norm late late_sgd decoupled evaluated accumulated nan middle"
RIGHT = {  # name: the verdict, and a word of its reason
    **dict.fromkeys(SAME.split(), ("same", "")),
    "implied_axis": ("undecidable", "Softmax"),
    "weight_norm": ("undecidable", "WeightNorm"),
    "bfloat16": ("undecidable", "AdamW"),
    "dropout": ("undecidable", "Dropout"),
}
PAIRS = {  # names: the verdict, and what the headline says
    ("plain", "accumulated"): ("same", ""),
    ("dropout", "dropout_other_seed"): ("undecidable", "Dropout"),
    ("dropout", "dropout_more"): ("different", "p is 0.1 in A and 0.2 in B"),
    ("plain", "not_zeroed"): ("different", "step 1: the gradient of `body.0.weight`: B adds grad"),
    ("plain", "unscaled"): ("different", "the gradient of `body.0.weight` in B is 2 times"),
    ("plain", "skipping"): ("different", "step 1: updates of the weights in this step: 1 in A, 0"),
    ("plain", "overflowing"): ("undecidable", "in step 1 B alone skipped an update"),
    ("clamped", "clamped_less"): ("different", "gradients between backward pass and update"),
    ("averaged", "average_kept"): ("different", "`training` is True in A and False in B"),
    ("plain", "lost"): ("different", "body.0.weight is not updated in B"),
    ("deep", "frozen"): ("different", "is frozen in B"),
    ("plain", "renewed"): ("different", "step 1: in B the step does not begin with m as"),
    ("spaced", "counted"): ("different", "step 2: the norm of step, a state that the optimizer"),
    ("lstm", "lstm_kept"): ("different", "computes add in A and ones, addmm, add in B"),
    ("pictures", "flipped"): ("different", "(axis 1: 2, 1, 0)"),
    ("plain", "tripled"): ("different", "B has `foreach_mul` in"),
    ("plain", "scaled"): ("same", ""),
    ("plain", "offset"): ("different", "B has `add 0.01` in"),
    ("mixed", "velocity"): ("different", "B has `mul 0.6`, `mul 0.8`, `sub` in"),
    ("cosines", "products"): ("different", "`linalg_vector_norm`, `clamp_min 1e-12`, `div` of"),
    ("less", "itself"): ("different", "`sin`, `sub` of `body.1 (judged_training.py:"),
    ("own", "own+"): ("undecidable", "no oracle knows what Own computes"),
    ("own", "own_coarse"): ("different", "the change of `body.0.weight: buf` by the step in B"),
    ("following", "following_less"): ("different", "of `body.1.weight` by the step in B is 1/2 "),
    ("nothing_dropped", "dropout"): ("different", "`bernoulli`, `div 0.9`, `mul` in"),
}
TRIED, TWO = one_in(3, RIGHT), one_in(4, PAIRS)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unusual")
    names = [*TRIED, *(f"{name}+" for name in TRIED), *(name for pair in TWO for name in pair)]
    answer(run_script("torch", folder, "judged_training.py", *dict.fromkeys(names)))
    return folder


@pytest.mark.parametrize("name", TRIED)
def test_a_right_run_is_not_blamed(name: str, runs: Path) -> None:
    """Beside itself with one weight moved by an ulp, where its calls decide; and alone."""
    alignment = align(runs / name, runs / f"{name}+")
    word, reason = RIGHT[name]
    assert alignment.verdict.word == "same", page.headline(alignment.to_dict())
    for local in alignment.local:
        assert decide_alone(local).word == word
    assert reason in page.headline(align(runs / name).to_dict())
    assert page.markdown(alignment.to_dict(), "zh")


@pytest.mark.parametrize("names", TWO, ids=" ".join)
def test_two_runs(names: tuple[str, str], runs: Path) -> None:
    alignment = align(*(runs / name for name in names))
    word, says = PAIRS[names]
    assert alignment.verdict.word == word, page.headline(alignment.to_dict())
    assert says in page.headline(alignment.to_dict())

"""Every cheat is refused for the right reason; no right kernel is refused.

A run tries one cheat of twenty with the same reason, and some right kernels of every sixth op (all
ops have right answers in test_every_op.py); a hunt tries all of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import listing
import numpy as np
import pytest
from hunting import one_in
from listing import SEED

from refkernels import experts_ref, quantization_ref, registry, scan_ref
from refkernels.judging.examination import Examinations
from refkernels.judging.judge import LEVELS, judge
from refkernels.judging.judgement import LIMITED, LOWER, NOT_ENOUGH, RIGHT, UNFAIR, WRONG, Judgement

HERE = Path(__file__).parent
QUICK = LEVELS["quick"]  # of users, with as many calls as two seconds allow
BY_REASON = {  # the verdict, a reason among those given, and the cheats
    (UNFAIR, "answers_zeros"): "zeros patches_the_harness",
    (UNFAIR, "answers_constant"): "constant only_one_shape",
    (UNFAIR, "answers_input"): "identity",
    (UNFAIR, "answers_memory"): "stale_memory answers_in_a_thread",
    (UNFAIR, "writes_inputs"): "zeroes_inputs zeroes_the_files",
    (UNFAIR, "overwrites_answers"): "buffer_reused",
    (UNFAIR, "stale_answer"): (
        "cache_by_pointer cache_where_writable cache_by_first_input cache_by_ends "
        "weights_packed_once targets_kept cache_by_sum answers_kept_in_a_file"
    ),
    (WRONG, "no_answer"): "fails_when_called_again",
    (NOT_ENOUGH, "declines"): "declines_what_tells",
    (UNFAIR, "no_plain_array"): "lazy disguised_lazy",
    (UNFAIR, "answers_nan"): "finds_the_truth",
    (UNFAIR, "replaces"): "patches_numpy patches_the_clock",
    (LOWER, "lower_precision"): (
        "factor_flushed float16_inside bfloat16_inside tf32_inside all_in_half half "
        "knows_the_families tf32_in_whole_tiles"
    ),
    (WRONG, "wrong_bound"): (
        "equal_axes fixed_statistics prefix_statistics statistics_of_the_first_row "
        "one_pass_variance n_minus_one wrong_eps smoothing_ignored split_bfloat16 tanh_for_erf "
        "only_multiples_of_16 padding_leaks edges_repeated dilation_ignored last_channel_missed "
        "running_statistics running_variance_biased running_mean_stays statistics_kept "
        "row_of_16_bits mean_left_out queries_in_pairs block_not_rescaled affine_left_out "
        "statistics_of_a_sample half_statistics eps_outside_the_root one_element_in_a_thousand "
        "reads_the_judge wrong_beyond_100000_columns wrong_for_new_content small_factors_skipped "
        "large_numbers_lost one_tile_missed last_row_of_many half_in_long_rows window_of_keys "
        "end_of_a_long_sum no_eps_in_long_rows a_quarter_of_a_long_sum "
        "special_case_of_1024 whole_vectors descending_rows grid_of_65535_rows one_is_all "
        "factor_with_itself transposed_as_it_lies strassen dense_vectors negative_as_zero "
        "nothing_but_zeros statistics_of_8192 key_behind_a_tile small_numbers_skipped mask_ignored"
    ),
    (WRONG, "wrong_special"): (
        "without_maximum nan_ignored minus_zero_ignored infinities_ignored nan_in_weights_ignored "
        "zeros_skipped maximum_from_zero index_of_16_bits begins_with_the_lowest pivot_of_the_ends"
    ),
    (WRONG, "outside_memory"): "only_contiguous reads_past_the_end",
    (WRONG, ""): "tail_unwritten race",
    (WRONG, "wrong_invariant"): "sign_of_zero_lost zero_branch",
    (WRONG, "unwritten"): "launch_fails",
    (NOT_ENOUGH, "no_answer"): "feigns_a_lack_of_memory",
    (UNFAIR, "turns_wrong"): "one_call_in_200",
    (RIGHT, ""): "falls_back own_shape_unanswered stops_the_clock",
}
CHEATS = {name: reason for reason, names in BY_REASON.items() for name in names.split()}


def judged(path: Path, function: str, op: str, **options: Any) -> Judgement:
    shared = {"level": "quick", "seed": SEED, "causes": False}
    return judge(f"{path}:{function}", op, **{**shared, "mutants": False, **options})


FILES = {
    function.removesuffix(f"_{op}"): (path, function, op) for path, function, op in listing.cheats()
}


def test_the_cheats_are_those_of_the_folder() -> None:
    assert FILES.keys() == CHEATS.keys()


@pytest.mark.parametrize("name", one_in(20, CHEATS, CHEATS.__getitem__))
def test_a_cheat_is_refused_with_its_reason(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict, reason = CHEATS[name]
    if reason == "turns_wrong":
        monkeypatch.setitem(LEVELS, "quick", QUICK)
    judgement = judged(*FILES[name])
    kinds = {refusal.kind for refusal in judgement.reasons}
    if reason == "answers_memory" and reason not in kinds:
        verdict, reason = WRONG, "unwritten"  # the memory held what the judge fills in alone
    assert judgement.verdict == verdict, judgement.reasons
    assert not reason or reason in kinds, kinds


def test_the_shapes_of_a_kernels_use_are_asked_first() -> None:
    judgement = judged(*FILES["own_shape_unanswered"], shapes={"x": (16, 250)})
    assert (judgement.verdict, judgement.shapes) == (WRONG, {"x": (16, 250)})
    assert judgement.reasons[0].challenge.startswith("own: typical: x (16, 250)")


def test_the_judges_own_clock_stops_at_the_last_byte() -> None:
    judgement = judged(*FILES["stops_the_clock"], times=True)
    assert judgement.verdict == RIGHT, judgement.reasons
    assert judgement.time is not None
    assert judgement.time["least"] >= 0.1


FUSED = """glu bias_gelu add_rms_norm lora_linear linear_cross_entropy weight_norm spectral_norm
einsum argmax ctc_loss scaled_attention adamw_8bit table_quantize
prelu fft rfft irfft logcumsumexp sampling_softmax"""  # the last line: tests/ops/test_models.py
BY_OP: dict[str, list[tuple[Path, str]]] = {}
for path, function, op in listing.right():
    BY_OP.setdefault(op, []).append((path, function))


@pytest.mark.parametrize("op", one_in(6, BY_OP))
@np.errstate(all="ignore")
def test_no_right_kernel_is_refused(op: str) -> None:
    for path, function in one_in(6, BY_OP[op]):
        answered, found = listing.faults(path, function, op, Examinations(), SEED)
        assert (answered > 12, found) == (True, []), function


@pytest.mark.parametrize("op", one_in(4, ("adamw", "attention", "matmul", "softmax")))
def test_a_right_kernel_is_right_in_processes_of_its_own(op: str) -> None:
    path, function = BY_OP[op][0]
    judgement = judged(path, function, op)
    assert judgement.verdict == RIGHT, judgement.reasons


@pytest.mark.parametrize(("allow", "verdict"), [(None, LIMITED), (False, LIMITED), (True, RIGHT)])
def test_a_range_that_another_form_keeps_has_a_verdict_of_its_own(
    allow: bool | None, verdict: str
) -> None:
    """x min(max(x + 3, 0), 6) / 6 overflows from 5.7e37 on, where x is the answer."""
    kernel = HERE / "right" / "activations.py", "whole_clipped_hardswish", "hardswish"
    judgement = judged(*kernel, allow_overflow=allow)
    assert judgement.verdict == verdict, judgement.reasons
    stays = {reason.details["form"] for reason in judgement.reasons}
    assert stays == (set() if allow else {"pieces"})
    assert ("range_limited" in judgement.flags) == (allow is True)


def test_at_least_twelve_kernels_of_every_op_are_right() -> None:
    rooms = (scan_ref, experts_ref, quantization_ref)  # in their tests: other forms, by assertion
    fused = {op.name for room in rooms for op in room.OPS} | {*FUSED.split()}
    assert registry.ops().keys() - BY_OP.keys() == fused  # whose parts have kernels
    assert min(map(len, BY_OP.values())) >= 12


@pytest.mark.parametrize("op", ["matmul", "layernorm", "gelu", "sum", "linear", "log_softmax"])
@np.errstate(all="ignore")
def test_16_bits_in_float32_are_right(op: str) -> None:
    wide = [(p, f) for p, f in BY_OP[op] if f.startswith("float32_")]
    found = [listing.faults(*kernel, op, Examinations(), SEED, "float16") for kernel in wide]
    assert {len(faults) for _, faults in found} == {0}

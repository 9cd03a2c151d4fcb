"""Every cheat is refused for the right reason; no right kernel is refused.

A run tries one cheat of ten with the same reason, and some right kernels of every third op; a hunt
tries all of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import listing
import numpy as np
import pytest
from hunting import one_in

from refkernels import experts_ref, registry, scan_ref
from refkernels.judging.examination import Examinations
from refkernels.judging.judge import judge
from refkernels.judging.judgement import LIMITED, LOWER, NOT_ENOUGH, RIGHT, UNFAIR, WRONG, Judgement

HERE = Path(__file__).parent
SEED = 11
SHARED = Examinations()
CHEATS = {
    "zeros": (UNFAIR, "answers_zeros"),
    "constant": (UNFAIR, "answers_constant"),
    "identity": (UNFAIR, "answers_input"),
    "stale_memory": (UNFAIR, "answers_memory"),
    "zeroes_inputs": (UNFAIR, "writes_inputs"),
    "cache_by_pointer": (UNFAIR, "stale_answer"),
    "cache_where_writable": (UNFAIR, "stale_answer"),
    "cache_by_first_input": (UNFAIR, "stale_answer"),
    "cache_by_ends": (UNFAIR, "stale_answer"),
    "weights_packed_once": (UNFAIR, "stale_answer"),
    "targets_kept": (UNFAIR, "stale_answer"),
    "fails_when_called_again": (WRONG, "no_answer"),
    "declines_what_tells": (NOT_ENOUGH, "declines"),
    "lazy": (UNFAIR, "no_plain_array"),
    "finds_the_truth": (UNFAIR, "answers_nan"),
    "patches_numpy": (UNFAIR, "replaces"),
    "patches_the_harness": (UNFAIR, "answers_zeros"),
    "float16_inside": (LOWER, "lower_precision"),
    "bfloat16_inside": (LOWER, "lower_precision"),
    "tf32_inside": (LOWER, "lower_precision"),
    "all_in_half": (LOWER, "lower_precision"),
    "half": (LOWER, "lower_precision"),
    "fixed_statistics": (WRONG, "wrong_bound"),
    "prefix_statistics": (WRONG, "wrong_bound"),
    "statistics_of_the_first_row": (WRONG, "wrong_bound"),
    "without_maximum": (WRONG, "wrong_special"),
    "one_pass_variance": (WRONG, "wrong_bound"),
    "n_minus_one": (WRONG, "wrong_bound"),
    "wrong_eps": (WRONG, "wrong_bound"),
    "smoothing_ignored": (WRONG, "wrong_bound"),
    "split_bfloat16": (WRONG, "wrong_bound"),
    "tanh_for_erf": (WRONG, "wrong_bound"),
    "only_one_shape": (UNFAIR, "answers_constant"),
    "only_multiples_of_16": (WRONG, "wrong_bound"),
    "only_contiguous": (WRONG, "outside_memory"),
    "reads_past_the_end": (WRONG, "outside_memory"),
    "tail_unwritten": (WRONG, ""),
    "padding_leaks": (WRONG, "wrong_bound"),
    "nan_ignored": (WRONG, "wrong_special"),
    "minus_zero_ignored": (WRONG, "wrong_special"),
    "sign_of_zero_lost": (WRONG, "wrong_invariant"),
    "zero_branch": (WRONG, "wrong_invariant"),
    "infinities_ignored": (WRONG, "wrong_special"),
    "nan_in_weights_ignored": (WRONG, "wrong_special"),
    "zeros_skipped": (WRONG, "wrong_special"),
    "race": (WRONG, ""),
    "launch_fails": (WRONG, "unwritten"),
    "subnormals_flushed": (LOWER, "lower_precision"),
    "edges_repeated": (WRONG, "wrong_bound"),
    "dilation_ignored": (WRONG, "wrong_bound"),
    "last_channel_missed": (WRONG, "wrong_bound"),
    "running_statistics": (WRONG, "wrong_bound"),
    "running_variance_biased": (WRONG, "wrong_bound"),
    "running_mean_stays": (WRONG, "wrong_bound"),
    "statistics_kept": (WRONG, "wrong_bound"),
    "window_of_keys": (WRONG, "wrong_bound"),
    "mask_ignored": (WRONG, "wrong_bound"),
    "block_not_rescaled": (WRONG, "wrong_bound"),
    "maximum_from_zero": (WRONG, "wrong_special"),
    "index_of_16_bits": (WRONG, "wrong_special"),
    "row_of_16_bits": (WRONG, "wrong_bound"),
    "queries_in_pairs": (WRONG, "wrong_bound"),
    "mean_left_out": (WRONG, "wrong_bound"),
    "affine_left_out": (WRONG, "wrong_bound"),
    "statistics_of_a_sample": (WRONG, "wrong_bound"),
    "half_statistics": (WRONG, "wrong_bound"),
    "eps_outside_the_root": (WRONG, "wrong_bound"),
    "knows_the_families": (LOWER, "lower_precision"),
    "cache_by_sum": (UNFAIR, "stale_answer"),
    "answers_kept_in_a_file": (UNFAIR, "stale_answer"),
    "zeroes_the_files": (UNFAIR, "writes_inputs"),
    "feigns_a_lack_of_memory": (NOT_ENOUGH, "no_answer"),
    "one_element_in_a_thousand": (WRONG, "wrong_bound"),
    "reads_the_judge": (WRONG, "wrong_bound"),
    "wrong_beyond_100000_columns": (WRONG, "wrong_bound"),
    "one_call_in_200": (UNFAIR, "turns_wrong"),
    "wrong_for_new_content": (WRONG, "wrong_bound"),
    "small_factors_skipped": (WRONG, "wrong_bound"),
    "large_numbers_lost": (WRONG, "wrong_bound"),
    "one_tile_missed": (WRONG, "wrong_bound"),
    "last_row_of_many": (WRONG, "wrong_bound"),
    "half_in_long_rows": (WRONG, "wrong_bound"),
    "tf32_in_whole_tiles": (WRONG, "wrong_bound"),
    "end_of_a_long_sum": (WRONG, "wrong_bound"),
    "no_eps_in_long_rows": (WRONG, "wrong_bound"),
    "a_quarter_of_a_long_sum": (WRONG, "wrong_bound"),
    "special_case_of_1024": (WRONG, "wrong_bound"),
    "whole_vectors": (WRONG, "wrong_bound"),
    "answers_in_a_thread": (UNFAIR, "answers_memory"),
    "patches_the_clock": (UNFAIR, "replaces"),  # and timed truly, see below
    "falls_back": (RIGHT, ""),
    "own_shape_unanswered": (RIGHT, ""),  # but not where the shape is given, see below
    "stops_the_clock": (RIGHT, ""),  # and timed truly, see below
}


def judged(path: Path, function: str, op: str, **options: Any) -> Judgement:
    shared = {"level": "quick", "seed": SEED, "causes": False, "examinations": SHARED}
    return judge(f"{path}:{function}", op, **{**shared, "mutants": False, **options})


FILES = {
    function.removesuffix(f"_{op}"): (path, function, op) for path, function, op in listing.cheats()
}


def test_the_cheats_are_those_of_the_folder() -> None:
    assert FILES.keys() == CHEATS.keys()


@pytest.mark.parametrize("name", one_in(10, CHEATS, CHEATS.__getitem__))
def test_a_cheat_is_refused_with_its_reason(name: str) -> None:
    judgement = judged(*FILES[name])
    verdict, reason = CHEATS[name]
    kinds = {refusal.kind for refusal in judgement.reasons}
    if reason == "answers_memory" and reason not in kinds:
        verdict, reason = WRONG, "unwritten"  # the memory held what the judge fills in alone
    assert judgement.verdict == verdict, judgement.reasons
    assert not reason or reason in kinds, kinds


def test_the_shapes_of_a_kernels_use_are_asked_first() -> None:
    kernel = f"{HERE}/cheats/softmax.py:own_shape_unanswered_softmax"
    judgement = judge(kernel, level="quick", seed=SEED, shapes={"x": (64, 1000)}, causes=False)
    assert (judgement.verdict, judgement.shapes) == (WRONG, {"x": (64, 1000)})
    assert judgement.reasons[0].challenge.startswith("own: typical: x (64, 1000)")


def test_the_judges_own_clock_stops_at_the_last_byte() -> None:
    kernel = f"{HERE}/cheats/softmax.py:stops_the_clock_softmax"
    judgement = judge(kernel, level="quick", seed=SEED, times=True, examinations=SHARED)
    assert judgement.verdict == RIGHT, judgement.reasons
    assert judgement.time is not None
    assert judgement.time["least"] >= 0.1


BY_OP: dict[str, list[tuple[Path, str]]] = {}
for path, function, op in listing.right():
    BY_OP.setdefault(op, []).append((path, function))


@pytest.mark.parametrize("op", one_in(3, BY_OP))
@np.errstate(all="ignore")
def test_no_right_kernel_is_refused(op: str) -> None:
    for path, function in one_in(6, BY_OP[op]):
        answered, found = listing.faults(path, function, op, SHARED, SEED)
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
    fused = {"glu", "bias_gelu", "add_rms_norm", "lora_linear", "linear_cross_entropy"}
    fused |= {"cast", "quantize", "dequantize", "block_quantize"}  # tests/quantization_ref
    fused |= {op.name for op in scan_ref.OPS}  # tests/scan_ref: other forms, by assertion
    fused |= {"prelu", "fft", "logcumsumexp", "sampling_softmax"}  # tests/ops/test_models.py
    fused |= {"weight_norm", "spectral_norm"}
    fused |= {op.name for op in experts_ref.OPS}  # tests/experts_ref
    assert registry.ops().keys() - BY_OP.keys() == fused  # whose parts have kernels
    assert min(map(len, BY_OP.values())) >= 12


@pytest.mark.parametrize("op", ["matmul", "layernorm", "gelu", "sum", "linear", "log_softmax"])
@np.errstate(all="ignore")
def test_16_bits_in_float32_are_right(op: str) -> None:
    wide = [(p, f) for p, f in BY_OP[op] if f.startswith("float32_")]
    found = [listing.faults(*kernel, op, SHARED, SEED, "float16") for kernel in wide]
    assert {len(faults) for _, faults in found} == {0}

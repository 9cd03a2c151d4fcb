"""The answer in one sentence, in two languages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from refkernels.reporting.answer.facts import (
    ExplainedKernel,
    Record,
    kernels_of,
    number,
    says,
    show,
    show_ratio,
)
from refkernels.reporting.answer.words import WORDS
from refkernels.reporting.words.causes import LANGUAGES
from refkernels.suggestion import instead

_ASTONISHING = 4.0  # ulp, the declared limit of elementwise ops: fewer need no condition number


def summary(answer: Record, lang: str = "en") -> str:
    """The answer in one sentence."""
    words = words_of(lang)
    kernels = kernels_of(answer)
    end = "." if lang == "en" else "。"
    if len(kernels) == 1:
        return _alone(kernels[0], words, lang) + end
    parts = []
    bad = [one for one in kernels if not one.fine]
    # Of many kernels, some of them wrong, these are what matters.
    widest = _widest(answer) if len(kernels) == 2 or not bad else None
    if widest is not None:
        parts.append(_difference(widest, answer, words, lang))
    told = {widest["cause"]} if widest is not None else set()
    parts += [_one(one, words, lang) + _blamed(one, words, lang, told) for one in bad]
    if not bad:
        bound = max((one.largest_bound for one in kernels), key=lambda b: number(b) or 0.0)
        parts.append(words["all_fine"].format(bound=show_ratio(bound)))
    return ("; " if lang == "en" else "；").join(parts) + end


def words_of(lang: str) -> Mapping[str, str]:
    """The sentences of a language. Raises ValueError for a language that is not there,
    TypeError for what is no name."""
    if not isinstance(lang, str):
        raise TypeError(f"lang is of type {type(lang).__name__}, but it must be a name.")
    if lang not in LANGUAGES:
        raise ValueError(f"There is no language {lang!r}: {instead(lang, LANGUAGES)}.")
    return WORDS[lang]


def verdict_text(one: ExplainedKernel, words: Mapping[str, str], lang: str) -> str:
    """The verdict on one kernel, as a part of a sentence."""
    key = "unusual" if one.unusual else one.verdict
    measured = one.measured
    text = words[key].format(
        output=one.output,
        format=one.format,
        bound=show_ratio(one.bound),
        limit=_limit(one, words),
        plain=show(one.plain),
        number=show(measured["counts"]["special_value_mismatches"]),
        invariants=", ".join(measured["invariants_violated"]),
    )
    # Where cancellation makes the ULP figure large, it means nothing without the condition.
    if key == "rounding" and one.condition is not None and (number(one.ulp) or 0) > _ASTONISHING:
        text += words["amplified"].format(ulp=one.ulps(lang), condition=show(one.condition))
    return text


def _limit(one: ExplainedKernel, words: Mapping[str, str]) -> str:
    """What an output is held to: the bound of forms, of one that permits its error, or a limit."""
    bound = one.measured["bound"]
    key = "by:limit" if "limit" in bound else "by:form" if "form" in bound else "by:forms"
    return words[key].format(
        limit=show(bound.get("limit")), form=bound.get("form"), format=one.format
    )


def _alone(one: ExplainedKernel, words: Mapping[str, str], lang: str) -> str:
    if one.name:
        return _one(one, words, lang) + _blamed(one, words, lang, set())
    key = "exact" if one.verdict == "correctly_rounded" else "alone"
    return words[key].format(verdict=verdict_text(one, words, lang)) + _blamed(
        one, words, lang, set()
    )


def _one(one: ExplainedKernel, words: Mapping[str, str], lang: str) -> str:
    key = "one_exact" if one.verdict == "correctly_rounded" else "one"
    return words[key].format(kernel=one.name, verdict=verdict_text(one, words, lang))


def _blamed(one: ExplainedKernel, words: Mapping[str, str], lang: str, told: set[Any]) -> str:
    """What follows the verdict: the cause, or that there is none where one is needed."""
    best = one.best
    if best is None:
        return "" if one.fine else words["and_unexplained"].format(tried=show(one.tried))
    if one.cause in told:
        return ""
    text = says(best, lang, len(one.models) > 1)
    for rival in one.rivals:
        text += words["or"].format(says=says(rival, lang))
    key = "and_maybe" if best["confidence"] == "consistent" else "and_cause"
    key += "_of" if one.name else ""
    return words[key].format(says=text, confidence=words[best["confidence"]])


def _widest(answer: Record) -> Record | None:
    """The pair of kernels that is furthest apart; None where all have the same bits."""
    apart = [one for one in answer["differences"] if not one["equal"]]
    if not apart:
        return next(iter(answer["differences"]), None)
    explained = [one for one in apart if one["cause"]]
    return max(explained or apart, key=lambda one: _apart(one)[1])


def _apart(difference: Record) -> tuple[str, float]:
    """(output, largest difference) where a pair differs the most."""
    sizes = {
        name: number(one["max_abs_difference"]) or 0.0
        for name, one in difference["outputs"].items()
    }
    output = max(sizes, key=lambda name: sizes[name])
    return output, sizes[output]


def _difference(one: Record, answer: Record, words: Mapping[str, str], lang: str) -> str:
    if one["equal"]:
        return words["equal"].format(a=one["a"], b=one["b"])
    output, _ = _apart(one)
    figures = one["outputs"][output]
    text = words["differ"].format(
        a=one["a"],
        b=one["b"],
        output=output,
        equal=show(figures["equal_bits"]),
        elements=show(figures["elements"]),
        apart=show(figures["max_abs_difference"]),
    )
    return text + _because(one, answer, words, lang)


def _because(one: Record, answer: Record, words: Mapping[str, str], lang: str) -> str:
    if one["cause"] is None:
        return ""
    confidence = words[one["confidence"]] if one["confidence"] else ""
    if one["cause"] == "summation_order":
        each = _orders(one, answer, lang)
        if each is not None:
            return words["because_each"].format(**each, confidence=confidence)
    holders = [
        kernel
        for kernel in kernels_of(answer)
        if kernel.name in (one["a"], one["b"]) and kernel.cause == one["cause"]
    ]
    if len(holders) == 1 and holders[0].best is not None:
        return words["because"].format(
            kernel=holders[0].name, says=says(holders[0].best, lang), confidence=confidence
        )
    told = {"cause": one["cause"], "details": one["details"]}
    return words["because_both"].format(
        cause=one["cause"], says=says(told, lang), confidence=confidence
    )


def _orders(one: Record, answer: Record, lang: str) -> dict[str, str] | None:
    """What each of two kernels does, where it is known of both."""
    models = one["details"].get("models", {}).get(_apart(one)[0])
    if models is None:
        return None
    told = {"a": one["a"], "b": one["b"]}
    for key in ("a", "b"):
        kernel = ExplainedKernel(one[key], answer["kernels"][one[key]])
        found = [c for c in kernel.candidates if c["model"] == models[one[key]]]
        told[f"{key}_says"] = says(found[0], lang)
    return told

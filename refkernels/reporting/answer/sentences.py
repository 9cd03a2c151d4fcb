"""The answer in one sentence, in two languages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from refkernels.reporting.answer.facts import (
    WORDS,
    ExplainedKernel,
    Record,
    kernels_of,
    number,
    says,
    show,
    show_ratio,
)
from refkernels.reporting.words.catalogues import Texts
from refkernels.reporting.words.forms import avoidable, form_name

words_of = WORDS.__getitem__
_ASTONISHING = 4.0
"""ulp, the declared limit of elementwise ops: smaller errors need no condition number."""


def summary(answer: Record, lang: str = "en") -> str:
    """The answer in one sentence."""
    words = words_of(lang)
    kernels = kernels_of(answer)
    if len(kernels) == 1:
        return _one_kernel(kernels[0], words) + words["stop"]
    parts = []
    bad = [kernel for kernel in kernels if not kernel.fine]
    # Of many kernels, some of them wrong, the wrong ones matter, not the widest pair.
    widest = _widest(answer) if len(kernels) == 2 or not bad else None
    if widest is not None:
        parts.append(_difference(widest, answer, words))
    stated = {widest["cause"]} if widest is not None else set()
    parts += [_named_kernel(kernel, words) + _blamed(kernel, words, stated) for kernel in bad]
    if not bad:
        bound = max(
            (kernel.largest_bound for kernel in kernels), key=lambda ratio: number(ratio) or 0.0
        )
        parts.append(words("all_fine", bound=show_ratio(bound)))
    return words["list"].join(parts) + words["stop"]


def verdict_text(kernel: ExplainedKernel, words: Texts) -> str:
    """The verdict on one kernel, as a part of a sentence."""
    key = "unusual" if kernel.unusual else kernel.verdict
    measured = kernel.measured
    counts = measured["counts"]
    uncertified = counts.get("uncertified", 0)  # older records lack it
    text = words["rounding_of" if key == "rounding" and uncertified else key].format(
        output=kernel.output,
        format=kernel.format,
        bound=show_ratio(kernel.bound),
        limit=_limit(kernel, words),
        plain=show(kernel.plain),
        number=show(counts["special_value_mismatches"]),
        uncertified=show(uncertified),
        range_limited=show(counts.get("range_limited", 0)),
        range=_range(kernel, words),
        ill_conditioned=show(counts.get("ill_conditioned", 0)),
        elements=show(counts["elements"]),
        invariants=", ".join(measured["invariants_violated"]),
    )
    # Where cancellation makes the ULP figure large, it means nothing without the condition number.
    if (
        key == "rounding"
        and kernel.condition is not None
        and (number(kernel.ulp) or 0) > _ASTONISHING
    ):
        text += words("amplified", ulp=kernel.ulps(words.lang), condition=show(kernel.condition))
    if kernel.avoidable is not None:
        text += words["list"] + str(avoidable(measured, kernel.format, words.lang))
    return text + _where(measured.get("wrong"), kernel.output, words)


def _where(wrong: Record | None, output: str, words: Texts) -> str:
    """Which elements are wrong, unless all are: the one; all of a slice; or the first, and the
    slice that holds them all."""
    if wrong is None or wrong["elements"] == wrong["of"]:
        return ""
    box, number = wrong["box"], wrong["elements"]
    size = math.prod(stop - start for start, stop in box)
    keys = {number: "where_slice", wrong["of"]: "where_first"}
    key = "where_one" if number == 1 else keys.get(size, "where_within")
    return words[key].format(
        number=show(number),
        elements=show(wrong["of"]),
        first=", ".join(_element(output, index) for index in wrong["first"][:3]),
        slice=_element(output, [a if a + 1 == b else f"{a}:{b}" for a, b in box]),
    )


def _element(output: str, index: Sequence[Any]) -> str:
    """y[3, 8:16]."""
    return f"{output}[{', '.join(map(str, index))}]"


def _range(kernel: ExplainedKernel, words: Texts) -> str:
    """Which forms leave the format's range where the output does, and which would not."""
    told = kernel.measured["bound"].get("range", {})
    comma = words["list"].replace(";", ",").replace("；", "，")
    parts = [
        words(f"range:{word}", forms=", ".join(told[word]))
        for word in ("overflows", "underflows", "stays")
        if told.get(word)
    ]
    return comma.join(parts if told.get("stays") else [*parts, words["range:none"]])


def _limit(kernel: ExplainedKernel, words: Texts) -> str:
    """The bound of an output: of all forms, of the form that permits its error, or a limit."""
    bound = kernel.measured["bound"]
    key = "by:limit" if "limit" in bound else "by:form" if "form" in bound else "by:forms"
    return words[key].format(
        limit=show(bound.get("limit")),
        form=form_name(bound.get("form", ""), words.lang),
        format=kernel.format,
    )


def _one_kernel(kernel: ExplainedKernel, words: Texts) -> str:
    if kernel.name:
        return _named_kernel(kernel, words) + _blamed(kernel, words, set())
    key = "exact" if kernel.verdict == "correctly_rounded" else "alone"
    return words(key, verdict=verdict_text(kernel, words)) + _blamed(kernel, words, set())


def _named_kernel(explained: ExplainedKernel, words: Texts) -> str:
    key = "one_exact" if explained.verdict == "correctly_rounded" else "one"
    return words(key, kernel=explained.name, verdict=verdict_text(explained, words))


def _blamed(kernel: ExplainedKernel, words: Texts, stated: set[Any]) -> str:
    """The text after the verdict: the cause of a wrong output, or the statement that none was
    found."""
    best = kernel.best
    if best is None:
        if kernel.explained_by_rounding or kernel.unsure:
            return ""
        return words("and_unexplained", tried=show(kernel.tried))
    if kernel.cause in stated:
        return ""
    text = says(best, words.lang, len(kernel.models) > 1)
    for rival in kernel.rivals:
        text += words("or", says=says(rival, words.lang))
    elsewhere = not any(
        candidate["output"] == kernel.output and candidate["confidence"] is not None
        for candidate in kernel.candidates
    )
    if elsewhere and not kernel.explained_by_rounding:
        unexplained = words("and_unexplained", tried=show(kernel.tried))
        cause = {"output": best["output"], "says": text, "confidence": words[best["confidence"]]}
        return unexplained + words("and_elsewhere", **cause)
    key = "and_maybe" if best["confidence"] == "consistent" else "and_cause"
    key += "_of" if kernel.name else ""
    blamed = words(key, says=text, confidence=words[best["confidence"]])
    reasons = [says(reason, words.lang) for reason in kernel.reasons if reason not in kernel.rivals]
    if reasons:
        more_reasons = "".join(words("or", says=reason) for reason in reasons[1:])
        blamed += words("perhaps", says=reasons[0]) + more_reasons + words["or_elsewhere"]
    return blamed


def _widest(answer: Record) -> Record | None:
    """The pair of kernels that is furthest apart; the first pair where all have the same bits."""
    apart = [pair for pair in answer["differences"] if not pair["equal"]]
    if not apart:
        return next(iter(answer["differences"]), None)
    explained = [pair for pair in apart if pair["cause"]]
    return max(explained or apart, key=lambda pair: _apart(pair)[1])


def _apart(difference: Record) -> tuple[str, float]:
    """(output, largest difference) for the output in which a pair differs most."""
    sizes = {
        name: number(figures["max_abs_difference"]) or 0.0
        for name, figures in difference["outputs"].items()
    }
    output = max(sizes, key=lambda name: sizes[name])
    return output, sizes[output]


def _difference(pair: Record, answer: Record, words: Texts) -> str:
    if pair["equal"]:
        return words("equal", a=pair["a"], b=pair["b"])
    output, _ = _apart(pair)
    figures = pair["outputs"][output]
    text = words["differ"].format(
        a=pair["a"],
        b=pair["b"],
        output=output,
        equal=show(figures["equal_bits"]),
        elements=show(figures["elements"]),
        apart=show(figures["max_abs_difference"]),
    )
    return text + _because(pair, answer, words)


def _because(pair: Record, answer: Record, words: Texts) -> str:
    if pair["cause"] is None:
        return ""
    confidence = words[pair["confidence"]] if pair["confidence"] else ""
    if pair["cause"] == "summation_order":
        orders = _orders(pair, answer, words.lang)
        if orders is not None:
            return words("because_each", **orders, confidence=confidence)
    holders = [
        holder
        for holder in kernels_of(answer)
        if holder.name in (pair["a"], pair["b"]) and holder.cause == pair["cause"]
    ]
    if len(holders) == 1 and holders[0].best is not None:
        return words["because"].format(
            kernel=holders[0].name, says=says(holders[0].best, words.lang), confidence=confidence
        )
    candidate = {"cause": pair["cause"], "details": pair["details"]}
    return words["because_both"].format(
        cause=pair["cause"], says=says(candidate, words.lang), confidence=confidence
    )


def _orders(pair: Record, answer: Record, lang: str) -> dict[str, str] | None:
    """The sentences on both kernels' orders, if both are known."""
    models = pair["details"].get("models", {}).get(_apart(pair)[0])
    if models is None:
        return None
    sentences = {"a": pair["a"], "b": pair["b"]}
    for key in ("a", "b"):
        kernel = ExplainedKernel(pair[key], answer["kernels"][pair[key]])
        candidates = [
            candidate for candidate in kernel.candidates if candidate["model"] == models[pair[key]]
        ]
        sentences[f"{key}_says"] = says(candidates[0], lang)
    return sentences

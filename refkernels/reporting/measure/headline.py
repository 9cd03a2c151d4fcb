"""The first paragraph: what was measured, with which results, and what failed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from refkernels.reporting.measure.comparisons import invariances
from refkernels.reporting.measure.settings import setting_effects
from refkernels.reporting.measure.study import Measurement, Study, as_number
from refkernels.reporting.words.catalogues import Texts
from refkernels.reporting.words.escaping import clipped
from refkernels.reporting.words.numerals import large, share
from refkernels.reporting.words.report import counted, listed
from refkernels.reporting.words.vocabulary import (
    meaning_of,
    rank_of_dtype,
    rank_of_status,
    verdict,
)
from refkernels.target_names import is_kernel, short

_ROUNDING = verdict("rounding").rank
_MOST_OPS = 6  # named in a sentence


def headline(study: Study, words: Texts) -> list[str]:
    """The sentences of the first paragraph."""
    not_offered = len(study.failures) - len(study.unanswered)
    return [
        *summary(study, words),
        *([words("unsupported", n=f"{not_offered:,}")] if not_offered else []),
        *invariance_sentences(study, words),
        *settings_sentences(study, words),
        *([words("unknown_kind", n=f"{study.unknown:,}")] if study.unknown else []),
    ]


def _flushing(study: Study, words: Texts) -> list[str]:
    """The targets whose process flushes subnormal numbers."""
    flushing = [e for e in study.environments if e.get("flushes_subnormals")]
    targets = [*dict.fromkeys(str(environment["framework"]) for environment in flushing)]
    return [words("flushing", targets=listed(words, targets))] if targets else []


def summary(study: Study, words: Texts) -> list[str]:
    """What was measured, what gave no answer and why, and the verdicts on the rest."""
    told = *_flushing(study, words), *_failures(study, words), *_verdicts(study, words)
    return [_measured(study, words), *told]


def absent(study: Study, words: Texts) -> list[str]:
    """The targets that gave no answer at all, each in a sentence with the reason.

    A framework may lack an op that others have; a kernel is its author's, and was to answer.
    """
    answering = {m.subject for m in study.measurements}
    failed = {failure.subject for failure in study.failures if failure.status != "unsupported"}
    reasons: dict[str, list[str]] = defaultdict(list)
    for failure in study.failures:
        name = failure.subject
        told = failure.status != "unsupported" if name in failed else is_kernel(name)
        if name not in answering and told and failure.reason:
            reasons[name].append(failure.reason)
    sentences = []
    for subject in sorted(reasons):
        first_two = [_said(reason, subject) for reason in dict.fromkeys(reasons[subject])][:2]
        sentences.append(words("absent", target=subject, reason="; ".join(first_two)))
    return sentences


def _said(reason: str, subject: str) -> str:
    """A reason within a sentence that names its target already."""
    return clipped(reason.removeprefix(f"{subject}: "), 240).removesuffix(".")


def scope(study: Study, words: Texts) -> list[str]:
    """What was left out, in a sentence; empty if everything was measured."""
    plans = (environment.get("plan") for environment in study.environments)
    for plan in [plan for plan in plans if isinstance(plan, dict)][:1]:
        units, left_out = (as_number(plan.get(name)) for name in ("units", "left_out"))
        if units and left_out:
            total = units + left_out
            return [words("scope", units=f"{units:,.0f}", total=f"{total:,.0f}")]
    return []


def _measured(study: Study, words: Texts) -> str:
    results = study.measurements or study.failures
    if not results:
        return words["nothing"]
    dtypes = sorted({m.dtype for m in results}, key=rank_of_dtype)
    elements = sum(m.tally("compared") for m in study.measurements)
    return words["what" if study.measurements else "none_ran"].format(
        named=listed(words, sorted({_named(m) for m in results})),
        devices=listed(words, sorted({m.device for m in results if m.device}) or ["?"]),
        measurements=counted(words, "measurement", len(results)),
        ops=counted(words, "op", len({m.op for m in results})),
        dtypes=listed(words, dtypes),
        elements=large(elements) if words.lang == "en" else f"{elements:,}",
    )


def _named(m: Measurement) -> str:
    return f"{short(m.record['framework'])} {m.record.get('version') or ''}".strip()


def _verdicts(study: Study, words: Texts) -> Iterator[str]:
    answered, unanswered = len(study.measurements), len(study.unanswered)
    if not answered:
        return
    fine = sum(m.verdict.rank >= _ROUNDING for m in study.measurements)
    exact = sum(m.verdict.name == "correctly_rounded" for m in study.measurements)
    key = "some_unanswered" if unanswered else "all_fine" if fine == answered else "some_bad"
    yield words[key].format(
        exact=f"{exact:,}",
        share=share(fine, answered + unanswered),
        bad=f"{answered - fine:,}",
        asked=f"{answered + unanswered:,}",
    )


def _failures(study: Study, words: Texts) -> Iterator[str]:
    """What gave no answer: one target's reasons; of several, how often each kind of reason."""
    groups: dict[str, list[Measurement]] = defaultdict(list)
    for failure in sorted(study.unanswered, key=lambda f: (rank_of_status(f.status), f.status)):
        groups[failure.status].append(failure)
    subjects = sorted({failure.subject for failure in study.unanswered})
    kinds = []
    for status, failures in groups.items():
        text = f"{len(failures):,}" if len(subjects) > 1 else reason_of(failures, words)
        detail = words("reason", text=text) if text else ""
        kinds.append(meaning_of("status", status, words.lang) + detail)
    if kinds:
        number = counted(words, "measurement", len(study.unanswered))
        who, what = listed(words, subjects), listed(words, kinds)
        yield words("failures", measurements=number, who=who, what=what)


def reason_of(failures: list[Measurement], words: Texts) -> str:
    """The first reason of failures, and how many others there are."""
    reasons = sorted({failure.reason for failure in failures if failure.reason})
    subjects = {failure.subject for failure in failures}
    first = _said(reasons[0], subjects.pop() if len(subjects) == 1 else "") if reasons else ""
    return first + (words("more_reasons", n=len(reasons) - 1) if len(reasons) > 1 else "")


def invariance_sentences(study: Study, words: Texts, *, of_kernels: bool = False) -> Iterator[str]:
    """What the bits depend on, in a sentence; `of_kernels`: those of users' own kernels only."""
    broken: dict[str, set[str]] = defaultdict(set)
    for table in invariances(study):
        for name, cells in table.rows.items():
            for subject, invariance in cells.items():
                if invariance.broken and (is_kernel(subject) or not of_kernels):
                    broken[name].add(subject)
    parts = []
    for name in sorted(broken, key=lambda name: (-len(broken[name]), name))[:5]:
        subjects = listed(words, sorted(broken[name]))
        sentence = words.get(f"depend:{name}")
        parts.append(
            sentence.format(who=subjects) if sentence else f"{clipped(name, 60)} ({subjects})"
        )
    if parts:
        yield words("bits_depend", what=listed(words, parts))


def settings_sentences(study: Study, words: Texts) -> Iterator[str]:
    """One sentence for each setting that changes bits, and one for those that do not."""
    effects = [effect for effect in setting_effects(study) if effect.outputs]
    for effect in effects:
        if effect.changed:
            shown, more = effect.ops[:_MOST_OPS], len(effect.ops) - _MOST_OPS
            yield words["settings_change"].format(
                who=effect.subject,
                base=effect.base,
                share=share(effect.changed, effect.outputs),
                ops=listed(words, [*shown, *([f"+{more}"] if more > 0 else [])]),
            )
    if unaffected := [effect.subject for effect in effects if not effect.changed]:
        yield words("settings_keep", who=listed(words, unaffected))

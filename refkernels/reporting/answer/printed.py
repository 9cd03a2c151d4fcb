"""The answer about printed numbers, as far as their digits prove it: Markdown in two languages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from refkernels.reporting.answer.facts import Record, advice, place_of, says
from refkernels.reporting.answer.markdown import folded, grid
from refkernels.reporting.answer.sentences import summary as summary_of
from refkernels.reporting.answer.sentences import words_of
from refkernels.reporting.words.escaping import escaped

_WORDS: dict[str, dict[str, str]] = {
    "en": {
        "wrong": "{kernel} is wrong: in {wrong} of {elements} elements of {output} no number that "
        "prints like this can be right, whatever the inputs' unprinted digits",
        "within": "no error of {kernel} can be shown: as far as the digits go, every element of "
        "{output} may be right",
        "blamed": "; it {says}",
        "blamed_several": "; what fits: it {says}",
        "or": ", or it {says}",
        "columns": "kernel | output | verdict | cannot be right | digits",
        "verdict:wrong": "✗\u00a0wrong",
        "verdict:within": "≈\u00a0within the digits",
        "of": "{wrong} of {elements}",
        "worst": "{place} is printed as a number in [{low}, {high}]. The truth lies in [{least}, "
        "{most}] for all inputs that print like this, and a right {format} kernel is within "
        "{allowed} of it.",
        "unknown": "Nothing is known about {unknown} elements: the inputs' intervals are too wide, "
        "or an input is not finite.",
        "fits": "**It {says}** (`{cause}`): this can give every printed element, of which {wrong} "
        "cannot be right.",
        "unexplained": "No cause that was tried gives these digits.",
        "undecided": "These digits do not distinguish it from a kernel that {says} (`{cause}`): "
        "{more}.",
        "more": "{digits} digits of every number would",
        "never": "no number of digits would",
        "for_bound": "An error as large as the bound becomes visible once every number has "
        "{digits} digits.",
        "todo": "**What to do**: {todo}",
        "if_exact": "**If these digits are all there are** (every input is exactly the float that "
        "is printed): {summary}.",
        "and_explained": " With the outputs taken as exact too: {summary}",
        "read": "What was read",
        "tensors": "tensor | line | name | shape | dtype | read as",
        "aside": "–",
        "truncated": "truncated",
        "end": ".",
        "next": " ",
        "join": "; ",
        "colon": ": ",
    },
    "zh": {
        "wrong": "{kernel} 有误：{output} 共 {elements} 个元素，其中 {wrong} 个，"
        "无论输入未打印出的数位如何，打印成这样的数都不可能正确",
        "within": "无法证明 {kernel} 有误：就打印出的位数而言，{output} 的每个元素都可能正确",
        "blamed": "；该实现{says}",
        "blamed_several": "；符合的原因：该实现{says}",
        "or": "，或者该实现{says}",
        "columns": "实现 | 输出 | 结论 | 不可能正确 | 位数",
        "verdict:wrong": "✗\u00a0有误",
        "verdict:within": "≈\u00a0位数范围内",
        "of": "{wrong} / {elements}",
        "worst": "{place} 打印出的数在 [{low}, {high}] 之内。对所有打印成这样的输入，"
        "真值都在 [{least}, {most}] 之内，正确的 {format} 实现与真值相差不超过 {allowed}。",
        "unknown": "有 {unknown} 个元素无从判断：输入的区间太宽，或输入不是有限数。",
        "fits": "**该实现{says}**（`{cause}`）：打印出的每个元素都可能由此得到，"
        "而其中 {wrong} 个不可能正确。",
        "unexplained": "尝试过的原因都得不到这些数字。",
        "undecided": "这些位数无法排除该实现{says}（`{cause}`）：{more}。",
        "more": "每个数打印 {digits} 位即可区分",
        "never": "打印多少位都无法区分",
        "for_bound": "每个数打印 {digits} 位以上，才能看出达到误差界的误差。",
        "todo": "**怎么办**：{todo}",
        "if_exact": "**如果打印出的就是全部数位**（每个输入都恰好是浮点数）：{summary}。",
        "and_explained": "把输出也当作精确值：{summary}",
        "read": "读到的内容",
        "tensors": "张量 | 行 | 名称 | 形状 | dtype | 作为",
        "aside": "–",
        "truncated": "有省略",
        "end": "。",
        "next": "",
        "join": "；",
        "colon": "：",
    },
}
_ALTERNATIVES = 3  # how many causes a sentence names; the page lists all


def summary(answer: Record, lang: str = "en") -> str:
    """The answer in one sentence."""
    words_of(lang)
    words = _WORDS[lang]
    return words["join"].join(_sentences(answer["kernels"], words, lang)) + words["end"]


def page(answer: Record, lang: str = "en") -> str:
    """The answer in Markdown, for a terminal and to paste into the thread."""
    words_of(lang)
    words = _WORDS[lang]
    parts = [f"**{escaped(summary(answer, lang), 4000)}**", _table(answer, words)]
    parts += [
        "\n".join(f"- {escaped(kernel)}{words['colon']}{line}" for line in lines)
        for kernel, lines in _details(answer["kernels"], words, lang)
        if lines
    ]
    todo = dict.fromkeys(
        advice(cause["cause"], lang)
        for _, _, result in _outputs(answer["kernels"])
        for cause in result["causes"][:1]
    )
    parts += [words["todo"].format(todo=line) for line in todo]
    if answer["if_exact"] is not None:
        parts.append(_if_exact(answer["if_exact"], words, lang))
    parts.append(folded(words["read"], _read(answer, words)))
    return "\n\n".join(part for part in parts if part) + "\n"


def brief(answer: Record, lang: str = "en") -> str:
    """The page for a terminal, which folds nothing."""
    return page(answer, lang).split("<details>")[0] + _read(answer, _WORDS[lang]) + "\n"


def _outputs(kernels: Record) -> Iterator[tuple[str, str, Record]]:
    for kernel, record in kernels.items():
        for output, result in record["outputs"].items():
            yield kernel, output, result


def _sentences(kernels: Record, words: Mapping[str, str], lang: str) -> Iterator[str]:
    for kernel, output, result in _outputs(kernels):
        text = words[result["verdict"]].format(kernel=kernel, output=output, **_counts(result))
        causes = [
            says({**cause, "model": None}, lang) for cause in result["causes"][:_ALTERNATIVES]
        ]
        if causes:
            key = "blamed" if len(result["causes"]) == 1 else "blamed_several"
            text += words[key].format(says=causes[0])
            text += "".join(words["or"].format(says=cause) for cause in causes[1:])
        yield text


def _counts(result: Record) -> dict[str, str]:
    return {key: f"{result[key]:,}" for key in ("wrong", "elements", "unknown")}


def _table(answer: Record, words: Mapping[str, str]) -> str:
    rows = [
        [
            escaped(kernel),
            output,
            words[f"verdict:{result['verdict']}"],
            words["of"].format(**_counts(result)),
            str(result["digits"]),
        ]
        for kernel, output, result in _outputs(answer["kernels"])
    ]
    return grid(words["columns"], rows, "lll--")


def _details(
    kernels: Record, words: Mapping[str, str], lang: str
) -> Iterator[tuple[str, list[str]]]:
    for kernel, output, result in _outputs(kernels):
        yield kernel, list(_lines(output, result, words, lang))


def _lines(output: str, result: Record, words: Mapping[str, str], lang: str) -> Iterator[str]:
    for cause in result["causes"]:
        sentence = {"says": escaped(says({**cause, "model": None}, lang)), "cause": cause["cause"]}
        yield words["fits"].format(**sentence, **_counts(result))
    if result["verdict"] == "wrong" and not result["causes"]:
        yield words["unexplained"]
    worst = result["worst"]
    if worst is not None:
        (low, high), (least, most) = worst["printed"], worst["truth"]
        yield words["worst"].format(
            place=f"`{place_of(output, worst['index'])}`",
            low=_number(low),
            high=_number(high),
            least=_number(least),
            most=_number(most),
            allowed=f"{float(worst['allowed']):.2g}",
            format=result["format"],
        )
    if result["unknown"]:
        yield words["unknown"].format(**_counts(result))
    for cause in result["undecided"]:
        key = "never" if cause["digits"] is None else "more"
        more = words[key].format(digits=cause["digits"])
        sentence_on_cause = escaped(says({**cause, "model": None}, lang))
        yield words["undecided"].format(says=sentence_on_cause, cause=cause["cause"], more=more)
    if result["digits_for_bound"] is not None:
        yield words["for_bound"].format(digits=result["digits_for_bound"])


def _number(value: Any) -> str:
    return f"{float(value):.9g}"


def _if_exact(answer_if_exact: Record, words: Mapping[str, str], lang: str) -> str:
    sentence = words["join"].join(_sentences(answer_if_exact["kernels"], words, lang))
    text = words["if_exact"].format(summary=escaped(sentence, 4000))
    if answer_if_exact["explanation"] is not None:
        exact = escaped(summary_of(answer_if_exact["explanation"], lang), 4000)
        text += words["and_explained"].format(summary=exact)
    return text


def _read(answer: Record, words: Mapping[str, str]) -> str:
    rows = [
        [
            str(tensor["number"]),
            str(tensor["line"]),
            escaped(tensor["name"]) or words["aside"],
            words["truncated"] if tensor["shape"] is None else f"{tuple(tensor['shape'])}",
            tensor["dtype"] or words["aside"],
            escaped(tensor["role"]) if tensor["role"] else words["aside"],
        ]
        for tensor in answer["tensors"]
    ]
    return grid(words["tensors"], rows, "--llll")

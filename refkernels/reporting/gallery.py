"""The gallery: a table of all entries, and one entry as a page of Markdown.

The inputs are plain dicts (the entry, `Explanation.to_dict` and the consequences, if there are any)
and the explanation's own Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

Record = Mapping[str, Any]

_WORDS: dict[str, dict[str, str]] = {
    "en": {
        "colon": ": ",
        "source": "Source",
        "device": "Device",
        "recorded": " (recorded: its answers are kept as data)",
        "provenance": "Where the numbers come from",
        "thread": "The thread says",
        "argument": "The thread and the evidence",
        "answer": "What the numbers say",
        "schedule": "Its effect on the learning-rate schedule",
        "formula": "lr(t) = min_lr + (max_lr - min_lr) / 2 (1 + cos(pi t / T)) in float32, with "
        "min_lr = {min_lr:g}, max_lr = {max_lr:g}, T = {decay_steps}, all steps:",
        "columns": "the cosine | last rate | below min_lr | rising steps | in [min_lr, max_lr], "
        "falling",
        "holds": "holds",
        "violated": "**violated**",
        "lesson": "A relative error of the cosine is multiplied by |cos| / (1 + cos): by "
        "{amplification:.3g} one step before the end, without limit at the end. So an operator "
        "that keeps to its limit in ulp can still make the rate negative, and then the optimiser "
        "climbs. The first cure, clipping, keeps the sign right for any operator. The second, the "
        "sine, trades one operator's error for another's: with the recorded value the rate stays "
        "above zero and never reaches it.",
    },
    "zh": {
        "colon": "：",
        "source": "来源",
        "device": "设备",
        "recorded": "（记录值：其结果在这里只是数据）",
        "provenance": "数值的出处",
        "thread": "原帖的说法",
        "argument": "原帖与证据",
        "answer": "数值说明了什么",
        "schedule": "对上层学习率调度的影响",
        "formula": "lr(t) = min_lr + (max_lr - min_lr) / 2 (1 + cos(pi t / T))，float32，"
        "min_lr = {min_lr:g}，max_lr = {max_lr:g}，T = {decay_steps}，全部步数：",
        "columns": "余弦 | 最后的学习率 | 低于 min_lr 的步数 | 上升的步数 | "
        "在 [min_lr, max_lr] 内且不上升",
        "holds": "成立",
        "violated": "**不成立**",
        "lesson": "余弦的相对误差会被放大 |cos| / (1 + cos) 倍："
        "结束前一步为 {amplification:.3g} 倍，"
        "到最后一步没有上限。因此，即使算子满足其 ulp 限度，学习率仍可能为负，优化器便会反向更新。"
        "第一种办法（截断）无论算子如何都能保住符号；第二种办法（改用正弦）只是用一个算子的误差换成"
        "另一个算子的误差：按记录值，学习率保持在零以上，但降不到零。",
    },
}


def gallery_table(rows: Iterable[tuple[Record, Record]]) -> Table:
    """(entry, explanation) pairs, one line per kernel: the report and its cause."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("name", no_wrap=True)
    table.add_column("answered by")
    table.add_column("verdict", max_width=9)
    table.add_column("cause", no_wrap=True)  # fits in 80 columns with the confidence below it
    for entry, explanation in rows:
        name = entry["name"] + (" *" if entry["recorded"] else "")
        for kernel, explained in explanation["kernels"].items():
            verdict = explained["verdict"].replace("_", " ")
            table.add_row(Text(name, style="bold"), kernel, verdict, _cause(explained))
            name = ""
    return table


def gallery_page(
    entry: Record, answer: str, consequences: Record | None = None, lang: str = "en"
) -> str:
    """One entry: the thread, where the evidence contradicts it, the consequences of the error, and
    the tool's own `answer` (Markdown, which ends with long scripts). `lang` is the language of the
    page; texts of the entry that have no Chinese version stay in English."""
    words = _WORDS[lang]
    entry = {**entry, **entry.get("zh", {})} if lang == "zh" else entry
    recorded = words["recorded"] if entry["recorded"] else ""
    origin = (
        ("source", _linked(entry["source"])),
        ("device", entry["device"] + recorded),
        ("provenance", entry["provenance"]),
        ("thread", entry["thread"]),
    )
    parts = [
        f"# {entry['title']}",
        f"{entry['reported']}",
        "\n".join(f"- {words[key]}{words['colon']}{text}" for key, text in origin),
    ]
    if entry["argument"]:
        parts.append(f"## {words['argument']}\n\n{entry['argument']}")
    if consequences is not None:
        parts.append(_consequences(consequences, words))
    parts.append(f"## {words['answer']}\n\n{answer.strip()}")
    return "\n\n".join(parts) + "\n"


def _linked(source: str) -> str:
    """The text with its addresses as Markdown links: not every renderer links a bare one."""
    return re.sub(r"https?://\S+", r"<\g<0>>", source)


def _cause(explained: Record) -> str:
    if explained["cause"] is None:
        return "none"
    return f"{explained['cause']}\n({explained['confidence']})"


def _consequences(consequences: Record, words: Mapping[str, str]) -> str:
    """What the operator's error does to the learning-rate schedule."""
    question = consequences["question"]
    lines = [
        f"## {words['schedule']}",
        "",
        words["formula"].format(**question),
        "",
        f"| {words['columns']} |",
        "|---|---|---|---|---|",
    ]
    for name, schedule in consequences["schedules"].items():
        holds = words["holds" if schedule["holds"] else "violated"]
        lines.append(
            f"| {name} | {schedule['last']:.3g} | {schedule['below']} "
            f"| {schedule['increases']} | {holds} |"
        )
    return "\n".join(
        [*lines, "", words["lesson"].format(amplification=consequences["amplification"])]
    )

"""The words of a comparison of two runs, in English and Chinese; `report.words_of` returns them
with those of `measured`."""

COMPARED: dict[str, tuple[str, str]] = {
    "compare:title": ("What changed between two runs", "两次运行之间的变化"),
    "compare:fixed": ("fixed", "已修复"),
    "compare:new": ("new", "新增"),
    "compare:worse": ("worse", "变差"),
    "compare:better": ("better", "变好"),
    "compare:bits": ("bits changed", "位有变化"),
    "compare:same": ("the same", "未变"),
    "compare:judged": ("judged differently, same bits", "位未变而判定不同"),
    "compare:broken": ("no longer runs", "不再运行"),
    "compare:runs": ("runs now", "现已运行"),
    "compare:gone": ("not in the new run", "新运行中没有"),
    "compare:added": ("only in the new run", "仅在新运行中"),
    "compare:none": (
        "Nothing changed: all {same} outputs have the same bits.",
        "没有变化：全部 {same} 个输出逐位相同。",
    ),
    "compare:summary": (
        "{old} → {new}. Of {both} in both runs: {counts}{others}.",
        "{old} → {new}。两次运行共有 {both}：{counts}{others}。",
    ),
    "compare:count": ("{n} {kind}", "{kind} {n} 个"),
    "compare:old": ("before", "之前"),
    "compare:now": ("now", "现在"),
    "compare:output": ("output", "输出"),
    "compare:change": ("change", "变化"),
    "compared": ("1 output", "1 个输出"),
    "compareds": ("{n} outputs", "{n} 个输出"),
    "compare:versions": ("{seat}: {old} → {new}", "{seat}：{old} → {new}"),
    "compare:meaning": (
        "Fixed: beyond rounding or unusual before, ordinary rounding now. New: the "
        "reverse. Worse, better: the verdict changed otherwise, or the mean error by more than a "
        "factor of 2. Bits changed: nothing more. Judged differently: no bit changed, but the "
        "bound or the oracle did.",
        "已修复：之前超出舍入误差或不寻常，现在只有正常的舍入误差。新增：与此相反。"
        "变差、变好：判定有其他改变，或平均误差变化超过 2 倍。位有变化：判定未变，误差相近，"
        "只有位变了。位未变而判定不同：变的是误差界或真值算法。",
    ),
    "compare:more": ("and {n} more: --all, or the page", "另有 {n} 项：见 --all 或页面"),
}  # fmt: skip

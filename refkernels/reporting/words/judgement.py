"""The words of a judgement, in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

VERDICT_WORDS: dict[str, dict[str, str]] = {
    "en": {
        "right": "right",
        "lower_precision": "right, in lower precision than asked",
        "wrong": "wrong",
        "unfair": "unfair: it cheats",
        "not_enough_shown": "not enough shown",
        "not_judged": "not judged",
    },
    "zh": {
        "right": "正确",
        "lower_precision": "正确，但精度低于要求",
        "wrong": "有误",
        "unfair": "作弊",
        "not_enough_shown": "证据不足",
        "not_judged": "未能检验",
    },
}
REASONS: dict[str, dict[str, str]] = {
    "en": {
        "answers_zeros": "it returns zeros, whatever the inputs are",
        "answers_constant": "it returns one constant, whatever the inputs are",
        "answers_input": "it returns its input",
        "answers_memory": "it returns what its memory held before the call",
        "answers_nan": "it returns NaN, whatever the inputs are",
        "stale_answer": "it returns an earlier answer for new inputs",
        "turns_wrong": "it is right in the first calls of a process and wrong in later ones",
        "writes_inputs": "it changes its inputs",
        "no_plain_array": "it returns something other than a plain array",
        "outside_memory": "it touches memory outside its arrays",
        "lower_precision": "every wrong answer is right for {format}: {way}",
        "no_answer": "it gives no answer ({status}: {reason})",
        "unwritten": "{wrong} elements of {output} were never written, or come from memory beside "
        "the inputs",
        "wrong_shape": "{output} has shape {got} instead of {right}",
        "wrong_dtype": "{output} is {got} instead of {right}",
        "wrong_missing": "it returns no {output}",
        "wrong_special": "{wrong} of {elements} elements of {output} have the wrong special value: "
        "at {index} {got} instead of {right}",
        "wrong_bound": "{wrong} of {elements} elements of {output} are beyond the bound: "
        "at {index} {got} instead of {right}, {over_bound} times the bound",
        "wrong_bits": "{wrong} of {elements} elements of {output} differ, although every order of "
        "summation gives the same bits: at {index} {got} instead of {right}",
        "wrong_invariant": "{output} violates a property of every right answer: at {index} {got}",
        "too_few_families": "only {families} families of inputs reject every decoy",
        "declines": "it declines inputs that it must accept ({reason})",
    },
    "zh": {
        "answers_zeros": "无论输入是什么都返回零",
        "answers_constant": "无论输入是什么都返回同一个常数",
        "answers_input": "直接返回输入",
        "answers_memory": "返回内存中原有的内容",
        "answers_nan": "无论输入是什么都返回 NaN",
        "stale_answer": "内容已经更新，却返回先前的答案",
        "turns_wrong": "同一进程中最初几次调用正确，之后出错",
        "writes_inputs": "改写了输入",
        "no_plain_array": "返回的不是普通数组",
        "outside_memory": "访问了数组以外的内存",
        "lower_precision": "每个错误答案在 {format} 下都是正确的：{way}",
        "no_answer": "没有给出答案（{status}：{reason}）",
        "unwritten": "{output} 有 {wrong} 个元素从未写入，或来自输入数组以外的内存",
        "wrong_shape": "{output} 的形状是 {got}，应为 {right}",
        "wrong_dtype": "{output} 的类型是 {got}，应为 {right}",
        "wrong_missing": "没有给出 {output}",
        "wrong_special": "{output} 共 {elements} 个元素，其中 {wrong} 个特殊值错误："
        "{index} 处为 {got}，应为 {right}",
        "wrong_bound": "{output} 共 {elements} 个元素，其中 {wrong} 个超出误差界："
        "{index} 处为 {got}，应为 {right}，是误差界的 {over_bound} 倍",
        "wrong_bits": "以任何顺序求和都应逐位相同，"
        "而 {output} 共 {elements} 个元素，其中 {wrong} 个不同：{index} 处为 {got}，应为 {right}",
        "wrong_invariant": "{output} 违反了正确结果必有的性质：{index} 处为 {got}",
        "too_few_families": "只有 {families} 类输入能拒绝所有诱饵",
        "declines": "拒绝处理必须接受的输入（{reason}）",
    },
}
WORDS: dict[str, dict[str, str]] = {
    "en": {
        "inputs": "its inputs are rounded to that format",
        "cut": "its inputs are truncated to that format",
        "results": "its results are numbers of that format",
        "flushed": "it flushes subnormal numbers to zero",
        "of": "{kernel} as {op} {direction} in {dtype}: {verdict}",
        "because": "because {reason} ({challenge})",
        "because_alone": "because {reason}",
        "refused": "{reason} ({challenge})",
        "refused_alone": "{reason}",
        "between": "; ",
        "more": "and {count} more reasons",
        "cause": "explain: the kernel {says} ({confidence})",
        "shown": "shown on {challenges} challenges, {telling} of which reject every decoy, "
        "with axes of up to {longest} elements",
        "killed": "these inputs refuse {killed} of {all} wrong kernels",
        "alive": "not refused: {names}",
        "hidden": "not counted, since a right kernel may do it in {dtype}: {names}",
        "smallest": "the smallest error that would have been seen: {outputs}",
        "of_output": "{ulp} ulp in {output}",
        "declined": "it declined some inputs: {parts}",
        "lengths": "for these lengths and formats only: {lengths}",
        "left_out": "without the optional inputs that it does not take: {inputs}",
        "axes": "for these numbers of leading axes only (it raises an exception with others): "
        "{axes}",
        "avoidable": "{clause} ({challenge}, {output})",
        "not_deterministic": "equal inputs do not give equal bits",
        "returns_input": "an output shares memory with an input",
        "unguarded": "no guard pages on this device",
        "not_all_tried": "time was up before every wrong kernel had been tried",
        "not_timed": "it was not timed: the timed calls gave no answer",
        "special_as_defined": "for some NaN or infinite inputs it gives what the Model gives, not "
        "what the op's formula gives",
        "timed": "{seconds} a call, the median of {calls} judged calls on {inputs}",
        "replay": "replay",
        "families": "family | asked | reject every decoy",
        "mutants": "Wrong kernels that these inputs refuse",
        "reasons": "Reasons",
        "join": ", ",
        "covered:op": "{function} is covered: {op}",
        "covered:exact": "{function} is covered: it rounds nothing",
        "covered:unknown": "{function} is not covered: there is no oracle for it",
        "task:unknown": "A candidate is not judged: a function of its Model is not covered.",
        "task:none": "A candidate is not judged: its Model calls nothing that rounds.",
        "task:several": "A candidate is not judged: its Model calls several functions, and there "
        "is no oracle for their composition.",
        "task:parameters": "A candidate is not judged: its Model has parameters of its own. judge "
        "supplies them if one call takes them all as they are, in a form that its op has, and they "
        "have at most 2^20 elements.",
        "task:inputs": "A candidate is not judged: its Model takes other inputs than the op.",
        "task:other": "The candidate is not judged: as {op}, the Model itself is not right, so it "
        "means something else, or has a fault of its own:",
        "board": "Which of these kernels are right, and how fast they are",
        "lead": "Right kernels: {right} of {all}.",
        "right_ones": "Right, by time",
        "others": "Not right",
        "group": "{op} {direction}, {dtype}, on {inputs}",
        "untimed": "no time",
        "columns": "kernel | time per call | relative to the fastest | wrong kernels refused | "
        "smallest error seen",
        "refusals": "kernel | op | verdict | why",
        "no_right": "None.",
        "no_refused": "None.",
        "read_board": "How to read this",
        "clock": "A time is the median of separate calls, by the judge's clock. It includes the "
        "round trip to the kernel's process, the same for every kernel of a group. Each call gets "
        "new inputs, and its answer is judged.",
        "wrong_refused": "Wrong kernels refused: of the wrong kernels made from the op, how many "
        "these challenges refuse. Smallest error seen: the smallest error, in ulp, that would have "
        "shown in some element.",
    },
    "zh": {
        "inputs": "输入被舍入到该格式",
        "cut": "输入被截断到该格式",
        "results": "结果都是该格式的数",
        "flushed": "次正规数被刷新为零",
        "of": "{kernel}（{op} {direction}，{dtype}）：{verdict}",
        "because": "原因：{reason}（{challenge}）",
        "because_alone": "原因：{reason}",
        "refused": "{reason}（{challenge}）",
        "refused_alone": "{reason}",
        "between": "；",
        "more": "另有 {count} 条原因",
        "cause": "explain：该实现{says}（{confidence}）",
        "shown": "共 {challenges} 道题，其中 {telling} 道能拒绝所有诱饵，轴长至多 {longest}",
        "killed": "这些输入拒绝了 {all} 个错误实现中的 {killed} 个",
        "alive": "未被拒绝：{names}",
        "hidden": "不计入：{names}（在 {dtype} 下，正确的实现也可以这样做）",
        "smallest": "能察觉的最小误差：{outputs}",
        "of_output": "{output} 为 {ulp} ulp",
        "declined": "拒绝处理部分输入：{parts}",
        "lengths": "仅限以下长度和格式：{lengths}",
        "left_out": "不含它不接受的可选输入：{inputs}",
        "axes": "仅限以下前导轴数（其他轴数会引发异常）：{axes}",
        "avoidable": "{clause}（{challenge}，{output}）",
        "not_deterministic": "相同的输入，结果并不逐位相同",
        "returns_input": "输出与输入共用内存",
        "unguarded": "该设备上没有保护页",
        "not_all_tried": "时间用尽，未能试完所有错误实现",
        "not_timed": "未能计时：计时调用没有返回结果",
        "special_as_defined": "对某些 NaN 或无穷输入，结果与 Model 相同，与该算子的公式不同",
        "timed": "每次调用 {seconds}（{calls} 次调用的中位数，结果均经检验，输入 {inputs}）",
        "replay": "重现",
        "families": "类别 | 题数 | 能拒绝所有诱饵",
        "mutants": "这些输入能拒绝的错误实现",
        "reasons": "原因",
        "join": "、",
        "covered:op": "{function} 在检验范围内：{op}",
        "covered:exact": "{function} 在检验范围内：不产生舍入",
        "covered:unknown": "{function} 不在检验范围内：没有对应的参考算子",
        "task:unknown": "候选实现未经检验：其 Model 调用了不在检验范围内的函数。",
        "task:none": "候选实现未经检验：其 Model 没有产生舍入的调用。",
        "task:several": "候选实现未经检验：其 Model 由多个函数组合而成，没有对应的参考算子。",
        "task:parameters": "候选实现未经检验：其 Model 自带参数。只有当一次调用直接用到全部参数、"
        "其形式为该算子所支持、且总数不超过 2^20 个元素时，judge 才能代为给出。",
        "task:inputs": "候选实现未经检验：其 Model 的输入与该算子不同。",
        "task:other": "候选实现未经检验：Model 本身按 {op} 检验就不正确，要么定义不同，要么有误：",
        "board": "这些实现哪些正确，速度如何",
        "lead": "正确的实现：{right} / {all}。",
        "right_ones": "正确的实现，按时间排序",
        "others": "不正确的实现",
        "group": "{op} {direction}，{dtype}，输入 {inputs}",
        "untimed": "无时间",
        "columns": "实现 | 每次调用 | 与最快者之比 | 被拒绝的错误实现 | 能察觉的最小误差",
        "refusals": "实现 | 算子 | 结论 | 原因",
        "no_right": "无。",
        "no_refused": "无。",
        "read_board": "如何阅读",
        "clock": "时间是另外若干次调用的中位数，由检验方计时，"
        "包含与该实现所在进程往返通信的开销；同组各实现的开销相同。每次调用的输入都不同，结果都经过检验。",
        "wrong_refused": "被拒绝的错误实现：由该算子构造的错误实现中，被这些题目拒绝的数目。"
        "能察觉的最小误差：至少会在某个元素上被发现的最小误差，以 ulp 计。",
    },
}


def reason(fault: Mapping[str, Any], lang: str) -> str:
    """A fault, one of a judgement's reasons, as a clause."""
    words, details = WORDS[lang], dict(fault["details"])
    if "way" in details:
        details["way"] = words[str(details["way"])]
    if "over_bound" in details:
        details["over_bound"] = f"{float(details['over_bound']):.3g}"
    return REASONS[lang][str(fault["kind"])].format(**details)

"""The sentences of an answer, in English and in Chinese. `{...}` are figures and names."""

from __future__ import annotations

WORDS: dict[str, dict[str, str]] = {
    "en": {
        # the verdict on one kernel
        "correctly_rounded": "every bit of {output} is that of the exact answer, rounded once",
        "rounding": "rounding: every element of {output} is within the bound that any stable "
        "{format} algorithm keeps (error / bound at most {bound})",
        "amplified": ", and {ulp} ulp is what a condition number of {condition} makes of it",
        "unusual": "inside the bound (error / bound {bound}), but unusual: the error of {output} "
        "is {plain} times that of the plain algorithm",
        "exceeds_bound": "not rounding: an error of {output} is {bound} times the bound that any "
        "stable {format} algorithm keeps",
        "special_value_mismatch": "not rounding: in {number} of its elements {output} is NaN, "
        "infinite or finite where the exact answer is another of the three",
        "invariant_violated": "not rounding: {output} has a value that mathematics forbids "
        "({invariants})",
        "alone": "This is {verdict}",
        "exact": "Nothing is wrong: {verdict}",
        "one": "{kernel} is {verdict}",
        "one_exact": "{kernel}: {verdict}",
        # what follows it
        "and_cause": "; the kernel {says} ({confidence})",
        "and_cause_of": "; it {says} ({confidence})",
        "and_maybe": "; consistent with, but not proven: the kernel {says}",
        "and_maybe_of": "; consistent with, but not proven: it {says}",
        "and_unexplained": "; it is unexplained: {tried} hypotheses were tried and none fits",
        "or": ", or {says}",
        "order": "adds its terms in the order “{model}”",
        "run": "computes as the model “{model}” does",
        "run_among": "computes as the model “{model}” does, among others",
        # several kernels
        "differ": "{a} and {b} have the same bits in {equal} of {elements} elements of {output} "
        "and differ by at most {apart}",
        "equal": "{a} and {b} agree in every bit",
        "because": " because {kernel} {says} ({confidence})",
        "because_each": " because {a} {a_says} and {b} {b_says} ({confidence})",
        "because_both": " ({cause}: {says}; {confidence})",
        "all_fine": "it is all rounding (error / bound at most {bound})",
        # the table
        "columns": "kernel | verdict | max ULP | error / bound | error / plain | bits that a "
        "model gives",
        "of": "{equal} of {elements}",
        "verdict:correctly_rounded": "✓\u00a0exact",
        "verdict:rounding": "≈\u00a0rounding",
        "verdict:unusual": "△\u00a0unusual",
        "verdict:exceeds_bound": "✗\u00a0beyond the bound",
        "verdict:special_value_mismatch": "≠\u00a0wrong special value",
        "verdict:invariant_violated": "⊘\u00a0impossible value",
        "pairs": "kernels | equal bits | largest difference | in ULP | why",
        "same": "the same bits",
        "unknown": "not found",
        "rounding_only": "rounding",
        "and_others": " and others",
        "list": "; ",
        # the paragraphs
        "cause": "Cause",
        "no_cause": "No cause to name",
        "unexplained": "Unexplained",
        "todo": "What to do",
        "rounding_title": "Rounding",
        "The kernel": "The kernel",
        "proven": "proven",
        "matched": "matched",
        "consistent": "consistent",
        "evidence:proven": "`{cause}`, **proven**: {model} gives {equal} of {elements} elements "
        "of {output} bit for bit.",
        "evidence:matched": "`{cause}`, **matched**: as an answer to that question {output} is "
        "nothing but rounding (error / bound {bound}, error / plain {plain}); as an answer to "
        "what was asked it is not ({truth_bound}, {truth_plain}).",
        "evidence:pattern": "`{cause}`, **matched**: what is wrong in {output} (elements: "
        "{wrong}) has this pattern throughout, and the rest is right.",
        "evidence:consistent": "`{cause}`, **consistent**, not proven: the pattern and the size of "
        "the errors of {output} fit, and nothing else was found.",
        "also": "Equally good: {says} (`{cause}`).",
        "that_model": "that, run in the working precision,",
        "that_answer": "the exact answer to that question, rounded once,",
        "models": "The bits of these models are all the same here: {models}.",
        "flawless": "every bit is right.",
        "model": "the model “{model}”",
        "ordinary": "the errors are what rounding makes of this op on these inputs, so nothing is "
        "left to explain.",
        "tried": "{tried} hypotheses were tried, and none explains the output. The nearest is "
        "`{cause}`, which leaves an error / bound of {bound} and an error / plain of {plain}.",
        "tried_bare": "{tried} hypotheses were tried, and none explains the output.",
        "element": "The largest error is {ulp} ulp, in {place}, where the condition number "
        "{condition} makes a relative error that many times as large.",
        "element_bare": "The largest error is {ulp} ulp, in {place}.",
        "element_special": "{place} is one of the wrong elements.",
        "todo:unexplained": "Report it as a bug, with the script of this answer; the exact values "
        "are certified.",
        # folded
        "elements": "The elements in question, exactly",
        "elements_columns": "element | | decimal | hex",
        "exact_value": "exact",
        "ruled_out": "What was ruled out",
        "ruled_out_columns": "hypothesis | output | error / bound left | error / plain left | "
        "equal bits",
        "script": "Script: {framework} and NumPy, without refkernels",
        "script_numpy": "Script: NumPy only, without refkernels",
        "script_blank": "Script: your kernel and NumPy, without refkernels",
        "more": "The others fit less.",
        "script_cut": "The inputs are cut to what {place} depends on, zeros elsewhere: the shapes, "
        "which choose the order of summation, are those of the case.",
        "script_left_out": "Left out, for the length of an answer: the scripts of {frameworks}. "
        "An answer about fewer kernels has them.",
        "script_large": "The inputs are too large for a script: it reads them from the case file.",
        "environment": "Environment",
        "reported": "Reported: {reported}",
        "source": "Source: {source}",
        "footer": "*refkernels {version}; the exact values are certified.*",
    },
    "zh": {
        "correctly_rounded": "{output} 的每一位都等于精确结果一次舍入后的值",
        "rounding": "舍入误差：{output} 的每个元素都在任何稳定的 {format} 算法所遵守的误差界之内"
        "（误差／界 最大为 {bound}）",
        "amplified": "；{ulp} ulp 是条件数 {condition} 放大的结果",
        "unusual": "误差在界之内（误差／界 {bound}），但不寻常：{output} 的误差是朴素算法的 "
        "{plain} 倍",
        "exceeds_bound": "不是舍入误差：{output} 的误差达到任何稳定的 {format} 算法所遵守的误差界"
        "的 {bound} 倍",
        "special_value_mismatch": "不是舍入误差：{output} 有 {number} 个元素，其 NaN、无穷或有限值"
        "的类别与精确结果不符",
        "invariant_violated": "不是舍入误差：{output} 中出现了数学上不可能的值（{invariants}）",
        "alone": "结论：{verdict}",
        "exact": "没有问题：{verdict}",
        "one": "{kernel}：{verdict}",
        "one_exact": "{kernel}：{verdict}",
        "and_cause": "；原因：{says}（{confidence}）",
        "and_cause_of": "；原因：{says}（{confidence}）",
        "and_maybe": "；可能的原因（未经证明）：{says}",
        "and_maybe_of": "；可能的原因（未经证明）：{says}",
        "and_unexplained": "；原因未明：试了 {tried} 个假设，都不符合",
        "or": "，或者{says}",
        "order": "按“{model}”的次序累加各项",
        "run": "采用与模型“{model}”相同的算法",
        "run_among": "采用与模型“{model}”等相同的算法",
        "differ": "{a} 与 {b} 的 {output} 在 {elements} 个元素中有 {equal} 个逐位相同，最大相差 "
        "{apart}",
        "equal": "{a} 与 {b} 逐位相同",
        "because": "，原因是 {kernel} {says}（{confidence}）",
        "because_each": "，原因是 {a} {a_says}，而 {b} {b_says}（{confidence}）",
        "because_both": "（{cause}：{says}；{confidence}）",
        "all_fine": "全部属于舍入误差（误差／界 最大为 {bound}）",
        "columns": "算子 | 结论 | 最大 ULP | 误差／界 | 误差／朴素算法 | 模型逐位重现",
        "of": "{equal} / {elements}",
        "verdict:correctly_rounded": "✓\u00a0正确舍入",
        "verdict:rounding": "≈\u00a0舍入误差",
        "verdict:unusual": "△\u00a0不寻常",
        "verdict:exceeds_bound": "✗\u00a0超出误差界",
        "verdict:special_value_mismatch": "≠\u00a0特殊值错误",
        "verdict:invariant_violated": "⊘\u00a0不可能的值",
        "pairs": "算子 | 逐位相同 | 最大差 | 以 ULP 计 | 原因",
        "same": "逐位相同",
        "unknown": "未找到",
        "rounding_only": "舍入",
        "and_others": "等",
        "list": "；",
        "cause": "原因",
        "no_cause": "没有需要指出的原因",
        "unexplained": "原因未明",
        "todo": "如何处理",
        "rounding_title": "舍入误差",
        "The kernel": "该算子",
        "proven": "已证明",
        "matched": "相符",
        "consistent": "可能",
        "evidence:proven": "`{cause}`，**已证明**：{model}逐位重现了 {output} 的 "
        "{equal} / {elements} 个元素。",
        "evidence:matched": "`{cause}`，**相符**：若所求的是那个问题，{output} 的误差只是舍入误差"
        "（误差／界 {bound}，误差／朴素算法 {plain}）；对于实际所求的问题则不是"
        "（{truth_bound}，{truth_plain}）。",
        "evidence:pattern": "`{cause}`，**相符**：{output} 的错误元素（{wrong} 个）都呈现这一规律，"
        "其余元素正确。",
        "evidence:consistent": "`{cause}`，**可能**，未经证明：{output} 误差的规律和大小都符合，"
        "也没有找到其他原因。",
        "also": "同样符合的还有：{says}（`{cause}`）。",
        "that_model": "在工作精度下这样计算，",
        "that_answer": "该问题的精确结果经一次舍入，",
        "models": "以下模型在这里逐位相同：{models}。",
        "flawless": "每一位都正确。",
        "model": "模型“{model}”",
        "ordinary": "误差就是舍入在这些输入上应有的结果，无须再作解释。",
        "tried": "试了 {tried} 个假设，都不能解释该结果。最接近的是 `{cause}`：仍剩下 误差／界 "
        "{bound}、误差／朴素算法 {plain}。",
        "tried_bare": "试了 {tried} 个假设，都不能解释该结果。",
        "element": "最大误差为 {ulp} ulp，位于 {place}；该处条件数为 {condition}，相对误差会被"
        "放大同样的倍数。",
        "element_bare": "最大误差为 {ulp} ulp，位于 {place}。",
        "element_special": "{place} 就是其中一个错误元素。",
        "todo:unexplained": "请附上本答复中的脚本，作为缺陷上报；其中的精确值经过验证。",
        "elements": "有关元素的精确值",
        "elements_columns": "元素 | | 十进制 | 十六进制",
        "exact_value": "精确值",
        "ruled_out": "已排除的原因",
        "ruled_out_columns": "假设 | 输出 | 剩余 误差／界 | 剩余 误差／朴素算法 | 逐位相同",
        "script": "脚本：只需要 {framework} 和 NumPy，不需要 refkernels",
        "script_numpy": "脚本：只需要 NumPy，不需要 refkernels",
        "script_blank": "脚本：只需要您的算子和 NumPy，不需要 refkernels",
        "more": "其余假设更不符合。",
        "script_cut": "输入只保留 {place} 所依赖的部分，其余为零；决定累加次序的形状与原来相同。",
        "script_left_out": "限于篇幅，未附 {frameworks} 的脚本；减少算子的个数即可得到。",
        "script_large": "输入太大，脚本从案例文件中读取。",
        "environment": "环境",
        "reported": "报告的值：{reported}",
        "source": "来源：{source}",
        "footer": "*refkernels {version}；精确值经过验证。*",
    },
}  # fmt: skip

"""The words of a measurement's report, in English and Chinese; `report.words_of` returns them.

`{...}` stands for a name or a figure. Verdicts, statuses and flags are in `vocabulary`, causes in
`causes`.
"""

from refkernels.reporting.words.causes import LANGUAGES

MEASURED: dict[str, tuple[str, str]] = {
    "lang": LANGUAGES,
    "title": ("How far from the truth is each framework?", "各框架离真值有多远？"),
    # sentences
    "and": (" and ", "和"),
    "and_more": ("{names} and {n} more", "{names} 及其他 {n} 个算子"),
    "op_pass_format": ("{ops} {passes}, {dtypes}", "{ops}：{passes}，{dtypes}"),
    "comma": (", ", "，"),
    "list": (", ", "、"),
    "space": (" ", ""),
    "brackets": (" ({text})", "（{text}）"),
    "colon": (": ", "："),
    "semicolon": ("; ", "；"),
    "stop": (".", "。"),
    "measurements": ("{n} measurements", "{n} 次测量"),
    "measurement": ("1 measurement", "1 次测量"),
    "cases": ("{n} cases", "{n} 个用例"),
    "case": ("1 case", "1 个用例"),
    "nav:cards": ("Seats", "要点"),
    "nav:matrix": ("Matrix", "矩阵"),
    "nav:findings": ("Findings", "发现"),
    "nav:figures": ("Figures", "数据"),
    "nav:rounding": ("Rounding?", "舍入？"),
    "nav:growth": ("Plots", "图"),
    "nav:agreement": ("Agreement", "一致性"),
    "nav:invariance": ("Invariance", "不变性"),
    "nav:seeds": ("Seeds", "起源"),
    "nav:certainty": ("Certainty", "可靠性"),
    "nav:unrun": ("Not run", "未运行"),
    "nav:read": ("How to read", "如何阅读"),
    "nav:environments": ("Environments", "环境"),
    "what": (
        "{named} on {devices}: {measurements} of {ops} in {dtypes}, {elements} elements, each "
        "compared with a certified exact answer.",
        "{named}（{devices}）：{ops}，{dtypes}，{measurements}，共 {elements} 个元素，"
        "每个都与经过验证的精确答案比较。",
    ),
    "ops": ("{n} ops", "{n} 个算子"),
    "op": ("1 op", "1 个算子"),
    "nothing": ("There are no measurements in these records.", "这些记录中没有测量结果。"),
    "none_ran": (
        "None of {measurements} of {named} on {devices} ({ops} in {dtypes}) gave a result.",
        "{named}（{devices}）的 {measurements}（{ops}，{dtypes}）均无结果。",
    ),
    "all_fine": (
        "All show rounding at most; {exact} are exact to the last bit.",
        "全部只有舍入误差；其中 {exact} 次全部正确舍入。",
    ),
    "some_bad": (
        "{share} show rounding at most, {exact} of them exact to the last bit; {bad} show more.",
        "{share} 只有舍入误差（其中 {exact} 次全部正确舍入）；其余 {bad} 次不止于此。",
    ),
    "some_unanswered": (
        "Of {asked} asked, {share} show rounding at most, {exact} of them exact to the last bit; "
        "{bad} show more.",
        "在要求的 {asked} 次中，{share} 只有舍入误差（其中 {exact} 次全部正确舍入）；"
        "{bad} 次不止于此。",
    ),
    "failures": (
        "{measurements} did not run in {who}: {what}{reason}.",
        "{who} 有 {measurements}没有运行：{what}{reason}。",
    ),
    "reason": (" ({text})", "（{text}）"),
    "more_reasons": (", and {n} other reasons", "，另有 {n} 种原因"),
    "unsupported": ("{n} are not offered by a framework.", "{n} 次因框架不提供而未测。"),
    "unknown_kind": (
        "{n} records of a kind that this version does not know are left out.",
        "略去 {n} 条此版本不认识的记录。",
    ),
    "bits_depend": ("Bits depend on {what}.", "结果的位会随以下因素变化：{what}。"),
    "bisect:unmeasured": ("{version} was not measured: {reason}", "{version} 未能测量：{reason}"),
    "bisect:none": (
        "Nothing changed in {seat} between the versions measured: {versions}.",
        "{seat} 在所测版本之间没有变化：{versions}。",
    ),
    "settings_change": (
        "With {who}, the bits of {base} change in {share} of the outputs: {ops}.",
        "{who} 使 {base} 的 {share} 输出的位发生变化：{ops}。",
    ),
    "settings_keep": ("With {who}, no bit changes.", "{who} 不改变结果的任何一位。"),
    "depend:run_to_run": ("the run ({who})", "每次运行（{who}）"),
    "depend:position": ("the position in the array ({who})", "在数组中的位置（{who}）"),
    "depend:batch": ("the batch around an element ({who})", "所在的批（{who}）"),
    "depend:threads": ("the number of threads ({who})", "线程数（{who}）"),
    "absent": ("No answer from {seat}: {reason}.", "{seat} 没有给出结果：{reason}。"),
    "scope": (
        "Measured by default: {units} of {total} questions (a case in one format and direction). "
        "The others, more cases of the same kinds, the large ones and most of those in bfloat16, "
        "are measured by `refkernels measure --full`.",
        "默认只测 {total} 个问题（一个用例、一种格式、一个方向）中的 {units} 个；"
        "其余的（同类的更多用例、大用例、bfloat16 的大部分）由 `refkernels measure --full` 测量。",
    ),
    # cards
    "cards_note": (
        "The most important symptoms, ordinary inputs first. Edge cases (NaN, infinity, subnormal "
        "numbers, the ends of the range) are folded.",
        "最重要的现象，普通输入在前。极端情形（NaN、无穷、次正规数、数值范围两端）已折叠。",
    ),
    "card_unanswered": (
        "{n} of {measurements} gave no answer: {reason}.",
        "{measurements}中有 {n} 次没有给出结果：{reason}。",
    ),
    "card_share": (
        "{share} of {measurements} show rounding at most",
        "{measurements}中 {share} 只有舍入误差",
    ),
    "card_fine": (
        "Nothing beyond ordinary rounding on ordinary inputs.",
        "普通输入下只有正常的舍入误差。",
    ),
    "card_more": (
        "Further symptoms ({n}), to report unless marked",
        "其他现象（{n}），未注明者请上报",
    ),
    "card_edge": ("Edge cases ({n})", "极端情形（{n}）"),
    "kind:report": ("report it", "请上报"),
    "kind:formula": ("formula of ours", "本项目的公式"),
    "kind:design": ("by design or documented", "设计如此或有文档说明"),
    "kind:inside": ("inside the bound", "在误差界之内"),
    "kind:edge": ("edge case", "极端情形"),
    "kinds": (
        "Report it: more than rounding, on an ordinary input. Formula of ours: the framework has "
        "no such op, so this project composes it from others. By design or documented: both "
        "definitions are in use, or a documented switch. Inside the bound: the op's named forms "
        "permit it, but the error is more than 4 times (in 16 bits, 2 times) that of the plain "
        "loop. Edge case: the input or the exact answer is NaN, infinite, subnormal or so large "
        "that its square is beyond the format, or the condition number leaves no digit.",
        "请上报：普通输入下超出舍入误差。本项目的公式：框架没有该算子，由本项目用其他算子组合而成。"
        "设计如此或有文档说明：两种定义都在使用，或有文档说明的开关。"
        "在误差界之内：算子的已命名形式允许，但误差超过朴素循环的 4 倍（16 位格式为 2 倍）。"
        "极端情形：输入或精确答案是 NaN、无穷、次正规数，或大到平方超出该格式，"
        "或条件数大到没有一位数字可信。",
    ),
    "it": ("it {says} ({confidence})", "{says}（{confidence}）"),
    "maybe": ("perhaps it {says} ({confidence})", "可能{says}（{confidence}）"),
    "no_cause": ("cause not found; {tried} hypotheses tried", "未找到原因；已尝试 {tried} 种假设"),
    "crosses": (
        "by rounding alone, at most {ulp} ulp: the exact results lie that near to the limit",
        "仅为舍入误差，最大 {ulp} ulp：准确结果与被违反的界限相距不超过这一误差",
    ),
    "float32_answers": (
        "its answers are float32 numbers (the worst one of each of {measurements})",
        "其结果都是 float32 数（{measurements}中误差最大的结果均如此）",
    ),
    "float32_answer": ("a float32 number", "是 float32 数"),
    "short:it": ("{cause} ({confidence})", "{cause}（{confidence}）"),
    "row:script": ("script", "脚本"),
    "explained_beside": ("perhaps as in {cause}", "或与 {cause} 相同"),
    "float32_beside": ("its {names}: float32 numbers", "其 {names} 是 float32 数"),
    "confidence:proven": ("proven", "已证明"),
    "confidence:matched": ("matched", "相符"),
    "confidence:consistent": ("consistent, no proof", "未证明"),
    "short:consistent": ("consistent", "未证明"),
    "elements": ("{share} of the elements", "{share} 的元素"),
    "uncertified": ("no exact value is enclosed", "没有一个精确值有包含区间"),
    "special": ("wrong special value in {share} of the elements", "{share} 的元素特殊值错误"),
    "violates": ("violates {names}", "违反 {names}"),
    "digits": ("typically {right} of {whole} digits right", "通常 {whole} 位数字中 {right} 位正确"),
    "no_digit": ("typically no digit is right", "通常没有一位数字正确"),
    "times_plain": ("error {plain} times the plain loop's", "误差为朴素循环的 {plain} 倍"),
    "gives": ("{inputs} gives {got}, exact {exact}", "{inputs} 得 {got}，精确值 {exact}"),
    "gives_bare": ("gives {got}, exact {exact}", "得 {got}，精确值 {exact}"),
    "on": ("on {case}", "用例 {case}"),
    # findings
    "point:special": ("{n} elements with the wrong special value", "{n} 个元素特殊值错误"),
    "point:bound": ("error up to {bound} times the bound", "误差最大为误差界的 {bound} 倍"),
    "point:inside": ("error {bound} of the bound", "误差为误差界的 {bound}"),
    "point:plain": ("{plain} times the plain loop's", "为朴素循环的 {plain} 倍"),
    "point:ulp": ("up to {ulp}", "最大 {ulp}"),
    "point:off": ("{ulp} where it is off by {size}", "相差 {size} 处{ulp}"),
    "point:cases": ("in {cases} of {measured} cases", "{measured} 个用例中的 {cases} 个"),
    "point:case": ("in the only case", "唯一的用例"),
    "row:special": ("{n} wrong specials", "{n} 个特殊值错误"),
    "row:bound": ("{bound}", "{bound}"),
    "row:inside": ("{bound}", "{bound}"),
    "row:plain": ("{plain} × plain", "朴素循环的 {plain} 倍"),
    "row:off": ("{ulp}, off by {size}", "{ulp}，相差 {size}"),
    "findings": ("All findings", "全部发现"),
    "findings_note": (
        "One line for each op, pass, format, seat, output and verdict: ordinary inputs first, then "
        "the worst. Open a line for its input in hexadecimal and the command that measures it "
        "again.",
        "每个算子、方向、格式、实现、输出和判定一行：普通输入在前，其次按严重程度排序。"
        "展开可见十六进制输入和重新测量的命令。",
    ),
    "findings_more": (
        "{n} more findings on ordinary inputs, one row each",
        "普通输入下的另外 {n} 项发现，每项一行",
    ),
    "rows_note": (
        "The largest error over all cases (or the number of wrong special values, or the ratio to "
        "the plain loop's error), and how many of the cases show it; then the worst element of one "
        "of them. All figures are in the CSV; the scripts of explained rows are in the folder "
        "scripts.",
        "先是所有用例中的最大误差（或错误特殊值的个数，或与朴素循环误差之比），以及有此现象的用例数/"
        "用例总数；其后是其中一个用例里误差最大的元素。全部数值见 CSV；"
        "已作解释的各行，其脚本在 scripts 文件夹中。",
    ),
    "rows_again": (
        "This measures the first row again, with its cause and a script; the others likewise: "
        "`{command}`",
        "重新测量第一行，并得到原因和脚本（其余各行同理）：`{command}`",
    ),
    "the_seat_output": ("seat, output", "实现、输出"),
    "over_bound": ("error / bound", "误差/误差界"),
    "in_ulp": ("ulp", "ulp"),
    "the_case": ("case", "用例"),
    "cases_head": ("cases", "用例数"),
    "findings_edge": ("Edge cases: {n} findings", "极端情形：{n} 项发现"),
    "findings_none": (
        "None: every answer is rounding at most, and none is unusual.",
        "没有：每个结果都只有舍入误差，没有一个不寻常。",
    ),
    "not_measured": ("Nothing was measured.", "没有测量结果。"),
    "example": ("example", "示例"),
    "got": ("got", "得"),
    "exact": ("exact", "精确值"),
    "condition": ("condition number", "条件数"),
    "figures_of": (
        "typically {mean}, at worst {ulp}; error / bound {bound}, error / plain {plain}",
        "通常 {mean}，最差 {ulp}；误差/误差界 {bound}，误差/朴素算法误差 {plain}",
    ),
    "absolute": ("off by {size} in the example", "示例中相差 {size}"),
    "also": ("also", "另外"),
    "cause": ("cause", "原因"),
    "advice": ("what to do", "处理建议"),
    "again": ("measure it again", "重新测量"),
    "script": ("Script that needs {framework} and NumPy only", "只需 {framework} 和 NumPy 的脚本"),
    "beside": (
        "All {n} findings, with inputs in hex: report.html. Every measurement: figures.csv.",
        "全部 {n} 项发现及十六进制输入：report.html。每次测量：figures.csv。",
    ),
    # matrix
    "matrix": ("Every op, every seat", "所有算子与实现"),
    "matrix_note": (
        "One mark for each format (16: float16, b16: bfloat16, 32, 64): the worst verdict on all "
        "but edge cases; a second glyph is the worse verdict of edge cases. A mark links to its "
        "finding, an op's name to its figures.",
        "每种格式一个标记（16：float16，b16：bfloat16，32，64）：极端情形以外的最差判定；"
        "其后的第二个符号表示极端情形下更差的判定。点击标记查看对应发现，点击算子名查看数据。",
    ),
    "filter": ("Filter", "筛选"),
    "seat": ("seat", "实现"),
    "the_op": ("op", "算子"),
    "format": ("format", "格式"),
    "the_verdict": ("verdict", "判定"),
    "sort": ("sort by", "排序"),
    "all": ("all", "全部"),
    "importance": ("importance", "重要性"),
    "error": ("typical error", "通常误差"),
    "shown": ("findings shown", "项发现"),
    "copy": ("Copy as Markdown", "复制为 Markdown"),
    "copied": ("Copied", "已复制"),
    "link": ("link", "链接"),
    # figures
    "figures": ("All figures", "全部数据"),
    "figures_note": (
        "Each cell: the worst verdict, the largest error in ulp, the mean error of the typical "
        "case, the largest error / bound (up to 1 is rounding) and the share correctly rounded. "
        "Where the bound is infinite, any result is allowed, and it counts only towards the share.",
        "每格依次为：最差判定、最大误差（ulp）、典型用例的平均误差、最大的误差/误差界（不超过 1 "
        "即舍入）、正确舍入的比例。误差界为无穷处任何结果都允许，只计入比例。",
    ),
    "downloads": ("Every measurement, as", "全部测量数据："),
    # seeds
    "seeds": ("The seeds: published threads", "起源：公开的讨论帖"),
    "seed:linear": ("Linear: how far apart are two frameworks?", "Linear：两个框架相差多少？"),
    "seed:linear_note": (
        "Largest absolute difference between the two, by the initialisation of weights and bias; "
        "0 means equal bits throughout.",
        "按权重和偏置的初始化方式，两者的最大绝对差；0 表示全部逐位相同。",
    ),
    "seed:alike": ("Equal in every bit of every case: {pairs}.", "所有用例逐位相同：{pairs}。"),
    "seed:layernorm": ("LayerNorm of two close numbers", "两个相近数的 LayerNorm"),
    "seed:layernorm_note": (
        "The row [-1.83965693, -1.82964566] in float32, dy = 1: each result at its worst element, "
        "and the exact answer there; without affine parameters dx is exactly 0.",
        "float32 的一行 [-1.83965693, -1.82964566]，dy = 1：各实现在误差最大处的结果与精确值；"
        "没有仿射参数时 dx 恰为 0。",
    ),
    "seed:pi": (
        "cos and sin at multiples of π, and the cosine schedule",
        "π 的整数倍处的 cos 和 sin，以及余弦学习率",
    ),
    "seed:pi_note": (
        "Largest error in float32 over all elements of the case. A result with |cos x| > 1, which "
        "makes a learning rate negative, would be named here.",
        "float32 下该用例所有元素的最大误差。若有 |cos x| > 1（会使学习率为负），会在此指出。",
    ),
    "seed:gradients": (
        "Are the gradients of weight and bias swapped?",
        "weight 与 bias 的梯度是否对调？",
    ),
    "seed:gradients_note": (
        "Each column has a dweight and a dbias of its own size and sign: a swap would be an error "
        "of millions of ulp.",
        "每一列的 dweight 和 dbias 大小与符号各异：若对调，误差会达到数百万 ulp。",
    ),
    "seed:exact": ("exact {value}", "精确值 {value}"),
    "seed:of_bound": ("{ratio} of the bound", "误差界的 {ratio}"),
    "seed:correct": ("{share} correct", "{share} 正确舍入"),
    "seed:said_linear": (
        "Linear: torch and paddle differ only where the bias is not zero, however the weights are "
        "distributed; with a zero bias every bit is equal.",
        "Linear：torch 与 paddle 只在偏置不为零时不同，与权重的分布无关；偏置为零时逐位相同。",
    ),
    "seed:said_layernorm": (
        "LayerNorm: where dx is exactly 0, these return something else: {who}.",
        "LayerNorm：dx 恰为 0 处，下列实现给出的不是 0：{who}。",
    ),
    "seed:said_pi": (
        "cos and sin: no result is beyond 1, so no learning rate becomes negative.",
        "cos 和 sin：没有结果超过 1，因此学习率不会为负。",
    ),
    # rounding, plots
    "rounding": ("Is it rounding?", "这是舍入误差吗？"),
    "rounding_note": (
        "How much an algorithm may err in limited precision depends on the inputs. For each "
        "result this report computes a bound: the largest error that the named forms of the op can "
        "make in that precision on exactly these inputs, with sums in any order. Error / bound up "
        "to 1 is rounding; above 1 no order of summation explains it. A library's own functions "
        "(exp, sin, erf) are held to a declared library limit instead. Error / plain compares the "
        "error with that of the textbook loop on the same data.",
        "有限精度下允许多大误差，取决于输入。本报告为每个结果计算误差界：在该精度下，以这些输入、"
        "任意求和顺序计算算子的已命名形式，可能产生的最大误差。误差/误差界不超过 1 即舍入误差；"
        "超过 1，则任何求和顺序都无法解释。库函数（exp、sin、erf）则以声明的库函数限度衡量。"
        "误差/朴素算法误差是与教科书循环在同样数据上的误差之比。",
    ),
    "misleads": (
        "The error in ulp alone misleads where the exact answer nearly cancels: {place} is off by "
        "{ulp} in {case}, yet at a condition number of {condition} that is only {bound} of the "
        "bound.",
        "精确答案因抵消而接近 0 时，单看 ulp 误差会产生误导：{place} 在 {case} 中相差 {ulp}，"
        "但条件数为 {condition}，只是误差界的 {bound}。",
    ),
    "growth": ("How the error grows and how it is distributed", "误差如何增长、如何分布"),
    "growth_note": (
        "A line that climbs in ulp but stays flat as error / bound is conditioning: the problem "
        "gets harder, not the algorithm worse.",
        "若 ulp 误差上升而误差/误差界持平，说明是条件数所致：问题变难了，而不是算法变差了。",
    ),
    # agreement
    "agreement": ("Who agrees with whom, bit for bit", "谁与谁逐位相同"),
    "agreement_note": (
        "Share of results whose bits are equal, below it the largest absolute difference; the "
        "least agreement comes first. Agreement is not accuracy: two frameworks can share one "
        "error. Formulas composed of a framework's ops are compared only in the JSON.",
        "逐位相同的比例，其下为最大绝对差；最不一致的在前。一致不等于准确：两个框架可能有同样的错误。"
        "由框架算子组合而成的公式，其比较只在 JSON 中。",
    ),
    "case_by_case": ("Case by case: who gives the same bits", "逐用例：谁的结果逐位相同"),
    "all_but_below": ("all others", "其余全部"),
    "nobody": ("no two", "没有两个相同"),
    "everybody": ("all", "全部相同"),
    # invariance, certainty, not run
    "invariance": ("Are the bits always the same?", "结果的位总是相同吗？"),
    "invariance_note": (
        "The same element, computed again in another setting. ✓: the seats with equal bits in "
        "every check. ✗: the number of elements whose bits changed.",
        "同一元素在另一种设置下重新计算。✓：每次检查都逐位相同的实现。✗：位有变化的元素数目。",
    ),
    "first_broken": ("For example", "例如"),
    "property": ("property", "性质"),
    "certainty": ("How certain is the truth?", "真值有多可靠？"),
    "certainty_note": (
        "Which tier of the oracle answered how many elements (each case once), the cheapest first, "
        "and the widest uncertainty of an error in ulp.",
        "各级真值算法分别算出了多少元素（每个用例计一次，代价最低的在前），以及 ulp 误差的最大"
        "不确定度。",
    ),
    "where": ("op, pass, format", "算子、方向、格式"),
    "n_elements": ("elements", "元素"),
    "widest": ("widest, ulp", "最宽（ulp）"),
    "undecided": ("rounding undecided", "舍入未定"),
    "unrun": ("What did not run", "未运行的测量"),
    "unrun_none": ("Everything ran.", "全部运行。"),
    "unrun_no_fault": (
        "No fault: nothing crashed, hung or failed.", "没有故障：没有崩溃、挂起或失败。"
    ),
    "unrun_unsupported": (
        "Not offered by a framework ({n} records): a fact, not a fault",
        "框架不提供（{n} 条记录）：是事实，不是故障",
    ),
    "happened": ("what happened", "情况"),
    "reason_head": ("reason", "原因"),
    "records": ("records", "记录"),
    "places": ("where", "位置"),
    # how to read
    "read": ("How to read this report", "如何阅读本报告"),
    "verdicts": ("Verdicts, worst first", "判定（最差在前）"),
    "flags": ("Flags in these records", "记录中的标志"),
    "terms": ("The words", "术语"),
    "term:exact": ("exact answer", "精确答案"),
    "mean:exact": (
        "The real-number function of the inputs as given, enclosed in a certified interval: no "
        "framework is taken as the truth.",
        "给定输入下实数函数的值，包含在经过验证的区间内：不以任何框架为真值。",
    ),
    "term:ulp": ("ulp", "ulp"),
    "mean:ulp": (
        "The spacing of the format's numbers at the exact value z: 2^(max(⌊log₂|z|⌋, emin) − p "
        "+ 1) with p bits. An error in ulp is (result − z) / ulp(z), fractional. From 2^p / 4 ulp "
        "on no digit is right, and the page says so. Where z is 0, error / bound decides.",
        "该格式在精确值 z 处相邻两数的间距：2^(max(⌊log₂|z|⌋, emin) − p + 1)，p 为有效位数。"
        "ulp 误差为 (结果 − z) / ulp(z)，可为小数。达到 2^p / 4 ulp 即没有一位数字正确。"
        "z 为 0 处以误差/误差界判定。",
    ),
    "term:correct": ("correctly rounded", "正确舍入"),
    "mean:correct": (
        "The bits equal the exact answer rounded once to the format.",
        "与精确答案一次舍入到该格式的结果逐位相同。",
    ),
    "term:condition": ("condition number", "条件数"),
    "mean:condition": (
        "How much the function itself amplifies a relative change of its inputs.",
        "函数本身把输入的相对变化放大多少倍。",
    ),
    "term:limit": ("library limit", "库函数限度"),
    "mean:limit": (
        "A library's own functions are held to a declared limit, the only fixed tolerance here:",
        "库函数以声明的限度衡量，这是本报告唯一的固定容差：",
    ),
    "term:ordinary": ("ordinary input", "普通输入"),
    "mean:ordinary": (
        "Inputs and exact answer are normal numbers, or 0, whose squares the format holds, and the "
        "case's median condition number costs less than half of the digits.",
        "输入和精确答案是正规数或 0，其平方仍在格式范围内，且该用例条件数的中位数造成的"
        "数字损失不到一半。",
    ),
    "term:pass": ("forward, backward", "forward、backward"),
    "mean:pass": (
        "The function, and its gradients through the framework's own automatic differentiation.",
        "函数本身，以及由框架自动微分得到的梯度。",
    ),
    "make_again": ("Make this report again", "重新生成"),
    "environments": ("Environments", "环境"),
    "no_environment": ("The records name no environment.", "记录中没有环境信息。"),
    # terminal
    "look": ("Where to look: {page}", "详见：{page}"),
    "look_all": (
        "More here: `refkernels report {folder} --all`",
        "在此查看更多：`refkernels report {folder} --all`",
    ),
    "formula_seats": (
        "Formulas of ours in a framework's ops ({names}): see the page.",
        "本项目用框架算子写成的公式（{names}）：见报告页面。",
    ),
    "seat_line": ("{share} rounding at most", "{share} 只有舍入误差"),
    "line_more": ("further symptoms: {n}", "另有 {n} 项现象"),
    "line_edge": ("edge cases: {n}", "极端情形：{n}"),
    "all_elements": ("all elements", "全部元素"),
    "short:digits": ("{right} of {whole} digits right", "{whole} 位数字中 {right} 位正确"),
    "short:no_digit": ("no digit right", "没有一位数字正确"),
    "so_far": (
        "This is one case of each op; the others follow.",
        "以上为每个算子的一个用例；其余测量继续进行。",
    ),
}  # fmt: skip

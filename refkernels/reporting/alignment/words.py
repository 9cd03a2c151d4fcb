"""The sentences of an alignment, in two languages."""

from __future__ import annotations

from collections.abc import Mapping

_USE = """```python
from refkernels.capture import Capture

with Capture("run_a", model, optimizer, steps=[0, 1, 2]) as capture:
    for step, batch in enumerate(data):
        loss = train_step(batch)
        capture.step(loss=loss, batch=batch)
```"""

WORDS: dict[str, Mapping[str, str]] = {
    "en": {
        "title": "Is it the same training run?",
        "title_alone": "Is this run what it claims to be?",
        "same": "**Same definition, rounding only.** Every captured op keeps to its bound on its "
        "own inputs, and nothing else makes them different trainings.",
        "same_alone": "**As declared, rounding only.** Every captured op keeps to its bound on its "
        "own inputs.",
        "different": "**Different definition.** First: {first}",
        "different_alone": "**Not what it declares.** First: {first}",
        "undecidable": "**Undecidable.** No difference was found, and {reasons}.",
        "reason:curves": "the loss curves differ by more than rounding: the cause was not captured",
        "reason:saturated": "after step {step} rounding spreads as far as other seeds do",
        "reason:nothing": "no captured step has an op that an oracle knows",
        "reason:unjudged": "these types of layers are not judged: {types}",
        "reason:functions": "functions outside layers were not captured: {functions}",
        "reason:gradients": "the gradients of these layers' weights do not come from the captured "
        "calls alone: {layers}",
        "reason:few": "one of the two is farther from the others than all {runs} null runs are; "
        "{needed} null runs would decide it",
        "reason:beyond": "{where} ({op}) is beyond its bound, though not another definition",
        "reason:beyond_for": "{where} ({op}) is beyond its bound, though not another definition: "
        "it {cause} ({confidence})",
        "reason:skipped": "in step {step} {run} alone skipped an update whose gradients are not "
        "finite, as a loss scaler does",
        "reason:unseen": "what the model computes outside of layers was not captured",
        "reason:noise": "in {op} the null runs do not round as these runs do, so their p-value is "
        "not valid",
        "curve_wider": "In {where} the null runs have smaller rounding errors than these runs: "
        "their deviations are multiplied by {wider}, and p is an estimate.",
        "curve_invalid": "**Not valid:** in {where} these runs err more than the null runs, or to "
        "one side.",
        "curve_unknown": "How the null runs round is unknown, because none of them captured a "
        "step: p is valid if they round as these runs do.",
        "cure:curves": "Capture more layers or earlier steps.",
        "cure:null": "Rounding-only runs (`--null`, from `Capture(perturb=seed)`) decide it by the "
        "loss curves.",
        "and": "; ",
        "stop": ".",
        "runs": "The runs",
        "run_columns": "run | framework | model | optimizer | ranks | steps | captured steps",
        "unfinished": "{steps} (stopped)",
        "suspects": "What makes them different, in the order of suspicion",
        "suspects_alone": "What is not as declared",
        "notes": "Other differences, which do not make it another training",
        "notes_alone": "Worth noting",
        "local": "Every captured op on its own inputs",
        "local_columns": "run | layer or optimizer | op | pass | outputs | elements | "
        "error / bound | verdict",
        "fine": "rounding",
        "beyond": "{count} not rounding",
        "unusual": "{count} unusual",
        "one_sided": "{count} erring to one side",
        "negligible": "{count} off by less than the tensor's own rounding",
        "unattributed": "{count} of weights that something else uses too",
        "and_also": ", ",
        "causes": "What the oracles found",
        "clips": "Gradients between backward pass and update",
        "clip:none": "{run} leaves them unchanged",
        "clip:constant": "{run} multiplies them by {low} in every captured step",
        "clip:divided": "{run} divides them by {numbers}, a number of parts or a loss scale",
        "clip:or_divided": ", or as a division by {numbers} would",
        "clip:threshold": "{run} scales them {scope}, as clipping at {threshold} would{added}",
        "clip:unknown": "{run} scales them {scope}, and no one threshold explains all steps",
        "clip:value": "{run} clamps them to ±{limit}",
        "clip:other": "{run} changes them in an unknown way",
        "scope:global": "by one factor for all parameters",
        "scope:group": "by one factor for each parameter group",
        "scope:tensor": "by one factor for each parameter",
        "added:0": " (nothing is added to the norm)",
        "added:1e-06": " (1e-6 is added to the norm)",
        "added:both": " (the norm that the clip computed would show whether 1e-6 is added to it: "
        "`clip_norm=` in `capture.step`)",
        "curve": "The loss curves",
        "curve_text": "The largest difference is {statistic} times the spread, at step {step}; "
        "p = {p} against {runs} rounding-only runs (that many runs can give no less than "
        "{least}).",
        "curve_normal": "Tested one by one, if rounding errors are normally distributed: p = {p}.",
        "curve_growth": "Rounding errors grow by a factor of {growth} in 100 steps.",
        "curve_power": "A learning rate wrong by {change} or more would have been noticed.",
        "curve_power:eps": "An optimizer's eps wrong by {change} would have been noticed (an "
        "estimate).",
        "curve_power:weight_decay": "A weight decay wrong by {change} would have been noticed (an "
        "estimate).",
        "curve_no_power": "The smallest change of the learning rate that would have been noticed "
        "is unknown: the loss does not change enough.",
        "curve_after": "Not decidable after step {step}: rounding spreads as far as other seeds.",
        "null_directions": "Null directions: gradients that are zero but for rounding",
        "unjudged": "Captured and not judged",
        "not_captured": "Not captured",
        "remarks": "Remarks",
        "in_run": " in {run}",
        "at_step": "step {step}: ",
        "forward": "forward", "backward": "backward", "update": "update", "clip": "clip",
        "assumed": "as in the steps before",
        "proven": "proven", "matched": "matched", "consistent": "consistent",
        "unexplained": "{where}: {output} is off by {ratio} times its bound; no cause was found",
        "explained": "{where}: it {cause} ({confidence})",
        "multiplied": ", like anything that multiplies the loss or its gradient: a sum over rows, "
        "parts or ranks instead of their mean, or a loss scale",
        "place": ", and in one more place", "places": ", and in {count} more places",
        "difference:value": "{where} is {a} in A and {b} in B",
        "difference:batch": "the batches differ from step {step} on",
        "difference:reordered": "the batch of step {step} has the same rows in another order",
        "difference:same_rows": "in {where} rank {one} and rank {other} read the same rows",
        "difference:shared_rows": "in {where} ranks {one} and {other} share {shared} rows of a "
        "batch",
        "difference:all_weights": "the initial weights differ",
        "difference:weights": "the weights of {where} differ in {apart} of {elements} elements",
        "difference:shape": "{where} has shape {a} in A and {b} in B",
        "difference:lone_layer": "{where} ({type}) of {run} has no partner in the other run",
        "difference:lone_parameter": "the parameter {where} of {run} has no partner in the other "
        "run",
        "difference:frozen": "{where} is frozen in {run}",
        "difference:not_updated": "{where}{several} is not updated in {run}",
        "difference:setting": "{param} of {where}{several} is {a} in A and {b} in B",
        "difference:rate": "the learning rate of group {where} is {a} in A and {b} in B",
        "difference:late": "the learning rate of group {where} is {a} in A and {b} in B: {run} is "
        "{steps} late",
        "difference:updates": "updates of the weights in this step: {a} in A, {b} in B",
        "difference:skipped": "in step {step} {run} alone skipped an update whose gradients are "
        "not finite, as a loss scaler does",
        "difference:late_batch": "{run} trains on the other run's batches, {steps} late",
        "parted": "{what} in B differs from A's by {apart} of its norm, and everything before it "
        "agrees",
        "parted_factor": "{what} in B is {factor} times that of A ({parted} of {places} places "
        "likewise), and everything before it agrees",
        "parted:inputs": "the input of {where}", "parted:outputs": "the output of {where}",
        "parted:loss": "the loss", "parted:gradient": "the gradient of {where}",
        "parted:update": "the gradient of {where} that the update receives",
        "parted:cotangents": "the cotangent of {where}",
        "parted:input_gradients": "the gradient of the input of {where}",
        "difference:clip": "the gradients between backward pass and update: {a}; {b}",
        "cause:sum_of_parts": ": {run} takes the sum over {parts} parts of the batch instead of "
        "their mean",
        "cause:sum_over_ranks": ": {run} takes the sum over {parts} ranks instead of their mean",
        "cause:not_reduced": ": in {run} each of {parts} ranks keeps its own gradient",
        "cause:mean_of_means": ": {run} takes the mean over {parts} parts of the batch of each "
        "part's own mean, though they have different numbers of tokens ({tokens})",
        "cause:loss_scale": ": a power of two, like a loss scale of {scale} that {run} does not "
        "remove",
        "cause:multiple": ": the update of {run} receives {factor} times the gradient of its own "
        "loss",
        "unsure": ", or {other} does the reverse: the captures do not show which of the two "
        "departs from its own loss",
        "cause:before_unscale": ": the threshold of {run} is 1/{scale} of the other's, as if its "
        "gradients were clipped before a loss scale of {scale} is removed",
        "steps:1": "one step", "steps": "{count} steps",
        "several": " and {count} more",
        "metric_paired": "The scores differ by {difference:+.2f} points: {only_a} questions are "
        "right in A alone, {only_b} in B alone. McNemar's exact test: p = {p}. {meaning}",
        "metric_graded": "The scores differ by {difference:+.2f} points: {only_a} questions score "
        "higher in A, {only_b} in B. Randomisation test (random signs): p = {p}. {meaning}",
        "metric": "The scores differ by {difference:+.2f} points; the choice of {questions:,} "
        "questions alone accounts for {deviation:.2f} (one standard deviation of the difference of "
        "two independent models): p = {p}. {meaning} With each question's answers (--answers) the "
        "paired test is sharper.",
        "metric:more": "That is more than the choice of questions explains.",
        "metric:chance": "The choice of questions explains that.",
        "verdict:same": "same definition, rounding only",
        "verdict:different": "different definition",
        "verdict:undecidable": "undecidable",
        "layers": "Layer by layer",
        "layer_columns": "run | layer | type | pass | worst step | error / bound | what it is",
        "plot:losses": "Losses",
        "plot:step": "step",
        "plot:band": "null runs",
        "plot:apart": "Difference from the null runs' mean",
        "plot:apart_from_a": "B minus A",
        "plot:caption": "Below: the differences of A and B from the mean of the null runs, and the "
        "band between the lowest and the highest null run.",
        "plot:caption_alone": "The captured losses.",
        "usage": "## How you would do it\n\n"
        "B declares eps = 1e-12 for its LayerNorm, but computes with 1e-5. In your training "
        "script, a few lines record a run (`refkernels/capture.py` is one file that you can copy "
        "to any machine):\n\n"
        f"{_USE}\n\n"
        "Then `refkernels align run_a run_b --out page` says whether they are the same training.\n",
    },
    "zh": {
        "title": "这是同一个训练吗？",
        "title_alone": "这次训练与其声明一致吗？",
        "same": "**定义相同，差异仅为舍入。** 每个被捕获的算子在其自身输入上都在误差界内，也没"
        "有其他因素使二者成为不同的训练。",
        "same_alone": "**与声明一致，差异仅为舍入。** 每个被捕获的算子在其自身输入上都在误差界内。",
        "different": "**定义不同。** 首要原因：{first}",
        "different_alone": "**与声明不符。** 首要原因：{first}",
        "undecidable": "**无法判定。** 没有发现差异，但{reasons}。",
        "reason:curves": "损失曲线的差异超出舍入所致，而造成差异之处未被捕获",
        "reason:saturated": "第 {step} 步之后，舍入造成的离散与更换随机种子相当",
        "reason:nothing": "被捕获的步中没有可判定的算子",
        "reason:unjudged": "以下类型的层未作判定：{types}",
        "reason:functions": "层外调用的函数未被捕获：{functions}",
        "reason:gradients": "以下各层的权重梯度并非仅由被捕获的调用产生：{layers}",
        "reason:few": "两者之一比全部 {runs} 次参照运行都更偏离，需要 {needed} 次参照运行才能判定",
        "reason:beyond": "{where}（{op}）超出误差界，但并非另一种定义",
        "reason:beyond_for": "{where}（{op}）超出误差界，但并非另一种定义：{cause}（{confidence}）",
        "reason:skipped": "第 {step} 步仅 {run} 因梯度非有限而跳过了更新（损失缩放器的正常行为）",
        "reason:unseen": "模型在层外的计算未被捕获",
        "reason:noise": "参照运行在 {op} 上的舍入与这两次运行不同，p 值无效",
        "curve_wider": "参照运行在 {where} 上的舍入误差较小，其偏差按 {wider} 倍计，p 只是估计值。",
        "curve_invalid": "**无效：**在 {where} 上，这两次运行的误差大于参照运行，或偏向一侧。",
        "curve_unknown": "参照运行均未捕获任何一步，其舍入误差未知：仅当其舍入与这两次运行相同，"
        "p 才成立。",
        "cure:curves": "请捕获更多的层或更早的步。",
        "cure:null": "提供仅含舍入差异的运行（`--null`，由 `Capture(perturb=seed)` 得到），即"
        "可由损失曲线判定。",
        "and": "；",
        "stop": "。",
        "runs": "参与比较的运行",
        "run_columns": "运行 | 框架 | 模型 | 优化器 | 进程数 | 步数 | 捕获的步",
        "unfinished": "{steps}（中断）",
        "suspects": "造成不同的原因（按怀疑顺序）",
        "suspects_alone": "与声明不符之处",
        "notes": "其他差异（不构成另一个训练）",
        "notes_alone": "值得注意之处",
        "local": "每个被捕获的算子（以其自身输入判定）",
        "local_columns": "运行 | 层或优化器 | 算子 | 阶段 | 输出数 | 元素数 | 误差/误差界 | 结论",
        "fine": "舍入",
        "beyond": "{count} 个不是舍入",
        "unusual": "{count} 个偏大",
        "one_sided": "{count} 个的误差偏向一侧",
        "negligible": "{count} 个的偏差小于张量自身的舍入",
        "unattributed": "{count} 个权重另有用处",
        "and_also": "，",
        "causes": "各算子的发现",
        "clips": "反向传播与参数更新之间的梯度",
        "clip:none": "{run} 未改变梯度",
        "clip:constant": "{run} 在每个被捕获的步都将梯度乘以 {low}",
        "clip:divided": "{run} 将梯度除以 {numbers}（部分的个数或损失缩放）",
        "clip:or_divided": "，也可能是除以 {numbers}",
        "clip:threshold": "{run} {scope}，相当于以 {threshold} 裁剪{added}",
        "clip:unknown": "{run} {scope}，而没有一个阈值能解释所有步",
        "clip:value": "{run} 将梯度截断到 ±{limit}",
        "clip:other": "{run} 以未知的方式改变了梯度",
        "scope:global": "将所有参数的梯度乘以同一个系数",
        "scope:group": "将每个参数组的梯度各乘一个系数",
        "scope:tensor": "将每个参数的梯度各乘一个系数",
        "added:0": "（范数未加任何数）",
        "added:1e-06": "（范数加了 1e-6）",
        "added:both": "（范数是否加了 1e-6，要由裁剪时算出的范数判定：见 `capture.step` 的 "
        "`clip_norm=`）",
        "curve": "损失曲线",
        "curve_text": "最大差异出现在第 {step} 步，为离散度的 {statistic} 倍；以 {runs} 次仅含"
        "舍入差异的"
        "运行为参照，p = {p}（这么多次运行所能给出的最小值为 {least}）。",
        "curve_normal": "若舍入误差服从正态分布，逐一检验得 p = {p}。",
        "curve_growth": "舍入误差每 100 步放大 {growth} 倍。",
        "curve_power": "学习率若有 {change} 或更大的偏差，本检验即可发现。",
        "curve_power:eps": "优化器的 eps 若有 {change} 的偏差（估计值），也能发现。",
        "curve_power:weight_decay": "权重衰减若有 {change} 的偏差（估计值），也能发现。",
        "curve_no_power": "无法给出可发现的最小学习率偏差：损失的变化不够大。",
        "curve_after": "第 {step} 步之后无法判定：舍入造成的离散与更换随机种子相当。",
        "null_directions": "零方向：梯度仅由舍入构成的参数",
        "unjudged": "已捕获而未判定",
        "not_captured": "未捕获",
        "remarks": "备注",
        "in_run": "（{run}）",
        "at_step": "第 {step} 步：",
        "forward": "前向", "backward": "反向", "update": "更新", "clip": "裁剪",
        "assumed": "与前面的步相同",
        "proven": "已证明", "matched": "相符", "consistent": "可能",
        "unexplained": "{where}：{output} 的误差是误差界的 {ratio} 倍，未找到原因",
        "explained": "{where}：{cause}（{confidence}）",
        "multiplied": "，凡使损失或其梯度成倍的都会如此：对行、部分或进程取和而不是均值，"
        "或损失缩放",
        "place": "，另有 1 处相同", "places": "，另有 {count} 处相同",
        "difference:value": "{where}：A 为 {a}，B 为 {b}",
        "difference:batch": "自第 {step} 步起批数据不同",
        "difference:reordered": "第 {step} 步的批数据行相同而顺序不同",
        "difference:same_rows": "{where} 中进程 {one} 与进程 {other} 读取了相同的数据",
        "difference:shared_rows": "{where} 中进程 {one} 与 {other} 的批数据有 {shared} 行重复",
        "difference:all_weights": "初始权重不同",
        "difference:weights": "{where} 的权重有 {apart} / {elements} 个元素不同",
        "difference:shape": "{where} 的形状：A 为 {a}，B 为 {b}",
        "difference:lone_layer": "{run} 的 {where}（{type}）在另一运行中没有对应的层",
        "difference:lone_parameter": "{run} 的参数 {where} 在另一运行中没有对应的参数",
        "difference:frozen": "{where} 在 {run} 中被冻结",
        "difference:not_updated": "{where}{several}在 {run} 中没有更新",
        "difference:setting": "{where}{several}的 {param}：A 为 {a}，B 为 {b}",
        "difference:rate": "第 {where} 组的学习率：A 为 {a}，B 为 {b}",
        "difference:late": "第 {where} 组的学习率：A 为 {a}，B 为 {b}；{run} 晚了 {steps}",
        "difference:updates": "该步的参数更新次数：A 为 {a}，B 为 {b}",
        "difference:skipped": "第 {step} 步仅 {run} 因梯度非有限而跳过了更新",
        "difference:late_batch": "{run} 使用另一运行的批数据，但晚了 {steps}",
        "parted": "B 的{what}与 A 之差为其范数的 {apart}，而此前的一切都相符",
        "parted_factor": "B 的{what}是 A 的 {factor} 倍（{places} 处中 {parted} 处如此），"
        "而此前的一切都相符",
        "parted:inputs": " {where} 的输入", "parted:outputs": " {where} 的输出",
        "parted:loss": "损失", "parted:gradient": " {where} 的梯度",
        "parted:update": "更新所收到的 {where} 的梯度",
        "parted:cotangents": " {where} 的输出梯度", "parted:input_gradients": " {where} 的输入梯度",
        "difference:clip": "在反向传播与更新之间，{a}；{b}",
        "cause:sum_of_parts": "：{run} 对批的 {parts} 个部分取了和，而不是均值",
        "cause:sum_over_ranks": "：{run} 对 {parts} 个进程取了和，而不是均值",
        "cause:not_reduced": "：{run} 的 {parts} 个进程各用自己的梯度，未作归约",
        "cause:mean_of_means": "：{run} 对批的 {parts} 个部分各自的均值再取平均，而各部分的"
        "词元数不同（{tokens}）",
        "cause:loss_scale": "：这是 2 的幂，相当于 {run} 没有除去 {scale} 的损失缩放",
        "cause:multiple": "：{run} 的更新所用的梯度是其自身损失的梯度的 {factor} 倍",
        "unsure": "，或者 {other} 与此相反：捕获的内容不足以判定哪一方偏离了自身的损失",
        "cause:before_unscale": "：{run} 的阈值是另一方的 1/{scale}，相当于在除去 {scale} 的损失"
        "缩放之前就作了裁剪",
        "steps:1": "一步", "steps": "{count} 步",
        "several": " 等 {count} 个参数",
        "metric_paired": "两者相差 {difference:+.2f} 个百分点：仅 A 答对 {only_a} 题，仅 B 答"
        "对 {only_b} 题。"
        "McNemar 精确检验：p = {p}。{meaning}",
        "metric_graded": "两者相差 {difference:+.2f} 个百分点：A 得分较高的有 {only_a} 题，B 得分"
        "较高的有 {only_b} 题。随机化检验（随机符号）：p = {p}。{meaning}",
        "metric": "两者相差 {difference:+.2f} 个百分点；仅 {questions:,} 题的抽样就会造成 "
        "{deviation:.2f}"
        "（两个独立模型之差的一倍标准差）：p = {p}。{meaning}若有逐题答案（--answers），配对检"
        "验更灵敏。",
        "metric:more": "这超出了题目抽样所能解释的范围。",
        "metric:chance": "题目的抽样即可解释。",
        "verdict:same": "定义相同，仅有舍入差异",
        "verdict:different": "定义不同",
        "verdict:undecidable": "无法判定",
        "layers": "逐层结果",
        "layer_columns": "运行 | 层 | 类型 | 阶段 | 最差的步 | 误差/误差界 | 结论",
        "plot:losses": "损失",
        "plot:step": "步",
        "plot:band": "参照运行",
        "plot:apart": "与参照运行均值之差",
        "plot:apart_from_a": "B 减 A",
        "plot:caption": "下图：A、B 与参照运行均值之差，以及参照运行最小值到最大值的范围。",
        "plot:caption_alone": "捕获到的损失。",
        "usage": "## 用于自己的训练\n\n"
        "B 声明其 LayerNorm 的 eps = 1e-12，实际却以 1e-5 计算。在训练脚本中加几行即可记录一次运行"
        "（`refkernels/capture.py` 是单个文件，可复制到任何机器）：\n\n"
        f"{_USE}\n\n"
        "之后 `refkernels align run_a run_b --out page` 即可判断两者是否为同一训练。\n",
    },
}  # fmt: skip

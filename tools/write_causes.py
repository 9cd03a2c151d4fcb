"""Writes docs/causes.md and docs/causes.zh.md, the lists of the causes that explanations name.

python tools/write_causes.py
"""

import re
from pathlib import Path

from refkernels.records.files import write_whole
from refkernels.reporting.words.causes import CAUSES

# A line's end between Chinese characters: a page would show it as a space.
_JOINED = re.compile(r"(?<=[一-鿿，。；：、（）”])\n *(?=[一-鿿（“])")
FOLDER = Path(__file__).parent.parent / "docs"
NAMES = {"en": "causes.md", "zh": "causes.zh.md"}
HEADS = {
    "en": """# The causes that an explanation can name

`refkernels explain`, `refkernels.explain` and case files use these identifiers; they are stable, so
scripts and threads may rely on them. A verdict (rounding, or not) never depends on the cause, and a
cause is named only on evidence:

- **proven**: a model of the algorithm, run in the working precision, or the exact answer to another
  question, rounded once, gives the kernel's bits in every element, with at least 40 bits of
  evidence; or, as an answer to another question, the output shows only rounding (inside its bound,
  and at most a few times the error of the plain algorithm), with as many bits, and no other cause
  fits.
- **matched**: the same with at least 20 bits.
- **consistent**: it fits, but there are too few elements to decide; or the pattern and the size of
  the errors fit, and nothing else was found. Not a proof.

Evidence is counted in bits: how much shorter the cause describes the output than "a kernel that
merely rounds" does, less log2 of the number of models and parameters that were tried. Each further
bit halves the chance of a coincidence. A unit of observation is an element, or a row whose elements
share statistics; repeated inputs count once. `refkernels probe` writes inputs that separate the
causes that fit.

If two causes fit equally, both are named. A factor of 8, 1/8 or 2^16 has many reasons, most of
them outside the kernel: a sum over ranks, rows or parts, a loss scale. It is then all that is
proven, and a cause that would give it is named as a possible one. Elements are surely corrupted, or
unwritten, only where nothing sets them apart from right ones: no special input, no largest or
smallest size, no shared row or column; corrupted ones must have lost half of their digits. If none
fits, the explanation says so, and shows what was ruled out. Advice is tested, on the framework or
on a kernel with the fault, or comes from the pages linked beside it. The Chinese list is
[causes.zh.md](causes.zh.md).

| identifier | the kernel ... | what to do |
|---|---|---|
""",
    "zh": """# 解释所能指出的原因

`refkernels explain`、`refkernels.explain` 和案例文件使用下列标识符；
它们保持不变，脚本和讨论可以放心引用。
判定（是否属于舍入误差）从不取决于原因；指出原因必须有证据：

- **已证明**：在工作精度下运行的算法模型，或另一个问题的精确结果经一次舍入，
  与每个元素逐位相同，且证据不少于 40 比特；或者把输出当作另一个问题的答案时，其误差只是舍入误差
  （在误差界之内，且不比朴素算法差几倍以上），证据同样不少于 40 比特，且没有其他原因符合。
- **相符**：同上，证据不少于 20 比特。
- **可能**：符合，但元素太少，无法判定；或者误差的规律和大小都符合，也没有找到其他原因。未经证明。

证据以比特计：与“只做舍入的实现”相比，该原因使输出的编码缩短了多少，再减去所试模型与参数个数的
以 2 为底的对数；每多一比特，巧合的可能性就减半。每个元素算一次观测，共用统计量的一行算一次；
重复的输入只算一次。`refkernels probe` 生成能区分这些解释的输入。

若有两个原因同样符合，则一并指出。8、1/8 或 2^16 这样的倍数有许多来由，且多在算子之外：对进程、行或
部分求和，或损失缩放；此时只能证明这个倍数，会给出同样倍数的原因只作为可能的原因列出。
只有当出错的元素与正确的元素没有任何区别时（输入不特殊，大小不是最大或最小，不在同一行或同一列），
才能确定它们被破坏或没有写入；被破坏的元素还须丢失一半以上的有效位。若都不符合，
则说明原因未明，并列出已排除的原因。
所给的建议都经过测试（在框架上，或在带有该缺陷的实现上），或出自旁边链接的官方页面。
英文版见 [causes.md](causes.md)。

| 标识符 | 该实现…… | 如何处理 |
|---|---|---|
""",
}


def page(lang: str) -> str:
    """The page in one language."""
    rows = []
    for name, cause in CAUSES.items():
        says = re.sub(r"\{(\w+)[^}]*\}", r"*\1*", cause.says[lang])
        pages = [f"[{k}]({source})" for k, source in enumerate(cause.sources, 1)]
        todo = " ".join([cause.todo[lang], *pages])
        rows.append(f"| `{name}` | {says} | {todo} |")
    return _JOINED.sub("", HEADS[lang]) + "\n".join(rows) + "\n"


def main() -> None:
    for lang, name in NAMES.items():
        print(write_whole(FOLDER / name, page(lang)))


if __name__ == "__main__":
    main()

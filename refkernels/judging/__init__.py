"""Judges kernels that may have been written to pass: none can cheat, and no right one fails.

    judge(kernel, op)       a Judgement: a verdict, its reasons, and what was shown

`Drawer` draws challenges by the op's signature; a `Standard` is what an answer must meet: the
truth, the bound, or every bit; `judge` weighs a kernel's answers.

The kernel runs in a process of its own, which receives and returns bytes; the truth is computed
afterwards, in this process.
"""

"""Judges kernels that may have been written to pass: none can cheat, and no right one fails.

    judge(kernel, op)       a Judgement: a verdict, its reasons, and what was shown

`challenges`      inputs that make faults visible, by the op's signature; `data` draws them
`standard`        what an answer to a challenge must meet: the truth, the bound, or every bit
`decoys`          answers that no challenge may accept; `mutants`, wrong kernels to be refused
`examination`     the challenges of one op, dtype and seed, with their truths
`calls`           hundreds of calls in one process
`precision`       whether an answer is right in a lower precision than the one asked for
`running`         a kernel's answers, from its cell; `judge`, the verdict on them
`timing`          the kernel's time, on calls that are judged too
`folder`          many kernels in one run; `tasks`, those of a Model in KernelBench's form

The kernel runs in a process of its own, which receives and returns bytes; the truth is computed
afterwards, in this process.
"""

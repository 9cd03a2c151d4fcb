"""Edits of an op's program: how faults that nobody listed are found and named.

catalogue    what an edit is, and the rules that propose edits of a graph
terms, reductions, indices, selections, arithmetic, variables    the rules, by family
names        which edits have a cause of their own, and a node as a formula that a person reads
screen       every edit, read in float64 on some rows: which come near the kernel's answer
search       the edits that come near, answered by the oracle and handed to the evidence
"""

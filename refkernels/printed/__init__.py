"""Printed tensors: reports in issue threads are numbers as text, not files.

text          the tensors of a text, each number with all of its digits (`text`)
digits        which floats print so: an interval for every number (`digits`)
roles         which tensor is which input or output of the op (`roles`)
reach         what right kernels may answer anywhere in the inputs' intervals (`reach`)
verdict       what the digits prove, and how many would prove more (`verdict`)
"""

"""Printed tensors: the numbers of issue threads come as text, not as files.

text          the tensors of a text, each number with all of its digits
digits        the floats that print as these digits: an interval for every number
roles         which input or output of the op each tensor is
reach         the answers of right kernels for inputs anywhere in their intervals
verdict       what the digits prove, and how many more digits would prove more
"""

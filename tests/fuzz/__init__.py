"""Fuzzing with random invalid inputs: ``python -m tests.fuzz [TARGET...] --inputs N --seed S``.

`targets` has a class for each target: it makes inputs and states what must hold. Inputs are made
from a seed, by `texts`, `objects`, `grammar` and `mutations`, so that a failing input can be made
again. `campaign` runs many inputs and judges time and memory; `shrinking` makes a failing input
smaller; `trials` checks texts and objects; `http_driver` sends requests without sockets.
`test_fuzz` runs some inputs of each target, and every input that ever failed.
"""

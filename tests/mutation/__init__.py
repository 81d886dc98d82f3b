"""Mutation testing of the core and the shell: the tests must notice a small change of the code.

``python -m tests.mutation`` draws mutants at random, judges each by the tests that run the changed
lines, and prints how many were killed. `mutants` makes them, with the operators of mutmut and two
of its own; `sampling` draws; `suites` names the tests; `coverage_map` records once which tests run
which lines; `judging` loads all tests into one process and forks it for every mutant; `results`
keeps the outcomes in a file, so that a run can be interrupted and resumed; `report` prints the
figures.

A mutant replaces the code object of one function in the forked process: nothing is written to the
checkout, and nothing is imported twice. Code of modules and classes, defaults, annotations and
decorators is not mutated: it ran before the fork.

Survivors that no test can kill are listed in ``equivalents.toml``, each with the reason.
"""

"""CEL device selectors, as kube-scheduler v1.36 compiles, checks and evaluates them.

`compile_selector` makes a `Selector` of an expression, or says why kube-scheduler refuses it.
`Selector.matches` answers for one `Device`. `compile_expression` takes other variables, such as
those of the rules of custom resources, in the same environment. The package imports nothing else of
Stowage and can be used without it. Callers keep what they compile; nothing is cached here but small
things by their text: patterns, quantities, versions.

What it does, in order, is one package each:

- `syntax`: tokens, grammar, literals, and macros such as ``exists``, expanded to loops;
- `checking`: static types against the functions and variables of kube-scheduler's environment
  (`checking.environment`), and validation of constants;
- `evaluation`: closures planned from the tree, which count the cost as cel-go does;
- `functions`: its functions, on the values of `values`, with the types of `signatures`.

`estimation` is for API servers only: the worst cost, by which they refuse a selector.

Expressions are users' input. The cost limit of kube-scheduler (1,000,000) ends an evaluation;
where the cost of cel-go does not grow with the work (comparisons of lists that contain each other,
results of ``replace``, patterns that are computed), an evaluation also ends at a limit of its own.
Regular expressions are those of RE2, which match in linear time. Nesting is bounded by 250 levels
or by Python's stack, whatever comes first; both are the same error.

Not here: literals of protobuf messages (``google.protobuf.Duration{seconds: 1}``), which do not
compile.

What was tried before this was written, on 840 recorded expressions: cel-expr-python (Google's
cel-cpp) agreed on 602 and common-expression-language on 609. cel-python 0.5 (in Python, with a
grammar for Lark) agreed on 231 of the first 420, counting all errors alike: it has no static types,
no optional syntax in its grammar and no comparison across number types. All lack Kubernetes'
libraries, the maps with a default for unknown domains, and the cost. What would remain of
cel-python is its grammar without the optional syntax. A parser of its own takes 300 lines, no
dependency, and no time at import; importing Lark alone takes half as long as importing this
package. RE2 is the one dependency (google-re2: by the authors of RE2, wheels for Python 3.11 to
3.14).
"""

from stowage.cel.checking.environment import Declarations
from stowage.cel.device import AttributeValue, Device, Version
from stowage.cel.errors import CelCompileError, CelRuntimeError
from stowage.cel.evaluation.frame import COST_LIMIT
from stowage.cel.expression import Expression, compile_expression
from stowage.cel.reads import AttributeRead
from stowage.cel.selector import Selector, compile_selector

__all__ = [
    "COST_LIMIT",
    "AttributeRead",
    "AttributeValue",
    "CelCompileError",
    "CelRuntimeError",
    "Declarations",
    "Device",
    "Expression",
    "Selector",
    "Version",
    "compile_expression",
    "compile_selector",
]

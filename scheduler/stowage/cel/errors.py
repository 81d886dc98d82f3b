"""The errors of this package."""


class CelCompileError(ValueError):
    """The expression is not a valid selector: syntax, types, or a constant that is invalid."""


class CelRuntimeError(ValueError):
    """The evaluation failed for this device, or its cost exceeded the limit."""


class CelLimitError(CelRuntimeError):
    """A limit of the evaluation was exceeded; ``||`` and ``&&`` do not absorb this error."""


def no_such_overload() -> CelRuntimeError:
    """Return the error of a function that is not defined for the types of its arguments."""
    return CelRuntimeError("no such overload")

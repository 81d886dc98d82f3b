"""The errors of this package."""


class CelCompileError(ValueError):
    """The expression is not a valid selector: syntax, types, or a constant that is invalid."""


class CelMacroError(CelCompileError):
    """The argument of a macro at `position` is not of the required form."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position


class CelRuntimeError(ValueError):
    """The evaluation failed for this device, or its cost exceeded the limit."""


class CelLimitError(CelRuntimeError):
    """A limit of the evaluation was exceeded; ``||`` and ``&&`` do not absorb this error."""


def no_such_overload() -> CelRuntimeError:
    """Return the error of a function that is not defined for the types of its arguments."""
    return CelRuntimeError("no such overload")

"""The flags of kube-scheduler v1.36 that are accepted and have no effect here.

They are accepted so that a command line of kube-scheduler starts the scheduler. A value that asks
for something that is not done is named in the log at the start.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple

import typer

from stowage.api.values.duration import parse_duration
from stowage.cli.go_flags import BOOLEAN, parse_boolean

PANEL = "Accepted without effect"

KUBE_VERSION = "1.36"
"""The version of kube-scheduler whose flags are accepted."""
_EMULATED = ("1.33", "1.34", "1.35", KUBE_VERSION)
_PREVIOUS_VERSION = _EMULATED[-2]
_VMODULE = re.compile(r"[^=,]+=\d+(,[^=,]+=\d+)*")

_NOTHING_LOOKED_UP = "client CAs are read from --client-ca-file only, not from the cluster"
_NO_FRONT_PROXY = "users named by a front proxy in headers are not accepted"
_NOT_BUFFERED = "log lines are written at once, to stderr"


class FlagWithoutEffect(NamedTuple):
    """A flag that is accepted without effect.

    Attributes:
        name: The flag.
        metavar: Its value in the help.
        reason: Why it has no effect.
        satisfied: Values that ask for nothing, or for what is done in any case.
        parse: Checks a value; raises BadParameter.
    """

    name: str
    metavar: str
    reason: str
    satisfied: tuple[str, ...] = ()
    parse: Callable[[str], str] = str


def _integer(text: str) -> str:
    if not text.isdecimal():
        raise typer.BadParameter(f"{text!r} is not a whole number")
    return text


def _duration(text: str) -> str:
    parse_duration(text)
    return text


def _versions(text: str) -> str:
    for pair in text.split(","):
        component, equals, version = pair.strip().rpartition("=")
        if equals and component != "kube":
            raise typer.BadParameter(f"component not registered: {component}")
        if version not in _EMULATED:
            raise typer.BadParameter(f"{version!r} is not one of {', '.join(_EMULATED)}")
    return text


def _previous_version(text: str) -> str:
    if text != _PREVIOUS_VERSION:
        raise typer.BadParameter(
            f"--show-hidden-metrics-for-version must be omitted or have the value "
            f"'{_PREVIOUS_VERSION}'. Only the previous minor version is allowed"
        )
    return text


def _vmodule(text: str) -> str:
    if not _VMODULE.fullmatch(text):
        raise typer.BadParameter(f"{text!r} is not a list of PATTERN=LEVEL")
    return text


FLAGS_WITHOUT_EFFECT = (
    FlagWithoutEffect("--allow-metric-labels", "MAP", "values of labels are not limited"),
    FlagWithoutEffect("--allow-metric-labels-manifest", "FILE", "values of labels are not limited"),
    FlagWithoutEffect(
        "--authentication-skip-lookup", BOOLEAN, _NOTHING_LOOKED_UP, ("true",), parse_boolean
    ),
    FlagWithoutEffect(
        "--authentication-tolerate-lookup-failure",
        BOOLEAN,
        _NOTHING_LOOKED_UP,
        ("true",),
        parse_boolean,
    ),
    FlagWithoutEffect(
        "--disable-http2-serving", BOOLEAN, "the endpoints speak HTTP/1.1", ("true",), parse_boolean
    ),
    FlagWithoutEffect(
        "--emulated-version",
        "VERSIONS",
        f"the decisions are those of v{KUBE_VERSION}",
        (KUBE_VERSION, f"kube={KUBE_VERSION}"),
        _versions,
    ),
    FlagWithoutEffect(
        "--http2-max-streams-per-connection",
        "INT",
        "the endpoints speak HTTP/1.1",
        ("0",),
        _integer,
    ),
    FlagWithoutEffect("--log-flush-frequency", "DURATION", _NOT_BUFFERED, ("5s",), _duration),
    FlagWithoutEffect("--log-json-info-buffer-size", "QUANTITY", _NOT_BUFFERED, ("0",)),
    FlagWithoutEffect("--log-json-split-stream", BOOLEAN, _NOT_BUFFERED, ("false",), parse_boolean),
    FlagWithoutEffect("--log-text-info-buffer-size", "QUANTITY", _NOT_BUFFERED, ("0",)),
    FlagWithoutEffect("--log-text-split-stream", BOOLEAN, _NOT_BUFFERED, ("false",), parse_boolean),
    FlagWithoutEffect(
        "--min-compatibility-version",
        "VERSIONS",
        "no other component's version matters",
        (_PREVIOUS_VERSION, f"kube={_PREVIOUS_VERSION}"),
        _versions,
    ),
    FlagWithoutEffect(
        "--permit-address-sharing",
        BOOLEAN,
        "SO_REUSEADDR is always set",
        ("true", "false"),
        parse_boolean,
    ),
    FlagWithoutEffect("--requestheader-allowed-names", "NAMES", _NO_FRONT_PROXY),
    FlagWithoutEffect("--requestheader-client-ca-file", "FILE", _NO_FRONT_PROXY),
    FlagWithoutEffect("--requestheader-extra-headers-prefix", "PREFIXES", _NO_FRONT_PROXY),
    FlagWithoutEffect("--requestheader-group-headers", "HEADERS", _NO_FRONT_PROXY),
    FlagWithoutEffect("--requestheader-uid-headers", "HEADERS", _NO_FRONT_PROXY),
    FlagWithoutEffect("--requestheader-username-headers", "HEADERS", _NO_FRONT_PROXY),
    FlagWithoutEffect(
        "--show-hidden-metrics-for-version",
        "VERSION",
        "no metric is hidden",
        (_PREVIOUS_VERSION,),
        _previous_version,
    ),
    FlagWithoutEffect("--tls-curve-preferences", "CURVES", "OpenSSL chooses the key exchange"),
    FlagWithoutEffect(
        "--tls-sni-cert-key", "FILES", "the certificate of --tls-cert-file is served to everyone"
    ),
    FlagWithoutEffect(
        "--vmodule", "PATTERN=LEVEL,...", "-v is the level of all modules", parse=_vmodule
    ),
)


_OWN_PARAMETERS = (
    FlagWithoutEffect("--contention-profiling", BOOLEAN, "there are no locks to profile"),
    FlagWithoutEffect("--version", "VERSION", "the version is reported as it is"),
)
"""Flags that the command declares itself, because some of their values have an effect."""


def settings_of_flags(given: Mapping[str, list[str] | None]) -> Iterator[str]:
    """The given values that ask for something that is not done, each with the reason.

    Args:
        given: The values of the flags, by the names of their parameters.
    """
    for flag in (*FLAGS_WITHOUT_EFFECT, *_OWN_PARAMETERS):
        for value in given.get(_parameter_name(flag)) or ():
            if value not in flag.satisfied:
                yield f"{flag.name}={value}: {flag.reason}"


def accepts_flags_without_effect(function: Callable[..., None]) -> Callable[..., None]:
    """Add the flags to the signature of a command, whose ``**`` parameter receives their values."""
    signature = inspect.signature(function, eval_str=True)
    own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    added: Any = [_parameter(flag) for flag in FLAGS_WITHOUT_EFFECT]
    function.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]  # as `inspect` reads it
    return function


def _parameter(flag: FlagWithoutEffect) -> inspect.Parameter:
    option = typer.Option(
        flag.name,
        metavar=flag.metavar,
        parser=flag.parse,
        help=f"{flag.reason[0].upper()}{flag.reason[1:]}.",
        rich_help_panel=PANEL,
    )
    return inspect.Parameter(
        _parameter_name(flag),
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[list[str] | None, option],
    )


def _parameter_name(flag: FlagWithoutEffect) -> str:
    return flag.name.lstrip("-").replace("-", "_")

"""Flags that belong together, as one parameter of a command.

A command has a parameter whose type is a `FlagGroup`. Typer sees a flag for each field of the
group, in the place of the parameter; the command gets the group with the values.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Annotated, Any, NamedTuple, get_args, get_origin

import msgspec
import typer
from msgspec.structs import FieldInfo

from stowage.api.values.duration import parse_duration
from stowage.cli.go_flags import BOOLEAN, parse_boolean


class Panel(NamedTuple):
    """A panel of the help, with the options that it lists.

    Attributes:
        title: The title of the panel.
    """

    title: str

    def option(self, *names: str, **settings: Any) -> Any:
        """An option; the arguments are those of `typer.Option`. Its parser may raise ValueError."""
        if "parser" in settings:
            settings["parser"] = _refusing(settings["parser"])
        return typer.Option(*names, rich_help_panel=self.title, **settings)

    def boolean(self, *names: str, **settings: Any) -> Any:
        """An option whose value is a boolean in Go's notation."""
        return self.option(*names, parser=parse_boolean, metavar=BOOLEAN, **settings)

    def duration(self, *names: str, **settings: Any) -> Any:
        """An option whose value is a duration."""
        return self.option(*names, parser=parse_duration, metavar="DURATION", **settings)

    def file(self, *names: str, **settings: Any) -> Any:
        """An option whose value is a file that exists."""
        return self.option(*names, exists=True, dir_okay=False, metavar="FILE", **settings)


def _refusing(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """`parse`, whose ValueError becomes an error of the flag; Typer would add words of its own."""

    @wraps(parse)
    def parse_flag(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error

    return parse_flag


class FlagGroup(msgspec.Struct, frozen=True):
    """The values of flags that belong together: a field for each, annotated with its option."""

    def given(self) -> list[str]:
        """The names of the flags that have another value than their default."""
        return [
            _name_of(field)
            for field in msgspec.structs.fields(self)
            if getattr(self, field.name) not in (field.default, [])
        ]


class Without:
    """In the annotation of a parameter: the command lacks these flags of the group.

    Args:
        fields: Names of fields; they have their defaults.
    """

    def __init__(self, *fields: str) -> None:
        self.fields = frozenset(fields)


def takes_flag_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command a flag for each field of the groups among its parameters.

    Args:
        command: A command; a parameter for a group is ``name: Group``, or
            ``name: Annotated[Group, Without(...)]``.
    """
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, tuple[type[FlagGroup], list[str]]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        group, fields = _fields(parameter.annotation)
        if group is None:
            parameters.append(parameter)
            continue
        groups[parameter.name] = group, [each.name for each in fields]
        parameters += map(_flag, fields)

    @wraps(command)
    def with_groups(**given: Any) -> None:
        command(**dict(_grouped(groups, given)), **given)

    with_groups.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # as `inspect` reads it
    # Typer resolves the annotations of the function too; those of the signature are resolved.
    with_groups.__annotations__ = {}
    return with_groups


def _fields(annotation: Any) -> tuple[type[FlagGroup] | None, list[FieldInfo]]:
    """The group that a parameter stands for, if any, and the fields that are flags."""
    left_out: frozenset[str] = frozenset()
    if get_origin(annotation) is Annotated:
        annotation, *others = get_args(annotation)
        left_out = left_out.union(*(each.fields for each in others if isinstance(each, Without)))
    if not isinstance(annotation, type) or not issubclass(annotation, FlagGroup):
        return None, []
    fields = msgspec.structs.fields(annotation)
    return annotation, [each for each in fields if each.name not in left_out]


def _name_of(field: FieldInfo) -> str:
    """The name of a field's flag."""
    _, option = get_args(field.type)
    # Typer takes the first name for a default until it makes the command.
    named = (option.default, *option.param_decls)
    names = [each for each in named if isinstance(each, str) and each.startswith("--")]
    return names[0] if names else f"--{field.name.replace('_', '-')}"


def _flag(field: FieldInfo) -> inspect.Parameter:
    return inspect.Parameter(
        field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type
    )


def _grouped(
    groups: Mapping[str, tuple[type[FlagGroup], list[str]]], given: dict[str, Any]
) -> Iterator[tuple[str, FlagGroup]]:
    """The groups with their values, which are taken out of ``given``."""
    for name, (group, fields) in groups.items():
        yield name, group(**{field: given.pop(field) for field in fields})

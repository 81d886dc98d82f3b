"""Writes the tables of the reference that exist elsewhere as data.

A page marks the place of a table with a pair of comments::

    <!-- table: metrics -->
    <!-- end of table -->

``python -m docs.tables`` replaces what stands between them. The pages are committed with their
tables, so that they can be read without building the site; a test holds both equal.
"""

from __future__ import annotations

import csv
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import msgspec
import yaml
from prometheus_client import CollectorRegistry, ProcessCollector
from typer.main import get_command

from docs.answer_fields import answer_fields
from stowage.api.config.legacy_algorithms import (
    DEFAULT_PREDICATES,
    MANDATORY_PREDICATES,
    PREDICATES,
    PRIORITIES,
    PROVIDERS,
)
from stowage.api.config.types import KubeSchedulerConfiguration
from stowage.cli.main import app
from stowage.cli.plain_help import argument_name, value_name
from stowage.framework.profile.points import ExtensionPoint, takes_part
from stowage.framework.profile.profile import DEFAULT_MULTI_POINT
from stowage.operator.metrics import definitions, own_definitions
from stowage.operator.metrics.definition import Definition
from stowage.operator.metrics.resource_metrics import ResourceMetrics
from stowage.plugins import in_tree_registry
from tests.mutation.report import Report

DOCS = Path(__file__).parent
ROOT = DOCS.parent
RECORDED_METRICS = DOCS / "reference" / "kube-scheduler-metrics.csv"
RULES = ROOT / "manifests/components/monitoring/prometheus-rule.yaml"
MUTANTS = ROOT / "tests/mutation/figures.json"
UNSEEN_MUTANTS = ROOT / "tests/mutation/unseen.json"
ROLES = ("cluster-role.yaml", "role.yaml")
_TABLE = re.compile(r"(?s)(<!-- table: ([\w ]+) -->\n)(.*?)(<!-- end of table -->)")


def with_tables(page: str) -> str:
    """The text of a page with its tables made anew.

    Raises:
        KeyError: the page names a table that does not exist.
    """

    def filled(found: re.Match[str]) -> str:
        lines = "\n".join(TABLES[found[2]]())
        return f"{found[1]}\n{lines}\n\n{found[4]}"

    return _TABLE.sub(filled, page)


def pages() -> list[Path]:
    """All pages of the site."""
    return sorted(DOCS.rglob("*.md"))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def _code(text: object) -> str:
    return f"`{text}`" if text not in ("", None) else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())


# -- metrics and alerts ---------------------------------------------------------------------------


def _alert_rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["spec"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


def defined_metrics() -> Iterator[Definition]:
    """The metrics of kube-scheduler, and then those of Stowage alone."""
    for module in (definitions, own_definitions):
        yield from (each for each in vars(module).values() if isinstance(each, Definition))


def _metrics() -> Iterator[str]:
    rules = _alert_rules()
    yield from _table(
        ("Metric", "Type", "Stability", "Labels", "Meaning", "Alerts that read it"),
        (
            (
                _code(metric.name),
                metric.kind,
                metric.stability,
                ", ".join(map(_code, metric.labels)),
                metric.help.rstrip("."),
                ", ".join(rule["alert"] for rule in rules if _reads(rule["expr"], metric)),
            )
            for metric in defined_metrics()
        ),
    )


def _reads(expression: str, metric: Definition) -> bool:
    return re.search(rf"\b{metric.name}(_bucket|_count|_sum)?\b", expression) is not None


def recorded_metrics() -> list[dict[str, str]]:
    """The metric families of kube-scheduler v1.36: a row of `RECORDED_METRICS` for each."""
    with RECORDED_METRICS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def exposed_metrics() -> set[str]:
    """The names of the metric families that Stowage exposes, as their TYPE lines have them."""
    names = {each.name for each in defined_metrics()}
    for collector in (ProcessCollector(registry=CollectorRegistry()), ResourceMetrics(lambda: ())):
        for family in collector.collect():
            names.add(f"{family.name}_total" if family.type == "counter" else family.name)
    return names


def _missing_metrics() -> Iterator[str]:
    """The recorded families that Stowage does not expose, by the reason."""
    exposed = exposed_metrics()
    by_reason: dict[str, list[str]] = {}
    for row in recorded_metrics():
        if row["metric"] not in exposed:
            by_reason.setdefault(row["not exposed because"], []).append(_code(row["metric"]))
    rows = sorted((", ".join(names), reason) for reason, names in by_reason.items())
    yield from _table(("Metrics of kube-scheduler", "Not exposed because"), rows)


def _alerts() -> Iterator[str]:
    rules = _alert_rules()
    yield from _table(
        ("Alert", "Severity", "For", "Summary"),
        ((_link(rule), rule["labels"]["severity"], _for(rule), _summary(rule)) for rule in rules),
    )
    for rule in rules:
        description = _without_templates(rule["annotations"]["description"])
        yield from ("", f"## {rule['alert']}", "", f"{_summary(rule)} {description}", "")
        yield f"Severity {rule['labels']['severity']}, {_for(rule)}:"
        yield from ("", "```promql", _one_line(rule["expr"]), "```")


def _link(rule: Mapping[str, Any]) -> str:
    return f"[{rule['alert']}](#{rule['alert'].lower()})"


def _for(rule: Mapping[str, Any]) -> str:
    return f"after {rule['for']}" if "for" in rule else "at once"


def _summary(rule: Mapping[str, Any]) -> str:
    return _without_templates(rule["annotations"]["summary"])


def _without_templates(text: str) -> str:
    return re.sub(r"\{\{ \$labels\.(\w+) \}\}", r"*\1*", _one_line(text))


# -- commands and flags ---------------------------------------------------------------------------


def _flags() -> Iterator[str]:
    for path, command in _commands("stowage", get_command(app)):
        yield from (f"## {path}", "", _one_line((command.help or "").partition("\n\n")[0]), "")
        arguments = [each for each in command.params if each.param_type_name == "argument"]
        if arguments:
            yield "Arguments: " + ", ".join(map(_argument, arguments)) + "."
            yield ""
        for panel, options in _by_panel(command.params).items():
            yield from (f"### {panel} of {path}", "") if panel else ()
            yield from _table(("Flag", "Value", "Default", "Meaning"), map(_option, options))
            yield ""


def _commands(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    if command.hidden:
        return
    if not hasattr(command, "list_commands"):
        yield path, command
        return
    for name in command.list_commands(None):
        found = command.get_command(None, name)
        yield from _commands(f"{path} {name}", found)


def _by_panel(params: Sequence[Any]) -> dict[str, list[Any]]:
    panels: dict[str, list[Any]] = {}
    for param in params:
        if param.param_type_name == "option" and "--help" not in param.opts:
            panels.setdefault(getattr(param, "rich_help_panel", None) or "", []).append(param)
    return panels


def _argument(param: Any) -> str:
    help_text = (getattr(param, "help", "") or "").rstrip(".")
    optional = "" if param.required else "optional"
    note = "; ".join(filter(None, (optional, help_text)))
    name = argument_name(param)
    return f"`{name}` ({note})" if note else f"`{name}`"


def _option(param: Any) -> tuple[str, str, str, str]:
    names = ", ".join(map(_code, [*param.opts, *param.secondary_opts]))
    value = "" if param.is_flag else value_name(param)
    return names, _code(value), _default(param), _one_line(param.help or "")


def _default(param: Any) -> str:
    shown = param.show_default
    if isinstance(shown, str):
        return _code(shown)
    default = param.default() if callable(param.default) else param.default
    if default is None or default == "" or (param.is_flag and default is False):
        return ""
    if isinstance(default, list | tuple):
        return ", ".join(_code(each) for each in default)
    if param.is_flag:
        return "on"
    return _code(getattr(default, "value", default))


# -- configuration --------------------------------------------------------------------------------


def _configuration() -> Iterator[str]:
    yield from _table(
        ("Field", "Type", "Default"),
        (row for row in _fields(KubeSchedulerConfiguration, "")),
    )


def _fields(kind: type[msgspec.Struct], prefix: str) -> Iterator[tuple[str, str, str]]:
    for field in msgspec.structs.fields(kind):
        path = f"{prefix}{field.encode_name}"
        inner = _struct_in(field.type)
        if inner is None or inner.__name__ == "PluginSets":
            shown = "an empty set" if inner else _default_value(field)
            yield _code(path), _type_text(field.type), shown
        else:
            mark = "[]." if "tuple" in str(field.type) else "."
            yield from _fields(inner, f"{path}{mark}")


def _struct_in(kind: Any) -> type[msgspec.Struct] | None:
    for each in (kind, *getattr(kind, "__args__", ())):
        if inspect.isclass(each) and issubclass(each, msgspec.Struct):
            return each
    return None


def _type_text(kind: Any) -> str:
    text = getattr(kind, "__name__", "") if not getattr(kind, "__args__", ()) else str(kind)
    if "Literal" in text:
        return _alternatives(kind)
    if "PluginSets" in text:
        return "plugins by extension point"
    names = {"str": "text", "int": "whole number", "float": "number", "bool": "true or false"}
    names |= {"Duration": "duration", "bytes": "base64 text", "int | None": "whole number"}
    names |= {"StrEnum": "text"}
    return names.get(text, text.replace("dict[str, typing.Any]", "mapping").removesuffix(" | None"))


def _alternatives(kind: Any) -> str:
    """The values of a Literal, or the alternatives of a union with one."""
    if get_origin(kind) is Literal:
        return " or ".join(map(_code, get_args(kind)))
    return " or ".join(_type_text(each) for each in get_args(kind) if each is not NoneType)


def _default_value(field: Any) -> str:
    if field.default is msgspec.NODEFAULT:
        if field.default_factory is msgspec.NODEFAULT:
            return "required"
        return _written(field.default_factory())
    return _written(field.default)


def _written(value: object) -> str:
    plain = msgspec.to_builtins(value, enc_hook=str)
    if plain in (None, "", [], (), {}):
        return ""
    return _code(msgspec.json.encode(plain).decode().strip('"'))


def _plugins() -> Iterator[str]:
    weights = dict(DEFAULT_MULTI_POINT)
    rows = []
    for name, factory in in_tree_registry().items():
        plugin = factory.construct(factory.args())
        points = [point.value for point in ExtensionPoint if takes_part(plugin, point)]
        weight = str(weights.get(name) or 1) if "score" in points else ""
        rows.append((_code(name), ", ".join(points), weight, "yes" if name in weights else "no"))
    yield from _table(("Plugin", "Extension points", "Weight", "On by default"), rows)


def _plugin_arguments() -> Iterator[str]:
    rows = (
        (_code(name), _code(field.encode_name), _default_value(field))
        for name, factory in in_tree_registry().items()
        for field in msgspec.structs.fields(factory.args)
    )
    yield from _table(("Plugin", "Argument", "Default"), rows)


def _predicates() -> Iterator[str]:
    rows = (
        (
            _code(name),
            ", ".join(map(_code, plugins)),
            "yes" if name in DEFAULT_PREDICATES else "",
            "yes" if name in MANDATORY_PREDICATES else "",
        )
        for name, plugins in PREDICATES.items()
    )
    yield from _table(("Predicate", "Filter plugins", "In the providers", "Mandatory"), rows)


def _priorities() -> Iterator[str]:
    rows = (
        (
            _code(name),
            _code(plugin),
            *(str(weights.get(name, "")) for weights in PROVIDERS.values()),
        )
        for name, plugin in PRIORITIES.items()
    )
    heads = (f"Weight in {provider}" for provider in PROVIDERS)
    yield from _table(("Priority", "Score plugin", *heads), rows)


def _samples() -> Iterator[str]:
    rows = []
    for file in sorted((ROOT / "config").glob("*.yaml")):
        lines = file.read_text(encoding="utf-8").splitlines()
        comment = _one_line(" ".join(line.lstrip("# ") for line in _leading_comment(lines)))
        rows.append((_code(f"config/{file.name}"), f"{comment.partition('. ')[0].rstrip('.')}."))
    yield from _table(("File", "What it does"), rows)


def _leading_comment(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if not line.startswith("#"):
            return
        yield line


# -- rights ---------------------------------------------------------------------------------------


def _rights() -> Iterator[str]:
    rows = []
    for name in ROLES:
        for kind, rule, reason in _rules_of((ROOT / "manifests/base" / name).read_text("utf-8")):
            groups = ", ".join(_code(group or "core") for group in rule["apiGroups"])
            resources = ", ".join(map(_code, rule["resources"]))
            named = ", ".join(rule.get("resourceNames", ()))
            resources += f" named {_code(named)}" if named else ""
            rows.append((kind, groups, resources, ", ".join(map(_code, rule["verbs"])), reason))
    yield from _table(("Role", "API group", "Resources", "Verbs", "Reason"), rows)


def _rules_of(text: str) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """(kind, rule, the comment above it) of the first document, which is the role."""
    first = text.partition("\n---\n")[0]
    role = yaml.safe_load(first)
    reasons, comment = [], ""
    for line in first.partition("\nrules:\n")[2].splitlines():
        if line.startswith("  # "):
            comment = f"{comment} {line[4:]}"
        elif line.startswith("  - "):
            reasons.append(_one_line(comment))
            comment = ""
    for rule, reason in zip(role["rules"], reasons, strict=True):
        yield role["kind"], rule, reason


# -- mutation tests -------------------------------------------------------------------------------


def _mutants() -> Iterator[str]:
    report = msgspec.json.decode(MUTANTS.read_bytes(), type=Report)
    judged = f"{report.packages[-1].judged:,} of {report.mutants:,} mutants"
    yield f"Measured on {report.date}: {judged}, drawn with seed {report.seed}."
    yield ""
    head = ("Package", "Judged", "Equivalent", "Killed", "Timed out", "Survived", "Killed, in %")
    yield from _table(
        head,
        (
            (
                row.name,
                f"{row.judged:,}",
                f"{row.equivalent:,}",
                f"{row.killed:,}",
                f"{row.timeout:,}",
                f"{row.survived:,}",
                row.share,
            )
            for row in report.packages
        ),
    )
    unseen = msgspec.json.decode(UNSEEN_MUTANTS.read_bytes(), type=Report)
    row = unseen.packages[-1]
    yield ""
    others = f"{row.judged:,} others that nobody had looked at, judged on {unseen.date}"
    yield f"Killed of {others}: {row.share}."


TABLES: Mapping[str, Callable[[], Iterator[str]]] = {
    "metrics": _metrics,
    "metrics not exposed": _missing_metrics,
    "alerts": _alerts,
    "flags": _flags,
    "configuration": _configuration,
    "plugins": _plugins,
    "plugin arguments": _plugin_arguments,
    "predicates": _predicates,
    "priorities": _priorities,
    "sample configurations": _samples,
    "rights": _rights,
    "mutants": _mutants,
    "answers": answer_fields,
}


def main() -> None:
    """Write the tables into the pages."""
    for page in pages():
        before = page.read_text(encoding="utf-8")
        after = with_tables(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(f"{page.relative_to(ROOT)}: tables written")  # noqa: T201 - its answer


if __name__ == "__main__":
    main()

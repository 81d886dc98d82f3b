"""Links, files, modules, make targets and flags in the documents exist."""

from __future__ import annotations

import re
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from docs.tables import RULES
from stowage.cli.main import app
from tests.docs.pages import PAGES, README, ROOT, blocks

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`\n]+)`")
_FILE = re.compile(
    r"^(?:scheduler|simcluster|benchmarks|tests|docs|config|manifests|examples)/\S+$"
)
_MODULE = re.compile(
    r"^(?:stowage|simcluster|stowage_benchmarks|tests)(?:\.[a-z_]+)+(?:\.[A-Z]\w+)?$"
)
_FLAG = re.compile(r"^(--[a-z][a-z-]+)(?:[ =].*)?$")
#: Entry-point groups, whose names look like modules.
_GROUPS = {"stowage.plugins", "stowage.commands"}
#: Flags of other programs and of test modules.
_OTHER_FLAGS = {
    "--seeds",
    "--trace",
    "--emphases",
    "--files-every",
    "--report",
    "--strict",
    "--build-arg",
    "--with-docs",
}


def _ids(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _prose(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    for block in blocks(page):
        text = text.replace(block.text, "")
    return text


def _slug(heading: str) -> str:
    plain = re.sub(r"[^\w\s-]", "", heading.replace("`", "").strip().lower())
    return re.sub(r"\s", "-", plain)


def _anchors(page: Path) -> set[str]:
    text = page.read_text(encoding="utf-8")
    return {_slug(heading) for heading in re.findall(r"(?m)^#+ (.*)$", text)}


@pytest.mark.parametrize("page", PAGES, ids=_ids)
def test_links_point_to_existing_pages_and_headings(page: Path) -> None:
    for target in _LINK.findall(_prose(page)):
        if target.startswith(("https://", "http://")):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        assert linked.exists(), f"{page}: {target}"
        if anchor:
            assert anchor in _anchors(linked), f"{page}: {target}"


def test_the_runbook_of_every_alert_is_a_section_of_a_page() -> None:
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))["spec"]["groups"][0]["rules"]
    for rule in rules:
        name, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert anchor == _slug(rule["alert"])
        assert anchor in _anchors(ROOT / name)


@pytest.mark.parametrize("page", PAGES, ids=_ids)
def test_files_and_modules_that_pages_name_exist(page: Path) -> None:
    for name in _CODE.findall(_prose(page)):
        if _FILE.match(name):
            assert (ROOT / name).exists(), f"{page}: {name}"
        elif _MODULE.match(name) and name not in _GROUPS:
            module = re.sub(r"\.[A-Z]\w+$", "", name)
            assert find_spec(module) is not None, f"{page}: {name}"


@pytest.mark.parametrize("page", PAGES, ids=_ids)
def test_flags_and_make_targets_that_pages_name_exist(page: Path) -> None:
    known = _all_flags() | _OTHER_FLAGS
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"(?m)^([a-z-]+):", makefile))
    variables = set(re.findall(r"\$\(([A-Z_]+)\)", makefile))
    for name in _CODE.findall(_prose(page)):
        if found := _FLAG.match(name):
            assert found[1] in known, f"{page}: {name}"
        elif name.startswith("make "):
            words = name.split()[1:]
            given = {word.partition("=")[0] for word in words if "=" in word}
            assert {word for word in words if "=" not in word} <= targets, f"{page}: {name}"
            assert given <= variables, f"{page}: {name}"


def _all_flags() -> set[str]:
    flags: set[str] = set()
    commands: list[Any] = [get_command(app)]
    while commands:
        command = commands.pop()
        for param in command.params:
            flags |= {*param.opts, *param.secondary_opts}
        names = command.list_commands(None) if hasattr(command, "list_commands") else ()
        commands.extend(command.get_command(None, name) for name in names)
    return flags


def test_every_page_is_in_the_table_of_contents() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        if page.name == "index.md":
            continue
        index = (page.parent / "index.md").read_text(encoding="utf-8")
        assert f"\n{page.stem}\n" in index, page


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize(
    "pattern",
    [r"/stowage:(\d[\d.]*\d)", r"\bstowage(?:_\w+)?-(\d[\d.]*\d)-py3"],
    ids=["image", "wheel"],
)
def test_images_and_wheels_that_pages_name_have_the_current_version(pattern: str) -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    named = {found for text in texts for found in re.findall(pattern, text)}
    assert named == {version("stowage")}


def _defined(pattern: str) -> set[str]:
    files = (ROOT / "scheduler").rglob("*.py")
    return {
        found for file in files for found in re.findall(pattern, file.read_text(encoding="utf-8"))
    }


def test_types_of_the_glossary_exist() -> None:
    glossary = (ROOT / "docs/explanation/glossary.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([A-Z]\w+)`\)", glossary))
    assert len(named) > 5
    assert named <= _defined(r"(?m)^(?:class )?([A-Z]\w+)(?:[(:]| =)")


def test_functions_on_the_way_of_a_pod_exist() -> None:
    page = (ROOT / "docs/explanation/one-pods-way.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\(`([a-z_]+)`\)", page))
    assert len(named) > 5
    assert named <= _defined(r"(?m)^def (\w+)")

"""The shell blocks of README, the tutorials and some how-to guides run as written."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from stowage.cli.main import app
from tests.docs.pages import (
    GUIDES_WITH_A_CLUSTER,
    PAGES,
    README,
    ROOT,
    RUN_GUIDES,
    TUTORIALS,
    Block,
    blocks,
    shell_blocks,
)
from tests.docs.shell_session import run_page

#: How many blocks of each page no test can run.
NOT_RUN_IN = {"README.md": 4, "docs/tutorials/first-run.md": 1, "docs/how-to/explain.md": 1}


#: Starts the cluster that stands for the reader's own, with the objects that the guides name.
READERS_CLUSTER = """
mkdir -p ~/.kube
stowage cluster --nodes 4 --listen 127.0.0.1:0 --write-kubeconfig ~/.kube/config \\
  >.cluster.log 2>&1 &
until test -s ~/.kube/config; do sleep 0.2; done
kubectl create namespace shop
kubectl apply -f - <<END
apiVersion: v1
kind: Node
metadata: {name: worker-3}
status: {capacity: {cpu: "8", memory: 32Gi, pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: cart-7d9f, namespace: shop}
spec:
  containers: [{name: main, image: registry.k8s.io/pause:3.10}]
END
"""


@pytest.mark.parametrize(
    "page", [README, *TUTORIALS, *GUIDES_WITH_A_CLUSTER], ids=lambda page: page.stem
)
def test_shell_blocks_run_and_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path)


@pytest.mark.parametrize("page", RUN_GUIDES, ids=lambda page: page.stem)
def test_shell_blocks_of_guides_run_beside_a_cluster(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path, READERS_CLUSTER)


def test_a_file_that_a_page_shows_is_the_one_in_the_checkout() -> None:
    shown = [block for page in PAGES for block in blocks(page) if "shows" in block.notes]
    assert len(shown) >= 6
    for block in shown:
        assert block.text == (ROOT / block.notes["shows"]).read_text(), block.place


def test_commands_fit_into_80_columns() -> None:
    long = [
        f"{block.place}: {line}"
        for page in PAGES
        for block in shell_blocks(page)
        for line in block.text.splitlines()
        if len(line.removeprefix("$ ")) > 80 and (block.language == "sh" or line.startswith("$ "))
    ]
    assert long == []


def test_blocks_that_are_not_run_have_a_reason() -> None:
    not_run = [
        block
        for page in [README, *TUTORIALS, *GUIDES_WITH_A_CLUSTER, *RUN_GUIDES]
        for block in shell_blocks(page)
        if "not run" in block.notes
    ]
    assert all(len(block.notes["not run"].split()) > 3 for block in not_run)
    numbers: dict[str, int] = {}
    for block in not_run:
        name = str(block.page.relative_to(ROOT))
        numbers[name] = numbers.get(name, 0) + 1
    assert numbers == NOT_RUN_IN


def test_notes_above_blocks_are_of_a_known_kind() -> None:
    known = {"not run", "file", "exits", "shows"}
    for page in PAGES:
        assert {note for block in blocks(page) for note in block.notes} <= known, page


def _stowage_lines(block: Block) -> Iterator[list[str]]:
    group: Any = get_command(app)
    joined = block.text.replace("\\\n", " ").splitlines()
    for line in (each for each in joined if "stowage " in each):
        words = shlex.split(line.removeprefix("$ "), comments=True)
        for at, word in enumerate(words):
            if word == "stowage" or word.endswith("/bin/stowage"):
                rest = words[at + 1 :]
                if rest and rest[0] in group.list_commands(None):
                    yield rest
                break


def _command_of(words: list[str]) -> tuple[Any, list[str]]:
    command: Any = get_command(app)
    while words and hasattr(command, "get_command"):
        command, words = command.get_command(None, words[0]), words[1:]
        assert command is not None, words
    return command, words


def test_every_command_and_flag_of_the_documents_exists() -> None:
    found = 0
    for page in PAGES:
        for block in shell_blocks(page):
            for words in _stowage_lines(block):
                command, arguments = _command_of(words)
                known = {
                    flag for each in command.params for flag in each.opts + each.secondary_opts
                }
                flags = [each.partition("=")[0] for each in arguments if each.startswith("--")]
                if "--" in flags:  # The rest belongs to another program.
                    flags = flags[: flags.index("--")]
                assert set(flags) <= known, (block.place, words)
                found += 1
    assert found > 15

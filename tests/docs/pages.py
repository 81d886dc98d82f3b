"""The pages of the documents and their fenced blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
TUTORIALS = sorted(each for each in (DOCS / "tutorials").glob("*.md") if each.stem != "index")
#: How-to guides whose commands run against a cluster that stands for the reader's.
RUN_GUIDES = [DOCS / "how-to" / name for name in ("copy-a-cluster.md", "explain.md", "gpus.md")]
#: How-to guides that start a cluster of their own.
GUIDES_WITH_A_CLUSTER = [DOCS / "how-to" / "gangs.md"]
PAGES = [
    README,
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "examples" / "README.md",
    *sorted(DOCS.rglob("*.md")),
]

#: A block may have notes in comments directly above it: `<!-- not run: it needs a registry -->`.
_BLOCK = re.compile(
    r"(?m)(?P<notes>(?:^<!-- [^\n]* -->\n)*)^```(?P<language>\w*)\n(?P<text>(?s:.*?))^```$"
)
_NOTE = re.compile(r"<!-- ([\w ]+): (.*) -->")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block.

    Attributes:
        page: The page of the block.
        line: The number of its first line.
        language: The word after the opening fence.
        text: The text between the fences.
        notes: The comments above it, by their first words.
    """

    page: Path
    line: int
    language: str
    text: str
    notes: dict[str, str]

    @property
    def place(self) -> str:
        """The page and the line."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def commands(self) -> Iterator[tuple[str, list[str]]]:
        """The commands of a console block, each with the lines of output shown below it."""
        command: list[str] = []
        output: list[str] = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                if command:
                    yield "\n".join(command), output
                command, output = [line[2:]], []
            elif line.startswith("> ") and not output:
                command.append(line[2:])
            elif line.strip():
                output.append(line)
        if command:
            yield "\n".join(command), output


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, from top to bottom."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, found.start("language")) + 1,
            found["language"],
            found["text"],
            dict(_NOTE.findall(found["notes"])),
        )
        for found in _BLOCK.finditer(text)
    ]


def shell_blocks(page: Path) -> list[Block]:
    """The blocks of commands."""
    return [block for block in blocks(page) if block.language in ("sh", "console")]

"""Reads the CSV files of an openb trace.

The first line names the columns, in any order; columns that the experiment does not read may be
missing.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from stowage.api.values.printable import printable

GPU = 1000
"""The thousandths of a whole GPU."""

_MAX_AMOUNT = 10**12
_MAX_DIGITS = 30
_SHOWN_CHARACTERS = 200
_ItemT = TypeVar("_ItemT")


class InvalidTrace(ValueError):  # noqa: N818 - it names the finding
    """A file is no such table; the message names file, line and column."""

    def __init__(self, file: str, line: int, column: str, value: str, expected: str) -> None:
        shown = repr(value[:_SHOWN_CHARACTERS])
        column = printable(column[:_SHOWN_CHARACTERS])
        super().__init__(f"{file}:{line}: {column}: {shown} (expected {expected})")


class OpenbNode(msgspec.Struct, frozen=True):
    """A node.

    Attributes:
        name: Column ``sn``.
        cpu_milli: Allocatable CPU.
        memory_mib: Allocatable memory.
        gpus: Number of GPUs.
        model: Model of its GPUs; empty if unknown.
    """

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str = ""


class OpenbPod(msgspec.Struct, frozen=True):
    """A pod.

    Attributes:
        name: Its name.
        cpu_milli: Requested CPU.
        memory_mib: Requested memory.
        gpus: Number of requested GPUs.
        gpu_milli: Requested thousandths of each of them.
        spec: The models that it accepts, joined by ``|``; empty for any.
    """

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    spec: str = ""

    @property
    def total_milli(self) -> int:
        """The requested thousandths of all its GPUs."""
        return self.gpus * self.gpu_milli

    @property
    def models(self) -> tuple[str, ...]:
        """The models that it accepts; none for any."""
        return tuple(self.spec.split("|")) if self.spec else ()


class OpenbTrace(msgspec.Struct, frozen=True):
    """Nodes and pods.

    Attributes:
        name: The name of the trace in results.
        nodes: In the order of the file.
        pods: In the order of the file.
    """

    name: str
    nodes: tuple[OpenbNode, ...]
    pods: tuple[OpenbPod, ...]

    @property
    def num_gpus(self) -> int:
        """The number of GPUs of all nodes."""
        return sum(node.gpus for node in self.nodes)


def read_trace(name: str, nodes: tuple[str, bytes], pods: tuple[str, bytes]) -> OpenbTrace:
    """The trace of two files.

    Args:
        name: The name of the trace.
        nodes: Name and content of the file of nodes.
        pods: Name and content of the file of pods.

    Raises:
        InvalidTrace: A file is no such table, a name occurs twice, or no node has a GPU.
    """
    trace = OpenbTrace(
        name,
        tuple(_items(*nodes, ("sn", "cpu_milli", "memory_mib", "gpu"), _node)),
        tuple(_items(*pods, ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"), _pod)),
    )
    if not trace.num_gpus:
        raise InvalidTrace(nodes[0], 1, "gpu", "0", "a node with a GPU")
    if not any(pod.gpus for pod in trace.pods):
        raise InvalidTrace(pods[0], 1, "num_gpu", "0", "a pod with a GPU")
    return trace


class _Row:
    """The cells of one line, by column."""

    def __init__(self, file: str, line: int, cells: Mapping[str, str]) -> None:
        self._file = file
        self._line = line
        self._cells = cells

    def text(self, column: str) -> str:
        return self._cells.get(column, "").strip()

    def amount(self, column: str, *, most: int = _MAX_AMOUNT) -> int:
        """A whole number of 0 to `most`; ``12`` and ``12.0`` are the same."""
        text = self.text(column)
        digits = text.removesuffix(".0")
        is_number = digits.isascii() and digits.isdecimal() and len(digits) <= _MAX_DIGITS
        if not is_number or int(digits) > most:
            raise self.invalid(column, f"a whole number of 0 to {most}")
        return int(digits)

    def invalid(self, column: str, expected: str) -> InvalidTrace:
        return InvalidTrace(self._file, self._line, column, self.text(column), expected)


def _items(
    file: str, content: bytes, required: Sequence[str], make: Callable[[_Row], _ItemT]
) -> Iterator[_ItemT]:
    """The items of a file, whose names, in the first required column, differ."""
    seen: dict[str, int] = {}
    for line, cells in _lines(file, content, required):
        row = _Row(file, line, cells)
        name = row.text(required[0])
        if not name:
            raise row.invalid(required[0], "a name")
        if name in seen:
            raise row.invalid(required[0], f"another name than in line {seen[name]}")
        seen[name] = line
        yield make(row)


def _lines(
    file: str, content: bytes, required: Sequence[str]
) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidTrace(file, line, "text", repr(content[error.start]), "UTF-8") from error
    reader = csv.reader(text.splitlines(), strict=True)
    try:
        header = [cell.strip() for cell in next(reader, [])]
        for column in required:
            if header.count(column) != 1:
                raise InvalidTrace(file, 1, column, ",".join(header)[:200], "this column, once")
        for cells in reader:
            if len(cells) != len(header) and cells:
                shown = ",".join(cells)[:200]
                expected = f"{len(header)} columns, as in the first line"
                raise InvalidTrace(file, reader.line_num, header[0], shown, expected)
            if cells:
                yield reader.line_num, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise InvalidTrace(file, reader.line_num, "text", str(error), "a line of CSV") from error


def _node(row: _Row) -> OpenbNode:
    return OpenbNode(
        row.text("sn"),
        row.amount("cpu_milli"),
        row.amount("memory_mib"),
        row.amount("gpu", most=1000),
        row.text("model"),
    )


def _pod(row: _Row) -> OpenbPod:
    gpus = row.amount("num_gpu", most=1000)
    gpu_milli = row.amount("gpu_milli", most=GPU)
    if gpus == 1 and not gpu_milli:
        raise row.invalid("gpu_milli", f"1 to {GPU}, for a pod with a GPU")
    if gpus > 1 and gpu_milli != GPU:
        raise row.invalid("gpu_milli", f"{GPU}, for a pod with several GPUs")
    return OpenbPod(
        row.text("name"),
        row.amount("cpu_milli"),
        row.amount("memory_mib"),
        gpus,
        gpu_milli if gpus else 0,
        "|".join(part.strip() for part in row.text("gpu_spec").split("|")) if gpus else "",
    )

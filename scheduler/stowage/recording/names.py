"""The names of the files of recordings: ``TIME-NUMBER.recording`` for each segment."""

from __future__ import annotations

import re
from pathlib import Path

PATTERN = "*.recording"
PARTIAL = ".partial"
"""Suffix of a segment whose checkpoint is not complete."""
_SEGMENT = re.compile(r"(?P<recording>.+)-(?P<number>[0-9]{6,})\.recording")


def segment_name(time_of_day: str, number: int) -> str:
    """The name of a segment of the recording that began at this time.

    Examples:
        >>> segment_name("2026-11-22T20:11:38.370863Z", 2)
        '20261122T201138.370863Z-000002.recording'
    """
    recording = time_of_day.replace(":", "").replace("-", "")
    return f"{recording}-{number:06}.recording"


def recordings_in(folder: Path) -> list[list[Path]]:
    """The segments of each recording of a folder, oldest first."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.glob(PATTERN)):
        match = _SEGMENT.fullmatch(path.name)
        found.setdefault(path.stem if match is None else match["recording"], []).append(path)
    # A number of more than six digits comes after the others.
    return [sorted(found[name], key=lambda path: len(path.name)) for name in sorted(found)]


def segments_from(path: Path) -> list[Path]:
    """A segment and those that follow it in its folder, even if some between them are missing."""
    if _SEGMENT.fullmatch(path.name) is None:
        return [path]
    for segments in recordings_in(path.parent):
        if path in segments:
            return segments[segments.index(path) :]
    return [path]


def following_segment(path: Path) -> Path | None:
    """The path of the next segment, whether it exists or not; None if the name has no number."""
    match = _SEGMENT.fullmatch(path.name)
    if match is None:
        return None
    return path.with_name(f"{match['recording']}-{int(match['number']) + 1:06}.recording")

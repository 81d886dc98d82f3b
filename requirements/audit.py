"""Looks up known vulnerabilities: pip-audit asks PyPI; if it can't, a snapshot is compared.

The snapshot (``requirements/advisories.json``) is old and small, and the answer says so. It judges
the locked packages of ``requirements/*.txt``, not what is installed.

Exit status: 1 if a vulnerability is known.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from packaging.utils import canonicalize_name
from packaging.version import Version

FOLDER = Path(__file__).parent
SNAPSHOT = FOLDER / "advisories.json"
Json: TypeAlias = dict[str, Any]

_LOCKED = re.compile(r"(?m)^([A-Za-z0-9._-]+)==([^\s;\\]+)")


def locked(text: str) -> set[tuple[str, Version]]:
    """Package and version of each line of a lock, for all versions of Python."""
    return {(canonicalize_name(name), Version(version)) for name, version in _LOCKED.findall(text)}


def is_affected(version: Version, affected: Json) -> bool:
    """Whether a version is in a range of the Open Source Vulnerability format.

    Args:
        version: Of a package.
        affected: ``introduced``, and ``fixed`` (the first version that is not affected) or
            ``last_affected``.
    """
    if version < Version(affected["introduced"]):
        return False
    if "fixed" in affected:
        return version < Version(affected["fixed"])
    return version <= Version(affected["last_affected"])


def findings(packages: Iterable[tuple[str, Version]], snapshot: Json) -> Iterator[str]:
    """A line for each package and each advisory that it is affected by."""
    for name, version in sorted(packages):
        for advisory in snapshot["advisories"]:
            affected = any(is_affected(version, each) for each in advisory["ranges"])
            if advisory["package"] == name and affected:
                identifiers = ", ".join([advisory["id"], *advisory["aliases"]])
                yield f"{name} {version}: {identifiers}: {advisory['link']}"


def audit_live() -> int | None:
    """Run pip-audit; its exit status, or None if it could not look everything up."""
    command = [sys.executable, "-m", "pip_audit", "--strict", "--skip-editable"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - a list of our own
    if answer.returncode and not answer.stdout.strip():
        # It prints a table of vulnerabilities to stdout, and why it has none to stderr.
        reason = (answer.stderr.strip().splitlines() or ["no reason given"])[-1]
        _say(f"pip-audit could not ask the live database: {reason}")
        return None
    _say(f"{answer.stdout}{answer.stderr}".strip())
    return answer.returncode


def audit_snapshot(snapshot: Json, locks: Iterable[Path]) -> int:
    """Compare locks with a snapshot and print what is found; 1 if a package is affected."""
    packages = {each for lock in locks for each in locked(lock.read_text(encoding="utf-8"))}
    known = {advisory["package"] for advisory in snapshot["advisories"]}
    dates = "; ".join(
        f"{source['title']} until {source['newest']} ({source['covers']})"
        for source in snapshot["sources"]
    )
    _say(f"compared with a snapshot of {snapshot['collected']}, not with a live database: {dates}")
    found = list(findings(packages, snapshot))
    for line in found:
        _say(line)
    names = {name for name, _ in packages}
    _say(
        f"{len(found)} known vulnerabilities in {len(packages)} locked versions of {len(names)} "
        f"packages; the snapshot has {len(snapshot['advisories'])} advisories about "
        f"{len(known & names)} of them, so it does not show that there is none"
    )
    return int(bool(found))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def main() -> int:
    """Ask the live database, else compare with the snapshot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--snapshot-only", action="store_true", help="Do not run pip-audit.")
    parser.add_argument("locks", nargs="*", type=Path, help="By default requirements/*.txt.")
    options = parser.parse_args()
    status = None if options.snapshot_only else audit_live()
    if status is not None:
        return status
    snapshot = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    return audit_snapshot(snapshot, options.locks or sorted(FOLDER.glob("*.txt")))


if __name__ == "__main__":
    sys.exit(main())

"""Writes where artefacts come from, as an in-toto statement with SLSA provenance (v1).

It has what can be known here: the digests of what was made, the commit (of a source distribution
the version), the digests of the locked packages. It is not signed; a pipeline adds its builder with
``--builder``, and signs it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOCKS = ("requirements/run.txt", "requirements/tracing.txt", "requirements/build.txt")


def statement(
    parameters: dict[str, str], builder: str, subjects: list[dict[str, Any]]
) -> dict[str, Any]:
    """The statement about artefacts of a make target.

    Args:
        parameters: The make target, as ``target``, and the variables of make that it was given.
        builder: The URI of who built them.
        subjects: Name and digest of each artefact.
    """
    locks = [{"name": lock, "digest": {"sha256": _sha256(ROOT / lock)}} for lock in LOCKS]
    definition = {
        "buildType": f"urn:stowage:make:{parameters['target']}",
        "externalParameters": parameters,
        "resolvedDependencies": [_source(), *locks],
    }
    if _is_checkout():
        uncommitted = bool(_git("status", "--porcelain"))
        definition["internalParameters"] = {"hasUncommittedChanges": uncommitted}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": definition,
            "runDetails": {"builder": {"id": builder}},
        },
    }


def _source() -> dict[str, Any]:
    """The commit, or the version of a source distribution."""
    if _is_checkout():
        return {"uri": "git+file:.", "digest": {"gitCommit": _git("rev-parse", "HEAD")}}
    version = (ROOT / "scheduler/stowage/VERSION").read_text(encoding="ascii").strip()
    return {"uri": f"urn:stowage:sdist:{version}"}


def _is_checkout() -> bool:
    # Not by a question to git, which would also find a repository that ROOT is unpacked in.
    return (ROOT / ".git").exists()


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - a list of our own
    return done.stdout.strip()


def main() -> None:
    """Parse the arguments and write the statement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", help="the make target")
    parser.add_argument("output", type=Path, help="the file to write")
    parser.add_argument("files", nargs="*", type=Path, help="what the target made")
    parser.add_argument("--image", metavar="NAME", help="the image that the target made")
    parser.add_argument("--image-id", type=Path, help="the file with its id, sha256:DIGEST")
    parser.add_argument(
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a variable of make that decides what is built; may be given several times",
    )
    parser.add_argument("--builder", default="urn:stowage:local", help="URI of the builder")
    options = parser.parse_args()
    subjects = [
        {"name": file.name, "digest": {"sha256": _sha256(file)}}
        for file in sorted(options.files)
        if file != options.output
    ]
    if options.image:
        kind, _, digest = options.image_id.read_text(encoding="ascii").strip().partition(":")
        subjects.append({"name": options.image, "digest": {kind: digest}})
    variables = dict(each.split("=", 1) for each in options.parameter)
    made = statement({"target": options.target, **variables}, options.builder, subjects)
    options.output.write_text(f"{json.dumps(made, indent=1)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

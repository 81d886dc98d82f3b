"""Users, their groups, and the file with their tokens."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"


class User(NamedTuple):
    """An authenticated user: name and groups."""

    name: str
    groups: tuple[str, ...] = ()


ADMINISTRATOR = User("stowage-admin", (MASTERS, AUTHENTICATED))
ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))


def service_account_user(namespace: str, name: str) -> User:
    """The user of a service account."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    return User(f"system:serviceaccount:{namespace}:{name}", groups)


def name_requester(certificate_request: dict[str, Any], user: User) -> None:
    """Write the sender of a CertificateSigningRequest into its spec."""
    spec = certificate_request.get("spec")
    if isinstance(spec, dict):
        for claimed in ("uid", "extra"):
            spec.pop(claimed, None)
        spec.update(username=user.name, groups=list(user.groups))


def parse_token_file(path: Path) -> Mapping[str, User]:
    """The users of a kube-apiserver ``--token-auth-file``, by token.

    Each line is ``token,user,uid`` or ``token,user,uid,"group1,group2"``.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line has too few columns, or an empty token or user.
    """
    users: dict[str, User] = {}
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: {error}") from error
    with io.StringIO(text, newline="") as file:
        lines = csv.reader(file)
        for line in lines:
            if not line or line[0].startswith("#"):
                continue
            where = f"{path}, line {lines.line_num}"
            if len(line) < 3:
                raise ValueError(f"{where}: {len(line)} columns, expected token,user,uid[,groups]")
            token, name, groups = line[0], line[1], line[3] if len(line) > 3 else ""
            if not token or not name:
                raise ValueError(f"{where}: expected a token and a user name, neither empty")
            named = (group.strip() for group in groups.split(","))
            users[token] = User(name, (*(group for group in named if group), AUTHENTICATED))
    return users

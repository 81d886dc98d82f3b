"""Impersonation: requests on behalf of another user by the ``Impersonate-`` headers."""

from collections.abc import Callable, Sequence

from simcluster.apiserver import errors
from simcluster.auth.request_attributes import Attributes
from simcluster.auth.users import ANONYMOUS, AUTHENTICATED, User, service_account_user

Check = Callable[[User, Attributes], None]

_SERVICE_ACCOUNT = "system:serviceaccount:"


def impersonated(user: User, name: str, groups: Sequence[str], check: Check) -> User:
    """The user on whose behalf a request is served.

    Args:
        user: sender of the request.
        name: ``Impersonate-User``; empty for none.
        groups: every ``Impersonate-Group``.
        check: raises 403 unless the user may do this.

    Raises:
        ApiError: 403; 500, groups without a user.
    """
    if not name:
        if groups:
            listed = " ".join(f"{{Group  {group}    }}" for group in groups)
            raise errors.internal(f"requested [{listed}] without impersonating a user")
        return user
    check(user, _asked(name))
    for group in groups:
        check(user, Attributes("impersonate", "", True, resource="groups", name=group))
    return _acted_as(name, groups)


def _account(name: str) -> tuple[str, str] | None:
    if not name.startswith(_SERVICE_ACCOUNT):
        return None
    namespace, found, account = name.removeprefix(_SERVICE_ACCOUNT).partition(":")
    return (namespace, account) if found and namespace and account else None


def _asked(name: str) -> Attributes:
    account = _account(name)
    if account is None:
        return Attributes("impersonate", "", True, resource="users", name=name)
    namespace, name = account
    return Attributes(
        "impersonate", "", True, namespace=namespace, resource="serviceaccounts", name=name
    )


def _acted_as(name: str, groups: Sequence[str]) -> User:
    if name == ANONYMOUS.name:
        return User(name, tuple(groups) or ANONYMOUS.groups)
    account = _account(name)
    if account is not None and not groups:
        return service_account_user(*account)
    return User(name, tuple(dict.fromkeys((*groups, AUTHENTICATED))))

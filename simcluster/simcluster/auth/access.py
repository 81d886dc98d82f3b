"""Authenticates and authorizes the requests to the API server."""

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from simcluster.apiserver import errors
from simcluster.auth.rbac import Decision, RbacAuthorizer
from simcluster.auth.request_attributes import Attributes, attributes_of
from simcluster.auth.tokens import TokenIssuer
from simcluster.auth.users import ADMINISTRATOR, ANONYMOUS, User
from simcluster.clock import Clock
from simcluster.store.store import Store

Audit = Callable[[User, Attributes, Decision], None]


@dataclass(frozen=True, kw_only=True)
class AccessOptions:
    """The users of the API server.

    Args:
        token: bearer token of the administrator; empty makes everyone without a token an
            administrator. kubectl sends tokens over TLS only.
        users: other users by their tokens.
        rbac: Roles and ClusterRoles decide about the other users, and a ``token`` is needed;
            without it they may do everything.
    """

    token: str = ""
    users: Mapping[str, User] = field(default_factory=dict)
    rbac: bool = False

    def __post_init__(self) -> None:
        if self.rbac and not self.token:
            raise ValueError("token: '' is no token; with RBAC the administrator needs one")


class Access:
    """Authenticates and authorizes requests.

    Attributes:
        audit: called with each decision on a request; for tests.
        authorizer: decides if RBAC is on; ``None`` allows everything.
        tokens: issues and checks tokens of service accounts.
    """

    def __init__(self, options: AccessOptions, store: Store, clock: Clock) -> None:
        self.audit: Audit | None = None
        self.authorizer = RbacAuthorizer(store) if options.rbac else None
        self.tokens = TokenIssuer(store, clock)
        self._options = options

    def user_of_token(self, token: str) -> User | None:
        """The user of a token; without an administrator's token, no token is administrator's."""
        # Bytes of a header that are no UTF-8 arrive as surrogates.
        given = token.encode(errors="surrogateescape")
        if hmac.compare_digest(given, self._options.token.encode()):
            return ADMINISTRATOR
        return self._options.users.get(token) or self.tokens.user_of(token)

    def authenticate(self, authorization: str) -> User:
        """The user of an ``Authorization`` header.

        Raises:
            ApiError: 401, the token is wrong, or missing where it is needed: RBAC takes a request
                without a token for an anonymous one.
        """
        token = _bearer_token(authorization)
        if not token and self._options.rbac:
            return ANONYMOUS
        user = self.user_of_token(token)
        if user is None:
            raise errors.unauthorized()
        return user

    def decide(self, user: User, attributes: Attributes) -> Decision:
        """Whether a user may do this."""
        if self.authorizer is None:
            return Decision(True)
        return self.authorizer.decide(user, attributes)

    def check(self, user: User, method: str, path: str, query: Mapping[str, str]) -> None:
        """Authorize a request.

        Raises:
            ApiError: 403, the user may not do this; 400, the query is malformed.
        """
        if self.authorizer is None:
            return
        self.check_attributes(user, attributes_of(method, path, query))

    def refusal(self, user: User, attributes: Attributes) -> str:
        """Why a user may not do something; empty if the user may."""
        try:
            self.check_attributes(user, attributes)
        except errors.ApiError as error:
            return error.message
        return ""

    def check_attributes(self, user: User, attributes: Attributes) -> None:
        """Authorize an action.

        Raises:
            ApiError: 403, the user may not do this.
        """
        if self.authorizer is None:
            return
        decision = self.authorizer.decide(user, attributes)
        if self.audit is not None:
            self.audit(user, attributes, decision)
        if not decision.is_allowed:
            raise _forbidden(user, attributes, decision.reason)


def _forbidden(user: User, attributes: Attributes, reason: str) -> errors.ApiError:
    """403 in the words of apiserver's ``responsewriters.ForbiddenStatusError``."""
    why = f'User "{user.name}" cannot {_described(attributes)}'
    if reason:
        why = f"{why}: {reason}"
    if not attributes.is_resource_request:
        return errors.ApiError(403, "Forbidden", f"forbidden: {why}", {})
    group, resource, name = attributes.group, attributes.resource, attributes.name
    subject = f"{resource}.{group}" if group else resource
    if name:
        subject = f'{subject} "{name}"'
    details = {"name": name, "group": group, "kind": resource}
    shown = {key: value for key, value in details.items() if value}
    return errors.ApiError(403, "Forbidden", f"{subject} is forbidden: {why}", shown)


def _described(attributes: Attributes) -> str:
    if not attributes.is_resource_request:
        return f'{attributes.verb} path "{attributes.path}"'
    resource = attributes.resource
    if attributes.subresource:
        resource = f"{resource}/{attributes.subresource}"
    scope = "at the cluster scope"
    if attributes.namespace:
        scope = f'in the namespace "{attributes.namespace}"'
    return f'{attributes.verb} resource "{resource}" in API group "{attributes.group}" {scope}'


def _bearer_token(authorization: str) -> str:
    """The token of an ``Authorization`` header; empty if the header has another scheme or none.

    Clients in a pod write ``bearer``.
    """
    scheme, _, rest = authorization.strip().partition(" ")
    return rest.partition(" ")[0] if scheme.lower() == "bearer" else ""

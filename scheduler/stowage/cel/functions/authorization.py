"""The functions of Kubernetes' authorization library, declared only.

There is no variable ``authorizer`` in a device selector, so a call of these functions on a value of
unknown type compiles and then fails for each device.
"""

from __future__ import annotations

from stowage.cel.signatures.functions import overloads

FUNCTIONS = overloads("""
    Authorizer.path(string) -> PathCheck
    Authorizer.group(string) -> GroupCheck
    Authorizer.serviceAccount(string, string) -> Authorizer
    GroupCheck.resource(string) -> ResourceCheck
    ResourceCheck.subresource(string) -> ResourceCheck
    ResourceCheck.namespace(string) -> ResourceCheck
    ResourceCheck.name(string) -> ResourceCheck
    ResourceCheck.fieldSelector(string) -> ResourceCheck
    ResourceCheck.labelSelector(string) -> ResourceCheck
    PathCheck.check(string) -> Decision
    ResourceCheck.check(string) -> Decision
    Decision.errored() -> bool
    Decision.error() -> string
    Decision.allowed() -> bool
    Decision.reason() -> string
""")

"""The causes in a refusal with 422: their reasons, and messages that recur."""

from simcluster.tests.support.api_client import Reply

Causes = list[tuple[str, str, str]]

REQUIRED, INVALID = "FieldValueRequired", "FieldValueInvalid"
UNSUPPORTED, FORBIDDEN = "FieldValueNotSupported", "FieldValueForbidden"
DUPLICATE, NOT_FOUND = "FieldValueDuplicate", "FieldValueNotFound"
TOO_MANY = "FieldValueTooMany"
NEEDED = "Required value"
KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def causes(reply: Reply) -> Causes:
    """(reason, field, message) of each cause of a 422."""
    assert reply.status == 422, reply.text
    assert reply.body["reason"] == "Invalid"
    return [
        (cause["reason"], cause["field"], cause["message"])
        for cause in reply.body["details"]["causes"]
    ]

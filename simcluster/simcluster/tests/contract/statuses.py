"""Answers that are a Status."""

from simcluster.tests.support.api_client import Reply


def expect_status(reply: Reply, code: int, reason: str, message: str) -> None:
    """Assert that the answer is a Status with this code, reason and message."""
    body = reply.body
    assert (reply.status, body["kind"], body["apiVersion"]) == (code, "Status", "v1")
    assert (body["status"], body["code"]) == ("Failure", code)
    assert (body["reason"], body["message"]) == (reason, message)

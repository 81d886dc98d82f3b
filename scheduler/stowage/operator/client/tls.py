"""TLS contexts that verify certificates as Go does."""

from __future__ import annotations

import ssl


def without_strict_x509(context: ssl.SSLContext) -> ssl.SSLContext:
    """The same context without ``VERIFY_X509_STRICT``, which Python sets from version 3.13 on.

    Strict verification refuses certificates that many clusters have and Go accepts, such as
    those without the authority's key identifier.
    """
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context

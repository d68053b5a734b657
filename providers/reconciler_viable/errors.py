"""What can go wrong on the way to the platform.

ProviderError
├── Unreachable   nothing was sent, or it was a question only
├── Refused       the platform says no, in its own code
└── Odd           an answer of another form than the connector's
"""

from __future__ import annotations

from reconciler.errors import ProviderError


class Unreachable(ProviderError):
    """There was no answer to a question, or no way to ask: nothing has changed."""


class Refused(ProviderError):
    """The platform refused, and nothing was changed. The message is for a person."""


class Odd(ProviderError):
    """The answer is not of the form that the connector has; what it stands for is not known."""

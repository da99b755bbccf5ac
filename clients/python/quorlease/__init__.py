"""A client of Quorlease, the replicated authority for shared limits.

::

    from quorlease import Charge, Client, Denied

    client = Client(["http://127.0.0.1:7301"], client="notes")
    try:
        with client.limiter(Charge("demo", "requests")):
            ...  # the work
    except Denied as denied:
        print("again in", denied.decision.retry_after(), "seconds")

It needs nothing but the standard library. :mod:`quorlease.aio` is for asyncio,
:mod:`quorlease.litellm` a hook for LiteLLM's proxy.
"""

from ._client import Client
from ._limiter import Limiter
from ._retry import RETRY_HEADER, current_attempt, retry
from .types import (
    AMOUNT_MAX, Charge, Closed, Decision, Denial, Denied, Lease, Queue, QuorleaseError, Remaining,
    RequestError, Settled, Settlement, Unanswered, Usage,
)

__all__ = [
    "AMOUNT_MAX", "RETRY_HEADER", "Charge", "Client", "Closed", "Decision", "Denial", "Denied", "Lease", "Limiter",
    "Queue", "QuorleaseError", "Remaining", "RequestError", "Settled", "Settlement", "Unanswered", "Usage",
    "current_attempt", "retry",
]

"""What is asked and what is answered.

Times are seconds as floats, tokens whole numbers. Every class here is immutable and
may be shared between threads.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Optional, Tuple

AMOUNT_MAX = 1 << 53
"""The most tokens that one charge may ask for."""


@dataclass(frozen=True)
class Charge:
    """Asks for ``amount`` tokens, 1 to 2**53, of one dimension of one limit.

    ``key`` is the instance, up to 512 bytes of UTF-8, and empty for a limit without keys.
    """

    limit: str
    dimension: str
    amount: int = 1
    key: str = ""


@dataclass(frozen=True)
class Usage:
    """What was really used of a dimension, 0 to 2**53 tokens.

    Without ``limit`` and ``key`` it speaks of every charge of the dimension.
    """

    dimension: str
    used: int
    limit: str = ""
    key: str = ""


@dataclass(frozen=True)
class Denial:
    """Why not, and when to come back."""

    reason: str
    """One of the authority's (``RATE``, ``RETRY_BUDGET`` …), or, decided without it,
    ``LOCAL_CLOSED`` or ``LOCAL_SHARE`` beside ``RATE``, ``RETRY_BUDGET`` and ``ATTEMPTS``."""
    limit: str = ""
    key: str = ""
    dimension: str = ""
    retry_after: Optional[float] = None
    """The hint as it was given, in seconds; None with ``never``."""
    never: bool = False
    """No waiting helps."""
    frees_in: Optional[float] = None
    """When a retry budget's window would let the client through by itself."""


@dataclass(frozen=True)
class Remaining:
    """Level minus debt of one charged bucket after the decision, rounded down."""

    limit: str
    key: str
    dimension: str
    tokens: int


@dataclass(frozen=True)
class Lease:
    """The right to spend what was charged."""

    id: str
    charges: Tuple[Charge, ...]
    ends: float
    """When the right to spend ends, by ``time.monotonic()``: the life, less a thousandth,
    counted from before the request was first sent."""
    tracked: bool
    """It may be settled, renewed and released."""
    local: bool = False
    """This client granted it by itself. Settling it asks nobody."""


@dataclass(frozen=True)
class Queue:
    """How an acquire waited, or would have to. Times in seconds."""

    position: int
    eta: float
    waited: float


@dataclass(frozen=True)
class Decision:
    """The answer to an acquire."""

    granted: bool
    source: str
    """``consensus``, ``escrow``, ``node``, or ``local``: decided here, because nobody answered."""
    lease: Optional[Lease] = None
    """Set where granted."""
    denials: Tuple[Denial, ...] = ()
    """Why not: the longest wait first, never before all."""
    warnings: Tuple[Denial, ...] = ()
    """What limits that do not enforce would have refused."""
    remaining: Tuple[Remaining, ...] = ()
    repeated: bool = False
    """The same lease id was answered before."""
    queue: Optional[Queue] = None

    @property
    def never(self) -> bool:
        """No waiting helps."""
        return any(d.never for d in self.denials)

    def retry_after(self) -> Optional[float]:
        """How long to wait before asking again, in seconds; None where that never helps.

        It is the longest hint and up to a tenth more, drawn at random, so that clients
        that were told the same time do not all come back in one instant.
        """
        if self.never:
            return None
        wait = max((d.retry_after or 0.0 for d in self.denials), default=0.0)
        return wait + random.uniform(0, wait / 10)


@dataclass(frozen=True)
class Settled:
    """What became of one charge."""

    limit: str
    key: str
    dimension: str
    amount: int
    used: int
    refunded: int
    excess: int
    written_off: int


@dataclass(frozen=True)
class Settlement:
    """The answer to a settle, a release or a renewal."""

    state: str
    """``OPEN``, ``SETTLED``, ``RELEASED`` or ``EXPIRED``."""
    charges: Tuple[Settled, ...] = ()
    ends: Optional[float] = None
    """Until when it has to be settled, by ``time.monotonic()``; None where it has ended."""
    repeated: bool = False
    local: bool = False


class QuorleaseError(Exception):
    """The base of all errors of this package."""


class RequestError(QuorleaseError):
    """A node, or the check before it is asked, has refused the request: nothing happened.

    ``reason`` is that of the table of errors (``BAD_FIELD``, ``LIMIT_NOT_FOUND``,
    ``UNAUTHENTICATED`` …), ``status`` the HTTP status, 0 where nobody was asked.
    """

    def __init__(self, reason: str, message: str, status: int = 0) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.status = status


class Unanswered(QuorleaseError):
    """No node has answered in time. What was asked may have happened, or may still happen.

    An acquire never raises it: it is decided locally instead.
    """


class Closed(QuorleaseError):
    """The client was closed."""


class Denied(QuorleaseError):
    """A limiter was denied what it asks for; ``decision`` says why."""

    def __init__(self, decision: Decision) -> None:
        super().__init__("denied: " + ", ".join(_words(d) for d in decision.denials))
        self.decision = decision


def _words(d: Denial) -> str:
    where = f" by {d.limit}" if d.limit else ""
    when = ", never" if d.never else f", again in {d.retry_after or 0:.3f} s"
    return d.reason + where + when

"""Asks nodes one after another until one answers."""

from __future__ import annotations

import json
import threading
import time
from typing import Any, Callable, List, Optional, Tuple, TypeVar

from ._transport import Endpoint, Late, Lost, Transport, Unsent, remaining
from ._wire import Nonsense, duration
from .types import RequestError

T = TypeVar("T")

PAUSE = 0.05
"""Between two rounds while nodes elect a leader or have too much to do, in seconds."""

# Statuses that are an answer whoever gives them: to ask another node would give the same.
_FINAL = {400, 401, 403, 404, 405, 409, 410, 413, 415, 421}
_LATER = {"NO_LEADER", "OVERLOADED", "DISK_LOW"}
_AGAIN = {"SHUTTING_DOWN", "OUTCOME_UNKNOWN", "INTERNAL", "CANCELLED", ""}


class Silence(Exception):
    """Nobody has answered. ``certain``: nobody can be reached, or there is no majority."""

    def __init__(self, certain: bool, last: str) -> None:
        super().__init__(last)
        self.certain = certain


class Asker:
    """Knows the endpoints and which of them answered last. Safe for concurrent use."""

    def __init__(self, endpoints: List[Endpoint], transport: Transport) -> None:
        self._endpoints = endpoints
        self._transport = transport
        self._lock = threading.Lock()
        self._first = 0

    def ask(self, call: str, body: Any, deadline: float, read: Callable[[Any], T], waits: float = 0.0) -> T:
        """Asks until a node answers, every node is away, or the deadline has passed.

        All that is sent has the effect of one where it is repeated, or, untracked, may be
        debited twice: less is admitted then, never more. Raises RequestError for an error that
        is an answer, and Silence.

        :param waits: until when a node may keep the question in its queue. What is left of that is
            said to each, and is not what is divided between them.
        """
        path = f"/v1/admission:{call}"
        last = "the deadline has passed"
        while True:
            patient = certain = False
            with self._lock:
                first = self._first
            for n in range(len(self._endpoints)):
                at = (first + n) % len(self._endpoints)
                left = deadline - time.monotonic()
                if left <= 0:
                    raise Silence(False, last)
                # One that hangs leaves enough for the next.
                queued = min(left, max(0.0, waits - time.monotonic()))
                until = deadline
                if n + 1 < len(self._endpoints):
                    until = time.monotonic() + queued + (left - queued) / 2
                if queued > 0:
                    body["max_wait"] = duration(queued)
                else:
                    body.pop("max_wait", None)
                data = json.dumps(body, separators=(",", ":")).encode("ascii")
                try:
                    answer = self._one(at, path, data, until)
                except (Unsent, _Minority) as err:
                    last, certain = str(err), True
                    continue
                except (Lost, Late, Nonsense, _Again) as err:
                    last = str(err)
                    certain = certain or isinstance(err, Lost)
                    patient = patient or isinstance(err, _Again) and err.later
                    continue
                try:
                    result = read(answer)
                except Nonsense as err:
                    last = f"{self._endpoints[at]}: {err}"
                    continue
                with self._lock:
                    self._first = at
                return result
            if not patient:
                raise Silence(certain and time.monotonic() < deadline, last)
            time.sleep(min(PAUSE, max(0.0, deadline - time.monotonic())))

    def _one(self, at: int, path: str, data: bytes, until: float) -> Any:
        endpoint = self._endpoints[at]
        remaining(until)
        status, _, body = self._transport.post(endpoint, path, data, until)
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        if status == 200 and isinstance(answer, dict):
            return answer
        reason, message = _reason(answer)
        if reason == "NO_QUORUM":
            raise _Minority(f"{endpoint}: {reason}")
        if reason in _LATER:
            raise _Again(f"{endpoint}: {reason}", True)
        final = status in _FINAL or status == 429 and reason not in _AGAIN
        if final:
            raise RequestError(reason or f"HTTP_{status}", message or f"{endpoint} answers {status}", status)
        raise _Again(f"{endpoint}: {status} {reason}", False)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._transport.after_fork()


class _Minority(Exception):
    """A node sees no majority; it may be the only one."""


class _Again(Exception):
    def __init__(self, text: str, later: bool) -> None:
        super().__init__(text)
        self.later = later


def _reason(answer: Any) -> Tuple[str, str]:
    if not isinstance(answer, dict):
        return "", ""
    reason: Optional[str] = answer.get("reason")
    message: Optional[str] = answer.get("message")
    return (reason if isinstance(reason, str) else "")[:64], (message if isinstance(message, str) else "")[:500]

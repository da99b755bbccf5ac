"""Asking again as often as one may and as late as one is told."""

from __future__ import annotations

import asyncio
import contextvars
import email.utils
import functools
import inspect
import math
import random
import time
from datetime import datetime, timezone
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, TypeVar

from .types import Denied

RETRY_HEADER = "X-Retry-Attempt"
"""The header that says how many retries were made of a request, 0 first: by it gateways and
retry budgets tell a retry."""

F = TypeVar("F", bound=Callable[..., Any])

_attempt: "contextvars.ContextVar[int]" = contextvars.ContextVar("quorlease_attempt", default=0)
_STATUSES = {429, 503, 529}
_MARKER_MAX = 1000
_WAIT_MAX = 24 * 3600.0
_SPREAD = 2.0


def current_attempt() -> int:
    """Retries made by the :func:`retry` around the caller, 0 outside one."""
    return _attempt.get()


def retry(
    attempts: int = 3, *, wait_max: float = 60.0, within: Optional[float] = None
) -> Callable[[F], F]:
    """Has a function that sends a request called again where the answer says "not now".

    The function takes a keyword argument ``headers`` and sends them: a dict that has
    ``X-Retry-Attempt``, and whatever its caller has passed as ``headers``. A marker that is
    among those is counted on. What it returns or raises is looked at: a status (``status``,
    ``status_code`` or ``code``, also of an exception's ``response``) of 429, 503 or 529, or the
    header ``x-should-retry: true``, is asked again after ``retry-after-ms`` or ``Retry-After``,
    and up to two seconds more at random; without them after one second, doubling to a minute,
    of which the second half is drawn. ``x-should-retry: false`` is not asked again, and neither
    is what failed without an answer: nobody knows whether it was done. :class:`Denied` is asked
    again after its own hint. The last answer, or exception, is the caller's.

    Functions and coroutine functions may be decorated. An acquire inside has the same attempt.

    :param attempts: how often it is called at most, the first time counted, 1 to 10.
    :param wait_max: the longest wait that is asked for and waited, in seconds, up to 3600.
    :param within: how long all of it may take: no wait begins that would end later.
    """
    if isinstance(attempts, bool) or not isinstance(attempts, int) or not 1 <= attempts <= 10:
        raise ValueError(f"attempts: {attempts!r} is out of range 1..10")
    if not 0 <= wait_max <= 3600:
        raise ValueError(f"wait_max: {wait_max!r} is out of range 0..3600 seconds")

    def decorate(function: F) -> F:
        _takes_headers(function)
        if inspect.iscoroutinefunction(function):
            return _async(function, attempts, wait_max, within)  # type: ignore[return-value]
        return _sync(function, attempts, wait_max, within)  # type: ignore[return-value]

    return decorate


def _takes_headers(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters.values()
    if not any(p.kind is p.VAR_KEYWORD or p.name == "headers" and p.kind is not p.POSITIONAL_ONLY for p in parameters):
        raise TypeError(f"{function!r} takes no keyword argument headers, in which {RETRY_HEADER} is passed")


class _Course:
    """One piece of work: its tries, and what is made of how they ended."""

    def __init__(self, attempts: int, wait_max: float, within: Optional[float], headers: Optional[Mapping[str, str]]):
        self.given = {k: v for k, v in (headers or {}).items() if k.lower() != RETRY_HEADER.lower()}
        self.before = _marked(headers or {})
        self.left, self.wait_max, self.n = attempts - 1, wait_max, 0
        self.ends = math.inf if within is None else time.monotonic() + within

    def begin(self) -> Tuple[Dict[str, str], "contextvars.Token[int]"]:
        number = self.before + self.n
        return {**self.given, RETRY_HEADER: str(number)}, _attempt.set(number)

    def again(self, outcome: Any) -> Optional[float]:
        """How long to wait before the next try, or None where this was the last."""
        asked, wait = _judge(outcome, self.n)
        if self.left == 0 or wait is None or asked > self.wait_max or time.monotonic() + wait > self.ends:
            return None
        self.left, self.n = self.left - 1, self.n + 1
        return wait


def _sync(function: Callable[..., Any], attempts: int, wait_max: float, within: Optional[float]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, headers: Optional[Mapping[str, str]] = None, **kwargs: Any) -> Any:
        course = _Course(attempts, wait_max, within, headers)
        while True:
            sent, token = course.begin()
            try:
                outcome = function(*args, headers=sent, **kwargs)
                wait = course.again(outcome)
                if wait is None:
                    return outcome
                close = getattr(outcome, "close", None)
                if callable(close):
                    close()
            except Exception as err:
                wait = course.again(err)
                if wait is None:
                    raise
                _close(err)
            finally:
                _attempt.reset(token)
            time.sleep(wait)

    return wrapper


def _async(function: Callable[..., Any], attempts: int, wait_max: float, within: Optional[float]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def wrapper(*args: Any, headers: Optional[Mapping[str, str]] = None, **kwargs: Any) -> Any:
        course = _Course(attempts, wait_max, within, headers)
        while True:
            sent, token = course.begin()
            try:
                outcome = await function(*args, headers=sent, **kwargs)
                wait = course.again(outcome)
                if wait is None:
                    return outcome
                close = getattr(outcome, "aclose", None) or getattr(outcome, "close", None)
                closing = close() if callable(close) else None
                if inspect.isawaitable(closing):
                    await closing
            except Exception as err:
                wait = course.again(err)
                if wait is None:
                    raise
                _close(err)
            finally:
                _attempt.reset(token)
            await asyncio.sleep(wait)

    return wrapper


def _close(err: BaseException) -> None:
    # urllib.error.HTTPError holds the connection of its answer.
    close = getattr(err, "close", None)
    if callable(close) and isinstance(err, OSError):
        close()


def _marked(headers: Mapping[str, str]) -> int:
    text = _header(headers, RETRY_HEADER.lower()) or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 5 and int(text) <= _MARKER_MAX else 0


def _header(headers: Any, name: str) -> Optional[str]:
    try:
        for key, value in headers.items():
            if isinstance(key, str) and key.lower() == name:
                return str(value).strip()
    except (AttributeError, TypeError, ValueError):
        pass
    return None


def _judge(outcome: Any, n: int) -> Tuple[float, Optional[float]]:
    """What an outcome asks to wait, and what to wait; None where asking again does not help."""
    if isinstance(outcome, Denied):
        wait = outcome.decision.retry_after()
        return (0.0, None) if wait is None else (wait, wait)
    status, headers = _answer(outcome)
    should = _header(headers, "x-should-retry")
    if should == "false" or should != "true" and status not in _STATUSES:
        return 0.0, None
    hint = _hint(headers)
    if hint is not None:
        return hint, hint + random.uniform(0, _SPREAD)
    longest = min(60.0, 2.0 ** n)
    wait = longest / 2 + random.uniform(0, longest / 2)
    return wait, wait


def _answer(outcome: Any) -> Tuple[Optional[int], Any]:
    for one in (outcome, getattr(outcome, "response", None)):
        for name in ("status_code", "status", "code"):
            status = getattr(one, name, None)
            if isinstance(status, int) and not isinstance(status, bool):
                return int(status), getattr(one, "headers", None)
    return None, None


def _hint(headers: Any) -> Optional[float]:
    for name, unit in (("retry-after-ms", 0.001), ("x-ms-retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = _header(headers, name)
        if not text or len(text) > 64:
            continue
        try:
            value = float(text) * unit
        except ValueError:
            value = _until(text) if unit == 1.0 else -1.0
        if value >= 0 and math.isfinite(value):
            return min(value, _WAIT_MAX)
    return None


def _until(text: str) -> float:
    try:
        at = email.utils.parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError):
        return -1.0
    if at.tzinfo is None:
        at = at.replace(tzinfo=timezone.utc)
    return max(0.0, (at - datetime.now(timezone.utc)).total_seconds())

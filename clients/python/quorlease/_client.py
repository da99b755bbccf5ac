"""The client: acquire, settle, release, renew, with an answer in time."""

from __future__ import annotations

import logging
import os
import secrets
import ssl
import threading
import time
import weakref
from types import TracebackType
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union

from . import _check, _wire
from ._ask import Asker, Silence
from ._fallback import LOCAL_LIFE, Machine, Rule
from ._limiter import Limiter
from ._retry import current_attempt
from ._transport import Endpoint, Transport
from .types import Charge, Closed, Decision, Lease, RequestError, Settlement, Unanswered, Usage

T = TypeVar("T")

ENDPOINTS_MAX = 32
REPORT_MAX = 64
REPORT_WITHIN = 0.25

_clients: "weakref.WeakSet[Client]" = weakref.WeakSet()


class Client:
    """Asks the nodes of one cluster over HTTP. Safe for concurrent use, also after a fork.

    :param endpoints: HTTP addresses of nodes, 1 to 32: ``http://host:7301``, ``https://…``
        or ``host:port``. All nodes of the cluster are best: none is found by itself.
    :param client: who the work is for, 1 to 256 bytes of UTF-8: the name that retry budgets
        know. A request may name another one.
    :param deadline: within how many seconds a call answers, 0.001 to 3600. Where nobody has
        answered by then the client decides by itself. Looking up a name is not bounded by it;
        give addresses where that matters.
    :param fallback: what to do, while nobody answers, with a limit of which no node has said
        anything yet: ``open`` (default) or ``closed``.
    :param share: this client's part, 0 to 1, of limits whose rule is ``share`` and names no
        part. Default 0: nothing.
    :param probe_every: while nobody answers one call asks all the same each so many seconds,
        0.01 to 60; the others are decided at once.
    :param tls: for ``https``. Default: ``ssl.create_default_context()``.
    :param headers: sent with each request, as a proxy in front of the nodes may want them.
    :param logger: gets one warning when the client begins to decide by itself, and one when
        that is over. Default: ``logging.getLogger("quorlease")``.
    """

    def __init__(
        self,
        endpoints: Sequence[str],
        client: str,
        *,
        deadline: float = 1.0,
        fallback: str = "open",
        share: float = 0.0,
        probe_every: float = 0.25,
        tls: Optional[ssl.SSLContext] = None,
        headers: Optional[Mapping[str, str]] = None,
        logger: Optional[logging.Logger] = None,
    ) -> None:
        if isinstance(endpoints, (str, bytes)) or not 1 <= len(endpoints) <= ENDPOINTS_MAX:
            raise _check.bad("endpoints", f"{_check.shown(endpoints)}: want a list of 1 to {ENDPOINTS_MAX}")
        nodes = [Endpoint(e, f"endpoints[{i}]") for i, e in enumerate(endpoints)]
        _check.text("client", client, 256, 1)
        _check.seconds("deadline", deadline, 0.001, 3600)
        _check.seconds("probe_every", probe_every, 0.01, 60)
        if fallback not in ("open", "closed"):
            raise _check.bad("fallback", f"{_check.shown(fallback)} is neither open nor closed")
        _check.seconds("share", share, 0, 1)
        for name, value in (headers or {}).items():
            if not isinstance(value, str) or any(c in f"{name}{value}" for c in "\r\n\0") or not name.isascii():
                raise _check.bad("headers", f"{_check.shown(name)} is no header")
        self._transport = Transport(tls, headers or {})
        self._asker = Asker(nodes, self._transport)
        self._name = client
        self._deadline = deadline
        self._probe_every = probe_every
        self._log = logger or logging.getLogger("quorlease")
        self._lock = threading.Lock()
        self._machine = Machine(Rule(mode=fallback, share_ppm=round(share * 1_000_000)))
        self._next_probe = 0.0
        self._probing = False
        self._closed = False
        self._session = secrets.token_hex(16)
        self._booked: Dict[Any, int] = {}
        self._reporting = False
        self._next_report = 0.0
        _clients.add(self)

    def acquire(
        self,
        charges: Union[Charge, Iterable[Charge]] = (),
        *,
        client: str = "",
        priority: str = "",
        attempt: Optional[int] = None,
        track: bool = True,
        max_wait: float = 0.0,
        lease_id: str = "",
        attributes: Optional[Mapping[str, str]] = None,
        amounts: Optional[Mapping[str, int]] = None,
        deadline: Optional[float] = None,
    ) -> Decision:
        """Asks for every charge or none, and has an answer within ``deadline + max_wait``.

        :param priority: the class, such as ``live`` or ``batch``. Empty: the first of each limit.
        :param attempt: retries made for this piece of work, 0 first. Default: that of the
            :func:`quorlease.retry` around the caller, else 0.
        :param track: the lease will be settled, renewed or released, and asking again after a
            lost answer is charged once. Without it such a repetition may be charged twice.
        :param max_wait: for how many seconds to wait in the authority's queue, up to 3600.
        :param lease_id: 32 lower-case hex digits, new for each piece of work. Empty: drawn.
        :param attributes: what the work is; every limit that they fit is charged, as
            ``amounts`` say by dimension.
        :param deadline: in seconds, instead of the client's.
        :raises RequestError: the request is bad, its limit unknown, or it may not ask.
        """
        listed = (charges,) if isinstance(charges, Charge) else tuple(charges)
        attributes, amounts = dict(attributes or {}), dict(amounts or {})
        attempt = current_attempt() if attempt is None else attempt
        self._check_acquire(listed, client, priority, attempt, max_wait, lease_id)
        _check.attributes(attributes, amounts)
        if not listed and not attributes:
            raise _check.bad("charges", "missing, and there are no attributes")
        patience = self._patience(deadline)
        client = client or self._name
        lease_id = lease_id or secrets.token_hex(16)
        body: Dict[str, Any] = {
            "lease_id": lease_id, "client": client, "class": priority, "attempt": attempt, "track": track,
            "charges": _wire.charges(listed), "attributes": attributes, "amounts": _wire.amounts(amounts),
        }
        work = (client, priority, listed, tuple(sorted(attributes.items())), tuple(sorted(amounts.items())))
        asked = time.monotonic()

        def local(charged: Optional[Tuple[Charge, ...]]) -> Decision:
            lease = Lease(lease_id, charged or listed, time.monotonic() + LOCAL_LIFE, track, True)
            return self._machine.decide(time.monotonic(), client, priority, attempt or 0, charged, lease)

        with self._lock:
            if self._closed:
                raise Closed("the client was closed")
            charged = self._machine.work(work) if attributes else listed
            if not self._may_ask(asked):
                return local(charged)
            if charged is not None:
                revision = self._machine.known(client, [c.limit for c in charged])
                if revision is not None:
                    body["known_revision"] = str(revision)
        news: List[Any] = []

        def read(answer: Any) -> Decision:
            news[:] = [answer.get("fallbacks")]
            return _wire.decision(answer, lease_id, asked)

        try:
            decision = self._ask("acquire", body, asked + patience + max_wait, read, asked + max_wait)
        except Unanswered:
            with self._lock:
                return local(self._machine.work(work) if attributes else listed)
        with self._lock:
            self._machine.learn(client, news[0])
            if decision.granted and not decision.repeated:
                self._machine.record(asked, client, attempt)
            if decision.lease is not None and attributes:
                self._machine.note_work(work, decision.lease.charges)
        return decision

    @staticmethod
    def _check_acquire(
        charges: Tuple[Charge, ...], client: str, priority: str, attempt: int, max_wait: float, lease_id: str
    ) -> None:
        _check.charges(charges)
        _check.text("client", client, 256)
        _check.priority(priority)
        if isinstance(attempt, bool) or not isinstance(attempt, int) or not 0 <= attempt < 1 << 32:
            raise _check.bad("attempt", f"{_check.shown(attempt)} is out of range 0..{(1 << 32) - 1}")
        _check.seconds("max_wait", max_wait, 0, 3600)
        if lease_id:
            _check.lease_id(lease_id)

    def _patience(self, deadline: Optional[float]) -> float:
        if deadline is None:
            return self._deadline
        _check.seconds("deadline", deadline, 0.001, 3600)
        return deadline

    def settle(
        self, lease: Lease, *used: Usage, progress: bool = False, deadline: Optional[float] = None
    ) -> Settlement:
        """Says what a tracked lease really used, and ends it; with ``progress`` it only books
        an excess so far. A charge that nobody names counts as used in full. It may be repeated.

        :raises Unanswered: nobody answered in time: ask again, or let the lease end by itself,
            charged in full.
        """
        _check.usage(used)
        if lease.local:
            return Settlement("OPEN" if progress else "SETTLED", local=True)
        return self._operate("settle", lease, {"used": _wire.usage(used), "progress": progress}, deadline)

    def release(self, lease: Lease, *, deadline: Optional[float] = None) -> Settlement:
        """Gives a tracked lease back unspent. It may be repeated. Raises as :meth:`settle`."""
        if lease.local:
            return Settlement("RELEASED", local=True)
        return self._operate("release", lease, {}, deadline)

    def renew(
        self, lease: Lease, ttl: float, sequence: int, *used: Usage, deadline: Optional[float] = None
    ) -> Settlement:
        """Prolongs the time to settle a tracked lease, never the time to spend it, to ``ttl``
        seconds from now, 0.001 to 86400. ``sequence`` is higher with each renewal; a repetition
        has the same. Raises as :meth:`settle`.
        """
        _check.usage(used)
        _check.seconds("ttl", ttl, 0.001, 86400)
        if isinstance(sequence, bool) or not isinstance(sequence, int) or not 1 <= sequence < 1 << 63:
            raise _check.bad("sequence", f"{_check.shown(sequence)} is out of range 1..{(1 << 63) - 1}")
        if lease.local:
            return Settlement("OPEN", ends=time.monotonic() + ttl, local=True)
        body = {"ttl": _wire.duration(ttl), "sequence": str(sequence), "used": _wire.usage(used)}
        return self._operate("renew", lease, body, deadline)

    def _operate(self, call: str, lease: Lease, body: Dict[str, Any], deadline: Optional[float]) -> Settlement:
        patience = self._patience(deadline)
        asked = time.monotonic()
        with self._lock:
            if self._closed:
                raise Closed("the client was closed")
            if not self._may_ask(asked):
                raise Unanswered(f"{call}: nobody has answered of late")
        body["lease_id"] = lease.id
        return self._ask(call, body, asked + patience, lambda answer: _wire.settlement(answer, asked))

    def limiter(self, charges: Union[Charge, Iterable[Charge]] = (), **options: Any) -> Limiter:
        """A context manager around a piece of work, with the options of :meth:`acquire`.

        It raises :class:`Denied` where it may not go ahead. What the work reports with
        :meth:`Limiter.used` is settled at the end, in any case; :meth:`Limiter.unused` has the
        lease released instead::

            with client.limiter(Charge("provider", "output_tokens", 500)) as work:
                answer = ask_the_provider()
                work.used(output_tokens=answer.tokens)
        """
        return Limiter(self, charges, options)

    @property
    def away(self) -> bool:
        """The client decides by itself, since nobody answers."""
        with self._lock:
            return self._machine.away_since is not None

    # Asking, and what is noted of it.

    def _may_ask(self, now: float) -> bool:
        """Whether this call asks a node. The lock is held."""
        if self._machine.away_since is None:
            return True
        if self._probing or now < self._next_probe:
            return False
        self._probing = True
        return True

    def _ask(self, call: str, body: Any, deadline: float, read: Callable[[Any], T], waits: float = 0.0) -> T:
        answered = certain = False
        last = ""
        try:
            result = self._asker.ask(call, body, deadline, read, waits)
            answered = True
            return result
        except RequestError:
            answered = True
            raise
        except Silence as silence:
            certain, last = silence.certain, str(silence)
            raise Unanswered(f"{call}: {last}") from None
        finally:
            self._observe(answered, certain, last)

    def _observe(self, answered: bool, certain: bool, last: str) -> None:
        now = time.monotonic()
        with self._lock:
            self._probing = False
            lasted = begins = None
            if answered:
                self._next_probe = now
                lasted = self._machine.answered(now)
            elif last:
                self._next_probe = now + self._probe_every
                begins = self._machine.missed(now, certain)
            admitted, refused = self._machine.admitted, self._machine.refused
        if begins:
            self._log.warning("no node answers: limits are decided by this client alone (%s)", last)
        if lasted is not None:
            self._log.warning(
                "nodes answer again after %.1f s: %d requests were admitted and %d refused by this client alone",
                lasted, admitted, refused)
        if answered:
            self._report(now)

    def _report(self, now: float) -> None:
        """Tells the authority some of what was admitted alone, where nobody is telling it."""
        with self._lock:
            due = [(at, n) for at, n in self._machine.accounts.items() if n > self._booked.get(at, 0)][:REPORT_MAX]
            if not due or self._reporting or self._machine.away_since is not None or now < self._next_report:
                return
            self._reporting, self._next_report = True, now + 1
            session = self._session
        listed = [{"limit": limit, "key": key, "dimension": dimension, "class": kind, "tokens": str(n)}
                  for (limit, key, dimension, kind), n in due]
        body = {"client": self._name, "session_id": session, "admitted": listed}
        booked = False
        try:
            booked = self._asker.ask("report", body, now + REPORT_WITHIN, lambda answer: True)
        except (Silence, RequestError):
            # Counts are cumulative: the next report has them again.
            pass
        finally:
            with self._lock:
                self._reporting = False
                if booked and session == self._session:
                    self._booked.update(due)
                    self._next_report = 0.0
                    if all(n <= self._booked.get(at, 0) for at, n in self._machine.accounts.items()):
                        # All is booked: whoever counts on for a day would be booked twice.
                        self._machine.accounts.clear()
                        self._booked.clear()
                        self._session = secrets.token_hex(16)

    def close(self) -> None:
        """Closes idle connections. It may be called twice; later calls raise Closed."""
        with self._lock:
            self._closed = True
        self._transport.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], err: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def _after_fork(self) -> None:
        """A child shares no connection and no lock with its parent, and reports nothing of it."""
        self._lock = threading.Lock()
        self._asker.after_fork()
        self._probing = self._reporting = False
        self._machine.accounts.clear()
        self._booked.clear()
        self._session = secrets.token_hex(16)


def _forked() -> None:
    for client in list(_clients):
        client._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)

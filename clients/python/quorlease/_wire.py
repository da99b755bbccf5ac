"""Requests as JSON, and answers read from it. What is no answer raises Nonsense."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Mapping, Optional, Tuple

from ._fallback import seconds
from .types import Charge, Decision, Denial, Lease, Queue, Remaining, Settled, Settlement, Usage


class Nonsense(Exception):
    """A node has answered something that is no answer to what it was asked."""


def duration(value: float) -> str:
    return f"{value:.6f}s"


def charges(given: Iterable[Charge]) -> Any:
    return [{"limit": c.limit, "key": c.key, "dimension": c.dimension, "amount": str(c.amount)} for c in given]


def usage(given: Iterable[Usage]) -> Any:
    return [{"limit": u.limit, "key": u.key, "dimension": u.dimension, "used": str(u.used)} for u in given]


def amounts(given: Mapping[str, int]) -> Dict[str, str]:
    return {name: str(tokens) for name, tokens in given.items()}


def decision(answer: Any, lease_id: str, asked: float) -> Decision:
    """Reads the answer to an acquire that was first sent at ``asked``."""
    try:
        return _decision(answer, lease_id, asked)
    except (KeyError, TypeError, ValueError, AttributeError) as err:
        raise Nonsense(f"{type(err).__name__}: {err}") from None


def _decision(answer: Any, lease_id: str, asked: float) -> Decision:
    denials = tuple(_denial(d) for d in answer.get("denials") or [])
    granted = answer["decision"] == "GRANTED"
    lease: Optional[Lease] = None
    if granted:
        given = answer["lease"]
        if lease_id and given["id"] != lease_id:
            raise Nonsense("it is of another lease")
        listed = tuple(Charge(c["limit"], c["dimension"], int(c["amount"]), c.get("key", ""))
                       for c in given.get("charges") or [])
        ends = asked + seconds(given.get("ttl")) * 0.999
        lease = Lease(given["id"], listed, ends, given.get("tracked") is True)
    elif answer["decision"] != "DENIED" or not denials:
        raise Nonsense("it is no decision")
    queue = answer.get("queue")
    waited = Queue(int(queue.get("position", 0)), seconds(queue.get("eta")), seconds(queue.get("waited"))) \
        if queue else None
    return Decision(
        granted,
        {"CONSENSUS": "consensus", "ESCROW": "escrow"}.get(answer.get("source", ""), "node"),
        lease, denials, tuple(_denial(d) for d in answer.get("warnings") or []),
        tuple(Remaining(r["limit"], r.get("key", ""), r["dimension"], int(r["tokens"]))
              for r in answer.get("remaining") or []),
        answer.get("repeated_request") is True,
        waited,
    )


def _denial(d: Any) -> Denial:
    never = d.get("never") is True
    wait = None if never or d.get("retry_after") is None else seconds(d["retry_after"])
    frees = d.get("frees_in")
    return Denial(str(d["reason"]), d.get("limit", ""), d.get("key", ""), d.get("dimension", ""), wait, never,
                  None if frees is None else seconds(frees))


def settlement(answer: Any, asked: float) -> Settlement:
    """Reads the answer to a settle, a release or a renewal."""
    try:
        ttl = seconds(answer.get("ttl"))
        return Settlement(
            str(answer["state"]), tuple(_settled(s) for s in answer.get("settlements") or []),
            asked + ttl * 0.999 if ttl > 0 else None, answer.get("repeated_request") is True,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as err:
        raise Nonsense(f"{type(err).__name__}: {err}") from None


def _settled(s: Any) -> Settled:
    numbers: Tuple[int, ...] = tuple(
        int(s.get(name, 0)) for name in ("amount", "used", "refunded", "excess", "written_off"))
    return Settled(s.get("limit", ""), s.get("key", ""), s.get("dimension", ""), *numbers)

"""Does what it is told, a line of JSON at a time: the same of every language (clients/conformance)."""

import json
import logging
import sys

from quorlease import Charge, Client, Lease, RequestError, Unanswered, Usage

logger = logging.getLogger("adapter")


class Count(logging.Handler):
    began = ended = 0

    def emit(self, record):
        if "alone (" in record.getMessage():
            self.began += 1
        elif "again after" in record.getMessage():
            self.ended += 1


class Adapter:
    def __init__(self):
        self.client, self.leases, self.count = None, {}, Count()
        logger.addHandler(self.count)
        logger.propagate = False

    def open(self, r):
        if self.client is not None:
            self.client.close()
        self.count.began = self.count.ended = 0
        self.client = Client(
            r["endpoints"], r["client"], deadline=r["deadline_ms"] / 1000, probe_every=0.05,
            fallback=r.get("fallback", "open"), logger=logger)
        return {}

    def acquire(self, r):
        d = self.client.acquire(
            [Charge(c["limit"], c["dimension"], int(c["amount"]), c.get("key", "")) for c in r.get("charges", [])],
            client=r.get("client", ""), priority=r.get("class", ""), attempt=r.get("attempt", 0),
            track=r.get("track", True), max_wait=r.get("max_wait_ms", 0) / 1000, lease_id=r.get("lease_id", ""),
            attributes=r.get("attributes"), amounts={name: int(n) for name, n in r.get("amounts", {}).items()})
        if d.lease is not None:
            self.leases[d.lease.id] = d.lease
        denials = [{
            "reason": n.reason, "limit": n.limit, "key": n.key, "dimension": n.dimension, "never": n.never,
            "retry_after_ms": None if n.retry_after is None else round(n.retry_after * 1000),
        } for n in d.denials]
        return {
            "granted": d.granted, "local": d.source == "local", "repeated": d.repeated, "denials": denials,
            "warnings": [n.reason for n in d.warnings], "remaining": [str(n.tokens) for n in d.remaining],
            "waited": d.queue is not None and d.queue.waited > 0,
            "charges": [f"{c.limit}/{c.key}/{c.dimension}={c.amount}" for c in d.lease.charges] if d.lease else [],
        }

    def lease(self, r):
        return self.leases.get(r["lease_id"]) or Lease(r["lease_id"], (), 0, True)

    def used(self, r):
        return [Usage(u["dimension"], int(u["used"]), u.get("limit", ""), u.get("key", "")) for u in r.get("used", [])]

    def settle(self, r):
        return self.settled(self.client.settle(self.lease(r), *self.used(r), progress=r.get("progress", False)))

    def release(self, r):
        return self.settled(self.client.release(self.lease(r)))

    def renew(self, r):
        return self.settled(self.client.renew(self.lease(r), r["ttl_ms"] / 1000, r["sequence"], *self.used(r)))

    def settled(self, s):
        return {"state": s.state, "repeated": s.repeated, "local": s.local, "settlements": [{
            "used": str(c.used), "refunded": str(c.refunded), "excess": str(c.excess),
            "written_off": str(c.written_off)} for c in s.charges]}


def main():
    adapter = Adapter()
    for line in sys.stdin:
        r = json.loads(line)
        try:
            answer = getattr(adapter, r["op"])(r)
        except RequestError as err:
            answer = {"error": err.reason, "message": str(err)}
        except Unanswered as err:
            answer = {"error": "UNANSWERED", "message": str(err)}
        answer.update(alerts=adapter.count.began, resolved=adapter.count.ended)
        print(json.dumps(answer), flush=True)
    if adapter.client is not None:
        adapter.client.close()


if __name__ == "__main__":
    main()

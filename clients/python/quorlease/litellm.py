"""A hook for LiteLLM's proxy, which asks the authority before each call and settles after it.

It is written against the documented interface of LiteLLM's custom loggers
(``async_pre_call_hook``, ``async_log_success_event``, ``async_log_failure_event``). It is not
run against LiteLLM itself in this tree: its tests have a small stand-in. It imports nothing of
LiteLLM; mix it with its base class::

    from litellm.integrations.custom_logger import CustomLogger
    from quorlease.aio import AsyncClient
    from quorlease.litellm import Hook

    class Limits(Hook, CustomLogger):
        pass

    limits = Limits(AsyncClient(["http://127.0.0.1:7301"], client="litellm"))
"""

from __future__ import annotations

import math
import secrets
from collections import OrderedDict
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from .aio import AsyncClient
from .types import Decision, Denied, Lease, QuorleaseError, Usage

LEASES_MAX = 10_000
"""How many calls are followed at a time; the oldest is forgotten, and charged in full."""
_MARK = "quorlease_call"

Describe = Callable[[Any, Mapping[str, Any]], Tuple[Dict[str, str], Dict[str, int]]]


class TooManyRequests(Denied):
    """What a denied call ends with: 429, with the hint where waiting helps."""

    status_code = 429

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision)
        wait = decision.retry_after()
        self.detail = str(self)
        self.headers = {"x-should-retry": "false"} if wait is None else {
            "Retry-After": str(max(1, math.ceil(wait))), "retry-after-ms": str(max(1, math.ceil(wait * 1000)))}


def describe(user: Any, data: Mapping[str, Any]) -> Tuple[Dict[str, str], Dict[str, int]]:
    """The attributes and amounts of a call, where nobody says otherwise: ``model`` and
    ``tenant`` (the team, or the alias of the key), one request, a token for each four bytes of
    the messages, and ``max_tokens``, 1024 where that is missing."""
    attributes = {}
    for name, value in (("model", data.get("model")),
                        ("tenant", getattr(user, "team_id", None) or getattr(user, "key_alias", None))):
        if isinstance(value, str) and 0 < len(value.encode("utf-8", "replace")) <= 256:
            attributes[name] = value
    prompt = sum(len(str(m.get("content", "")).encode("utf-8", "replace")) if isinstance(m, Mapping) else 0
                 for m in data.get("messages") or [])
    most = data.get("max_tokens")
    output = most if isinstance(most, int) and not isinstance(most, bool) and most > 0 else 1024
    return attributes, {"requests": 1, "input_tokens": max(1, prompt // 4), "output_tokens": output}


class Hook:
    """:param client: whom to ask. :param describe: what a call is and takes, see
    :func:`describe`. :param options: of each acquire, such as ``priority`` or ``max_wait``."""

    def __init__(self, client: AsyncClient, describe: Describe = describe, **options: Any) -> None:
        super().__init__()
        self._authority, self._describe, self._options = client, describe, options
        self._leases: "OrderedDict[str, Lease]" = OrderedDict()

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: Dict[str, Any], call_type: str
    ) -> Any:
        """Asks before the call. Denied, it raises :class:`TooManyRequests`."""
        attributes, amounts = self._describe(user_api_key_dict, data)
        decision = await self._authority.acquire(attributes=attributes, amounts=amounts, **self._options)
        if not decision.granted:
            raise TooManyRequests(decision)
        if decision.lease is not None and decision.lease.tracked:
            mark = secrets.token_hex(8)
            metadata = data.get("metadata")
            data["metadata"] = {**(metadata if isinstance(metadata, dict) else {}), _MARK: mark}
            self._leases[mark] = decision.lease
            while len(self._leases) > LEASES_MAX:
                self._leases.popitem(last=False)
        return data

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Settles what the provider says was used."""
        lease = self._taken(kwargs)
        if lease is None:
            return
        usage = _get(response_obj, "usage")
        used: List[Usage] = []
        charged = {c.dimension for c in lease.charges}
        for dimension, name in (("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens")):
            tokens = _get(usage, name)
            if dimension in charged and isinstance(tokens, int) and tokens >= 0:
                used.append(Usage(dimension, tokens))
        await self._end(lease, used)

    async def async_log_failure_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """A call that the provider has refused (a status from 400 to 499, or 503) used nothing, and
        is given back; of any other failure nobody knows what it used, and it stays charged."""
        lease = self._taken(kwargs)
        if lease is None:
            return
        status = getattr(_get(kwargs, "exception"), "status_code", None)
        refused = isinstance(status, int) and (400 <= status < 500 and status != 408 or status == 503)
        await self._end(lease, None if refused else [])

    def _taken(self, kwargs: Any) -> Optional[Lease]:
        mark = _get(_get(_get(kwargs, "litellm_params"), "metadata"), _MARK)
        return self._leases.pop(mark, None) if isinstance(mark, str) else None

    async def _end(self, lease: Lease, used: Optional[List[Usage]]) -> None:
        try:
            if used is None:
                await self._authority.release(lease)
            else:
                await self._authority.settle(lease, *used)
        except QuorleaseError:
            # The call is done; the lease ends by itself, charged in full.
            pass


def _get(of: Any, name: str) -> Any:
    return of.get(name) if isinstance(of, Mapping) else getattr(of, name, None)

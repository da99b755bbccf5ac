"""A context manager around a piece of work that is charged."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, Iterable, Optional, Tuple, Type, Union

from .types import Charge, Decision, Denied, Lease, RequestError, Unanswered, Usage

if TYPE_CHECKING:
    from ._client import Client


class Work:
    """What a piece of work has used, while it runs. It is of one thread."""

    def __init__(self) -> None:
        self._decision: Optional[Decision] = None
        self._used: Dict[Tuple[str, str, str], int] = {}
        self._unused = False

    @property
    def decision(self) -> Decision:
        """What was decided. Only inside the ``with`` block."""
        if self._decision is None:
            raise RuntimeError("the limiter was not entered")
        return self._decision

    @property
    def lease(self) -> Lease:
        """The right to go ahead."""
        lease = self.decision.lease
        assert lease is not None
        return lease

    def used(self, **dimensions: int) -> None:
        """Says what was really used so far by dimension, of all its charges; the last word counts.
        A dimension that is never named counts as used in full."""
        for dimension, tokens in dimensions.items():
            self.used_of("", "", dimension, tokens)

    def used_of(self, limit: str, key: str, dimension: str, tokens: int) -> None:
        """The same of one charge."""
        self._used[(limit, key, dimension)] = tokens

    def unused(self) -> None:
        """Nothing was done after all: the lease is given back whole."""
        self._unused = True

    def _usage(self) -> Tuple[Usage, ...]:
        return tuple(Usage(dimension, n, limit, key) for (limit, key, dimension), n in self._used.items())


class Limiter(Work):
    """See :meth:`quorlease.Client.limiter`. It may be entered once."""

    def __init__(self, client: "Client", charges: Union[Charge, Iterable[Charge]], options: Dict[str, Any]) -> None:
        super().__init__()
        self._client, self._charges, self._options = client, charges, options

    def __enter__(self) -> "Limiter":
        if self._decision is not None:
            raise RuntimeError("a limiter may be entered once")
        decision = self._client.acquire(self._charges, **self._options)
        if not decision.granted:
            raise Denied(decision)
        self._decision = decision
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], err: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        lease = self.lease
        if not lease.tracked:
            return
        try:
            if self._unused:
                self._client.release(lease)
            else:
                self._client.settle(lease, *self._usage())
        except (Unanswered, RequestError) as problem:
            # The work is done and its result counts; the lease ends by itself, charged in full.
            logging.getLogger("quorlease").info("lease %s was not settled: %s", lease.id, problem)

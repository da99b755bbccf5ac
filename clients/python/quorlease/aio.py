"""The client for asyncio: the same calls, each in a thread of a pool of its own.

Threads and not streams of asyncio: it is the same code, so that both decide alike. No call
blocks the event loop, and a loop that is blocked by somebody else delays the result and
nothing else: deadlines run in the thread.
"""

from __future__ import annotations

import asyncio
import contextvars
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Callable, Iterable, Optional, Type, TypeVar, Union

from ._client import Client
from ._limiter import Work
from .types import Charge, Decision, Denied, Lease, QuorleaseError, Settlement, Usage

T = TypeVar("T")


class AsyncClient:
    """Wraps a :class:`Client`. Its arguments are those of the client.

    :param workers: how many calls run at a time, 1 to 256; others wait for their turn, which
        counts for no deadline. Default 16. A call that waits in the authority's queue
        (``max_wait``) has one of them meanwhile.

    Where the task that acquires is cancelled the call goes on in its thread, and what it is
    granted is released. A process that forks makes its own after that.
    """

    def __init__(self, *args: Any, workers: int = 16, **options: Any) -> None:
        if isinstance(workers, bool) or not isinstance(workers, int) or not 1 <= workers <= 256:
            raise ValueError(f"workers: {workers!r} is out of range 1..256")
        self.client = Client(*args, **options)
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="quorlease")

    async def acquire(self, charges: Union[Charge, Iterable[Charge]] = (), **options: Any) -> Decision:
        """As :meth:`Client.acquire`."""
        call = self._submit(lambda: self.client.acquire(charges, **options))
        try:
            return await asyncio.wrap_future(call)
        except asyncio.CancelledError:
            call.add_done_callback(self._give_back)
            raise

    async def settle(self, lease: Lease, *used: Usage, **options: Any) -> Settlement:
        """As :meth:`Client.settle`."""
        return await asyncio.wrap_future(self._submit(lambda: self.client.settle(lease, *used, **options)))

    async def release(self, lease: Lease, **options: Any) -> Settlement:
        """As :meth:`Client.release`."""
        return await asyncio.wrap_future(self._submit(lambda: self.client.release(lease, **options)))

    async def renew(self, lease: Lease, ttl: float, sequence: int, *used: Usage, **options: Any) -> Settlement:
        """As :meth:`Client.renew`."""
        return await asyncio.wrap_future(
            self._submit(lambda: self.client.renew(lease, ttl, sequence, *used, **options)))

    def limiter(self, charges: Union[Charge, Iterable[Charge]] = (), **options: Any) -> "AsyncLimiter":
        """As :meth:`Client.limiter`, for ``async with``."""
        return AsyncLimiter(self, charges, options)

    def _submit(self, call: Callable[[], T]) -> "Future[T]":
        context = contextvars.copy_context()
        return self._pool.submit(lambda: context.run(call))

    def _give_back(self, call: "Future[Decision]") -> None:
        if call.cancelled() or call.exception() is not None:
            return
        lease = call.result().lease
        if lease is not None and lease.tracked:
            try:
                self.client.release(lease)
            except QuorleaseError:
                # It ends by itself.
                pass

    async def close(self) -> None:
        """Waits for calls under way, each bounded by its deadline, and closes the client."""
        await asyncio.get_running_loop().run_in_executor(None, self._pool.shutdown)
        self.client.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], err: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.close()


class AsyncLimiter(Work):
    """See :meth:`AsyncClient.limiter`. It may be entered once."""

    def __init__(self, client: AsyncClient, charges: Union[Charge, Iterable[Charge]], options: Any) -> None:
        super().__init__()
        self._client, self._charges, self._options = client, charges, options

    async def __aenter__(self) -> "AsyncLimiter":
        if self._decision is not None:
            raise RuntimeError("a limiter may be entered once")
        decision = await self._client.acquire(self._charges, **self._options)
        if not decision.granted:
            raise Denied(decision)
        self._decision = decision
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], err: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        lease = self.lease
        if not lease.tracked:
            return
        try:
            if self._unused:
                await self._client.release(lease)
            else:
                await self._client.settle(lease, *self._usage())
        except QuorleaseError:
            # The work is done and its result counts; the lease ends by itself, charged in full.
            pass

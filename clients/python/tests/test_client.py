import asyncio
import gc
import logging
import os
import socket
import threading
import time
import unittest
import warnings

from node import Node, granted
from quorlease import Charge, Client, Closed, Denied, RequestError, Unanswered
from quorlease.aio import AsyncClient

FREE = Charge("free", "requests")


def refused_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class ClientTest(unittest.TestCase):
    def setUp(self):
        logging.getLogger("quorlease").addHandler(logging.NullHandler())
        logging.getLogger("quorlease").propagate = False

    def test_connections_are_used_again_and_closed(self):
        with Node() as node:
            client = Client([node.url], "t")
            for _ in range(20):
                client.settle(client.acquire(FREE).lease)
            self.assertEqual(node.opened, 1)
            client.close()
            client.close()
            with self.assertRaises(Closed):
                client.acquire(FREE)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            del client
            gc.collect()

    def test_eight_threads(self):
        with Node() as node, Client([node.url], "t", deadline=20) as client:
            ids, problems = [], []

            def work():
                try:
                    for _ in range(25):
                        ids.append(client.acquire(FREE).lease.id)
                except Exception as err:
                    problems.append(err)

            threads = [threading.Thread(target=work) for _ in range(8)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            self.assertEqual(problems, [])
            self.assertEqual((len(ids), len(set(ids))), (200, 200))
            self.assertLessEqual(node.opened, 200)
            self.assertLessEqual(len(client._transport._idle[node.url]), 8)

    def test_eight_threads_warn_once(self):
        records = []
        logger = logging.getLogger("once")
        logger.addHandler(logging.Handler())
        logger.handlers[0].emit = records.append
        logger.propagate = False
        with Client([f"127.0.0.1:{refused_port()}"], "t", logger=logger) as client:
            start = threading.Barrier(8)

            def work():
                start.wait()
                for _ in range(50):
                    self.assertEqual(client.acquire(FREE).source, "local")

            threads = [threading.Thread(target=work) for _ in range(8)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            self.assertTrue(client.away)
        self.assertEqual([r.levelname for r in records], ["WARNING"])

    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork")
    def test_a_child_has_connections_of_its_own(self):
        with Node() as node, Client([node.url], "t", deadline=20) as client:
            client.acquire(FREE)
            with client._lock, warnings.catch_warnings():  # as another thread may have it at that moment
                warnings.simplefilter("ignore")
                child = os.fork()
            if child == 0:
                try:
                    os._exit(0 if client.acquire(FREE).source == "consensus" else 1)
                finally:
                    os._exit(2)
            _, status = os.waitpid(child, 0)
            self.assertEqual(status, 0)
            self.assertEqual(client.acquire(FREE).source, "consensus")
            self.assertEqual(node.opened, 2)

    def test_what_was_admitted_alone_is_reported_once(self):
        down = threading.Event()

        def answer(call, request):
            return (503, {"reason": "NO_QUORUM"}) if down.is_set() else Node.grants(call, request)

        with Node(answer) as node, Client([node.url], "t", probe_every=0.01) as client:
            client.acquire(FREE)
            down.set()
            for _ in range(5):
                client.acquire(Charge("free", "requests", 2, "é"))
            down.clear()
            deadline = time.monotonic() + 20
            while not (node.calls("report") and not client.away) and time.monotonic() < deadline:
                client.acquire(FREE)
            for _ in range(5):
                client.acquire(FREE)
            reports = node.calls("report")
        counts = {(a["key"], a["tokens"]) for r in reports for a in r["admitted"]}
        self.assertIn(("é", "10"), counts)
        self.assertEqual(len([r for r in reports if any(a["key"] == "é" for a in r["admitted"])]), 1)

    def test_a_settle_while_away_is_not_waited_for(self):
        with Client([f"127.0.0.1:{refused_port()}"], "t", probe_every=60) as client:
            client.acquire(FREE)
            lease = granted_lease()
            began = time.monotonic()
            with self.assertRaises(Unanswered):
                client.settle(lease)
            self.assertLess(time.monotonic() - began, 0.5)

    def test_the_limiter_settles_releases_and_says_no(self):
        with Node() as node, Client([node.url], "t") as client:
            with client.limiter(Charge("free", "tokens", 9)) as work:
                work.used(tokens=4)
                work.used(tokens=5)
            with self.assertRaises(KeyError):
                with client.limiter(FREE):
                    raise KeyError("of the work")
            with client.limiter(FREE) as work:
                work.unused()
            self.assertEqual([r["used"] for r in node.calls("settle")],
                             [[{"limit": "", "key": "", "dimension": "tokens", "used": "5"}], []])
            self.assertEqual(len(node.calls("release")), 1)
            node.answer = lambda *_: (200, {"decision": "DENIED", "denials": [{"reason": "RATE", "retry_after": "2s"}]})
            with self.assertRaises(Denied) as caught:
                with client.limiter(FREE):
                    self.fail("it ran")
            self.assertGreaterEqual(caught.exception.decision.retry_after(), 2)
            self.assertLessEqual(caught.exception.decision.retry_after(), 2.2)

    def test_headers_and_bad_configurations(self):
        with Node() as node, Client([node.url], "t", headers={"Authorization": "Bearer é"}) as client:
            client.acquire(FREE)
            self.assertEqual(node.asked[0][2]["Authorization"], "Bearer é")
        good = {"endpoints": ["127.0.0.1:7301"], "client": "t"}
        for bad, field in (
            ({"endpoints": []}, "endpoints"), ({"endpoints": "127.0.0.1:1"}, "endpoints"),
            ({"endpoints": ["localhost"]}, "endpoints[0]"), ({"endpoints": ["ftp://a:1"]}, "endpoints[0]"),
            ({"endpoints": ["http://a:1/path"]}, "endpoints[0]"), ({"endpoints": ["http://a:99999"]}, "endpoints[0]"),
            ({"client": ""}, "client"), ({"client": "a\n"}, "client"), ({"client": "\ud800"}, "client"),
            ({"deadline": 0}, "deadline"), ({"deadline": float("nan")}, "deadline"), ({"fallback": "share"}, "fallback"),
            ({"share": 2}, "share"), ({"headers": {"a": "b\r\nc: d"}}, "headers"), ({"probe_every": True}, "probe_every"),
        ):
            with self.subTest(bad), self.assertRaisesRegex(RequestError, "BAD_FIELD: " + field.replace("[", r"\[")):
                Client(**{**good, **bad})

    def test_a_wrong_certificate_is_nobody(self):
        with Node() as node, Client([node.url.replace("http", "https")], "t", deadline=5) as client:
            self.assertEqual(client.acquire(FREE).source, "local")


def granted_lease():
    from quorlease import Lease
    return Lease("0" * 32, (), 0, True)


class AsyncTest(unittest.IsolatedAsyncioTestCase):
    async def test_calls_and_limiter(self):
        with Node() as node:
            async with AsyncClient([node.url], "t", deadline=20) as client:
                decisions = await asyncio.gather(*(client.acquire(FREE) for _ in range(40)))
                self.assertTrue(all(d.granted for d in decisions))
                async with client.limiter(FREE) as work:
                    work.used(requests=1)
                self.assertEqual(len(node.calls("settle")), 1)

    async def test_a_blocked_loop_is_no_slow_node(self):
        with Node() as node:
            async with AsyncClient([node.url], "t", deadline=1) as client:
                task = asyncio.ensure_future(client.acquire(FREE))
                await asyncio.sleep(0)
                time.sleep(1.5)
                self.assertEqual((await task).source, "consensus")

    async def test_what_a_cancelled_task_is_granted_is_released(self):
        go = threading.Event()

        def answer(call, request):
            if call == "acquire":
                go.wait(10)
                return granted(request)
            return Node.grants(call, request)

        with Node(answer) as node:
            client = AsyncClient([node.url], "t", deadline=20)
            task = asyncio.ensure_future(client.acquire(FREE))
            while not node.asked:
                await asyncio.sleep(0.01)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            go.set()
            await client.close()
            self.assertEqual([r["lease_id"] for r in node.calls("release")], [node.calls("acquire")[0]["lease_id"]])

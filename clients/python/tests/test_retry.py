import contextlib
import unittest
import urllib.error
import urllib.request
from types import SimpleNamespace
from unittest import mock

from node import Node
from quorlease import Charge, Client, Decision, Denial, Denied, current_attempt, retry


def answer(status, **headers):
    return SimpleNamespace(status_code=status, headers={k.replace("_", "-"): v for k, v in headers.items()})


class RetryTest(unittest.TestCase):
    def setUp(self):
        self.waits = []
        patch = mock.patch("quorlease._retry.time.sleep", self.waits.append)
        patch.start()
        self.addCleanup(patch.stop)

    def course(self, *outcomes, headers=None, **options):
        """The markers that were sent, and the last outcome."""
        sent, left = [], list(outcomes)

        @retry(**options)
        def ask(*, headers):
            sent.append(headers["X-Retry-Attempt"])
            self.assertEqual(str(current_attempt()), sent[-1])
            outcome = left.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        with contextlib.suppress(RuntimeError, Denied):
            ask(headers=headers)
        self.assertEqual(current_attempt(), 0)
        return sent

    def test_courses(self):
        no = answer(429)
        for name, outcomes, options, want in (
            ("an answer", [answer(200)], {}, ["0"]),
            ("refused, then not", [no, answer(200)], {}, ["0", "1"]),
            ("three in all", [no, no, no, no], {}, ["0", "1", "2"]),
            ("as often as it is said", [no, no], {"attempts": 1}, ["0"]),
            ("told to stop", [answer(429, x_should_retry="false", retry_after="1")], {}, ["0"]),
            ("told to go on", [answer(500, X_Should_Retry="true"), answer(200)], {}, ["0", "1"]),
            ("an error that is none of these", [answer(500)], {}, ["0"]),
            ("no answer", [RuntimeError("lost")], {}, ["0"]),
            ("a longer wait than one waits", [answer(429, retry_after="61")], {}, ["0"]),
            ("a wait that ends too late", [answer(429, retry_after="5")], {"within": 2}, ["0"]),
            ("its caller's own retries", [no, answer(200)], {"headers": {"x-retry-attempt": "4"}}, ["4", "5"]),
            ("a marker that is none", [answer(200)], {"headers": {"X-Retry-Attempt": "-4"}}, ["0"]),
        ):
            with self.subTest(name):
                self.assertEqual(self.course(*outcomes, **options), want)

    def test_waits(self):
        for headers, low, high in (
            ({"retry_after_ms": "250", "retry_after": "9"}, 0.25, 2.25),
            ({"Retry_After": "9"}, 9, 11),
            ({"retry_after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0, 2),
            ({"retry_after": "soon"}, 0.5, 1), ({"retry_after": "nan"}, 0.5, 1), ({}, 0.5, 1),
        ):
            with self.subTest(headers):
                self.waits.clear()
                self.assertEqual(self.course(answer(503, **headers), answer(200)), ["0", "1"])
                self.assertTrue(low <= self.waits[0] <= high, self.waits)

    def test_denials(self):
        denied = Denied(Decision(False, "node", denials=(Denial("RATE", retry_after=3),)))
        never = Denied(Decision(False, "node", denials=(Denial("ATTEMPTS", never=True),)))
        self.assertEqual(self.course(denied, answer(200)), ["0", "1"])
        self.assertTrue(3 <= self.waits[0] <= 3.3)
        self.assertEqual(self.course(never), ["0"])

    def test_urllib_and_an_acquire_inside(self):
        with Node() as node, Client([node.url], "t") as client:
            node.answer = lambda call, request: (429, {}) if len(node.asked) < 2 else Node.grants(call, request)

            @retry()
            def ask(*, headers):
                sent = {**headers, "Content-Type": "application/json"}
                data = b'{"lease_id": "x"}'
                with urllib.request.urlopen(urllib.request.Request(node.url + "/v1/x:settle", data, sent)) as response:
                    client.acquire(Charge("free", "requests"))
                    return response.status

            self.assertEqual(ask(), 200)
            self.assertEqual([h["X-Retry-Attempt"] for _, _, h in node.asked[:2]], ["0", "1"])
            self.assertEqual(node.calls("acquire")[0]["attempt"], 1)

    def test_bad_use(self):
        with self.assertRaisesRegex(ValueError, "attempts: 0"):
            retry(0)
        with self.assertRaisesRegex(ValueError, "wait_max: -1"):
            retry(wait_max=-1)
        with self.assertRaisesRegex(TypeError, "headers"):
            retry()(lambda: None)


class AsyncRetryTest(unittest.IsolatedAsyncioTestCase):
    async def test_a_coroutine_function(self):
        sent, closed = [], []

        @retry()
        async def ask(*, headers):
            sent.append(headers["X-Retry-Attempt"])
            one = answer(429 if len(sent) < 3 else 200, retry_after_ms="1")

            async def close():
                closed.append(one)

            one.aclose = close
            return one

        with mock.patch("quorlease._retry.random.uniform", lambda *_: 0):
            self.assertEqual((await ask()).status_code, 200)
        self.assertEqual((sent, len(closed)), (["0", "1", "2"], 2))

"""The hook, against a small stand-in for LiteLLM's proxy: it was not run with LiteLLM itself."""

import unittest
from types import SimpleNamespace

from node import Node, granted
from quorlease.aio import AsyncClient
from quorlease.litellm import Hook, TooManyRequests


class CustomLogger:
    """As LiteLLM documents it: what is not overridden does nothing."""

    async def async_pre_call_hook(self, user_api_key_dict, cache, data, call_type):
        return data

    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        pass

    async def async_log_failure_event(self, kwargs, response_obj, start_time, end_time):
        pass


class Limits(Hook, CustomLogger):
    pass


async def proxied(hook, data, provider):
    """What the proxy does with one request."""
    user = SimpleNamespace(team_id="red", key_alias=None)
    data = await hook.async_pre_call_hook(user, None, data, "completion")
    kwargs = {"model": data["model"], "litellm_params": {"metadata": data["metadata"]}}
    try:
        response = provider()
    except Exception as err:
        await hook.async_log_failure_event({**kwargs, "exception": err}, None, 0, 1)
        raise
    await hook.async_log_success_event(kwargs, response, 0, 1)
    return response


class Refused(Exception):
    status_code = 429


class HookTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        def answer(call, request):
            if call != "acquire":
                return Node.grants(call, request)
            charges = [{"limit": "model", "key": "", "dimension": d, "amount": n} for d, n in request["amounts"].items()]
            return granted({**request, "charges": charges})

        self.node = self.enterContext(Node(answer)) if hasattr(self, "enterContext") else Node(answer)
        self.client = AsyncClient([self.node.url], "litellm", deadline=20)
        self.hook = Limits(self.client, priority="live")
        self.request = {"model": "gpt", "messages": [{"role": "user", "content": "x" * 400}], "max_tokens": 50}

    async def asyncTearDown(self):
        await self.client.close()
        if not hasattr(self, "enterContext"):
            self.node.__exit__()

    async def test_asks_before_and_settles_after(self):
        usage = {"prompt_tokens": 90, "completion_tokens": 7}
        await proxied(self.hook, self.request, lambda: SimpleNamespace(usage=SimpleNamespace(**usage)))
        asked, = self.node.calls("acquire")
        self.assertEqual((asked["attributes"], asked["class"]), ({"model": "gpt", "tenant": "red"}, "live"))
        self.assertEqual(asked["amounts"], {"requests": "1", "input_tokens": "100", "output_tokens": "50"})
        settled, = self.node.calls("settle")
        self.assertEqual({u["dimension"]: u["used"] for u in settled["used"]},
                         {"input_tokens": "90", "output_tokens": "7"})
        self.assertEqual(settled["lease_id"], asked["lease_id"])

    async def test_what_a_provider_refused_is_given_back(self):
        def refuses():
            raise Refused

        with self.assertRaises(Refused):
            await proxied(self.hook, self.request, refuses)
        self.assertEqual((len(self.node.calls("release")), len(self.node.calls("settle"))), (1, 0))

    async def test_what_failed_stays_charged(self):
        def fails():
            raise TimeoutError

        with self.assertRaises(TimeoutError):
            await proxied(self.hook, self.request, fails)
        settled, = self.node.calls("settle")
        self.assertEqual(settled["used"], [])

    async def test_a_denial_is_429_with_the_hint(self):
        self.node.answer = lambda *_: (200, {"decision": "DENIED", "denials": [{"reason": "RATE", "retry_after": "1.2s"}]})
        with self.assertRaises(TooManyRequests) as caught:
            await proxied(self.hook, self.request, self.fail)
        self.assertEqual((caught.exception.status_code, caught.exception.headers["Retry-After"]), (429, "2"))
        self.node.answer = lambda *_: (200, {"decision": "DENIED", "denials": [{"reason": "BLOCKED", "never": True}]})
        with self.assertRaises(TooManyRequests) as caught:
            await proxied(self.hook, self.request, self.fail)
        self.assertEqual(caught.exception.headers, {"x-should-retry": "false"})

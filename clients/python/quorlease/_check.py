"""The bounds of the protocol, checked before anybody is asked.

While the client decides alone it has to refuse the same that a node refuses.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Iterable, Mapping

from .types import AMOUNT_MAX, Charge, RequestError, Usage

_LIMIT = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")
_DIMENSION = re.compile(r"[a-z][a-z0-9_]{0,62}")
_LEASE = re.compile(r"[0-9a-f]{32}")


def bad(field: str, problem: str) -> RequestError:
    return RequestError("BAD_FIELD", f"{field}: {problem}")


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"


def name(field: str, value: object, pattern: "re.Pattern[str]") -> None:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise bad(field, f"{shown(value)} is not {pattern.pattern}")


def text(field: str, value: object, most: int, least: int = 0) -> None:
    problem = bad(field, f"{shown(value)} is not {least} to {most} bytes of UTF-8 without control characters")
    if not isinstance(value, str):
        raise problem
    try:
        size = len(value.encode("utf-8"))
    except UnicodeEncodeError:
        raise problem from None
    if not least <= size <= most or any(unicodedata.category(c) == "Cc" for c in value):
        raise problem


def amount(field: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= AMOUNT_MAX:
        raise bad(field, f"{shown(value)} is out of range {least}..{AMOUNT_MAX}")


def lease_id(value: object) -> None:
    if not isinstance(value, str) or not _LEASE.fullmatch(value):
        raise bad("lease_id", f"{shown(value)} is not 32 lower-case hex digits")


def seconds(field: str, value: object, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise bad(field, f"{shown(value)} is out of range {least}..{most} seconds")


def charges(given: Iterable[Charge]) -> None:
    seen = set()
    for i, c in enumerate(given):
        if i >= 16:
            raise bad("charges", "more than 16")
        name(f"charges[{i}].limit", c.limit, _LIMIT)
        text(f"charges[{i}].key", c.key, 512)
        name(f"charges[{i}].dimension", c.dimension, _DIMENSION)
        amount(f"charges[{i}].amount", c.amount, 1)
        at = (c.limit, c.key, c.dimension)
        if at in seen:
            raise bad(f"charges[{i}]", "the same limit, key and dimension twice")
        seen.add(at)


def attributes(given: Mapping[str, str], amounts: Mapping[str, int]) -> None:
    if len(given) > 32:
        raise bad("attributes", f"{len(given)}, more than 32")
    for key, value in given.items():
        name("attributes", key, _DIMENSION)
        text(f"attributes[{key}]", value, 256, 1)
    if len(amounts) > 16:
        raise bad("amounts", f"{len(amounts)}, more than 16")
    for key, tokens in amounts.items():
        name("amounts", key, _DIMENSION)
        amount(f"amounts[{key}]", tokens, 1)


def usage(given: Iterable[Usage]) -> None:
    for i, u in enumerate(given):
        if i >= 64:
            raise bad("used", "more than 64")
        name(f"used[{i}].dimension", u.dimension, _DIMENSION)
        amount(f"used[{i}].used", u.used, 0)
        if u.limit:
            name(f"used[{i}].limit", u.limit, _LIMIT)
        text(f"used[{i}].key", u.key, 512)


def priority(value: object) -> None:
    if value != "":
        name("class", value, _DIMENSION)

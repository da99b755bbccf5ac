"""What a client does while nobody answers it. No network and no clock: time is an argument.

All of it is guarded by the lock of the client that owns it.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any, Deque, Dict, List, Mapping, Optional, Sequence, Tuple

from .types import AMOUNT_MAX, Charge, Decision, Denial, Lease

WHOLE_PPM = 1_000_000
NANO = 1_000_000_000
RULES_MAX = 1000
"""How many limits' rules are kept."""
KEYS_MAX = 10_000
"""How many keys have a share of their own; those beyond it have one together, by limit."""
CLIENTS_MAX = 1000
WORK_MAX = 1024
"""For how many descriptions of work it is known what they were charged."""
ACCOUNTS_MAX = 10_000
"""How many counts are kept for the report."""
AWAY = 1.0
"""What a refusal asks to wait that ends when the authority is back, in seconds."""
LOCAL_LIFE = 5.0
"""For how long a lease is good that was granted here, in seconds."""


def seconds(value: Any) -> float:
    """Reads a duration as protobuf writes it in JSON: "1.500s"."""
    if value is None:
        return 0.0
    if not isinstance(value, str) or not value.endswith("s"):
        raise ValueError(f"{value!r:.80} is no duration")
    number = float(value[:-1])
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"{value!r:.80} is no duration")
    return number


@dataclass(frozen=True)
class Rule:
    """The rule of one limit."""

    mode: str = "open"
    share_ppm: Optional[int] = None
    unlimited: bool = False
    revision: int = 0
    # By dimension: amount, interval in nanoseconds, burst.
    dimensions: Mapping[str, Tuple[int, int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class RetryRule:
    """How many of a client's requests may be retries."""

    max_retries: int = 3
    max_fraction_bp: int = 2000
    window: float = 300.0
    min_requests: int = 50
    retry_after: float = 60.0


class Budget:
    """One client's requests over the window, by the second."""

    def __init__(self) -> None:
        self.rule = RetryRule()
        self.revision: Optional[int] = None
        self._slices: Deque[List[int]] = deque(maxlen=3600)
        self._total = self._retries = 0

    def _forget(self, now: float) -> None:
        while self._slices and self._slices[0][0] <= now - self.rule.window:
            _, total, retries = self._slices.popleft()
            self._total -= total
            self._retries -= retries

    def refuses(self, now: float, attempt: int) -> Optional[Denial]:
        self._forget(now)
        rule = self.rule
        if attempt > rule.max_retries:
            return Denial("ATTEMPTS", never=True)
        over = self._total > rule.min_requests and self._retries * 10_000 > self._total * rule.max_fraction_bp
        if attempt > 0 and over:
            return Denial("RETRY_BUDGET", retry_after=rule.retry_after)
        return None

    def record(self, now: float, attempt: int) -> None:
        self._forget(now)
        if not self._slices or self._slices[-1][0] != int(now):
            if len(self._slices) == self._slices.maxlen:
                _, total, retries = self._slices.popleft()
                self._total -= total
                self._retries -= retries
            self._slices.append([int(now), 0, 0])
        retry = 1 if attempt > 0 else 0
        self._slices[-1][1] += 1
        self._slices[-1][2] += retry
        self._total += 1
        self._retries += retry


class _Share:
    """A bucket that began empty. Levels are in parts of a token that make all of it whole."""

    def __init__(self, at: int) -> None:
        self.at, self.level = at, 0

    def fill(self, now: int, amount: int, ppm: int, most: int) -> None:
        self.level = min(most, self.level + max(0, now - self.at) * amount * ppm)
        self.at = max(self.at, now)


Target = Tuple[str, str, str]
Account = Tuple[str, str, str, str]


class Machine:
    """Rules, retry budgets, shares, and the state of an incident."""

    def __init__(self, standard: Rule) -> None:
        self._standard = standard
        self._rules: "OrderedDict[str, Rule]" = OrderedDict()
        self._budgets: "OrderedDict[str, Budget]" = OrderedDict()
        self._work: "OrderedDict[Any, Tuple[Charge, ...]]" = OrderedDict()
        self._shares: Dict[Target, _Share] = {}
        self.accounts: Dict[Account, int] = {}
        self.away_since: Optional[float] = None
        self.admitted = self.refused = 0
        self._slow = self._good = 0

    # What was learnt.

    def known(self, client: str, limits: Sequence[str]) -> Optional[int]:
        """The revision of which all that matters is known, or None."""
        budget = self._budgets.get(client)
        if budget is None or budget.revision is None or not limits:
            return None
        revision = budget.revision
        for limit in limits:
            rule = self._rules.get(limit)
            if rule is None:
                return None
            revision = min(revision, rule.revision)
        return revision

    def learn(self, client: str, news: Any) -> None:
        """Takes in the ``fallbacks`` of an answer. What can't be read is left out."""
        if not isinstance(news, dict):
            return
        try:
            revision = int(news["revision"])
            rules = [_rule(one, revision) for one in news.get("limits") or []]
            budget = _budget(news.get("retries"))
        except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError):
            return
        for limit, rule in rules:
            self._rules[limit] = rule
            self._rules.move_to_end(limit)
        while len(self._rules) > RULES_MAX:
            self._rules.popitem(last=False)
        mine = self._budget(client)
        mine.rule, mine.revision = budget, revision

    def note_work(self, work: Any, charges: Tuple[Charge, ...]) -> None:
        self._work[work] = charges
        self._work.move_to_end(work)
        while len(self._work) > WORK_MAX:
            self._work.popitem(last=False)

    def work(self, work: Any) -> Optional[Tuple[Charge, ...]]:
        return self._work.get(work)

    def _budget(self, client: str) -> Budget:
        budget = self._budgets.get(client)
        if budget is None:
            budget = self._budgets[client] = Budget()
        self._budgets.move_to_end(client)
        while len(self._budgets) > CLIENTS_MAX:
            self._budgets.popitem(last=False)
        return budget

    def record(self, now: float, client: str, attempt: int) -> None:
        """Notes what the authority has admitted."""
        self._budget(client).record(now, attempt)

    # What was observed.

    def answered(self, now: float) -> Optional[float]:
        """A node has answered in time. How long the incident was, where this ends it."""
        self._slow = 0
        if self.away_since is None:
            return None
        self._good += 1
        if self._good < 3:
            return None
        lasted, self.away_since = now - self.away_since, None
        self._shares.clear()
        return lasted

    def missed(self, now: float, certain: bool) -> bool:
        """Nobody has answered; ``certain``: nobody can be reached, or there is no majority.

        True where an incident begins with it: at once where it is certain, with the third
        slow call in a row otherwise.
        """
        self._good = 0
        self._slow += 1
        if self.away_since is not None or not (certain or self._slow >= 3):
            return False
        self.away_since, self.admitted, self.refused = now, 0, 0
        self._shares.clear()
        return True

    # What is decided.

    def decide(
        self, now: float, client: str, kind: str, attempt: int, charges: Optional[Tuple[Charge, ...]], lease: Lease
    ) -> Decision:
        """Decides without the authority. Every charge or none."""
        budget = self._budget(client)
        denial = budget.refuses(now, attempt)
        if denial is None:
            denial = self._charge(now, charges)
        if denial is not None:
            self.refused += 1
            return Decision(False, "local", denials=(denial,))
        self.admitted += 1
        budget.record(now, attempt)
        self._count(kind, charges or ())
        return Decision(True, "local", lease=lease)

    def _count(self, kind: str, charges: Tuple[Charge, ...]) -> None:
        for c in charges:
            at = (c.limit, c.key, c.dimension, kind)
            if not self._rules.get(c.limit, self._standard).unlimited and \
                    (at in self.accounts or len(self.accounts) < ACCOUNTS_MAX):
                self.accounts[at] = min(AMOUNT_MAX, self.accounts.get(at, 0) + c.amount)

    def _charge(self, now: float, charges: Optional[Tuple[Charge, ...]]) -> Optional[Denial]:
        if charges is None:
            # Nobody knows what this work is charged.
            return None if self._standard.mode == "open" else Denial("LOCAL_CLOSED", retry_after=AWAY)
        taken: List[Tuple[_Share, int]] = []
        worst: Optional[Denial] = None
        for c in charges:
            rule = self._rules.get(c.limit, self._standard)
            denial = None
            if rule.unlimited or rule.mode == "open":
                continue
            if rule.mode == "closed":
                denial = Denial("LOCAL_CLOSED", c.limit, c.key, c.dimension, AWAY)
            else:
                denial = self._take(now, rule, c, taken)
            if denial is not None and (worst is None or _outlasts(denial, worst)):
                worst = denial
        if worst is not None:
            for share, units in taken:
                share.level += units
        return worst

    def _take(self, now: float, rule: Rule, c: Charge, taken: List[Tuple[_Share, int]]) -> Optional[Denial]:
        never = Denial("LOCAL_SHARE", c.limit, c.key, c.dimension, AWAY)
        ppm = rule.share_ppm
        if ppm is None:
            # Not said is not 0: then it is the one that the client was configured with.
            ppm = self._standard.share_ppm or 0
        pace = rule.dimensions.get(c.dimension)
        if ppm == 0 or pace is None or pace[0] == 0 or pace[2] == 0:
            return never
        amount, interval, burst = pace
        whole = interval * WHOLE_PPM
        tokens = max(1, burst * ppm // WHOLE_PPM)
        if c.amount > tokens:
            return never
        if self.away_since is None:
            # There has been no time in which anything was earned.
            return Denial("RATE", c.limit, c.key, c.dimension, AWAY)
        share = self._share(c)
        share.fill(int(now * NANO), amount, ppm, tokens * whole)
        need = c.amount * whole
        if share.level >= need:
            share.level -= need
            taken.append((share, need))
            return None
        wait_ns = -(-(need - share.level) // (amount * ppm))
        return Denial("RATE", c.limit, c.key, c.dimension, max(1, -(-wait_ns // 1_000_000)) / 1000)

    def _share(self, c: Charge) -> _Share:
        at = (c.limit, c.key, c.dimension)
        share = self._shares.get(at)
        if share is None:
            if len(self._shares) >= KEYS_MAX:
                # Together they get what one key gets: less is admitted, never more.
                at = (c.limit, "", c.dimension)
                share = self._shares.get(at)
            if share is None:
                assert self.away_since is not None
                share = self._shares[at] = _Share(int(self.away_since * NANO))
        return share


def _outlasts(denial: Denial, other: Denial) -> bool:
    if denial.reason == "RATE" and other.reason == "RATE":
        return (denial.retry_after or 0) > (other.retry_after or 0)
    return other.reason == "RATE"


_MODES = {"OPEN_ON_LOSS": "open", "SHARE_ON_LOSS": "share", "CLOSED_ON_LOSS": "closed"}


def _rule(one: Any, revision: int) -> Tuple[str, Rule]:
    dimensions = {}
    for d in one.get("dimensions") or []:
        interval = round(seconds(d.get("interval")) * NANO)
        amount, burst = int(d.get("amount", 0)), int(d.get("burst", 0))
        if interval < 1 or amount < 0 or burst < 0:
            raise ValueError("a rate is out of range")
        dimensions[str(d["name"])] = (amount, interval, burst)
    ppm = one.get("share_ppm")
    if ppm is not None:
        ppm = int(ppm)
        if not 0 <= ppm <= WHOLE_PPM:
            raise ValueError("a share is out of range")
    unlimited = one.get("unlimited") is True
    return str(one["limit"]), Rule(_MODES[one["mode"]], ppm, unlimited, revision, dimensions)


def _budget(one: Any) -> RetryRule:
    if one is None:
        # A client to which the authority gives none has one while it is away.
        return RetryRule()
    return RetryRule(
        int(one["max_retries"]), int(one["max_fraction_bp"]), min(max(seconds(one["window"]), 1.0), 3600.0),
        int(one["min_requests"]), max(seconds(one["retry_after"]), 0.001),
    )

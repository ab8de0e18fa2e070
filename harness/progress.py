"""What a display may show of a run under way, and `status` of one from another terminal: counts, tokens, money, time left."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

from harness.records import Answered, Call, Entry, Failed, Verdict
from harness.stored import Plan


class Progress:
    """What a display may show of a run: counts, tokens, money, and time left."""

    def __init__(self, what: Plan, entries: Iterable[Entry] = ()) -> None:
        self.trials, self.pairs = len(what.trials), len(what.pairs)
        self.done: Counter[str] = Counter()
        """Outcomes: "answered", or the cause of a failure."""
        self.judged = 0
        self.phase = "trials"
        self.tokens_in, self.tokens_out, self.unknown = 0, 0, 0
        self.usd: float = 0.0
        self.calls, self.retries = 0, 0
        pairs: set[str] = set()
        for entry in entries:
            if isinstance(entry, Call):
                self.count(entry)
            elif isinstance(entry, Answered | Failed):
                self.done["answered" if isinstance(entry, Answered) else entry.cause.value] += 1
            elif isinstance(entry, Verdict):
                pairs.add(entry.subject)
        self.judged = len(pairs)
        self.began, self.began_at = time.monotonic(), self.units
        """When this process began, and the units done by then: what the time left is reckoned from."""

    @property
    def units(self) -> int:
        """Trials with an outcome and pairs that were read."""
        return sum(self.done.values()) + self.judged

    @property
    def seconds_left(self) -> float | None:
        """By the pace of this process so far; None: no pace yet."""
        here = self.units - self.began_at
        if here <= 0:
            return None
        return (time.monotonic() - self.began) / here * (self.trials + self.pairs - self.units)

    def count(self, call: Call) -> None:
        """Add one receipt."""
        self.calls += 1
        self.retries += call.fault is not None
        if call.tokens_out is None or call.tokens_in is None:
            self.unknown += 1
        self.tokens_in += call.tokens_in or 0
        self.tokens_out += call.tokens_out or 0
        self.usd += call.cost_usd or 0.0

    def said(self) -> str:
        """Tokens and money in words; "at least" where a part is unknown."""
        least = "at least " if self.unknown else ""
        return f"{least}{self.tokens_in:,} in, {self.tokens_out:,} out, {least}${self.usd:.4f}"

    def line(self) -> str:
        """One line for a log."""
        done, failed = sum(self.done.values()), sum(self.done.values()) - self.done["answered"]
        left = self.seconds_left
        rest = "" if left is None else f", about {_clock(left)} left"
        judged = f", {self.judged}/{self.pairs} pairs" if self.pairs else ""
        return f"{done}/{self.trials} trials ({failed} failed){judged}, {self.calls} calls, {self.said()}{rest}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"

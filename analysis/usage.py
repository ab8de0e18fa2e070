"""What a study used, by arm, role, model and bucket; unknown parts stay visible as bounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from math import isinf

from analysis.dataset import Amount, Data, Usage, usage_of
from harness.records import Call, Started


def totals(data: Data) -> dict[str, Usage]:
    """All receipts, orphans apart."""
    return {"all": usage_of(data.calls, _started(data), data.frozen.prices)}


def grouped(data: Data, key: Callable[[Call], str]) -> dict[str, Usage]:
    """The receipts by some property of theirs."""
    groups: dict[str, list[Call]] = defaultdict(list)
    for call in data.calls:
        groups[key(call)].append(call)
    started = _started(data)
    return {name: usage_of(calls, started, data.frozen.prices) for name, calls in sorted(groups.items())}


def _started(data: Data) -> dict[str, Started]:
    return {entry.id: entry for entry in data.run.log.entries if isinstance(entry, Started)}


def arm_of(data: Data) -> Callable[[Call], str]:
    """Whose a call is: an arm's, or a judge's."""
    owners = {row.trial.id: row.trial.arm for row in data.rows}
    judges = {pair.id: f"judge {pair.judge}" for pair in data.run.plan.pairs}
    return lambda call: owners.get(call.owner) or judges.get(call.owner) or "other"


def said(amount: Amount, unit: str = "", digits: int = 0) -> str:
    """An amount in words: exact, up to a bound, or "at least"."""
    low = f"{amount.low:,.{digits}f}{unit}"
    if amount.known:
        return low
    return f"at least {low}" if isinf(amount.high) else f"at least {low}, at most {amount.high:,.{digits}f}{unit}"

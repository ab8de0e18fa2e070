"""Deterministic rules over a run and its reports, offline. Each says why it is there and what it cannot detect.

Rules over prompts and protocols are the harness's (`harness.audit`); the command runs both and fails when fewer are there than declared.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from pydantic import JsonValue

from analysis import findings, report
from harness import stored
from harness.canonical import canonical, digest
from harness.errors import FairtrialError
from harness.records import Answered, Call, Failed, Request, Ruling, Started, Verdict
from harness.stored import Run

LIMIT = "limit: these rules cannot detect a consistent forgery of the whole by whoever ran the study"
DECLARED = 14
"""Rules that must have been run, the harness's included; fewer is a failure of its own."""

Finding = tuple[str, str, str]
"""Place, what was expected, what was found."""


def audit(folder: Path, harness_rules: Callable[[Run], Iterable[Ruling]]) -> list[Ruling]:
    """Every rule over a run. A run that cannot be read fails the first rule, and the others are blocked."""
    whole = (
        "freeze/whole",
        "The manifest, the stored inputs and the chain of receipts must be what was written.",
        "a forgery of all",
    )
    try:
        run = stored.load(folder)
    except FairtrialError as error:
        return [_ruling(*whole, "freeze", [(str(folder), "an unchanged run", str(error))])]
    rulings = [_ruling(*whole, "freeze", [])]
    for rule, why, blind, category, check in RULES:
        rulings.append(_ruled(rule, why, blind, category, check, run))
    rulings += list(harness_rules(run))
    if len(rulings) < DECLARED:
        short = [("audit", f"{DECLARED} rules", f"{len(rulings)} were loaded")]
        rulings.append(
            _ruling("audit/complete", "An audit with missing rules passes for the wrong reason.", "", "audit", short)
        )
    return rulings


def _ruled(
    rule: str, why: str, blind: str, category: str, check: Callable[[Run], Iterator[Finding] | None], run: Run
) -> Ruling:
    try:
        found = check(run)
        problems = None if found is None else list(found)
    except Exception as error:  # a rule that breaks is an ERROR of the audit, never a pass
        return _ruling(rule, why, blind, category, [(rule, "a result", f"{type(error).__name__}: {error}")], "ERROR")
    return _ruling(rule, why, blind, category, problems)


def _ruling(
    rule: str, why: str, blind: str, category: str, problems: list[Finding] | None, word: str = "FAIL"
) -> Ruling:
    first = problems[0] if problems else (None, None, None)
    more = f" (and {len(problems) - 1} more)" if problems and len(problems) > 1 else ""
    return Ruling(
        rule=rule,
        why=why,
        cannot_detect=blind,
        category=category,
        severity="required",
        result="NOT_APPLICABLE" if problems is None else word if problems else "PASS",
        place=first[0],
        expected=first[1],
        found=None if first[2] is None else first[2] + more,
    )


def said(ruling: Ruling) -> str:
    """One line for a terminal; a failure says where, what was expected and what was found."""
    line = f"{ruling.result:<14} {ruling.rule}"
    if ruling.result in ("FAIL", "ERROR"):
        line += f"\n    {ruling.place}: expected {ruling.expected}, found {ruling.found}\n    {ruling.why}"
    return line


def record(folder: Path, rulings: list[Ruling], failed: list[Ruling]) -> None:
    """Write derived/status.json and fill the band of the pages that are there."""
    derived = folder / "derived"
    if not derived.is_dir():
        return
    names = ", ".join(ruling.rule for ruling in failed)
    text = (
        f"Audit: FAILED ({names})." if failed else f"Audit: passed, {sum(r.result == 'PASS' for r in rulings)} rules."
    )
    status: dict[str, JsonValue] = {"said": text, "rules": [ruling.model_dump(mode="json") for ruling in rulings]}
    report.replace(derived / "status.json", canonical(status) + b"\n")
    for name in ("findings.md", "findings.html"):
        path = derived / name
        if path.exists():
            report.replace(path, report.with_band(path.read_bytes(), text, html=name.endswith("html")))


# --- the rules -------------------------------------------------------------------------------------------------------


def sealed(run: Run) -> Iterator[Finding]:
    """A run that is not sealed may still grow."""
    if not run.log.sealed:
        yield "journal.jsonl", "a seal as its last line", "an open run"


def first_call_after_freeze(run: Run) -> Iterator[Finding]:
    """Nothing before the freeze."""
    for entry in run.log.entries:
        if isinstance(entry, Started) and entry.at < run.frozen.frozen_at:
            yield entry.id, f"a start after {run.frozen.frozen_at}", entry.at


def one_outcome(run: Run) -> Iterator[Finding]:
    """Failures stay, and nothing is counted twice."""
    counts = Counter(entry.trial for entry in run.log.entries if isinstance(entry, Answered | Failed))
    planned = {trial.id for trial in run.plan.trials}
    for trial in sorted(planned):
        if counts[trial] != 1:
            yield trial, "one outcome", f"{counts[trial]}"
    for trial in sorted(counts.keys() - planned):
        yield trial, "a planned trial", "an outcome of none"


def owners(run: Run) -> Iterator[Finding]:
    """A receipt belongs to a planned trial or pair."""
    known = {trial.id for trial in run.plan.trials} | {pair.id for pair in run.plan.pairs}
    for entry in run.log.entries:
        if isinstance(entry, Call | Started) and entry.owner not in known:
            yield entry.id, "a planned trial or pair as owner", entry.owner


def starts_and_ends(run: Run) -> Iterator[Finding]:
    """Written before a call leaves, and after it came back: attempts count up without gaps, none answered twice."""
    started: dict[tuple[str, str], int] = {}
    open_calls: dict[str, Started] = {}
    answered: set[tuple[str, str]] = set()
    for entry in run.log.entries:
        if isinstance(entry, Started):
            key = (entry.owner, entry.purpose)
            if entry.attempt != started.get(key, 0) + 1:
                yield entry.id, f"attempt {started.get(key, 0) + 1}", f"attempt {entry.attempt}"
            if key in answered:
                yield entry.id, "no call after an answer", "another attempt"
            started[key] = entry.attempt
            open_calls[entry.id] = entry
        elif isinstance(entry, Call):
            start = open_calls.pop(entry.id, None)
            if start is None:
                yield entry.id, "a start before the end", "none"
            elif start.request_sha256 != entry.request_sha256:
                yield entry.id, f"the request that was started, {start.request_sha256[:12]}", entry.request_sha256[:12]
            if entry.fault is None:
                answered.add((entry.owner, entry.purpose))


def calls_in_range(run: Run) -> Iterator[Finding]:
    """An arm makes as many calls as it declared, retries apart; a failed trial may make fewer."""
    purposes: dict[str, set[str]] = {}
    for entry in run.log.entries:
        if isinstance(entry, Call) and entry.bucket == "deliberation":
            purposes.setdefault(entry.owner, set()).add(entry.purpose)
    answered = {entry.trial for entry in run.log.entries if isinstance(entry, Answered)}
    for trial in run.plan.trials:
        arm, count = run.frozen.arms[trial.arm], len(purposes.get(trial.id, ()))
        low = arm.calls_low if trial.id in answered else 0
        if not low <= count <= arm.calls_high:
            yield trial.id, f"{low} to {arm.calls_high} calls", str(count)


def usage_adds_up(run: Run) -> Iterator[Finding]:
    """Cached tokens are a part of the prompt's, reasoning tokens of the generated ones; the cost follows from the price row."""
    for call in run.log.entries:
        if not isinstance(call, Call):
            continue
        if (call.tokens_cached or 0) > (call.tokens_in or 0) and call.tokens_in is not None:
            yield call.id, "cached tokens within the prompt's", f"{call.tokens_cached} of {call.tokens_in}"
        if (call.tokens_reasoning or 0) > (call.tokens_out or 0) and call.tokens_out is not None:
            yield call.id, "reasoning tokens within the generated ones", f"{call.tokens_reasoning} of {call.tokens_out}"
        price = run.frozen.prices.get(call.model)
        if call.cost_usd is None or price is None or call.tokens_in is None or call.tokens_out is None:
            continue
        cached = call.tokens_cached or 0
        rate_in, rate_out = price.tokens_in or 0.0, price.tokens_out or 0.0
        rate_cached = rate_in if price.tokens_cached is None else price.tokens_cached
        expected = (call.tokens_in - cached) * rate_in + cached * rate_cached + call.tokens_out * rate_out
        if abs(call.cost_usd - expected) > 1e-9:
            yield call.id, f"a cost of {expected:.9f}", f"{call.cost_usd:.9f}"


def requests_hash(run: Run) -> Iterator[Finding]:
    """The hash of a request is that of the messages and settings that its receipt shows."""
    for call in run.log.entries:
        if isinstance(call, Call):
            fields = {key: call.params.get(key) for key in ("temperature", "top_p", "max_tokens", "seed", "logprobs")}
            shown = {"messages": call.messages, "json_schema": call.json_schema, "tools": call.tools}
            actual = digest(Request.model_validate({**fields, **shown}))
            if actual != call.request_sha256:
                yield call.id, call.request_sha256[:12], actual[:12]


def both_orders(run: Run) -> Iterator[Finding] | None:
    """A pair with two answers, and every labelled one, is read in both orders by each judge model, once each."""
    if not run.plan.pairs:
        return None
    return _orders(run)


def _orders(run: Run) -> Iterator[Finding]:
    seen = Counter((e.subject, e.model, e.order) for e in run.log.entries if isinstance(e, Verdict))
    answered = {entry.trial for entry in run.log.entries if isinstance(entry, Answered)}
    for pair in run.plan.pairs:
        if pair.source == "trials" and not {pair.left, pair.right} <= answered:
            continue
        for model in run.frozen.study.judges[pair.judge].models:
            for order in ("left_first", "right_first"):
                if seen[pair.id, model, order] != 1:
                    yield pair.id, f"one reading by {model}, {order}", str(seen[pair.id, model, order])


def report_rebuilds(run: Run) -> Iterator[Finding] | None:
    """Every file of the report is the one that the receipts and the frozen rules give, byte for byte, its band apart."""
    derived = run.folder / "derived"
    if not (derived / "findings.json").exists():
        return None
    return _rebuilt(run, derived)


def _rebuilt(run: Run, derived: Path) -> Iterator[Finding]:
    held = json.loads((derived / "findings.json").read_bytes())
    if held["study"]["exploratory"]:
        yield (
            "derived/findings.json",
            "findings under the frozen rules",
            "an exploratory reanalysis; run `reanalyse` without rules",
        )
        return
    used = findings.rules_for(run, None, exploratory=True)
    pages = report.render(run, findings.findings(run, used), "")
    for name, data in pages.items():
        path = derived / name
        actual = path.read_bytes() if path.exists() else b""
        if report.without_band(actual) != report.without_band(data):
            yield f"derived/{name}", "the bytes that the receipts give", "others"


def denominators(run: Run) -> Iterator[Finding] | None:
    """The findings count every planned trial."""
    path = run.folder / "derived" / "findings.json"
    if not path.exists():
        return None
    planned = json.loads(path.read_bytes())["outcomes"]["planned"]
    return iter(
        [] if planned == len(run.plan.trials) else [("derived/findings.json", str(len(run.plan.trials)), str(planned))]
    )


RULES: tuple[tuple[str, str, str, str, Callable[[Run], Iterator[Finding] | None]], ...] = (
    (
        "freeze/before_calls",
        "No model is called before the rules are fixed.",
        "clocks that were set back",
        "freeze",
        first_call_after_freeze,
    ),
    ("receipts/sealed", "An open run may still grow.", "a seal set too early by hand", "receipts", sealed),
    (
        "receipts/owners",
        "A receipt of nothing planned is out of place.",
        "work done outside of the run",
        "receipts",
        owners,
    ),
    (
        "receipts/attempts",
        "Every attempt is paid once and receipted.",
        "calls made outside of the run",
        "receipts",
        starts_and_ends,
    ),
    (
        "receipts/usage",
        "Totals are sums of what can be.",
        "a provider that reports wrong counts",
        "receipts",
        usage_adds_up,
    ),
    (
        "receipts/requests",
        "What was sent is what the receipt shows.",
        "a client that sent something else",
        "receipts",
        requests_hash,
    ),
    (
        "arms/outcomes",
        "Failures stay in the denominator.",
        "a study planned around known failures",
        "arms",
        one_outcome,
    ),
    ("arms/calls", "An arm is what it declared.", "calls hidden inside one prompt", "arms", calls_in_range),
    (
        "judging/both_orders",
        "One order alone carries the judge's position bias.",
        "a judge that guesses the order",
        "judging",
        both_orders,
    ),
    (
        "report/denominators",
        "No smaller pool passes unseen.",
        "tasks left out before the freeze",
        "report",
        denominators,
    ),
    (
        "report/rebuilds",
        "Every number comes from receipts and frozen rules.",
        "a fault in the rules themselves",
        "report",
        report_rebuilds,
    ),
)
"""Id, why, what it cannot detect, category, check. A check gives its findings, or None where it does not apply."""

"""What could make a set of findings wrong, in sentences, the gravest first."""

from __future__ import annotations

from analysis import usage
from analysis.claims import RATIOS, Judged
from analysis.dataset import Data
from harness.records import Answered, Failed


def sentences(data: Data, judged: list[Judged], differences: tuple[str, ...]) -> list[str]:
    """What could make it wrong, the gravest first."""
    found: list[str] = []
    if differences:
        found.append("These are not the frozen rules: " + "; ".join(differences) + ".")
    pending = sum(row.outcome is None for row in data.rows)
    if pending:
        found.append(f"The run is not done: {pending} of {len(data.rows)} planned trials have no outcome.")
    if not any(isinstance(row.outcome, Answered) for row in data.rows):
        found.append("No trial was answered: nothing here is a result.")
    reasons: dict[str, list[str]] = {}
    for one in judged:
        if one.decision == "not_assessable":
            reasons.setdefault(one.why, []).append(one.claim.id)
    found += [f"{', '.join(names)} cannot be assessed: {why}." for why, names in reasons.items()]
    small = sorted({len(part.column.tasks) for one in judged for part in one.parts if one.claim.metric not in RATIOS})
    if small and small[0] < 5:
        found.append(
            f"A comparison rests on {small[0]} tasks: with fewer than five even a clean sweep cannot reach significance."
        )
    elif small and small[0] < 24:
        found.append(f"A comparison rests on {small[0]} tasks: only very large effects can be seen.")
    development = sorted(name for name, split in data.frozen.splits.items() if split == "dev")
    if development:
        found.append(
            f"Development tasks ({', '.join(development)}): a finding here is for development, not for citation."
        )
    unknown = usage.totals(data)["all"].unknown
    if unknown:
        found.append(f"The usage of {unknown} attempts is not fully known; totals say at least.")
    failed = sum(isinstance(row.outcome, Failed) for row in data.rows)
    if failed:
        found.append(f"{failed} of {len(data.rows)} trials failed; they count as not solved.")
    found += [f"{warning}." for warning in data.frozen.warnings]
    found.append(
        "Effects are means over the tasks that the pools sample from; nothing is said of other tasks, models or prompts. "
        "No check of these files can show a consistent forgery of the whole by whoever ran the study."
    )
    return found

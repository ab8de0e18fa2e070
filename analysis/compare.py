"""Two runs side by side: what differs in their inputs, and what in their findings; paired where their tasks coincide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from analysis import findings
from analysis.report import words
from harness import stored
from harness.stored import Run


def compare(first: Path, second: Path) -> str:
    """The comparison as text for a terminal.

    Raises:
        DriftError, ResultsError: one of them cannot be read.
    """
    runs = stored.load(first), stored.load(second)
    found = [findings.findings(run, findings.rules_for(run, None, exploratory=True)) for run in runs]
    lines = [
        f"A  {first}",
        f"B  {second}",
        "",
        *_inputs(*runs),
        "",
        *_claims(*found),
        "",
        *_arms(*found),
        "",
        *_tasks(*found),
    ]
    return "\n".join(lines)


def _inputs(a: Run, b: Run) -> list[str]:
    before, after = a.frozen.inputs, b.frozen.inputs
    moved = [name for name in sorted(before.keys() | after.keys()) if before.get(name) != after.get(name)]
    if not moved:
        same = a.frozen.fingerprint == b.frozen.fingerprint
        return ["inputs: the same; B is a replication of A" if same else "inputs: the same"]
    return [
        f"inputs: {len(moved)} differ",
        *(f"  {name}: {_short(before.get(name))} -> {_short(after.get(name))}" for name in moved),
    ]


def _short(digest: str | None) -> str:
    return digest[:12] if digest else "absent"


def _claims(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    one, other = ({claim["id"]: claim for claim in found["claims"]} for found in (a, b))
    lines = ["claims"]
    for name in sorted(one.keys() | other.keys()):
        lines.append(f"  {name}")
        for label, side in (("A", one.get(name)), ("B", other.get(name))):
            lines.append(f"    {label}: {_claim(side)}")
    return lines if len(lines) > 1 else ["claims: none"]


def _claim(claim: dict[str, Any] | None) -> str:
    if claim is None:
        return "not claimed"
    if claim["decision"] == "not_assessable":
        return f"{words.DECISIONS[claim['decision']]}: {claim['why']}"
    parts = [
        f"{words.effect(claim, part)} ({words.interval(claim, part)}, {part['tasks']} tasks)"
        for part in claim["estimates"]
    ]
    return f"{words.DECISIONS[claim['decision']]}: {'; '.join(parts)}"


def _arms(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    lines = [f"{'arm':<16} {'solved A':>9} {'solved B':>9} {'tokens out A':>22} {'tokens out B':>22}"]
    for name in sorted(a["arms"].keys() | b["arms"].keys()):
        cells = []
        for found in (a, b):
            arm = found["arms"].get(name)
            cells.append(
                ("-", "-")
                if arm is None
                else (f"{arm['solved']}/{arm['checked']}", words.amount(arm["usage"]["tokens_out"]))
            )
        lines.append(f"{name:<16} {cells[0][0]:>9} {cells[1][0]:>9} {cells[0][1]:>22} {cells[1][1]:>22}")
    return lines


def _tasks(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """Trials of the same arm and task whose outcome differs."""
    one, other = a["outcomes"]["by_task"], b["outcomes"]["by_task"]
    shared = sorted(one.keys() & other.keys())
    moved = [
        f"  {arm} {task}: {', '.join(one[task][arm])} -> {', '.join(other[task][arm])}"
        for task in shared
        for arm in sorted(one[task].keys() & other[task].keys())
        if one[task][arm] != other[task][arm]
    ]
    return [f"tasks in both: {len(shared)}; outcomes that differ: {len(moved)}", *moved]

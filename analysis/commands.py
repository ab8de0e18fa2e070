"""What `reanalyse`, `report` and `audit` do: read a checked run, find, write. No model is called and nothing stored is run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from analysis import audit as own
from analysis import findings
from analysis import report as reports
from analysis.report import words
from harness import stored
from harness.records import Ruling
from harness.stored import Run

Rules = Callable[[Run], Iterable[Ruling]]


def report(folder: Path, rules: Path | None, *, exploratory: bool) -> list[Path]:
    """Rebuild findings and reports of a run; returns the files.

    Raises:
        DriftError, ResultsError: the run is not what was frozen, or other rules are asked for without `exploratory`.
    """
    run = stored.load(folder)
    used = findings.rules_for(run, rules, exploratory=exploratory)
    return reports.write(run, findings.findings(run, used))


def audit(folder: Path, harness_rules: Rules) -> tuple[list[str], bool]:
    """Every rule over a run: lines for a terminal, and whether a required one failed. The result fills the reports' band."""
    rulings = own.audit(folder, harness_rules)
    failed = [ruling for ruling in rulings if ruling.severity == "required" and ruling.result in ("FAIL", "ERROR")]
    own.record(folder, rulings, failed)
    lines = [own.said(ruling) for ruling in rulings]
    lines.append(own.LIMIT)
    passed = sum(ruling.result == "PASS" for ruling in rulings)
    lines.append(
        f"audit: {len(failed)} required rules failed"
        if failed
        else f"audit: passed ({passed} of {len(rulings)} rules apply)"
    )
    return lines, bool(failed)


def headline(folder: Path) -> str:
    """What a campaign says at its end: the question, each claim's sentence, the cost."""
    import json

    found = json.loads((folder / "derived" / "findings.json").read_bytes())
    lines = ["EXPLORATORY: not the frozen rules"] if found["study"]["exploratory"] else []
    lines += ["", found["study"]["question"], ""]
    lines += [
        f"  {claim['text']}\n    {words.DECISIONS[claim['decision']]}. {words.sentence(claim)}"
        for claim in found["claims"]
    ]
    lines += ["", f"  {words.cost(found)}"]
    return "\n".join(lines)

"""findings.md: the findings for a repository or a pull request. What a model wrote never stands in it."""

from __future__ import annotations

from typing import Any

from analysis.report import words

BAND = ("<!-- status: outside of what an audit compares -->", "<!-- end of status -->")


def escape(text: str) -> str:
    """A text of a study in Markdown: no markup of it has an effect, and no line of it begins anything."""
    for sign in "\\`*_{}[]<>#|~!":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


def render(found: dict[str, Any], band: str) -> str:
    """The whole page; `band` is the status that grows with time."""
    study, run = found["study"], found["run"]
    lines: list[str] = []
    if study["exploratory"]:
        lines += [f"**EXPLORATORY: not the frozen rules ({escape('; '.join(study['exploratory']))})**", ""]
    lines += [f"# {escape(study['question'])}", "", BAND[0], escape(band), BAND[1], "", "## What was found", ""]
    for claim in found["claims"]:
        flips = (
            f" **Decides otherwise under: {escape(', '.join(claim['flipped_by']))}.**" if claim["flipped_by"] else ""
        )
        lines.append(
            f"- **{escape(claim['text'])}** *{words.DECISIONS[claim['decision']]}.* {escape(words.sentence(claim))}{flips}"
        )
    if not found["claims"]:
        lines.append("The study makes no claims; rates and contrasts below are descriptions.")
    lines += ["", "## How sure that is", "", escape(words.surely(found)), ""]
    lines += [f"- {escape(words.power(name, entry))}" for name, entry in found["power"].items()]
    lines += ["", "## What it cost", "", escape(words.cost(found)) + ".", ""]
    lines += [
        f"- {escape(claim['id'])}: {escape(claim['arm'])} {escape(words.against(found, claim))}"
        for claim in found["claims"]
    ]
    lines += ["", "## What could make it wrong", "", *(f"- {escape(limit)}" for limit in found["limits"]), ""]
    lines += _arms(found) + _contrasts(found) + _judges(found) + _sensitivity(found) + _usage(found)
    lines += ["## Provenance", ""]
    lines += [
        f"- fingerprint `{study['fingerprint']}`",
        f"- root `{run['root']}`, {'sealed' if run['sealed'] else 'open'}",
    ]
    lines += [
        f"- model {escape(name)}: {escape(model['name'])}, served as {escape(', '.join(found['usage']['served'][name]) or 'nothing')}, "
        f"family {escape(model['family'] or 'unknown')}"
        for name, model in study["models"].items()
    ]
    lines += [f"- frozen {run['frozen_at']}, first call {run['first_call_at']}, sealed {run['sealed_at']}"]
    environment = run["environment"]
    state = {True: "with uncommitted changes", False: "clean", None: "unknown state"}[environment["dirty"]]
    packages = ", ".join(f"{name} {version}" for name, version in environment["packages"].items())
    lines += [
        f"- commit `{environment['commit']}`, {state}; Python {environment['python']} on {environment['platform']}; {escape(packages)}"
    ]
    lines += [f"- {escape(note)}" for note in run["notes"]]
    return "\n".join(lines) + "\n"


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(row)} |" for row in rows), ""]


def _arms(found: dict[str, Any]) -> list[str]:
    causes = sorted(
        {cause for counts in found["outcomes"]["by_arm"].values() for cause in counts if cause != "answered"}
    )
    rows = []
    for name, arm in found["arms"].items():
        counts = found["outcomes"]["by_arm"].get(name, {})
        rows.append(
            [
                escape(name),
                escape(", ".join([arm["kind"], *arm["labels"]])),
                f"{arm['solved']}/{arm['checked']}" if arm["checked"] else "judged",
                f"{arm['answered']}/{arm['trials']}",
                *(str(counts.get(cause, 0)) for cause in causes),
                str(arm["usage"]["calls"]),
                words.amount(arm["usage"]["tokens_out"]),
            ]
        )
    head = ["arm", "kind and labels", "solved", "answered", *causes, "calls", "tokens out"]
    outcomes = found["outcomes"]
    said = f"{outcomes['planned']} planned trials: {outcomes['answered']} answered, {outcomes['failed']} failed, "
    said += f"{outcomes['pending']} not done."
    return ["## Arms and outcomes", "", said, "", *_table(head, rows)]


def _contrasts(found: dict[str, Any]) -> list[str]:
    if not found["contrasts"]:
        return []
    rows = [
        [
            f"{escape(c['arm'])} - {escape(c['baseline'])}",
            words.points(c["point"]),
            f"{words.points(c['low'])} to {words.points(c['high'])}",
            f"{c['p']:.3g}",
            f"{c['p_adjusted']:.3g}",
            str(c["tasks"]),
        ]
        for c in found["contrasts"]
    ]
    head = ["contrast", "points", "interval", "p", "p, false discovery rate", "tasks"]
    return ["## Exploratory contrasts", "", "Not claimed beforehand; they decide nothing.", "", *_table(head, rows)]


def _judges(found: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    for judge in found["judges"]:
        strata = ", ".join(f"{name} {right}/{count}" for name, (right, count) in judge["by_stratum"].items())
        first, placed = judge["inconsistent_first"]
        bias = (
            f"; of {placed} readings whose orders disagree it named the first text in {first} (exact p {judge['bias_p']:.3g})"
            if placed
            else ""
        )
        gate = "passes its gate" if judge["passes"] else "FAILS its gate"
        lines.append(
            f"- {escape(judge['judge'])} ({escape(judge['voice'])}) {gate}: right on {judge['right']} of {judge['pairs']} labelled pairs "
            f"({words.number(judge['low'])} to {words.number(judge['high'])}; {escape(strata)}){bias}; "
            f"false ties {judge['false_ties']}; pairs judged {judge['pairs_judged']}: "
            + escape(", ".join(f"{count} {state}" for state, count in judge["judged_states"].items()) or "none")
        )
    return ["## Judges", "", *lines, ""] if lines else []


def _sensitivity(found: dict[str, Any]) -> list[str]:
    rows = [
        [
            escape(row["column"]),
            escape(row["assumption"]),
            "" if row["point"] is None else words.points(row["point"]),
            "" if row["low"] is None else f"{words.points(row['low'])} to {words.points(row['high'])}",
            str(row["tasks"]),
            ("**flips: " + row["decision"] + "**") if row["flips"] else "",
            escape(row["note"] or ""),
        ]
        for row in found["sensitivity"]
    ]
    head = ["comparison", "other reading", "points", "interval", "tasks", "decision", "note"]
    return ["## Sensitivity", "", *_table(head, rows)] if rows else []


def _usage(found: dict[str, Any]) -> list[str]:
    rows = []
    for group in ("by_bucket", "by_arm", "by_role", "by_model"):
        for name, one in found["usage"][group].items():
            usd = words.amount(one["usd"], 4)
            row = [
                group.removeprefix("by_"),
                escape(name),
                str(one["calls"]),
                words.amount(one["tokens_in"]),
                words.amount(one["tokens_out"]),
                usd,
            ]
            rows.append([*row, str(one["unknown"])])
    head = ["by", "", "calls", "tokens in", "tokens out", "US dollars", "unknown"]
    return ["## Usage", "", *_table(head, rows)]

"""The reports of a run: findings.json, findings.md, and one self-contained findings.html. Every text of a model is escaped."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from analysis import dataset, figures, findings
from analysis.pairs import voices
from analysis.report import markdown, words
from harness.errors import ResultsError
from harness.records import Answered, Call, Failed, Verdict
from harness.stored import Run

SHOWN = 400
"""With more trials than this the page shows only those that failed."""
NO_STATUS = "Not audited yet."
LONGEST = 20_000
"""Characters of one text on the page; the receipt holds the whole."""


def write(run: Run, found: dict[str, Any]) -> list[Path]:
    """Write the three files into derived/, each at once or not at all.

    Raises:
        ResultsError: the disk refuses.
    """
    folder = run.folder / "derived"
    pages = render(run, found, band(run.folder))
    try:
        folder.mkdir(exist_ok=True)
        for name, data in pages.items():
            replace(folder / name, data)
    except OSError as error:
        raise ResultsError(f"{folder}: the report cannot be written ({error.strerror})") from None
    return [folder / name for name in pages]


def replace(path: Path, data: bytes) -> None:
    """Write a file at once: a reader sees the old or the new one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_bytes(data)
    draft.replace(path)


def band(folder: Path) -> str:
    """The status that grows with time, in words: what the last audit said."""
    try:
        status = json.loads((folder / "derived" / "status.json").read_text(encoding="utf-8"))
        return str(status["said"])
    except (OSError, ValueError, KeyError):
        return NO_STATUS


def render(run: Run, found: dict[str, Any], status: str) -> dict[str, bytes]:
    """File name -> bytes; a function of the receipts, the findings and the band's text."""
    return {
        "findings.json": findings.dumps(found),
        "findings.md": markdown.render(found, status).encode("utf-8", "backslashreplace"),
        "findings.html": page(run, found, status).encode("utf-8", "backslashreplace"),
    }


def without_band(data: bytes) -> bytes:
    """A page without its status band: what an audit compares."""
    start, end = (mark.encode() for mark in markdown.BAND)
    return re.sub(re.escape(start) + b".*?" + re.escape(end), b"", data, flags=re.DOTALL)


def with_band(data: bytes, status: str, *, html: bool) -> bytes:
    """A page with another text in its status band."""
    start, end = (mark.encode() for mark in markdown.BAND)
    if html:
        from markupsafe import escape

        inner = f'<p class="soft">{escape(status)}</p>'
    else:
        inner = f"\n{markdown.escape(status)}\n"
    return re.sub(
        re.escape(start) + b".*?" + re.escape(end), lambda _: start + inner.encode() + end, data, flags=re.DOTALL
    )


def page(run: Run, found: dict[str, Any], status: str) -> str:
    """findings.html."""
    import jinja2

    data = dataset.build(run)
    folder = Path(__file__).parent
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(folder), autoescape=True, undefined=_undefined())
    many = len(data.rows) > SHOWN
    rows = [row for row in data.rows if not many or isinstance(row.outcome, Failed)]
    causes = {cause for counts in found["outcomes"]["by_arm"].values() for cause in counts if cause != "answered"}
    forest, frontier = figures.forest(found["claims"]), figures.frontier(found["arms"])
    return environment.get_template("page.html.j2").render(
        found=found,
        words=words,
        band=status,
        band_start=markdown.BAND[0],
        band_end=markdown.BAND[1],
        causes=sorted(causes),
        forest=figures.svg(forest) if forest else None,
        frontier=figures.svg(frontier) if frontier else None,
        trials=[_trial(row, data) for row in rows],
        shown={row.trial.id for row in rows},
        left_out=len(data.rows) - len(rows),
        pairs=_pairs(data),
        anchor=_anchor,
        shade=_shade,
        trial_id=lambda arm, task, repeat: f"{arm}/{task}/r{repeat}",
    )


def _undefined() -> Any:
    import jinja2

    return jinja2.Undefined


def _anchor(trial: str) -> str:
    return "trial-" + re.sub(r"[^A-Za-z0-9_.-]", "-", trial)


def _shade(states: list[str] | None) -> str:
    """The colour of a cell: the worst of its repeats."""
    if not states:
        return "plain"
    if any(state not in ("solved", "wrong", "answered") for state in states):
        return "failure"
    return "wrong" if "wrong" in states else "solved" if "solved" in states else "plain"


def _cut(text: str | None) -> str:
    """A text for the page, its control signs visible, and not without end."""
    shown = "".join(c if c in "\n\t" or (ord(c) >= 32 and ord(c) != 127) else f"\\x{ord(c):02x}" for c in text or "")
    return (
        shown
        if len(shown) <= LONGEST
        else f"{shown[:LONGEST]}\n[{len(shown) - LONGEST} more characters in the receipt]"
    )


def _trial(row: dataset.Row, data: dataset.Data) -> dict[str, Any]:
    outcome = row.outcome
    state, why, answer = "not done", "", None
    if isinstance(outcome, Answered):
        state = "answered" if outcome.passed is None else "solved" if outcome.passed else "wrong"
        why, answer = outcome.feedback or "", outcome.answer.text
    elif isinstance(outcome, Failed):
        state, why = f"failed: {outcome.cause.value}", outcome.message
        answer = outcome.answer.text if outcome.answer else None
    calls = [_call(call) for call in data.calls if call.owner == row.trial.id]
    return {"id": row.trial.id, "state": state, "why": why, "answer": _cut(answer) if answer else None, "calls": calls}


def _call(call: Call) -> dict[str, Any]:
    unknown = call.tokens_in is None or call.tokens_out is None
    return {
        "purpose": call.purpose,
        "role": call.role,
        "attempt": call.attempt,
        "tokens": "usage unknown" if unknown else f"{call.tokens_in} + {call.tokens_out} tokens",
        "seconds": call.seconds,
        "fault": f"{call.fault.symptom.value}: {call.fault.message}" if call.fault else "",
        "saw": ", ".join(sorted(call.saw)),
        "messages": [f"[{message.role}] {_cut(message.text)}" for message in call.messages],
        "finish": call.finish or "",
        "reply": _cut(call.reply),
    }


def _pairs(data: dataset.Data) -> list[dict[str, Any]]:
    """The judged pairs of trials with their verdicts side by side."""
    answers = {row.trial.id: row.outcome.answer.text for row in data.rows if isinstance(row.outcome, Answered)}
    verdicts: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in data.verdicts:
        verdicts[verdict.subject].append(verdict)
    found = []
    for judge in data.frozen.study.judges:
        for voice, reads in voices(data, judge).items():
            found += [
                {
                    "id": f"{read.pair.id} ({voice})",
                    "state": read.state,
                    "verdicts": [_verdict(v) for v in verdicts[read.pair.id] if voice in ("panel", v.model)],
                    "left": _cut(answers.get(read.pair.left, "no answer")),
                    "right": _cut(answers.get(read.pair.right, "no answer")),
                }
                for read in reads
                if read.pair.source == "trials"
            ]
    return found[:SHOWN]


def _verdict(verdict: Verdict) -> str:
    said = verdict.choice or (
        f"P(first) = {verdict.p_first:.3f}" if verdict.p_first is not None else "no verdict formed"
    )
    mark = " (degraded: formed by the repair turn)" if verdict.degraded else ""
    return f"{verdict.order.replace('_', ' ')}: {said}{mark}. {_cut(verdict.reason)}"

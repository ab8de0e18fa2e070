"""Rules over prompts: each is refilled from the receipts and compared with what was sent; judges are blind. Deterministic, offline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from harness import prompts
from harness.ask import Labels
from harness.canonical import sha256
from harness.records import Call, Ruling, Use
from harness.stored import Run
from tasks import question

Finding = tuple[str, str, str]


def rules(run: Run) -> list[Ruling]:
    """Every rule of this room."""
    calls = [entry for entry in run.log.entries if isinstance(entry, Call)]
    judged = [call for call in calls if call.role == "judge"]
    return [
        _ruling(
            "arms/access",
            "A role sees only what its labels lead to: every prompt refills from its template and the named texts.",
            "a paraphrase made by an arm's own code",
            "arms",
            list(_access(run, [call for call in calls if call.role != "judge"])),
        ),
        _ruling(
            "judging/blind",
            "A judge gets a question and two texts in the frozen template, and nothing else.",
            "a text that names its maker",
            "judging",
            list(_blind(run, judged)) if judged else None,
        ),
    ]


def _ruling(rule: str, why: str, blind: str, category: str, problems: list[Finding] | None) -> Ruling:
    first = problems[0] if problems else (None, None, None)
    result = "NOT_APPLICABLE" if problems is None else "FAIL" if problems else "PASS"
    return Ruling(
        rule=rule,
        why=why,
        cannot_detect=blind,
        category=category,
        severity="required",
        result=result,
        place=first[0],
        expected=first[1],
        found=first[2],
    )


def _access(run: Run, calls: list[Call]) -> Iterator[Finding]:
    """Refill each prompt. A label that an arm computed is known by its hash alone and is checked by it."""
    tasks = {(pool, task.id): task for pool, held in run.tasks.items() for task in held}
    trials = {trial.id: trial for trial in run.plan.trials}
    texts: dict[str, dict[str, str]] = defaultdict(dict)
    for entry in run.log.entries:
        if isinstance(entry, Call) and entry.fault is None:
            texts[entry.owner][entry.purpose] = entry.reply or ""
        elif isinstance(entry, Use) and isinstance(entry.output, dict):
            texts[entry.owner][entry.purpose] = str(entry.output.get("feedback"))
    for call in calls:
        if call.owner not in trials:
            continue  # receipts/owners says so
        trial = trials[call.owner]
        labels = Labels(question(tasks[trial.pool, trial.task]))
        scope = _scope(call, texts[call.owner])
        labels.texts |= {
            name.removeprefix(scope): text for name, text in texts[call.owner].items() if name.startswith(scope)
        }
        yield from _refilled(call, labels)


def _scope(call: Call, texts: dict[str, str]) -> str:
    """The prefix below which an inner arm's labels are named: the longest under which all its replies are found."""
    parts = call.purpose.split("/")
    replies = [label for label in call.saw if label not in Labels.NAMED]
    for depth in range(len(parts) - 1, -1, -1):
        prefix = "".join(f"{part}/" for part in parts[:depth])
        if any(prefix + label in texts for label in replies):
            return prefix
    return ""


def _refilled(call: Call, labels: Labels) -> Iterator[Finding]:
    template = call.template or call.messages
    used = {label for message in template for label in prompts.slots(message.text)}
    if used != set(call.saw):
        yield call.id, f"slots for {sorted(call.saw)}", f"slots for {sorted(used)}"
        return
    for label in sorted(used & labels.texts.keys()):
        actual = sha256(labels.texts[label].encode("utf-8", "surrogatepass"))
        if actual != call.saw[label]:
            yield call.id, f"{label} with the hash {call.saw[label][:12]}", actual[:12]
            return
    if used <= labels.texts.keys():
        shown = {label: labels.shown(label) for label in used}
        for before, sent in zip(template, call.messages, strict=True):
            if prompts.fill(before.text, shown) != sent.text:
                yield call.id, "the template filled with what it saw", "another message"


def _blind(run: Run, calls: list[Call]) -> Iterator[Finding]:
    root = run.folder / "inputs" / "source" / "prompts"
    templates = {path.read_text(encoding="utf-8").rstrip("\n") for path in root.glob("judge*.md")}
    for call in calls:
        template = (call.template or call.messages)[0].text
        if template not in templates:
            yield call.id, "a frozen judge's template", f"{template[:60]!r}"
        elif not set(call.saw) <= {"question", "first", "second", "reply"}:
            yield call.id, "a question and two texts", ", ".join(sorted(call.saw))

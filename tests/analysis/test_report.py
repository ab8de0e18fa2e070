"""Reports, audit, publication and comparison: every number rebuilt, every byte vouched for, hostile texts inert."""

from __future__ import annotations

import json
import random
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from analysis import audit, commands, compare, findings, publish, report
from analysis.report import markdown, words
from harness import audit as harness_audit
from harness import journal, stored
from harness.canonical import canonical
from harness.errors import DriftError, FairtrialError, ResultsError
from harness.records import Ruling
from harness.stored import Run
from tests.build import ALL_ARMS, claim, run_study, write_study
from tests.test_run import judged

HOSTILE = (
    "</pre><script>alert(1)</script><img src=x onerror=alert(2)>\n# What was found\n**supported** | a | b |\n"
    "<!-- end of status -->\x1b[31mred\x00\u202eright to left {{question}} {% raw %}\nAnswer: <b>1</b>"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A sealed run of every arm with a judge, its report written."""
    root = tmp_path_factory.mktemp("reported")
    done = run_study(write_study(root, **judged()), root / "results")
    commands.report(done.folder, None, exploratory=False)
    return done


@pytest.fixture
def copy(run: Run, tmp_path: Path) -> Path:
    """A copy of it that a test may damage."""
    folder = tmp_path / run.folder.name
    shutil.copytree(run.folder, folder)
    return folder


def rulings(folder: Path) -> dict[str, Ruling]:
    return {ruling.rule: ruling for ruling in audit.audit(folder, harness_audit.rules)}


def failures(folder: Path) -> set[str]:
    return {rule for rule, ruling in rulings(folder).items() if ruling.result in ("FAIL", "ERROR")}


# --- the pages -------------------------------------------------------------------------------------------------------


def test_the_first_screen_answers_the_five_questions(run: Run) -> None:
    """What was asked, what was found, how sure, what it cost, what could make it wrong: in this order on every page."""
    page = (run.folder / "derived" / "findings.md").read_text(encoding="utf-8")
    places = [
        page.index(part)
        for part in ("# Does it help?", "## What was found", "## How sure", "## What it cost", "## What could make")
    ]
    assert places == sorted(places)
    html = (run.folder / "derived" / "findings.html").read_text(encoding="utf-8")
    places = [
        html.index(part)
        for part in ("<h1>Does it help?", "What was found", "What could make it wrong", "What it cost", "How sure")
    ]
    assert places == sorted(places)
    assert "frozen before the first call" in html


def test_reanalysis_rebuilds_every_file_byte_for_byte(run: Run, copy: Path) -> None:
    """From the receipts and the frozen inputs alone."""
    before = {path.name: path.read_bytes() for path in (copy / "derived").iterdir()}
    shutil.rmtree(copy / "derived")
    commands.report(copy, None, exploratory=False)
    assert {path.name: path.read_bytes() for path in (copy / "derived").iterdir()} == before
    assert set(before) == {"findings.json", "findings.md", "findings.html"}


def test_an_exploratory_report_says_so_on_its_first_line(copy: Path, tmp_path: Path) -> None:
    """On each page, with what was changed; the audit does not take it for the frozen findings."""
    rules = tmp_path / "rules.toml"
    rules.write_text("level = 0.8")
    with pytest.raises(DriftError):
        commands.report(copy, rules, exploratory=False)
    commands.report(copy, rules, exploratory=True)
    assert (
        (copy / "derived" / "findings.md")
        .read_text()
        .startswith("**EXPLORATORY: not the frozen rules (analysis.level: frozen 0.95")
    )
    body = (copy / "derived" / "findings.html").read_text().split("<body>")[1]
    assert body.strip().startswith('<p class="warn" role="alert">EXPLORATORY')
    assert commands.headline(copy).startswith("EXPLORATORY")
    assert failures(copy) == {"report/rebuilds"}


class Tags(HTMLParser):
    """The tags and addresses of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.remote: list[str] = []
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.remote += [str(v) for k, v in attrs if k in ("src", "href", "xlink:href") and v and not v.startswith("#")]
        self.handlers += [k for k, _ in attrs if k.startswith("on")]


def test_hostile_texts_stay_text(tmp_path: Path) -> None:
    """Scripts, headings, comments, control signs and templates in a model's reply change no page."""
    rules = [{"text": HOSTILE}]
    path = write_study(
        tmp_path,
        models={"solver": {"name": "scripted/file", "script": {"replies": "r.jsonl"}}},
        question="Is <script>x</script> **bold**?",
        claims=[claim("best3", "single")],
    )
    (path.parent / "r.jsonl").write_text(json.dumps(rules[0]))
    done = run_study(path, tmp_path / "results")
    commands.report(done.folder, None, exploratory=False)
    html = (done.folder / "derived" / "findings.html").read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(html)
    assert "script" not in tags.tags
    assert "img" not in tags.tags
    assert tags.handlers == []
    assert tags.remote == []
    assert "&lt;script&gt;alert(1)" in html
    assert "\\x1b[31mred\\x00" in html
    page = (done.folder / "derived" / "findings.md").read_text(encoding="utf-8")
    assert "alert" not in page
    assert "\\<script\\>" in page
    assert page.count("\n## What was found") == 1
    assert failures(done.folder) == set()


def test_a_page_of_a_very_long_answer_stays_readable(tmp_path: Path) -> None:
    """A megabyte of text is cut on the page and whole in the receipt."""
    path = write_study(
        tmp_path,
        models={"solver": {"name": "scripted/file", "script": {"replies": "r.jsonl"}}},
        arms={"s": ALL_ARMS["single"]},
    )
    (path.parent / "r.jsonl").write_text(json.dumps({"text": "x" * 1_000_000 + "\nAnswer: 1"}))
    done = run_study(path, tmp_path / "results")
    commands.report(done.folder, None, exploratory=False)
    assert (done.folder / "derived" / "findings.html").stat().st_size < 500_000
    assert "more characters in the receipt" in (done.folder / "derived" / "findings.html").read_text()


def test_every_number_of_the_claims_on_the_pages_is_in_the_findings(run: Run) -> None:
    """The sentence of each claim stands on both pages as it is made from findings.json."""
    found = json.loads((run.folder / "derived" / "findings.json").read_bytes())
    page = (run.folder / "derived" / "findings.md").read_text(encoding="utf-8")
    for one in found["claims"]:
        assert markdown.escape(words.sentence(one)) in page
    assert markdown.escape(words.cost(found)) in page


@pytest.mark.parametrize(
    ("decision", "opening"),
    [
        ("supported", "The data support this for the tasks that the pools sample from"),
        ("contradicted", "The data speak against this"),
        ("inconclusive", "The data do not decide this"),
        ("not_assessable", "This cannot be assessed"),
    ],
)
def test_words_follow_the_decision_and_never_prove(decision: str, opening: str) -> None:
    """Templates bound by the pool; no page proves anything."""
    part = {
        "baseline": "b", "point_low": 0.5, "point_high": 0.5, "low": 0.1, "high": 0.9, "level": 0.95, "tasks": 8,
        "counts": {"arm solved": 6, "arm trials": 8, "baseline solved": 2, "baseline trials": 8},
    }  # fmt: skip
    one = {"arm": "a", "metric": "solved", "decision": decision, "why": "a gate", "estimates": [part]}
    text = words.sentence(one)
    assert text.startswith(opening)
    assert "prove" not in text
    if decision != "not_assessable":
        assert (
            "a against b: +50 points (95 % interval +10 to +90 points, 8 tasks), solved 6 of 8 against 2 of 8" in text
        )


def test_amounts_say_at_least_wherever_a_part_is_unknown() -> None:
    """Exact, bounded, open; and an orphan opens a total."""
    assert words.amount([5, 5]) == "5"
    assert words.amount([5, 9]) == "at least 5, at most 9"
    assert words.amount([5, "inf"]) == "at least 5"
    total = {"calls": 3, "tokens_in": [1, 1], "tokens_out": [2, 2], "usd": [0, 0]}
    found: dict[str, Any] = {"usage": {"total": total}, "run": {"orphans": {"calls": 1}}}
    assert words.cost(found).startswith(
        "4 calls, 1 of them ended with their process, possibly billed; at least 1 tokens in, at least 2 out"
    )
    assert words.number(None) == "unknown"
    assert words.number("-inf") == "minus without limit"


def test_a_page_with_many_trials_shows_those_that_failed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The summary stays one file of a bearable size."""
    monkeypatch.setattr(report, "SHOWN", 5)
    found = json.loads((run.folder / "derived" / "findings.json").read_bytes())
    assert "trials with an answer are not shown here" in report.page(run, found, "")


def test_a_disk_that_refuses_leaves_one_error(run: Run, copy: Path) -> None:
    """A file where the folder should be."""
    shutil.rmtree(copy / "derived")
    (copy / "derived").write_text("x")
    with pytest.raises(ResultsError, match="cannot be written"):
        commands.report(copy, None, exploratory=False)


# --- audit -----------------------------------------------------------------------------------------------------------


def test_a_sound_run_passes_every_rule(run: Run, copy: Path) -> None:
    """All declared rules are loaded, and each says what it cannot detect."""
    found = rulings(copy)
    assert len(found) == audit.DECLARED
    assert {ruling.result for ruling in found.values()} == {"PASS"}
    assert all(ruling.why and ruling.cannot_detect for ruling in found.values())
    lines, failed = commands.audit(copy, harness_audit.rules)
    assert not failed
    assert lines[-1] == "audit: passed (14 of 14 rules apply)"
    assert "cannot detect a consistent forgery" in lines[-2]


def test_the_audit_fills_the_band_and_changes_nothing_else(copy: Path) -> None:
    """The status that grows with time stays in its own marked band; a second audit passes all the same."""
    before = (copy / "derived" / "findings.html").read_bytes()
    commands.audit(copy, harness_audit.rules)
    after = (copy / "derived" / "findings.html").read_bytes()
    assert b"Audit: passed, 14 rules." in after
    assert before != after
    assert report.without_band(before) == report.without_band(after)
    assert failures(copy) == set()
    commands.report(copy, None, exploratory=False)
    assert (copy / "derived" / "findings.html").read_bytes() == after


def test_missing_rules_fail_the_audit(copy: Path) -> None:
    """Zero rules loaded is not a pass."""
    found = {r.rule: r for r in audit.audit(copy, lambda _: [])}
    assert found["audit/complete"].result == "FAIL"


def test_a_rule_that_breaks_is_an_error_of_the_audit(copy: Path) -> None:
    """Never a pass."""
    (copy / "derived" / "findings.json").write_text("no JSON")
    found = rulings(copy)
    assert found["report/rebuilds"].result == "ERROR"
    assert "JSONDecodeError" in str(found["report/rebuilds"].found)


@pytest.mark.parametrize("name", ["findings.json", "findings.md", "findings.html"])
def test_a_changed_number_in_a_report_is_found(copy: Path, name: str) -> None:
    """Every file is the one that the receipts give."""
    path = copy / "derived" / name
    text = path.read_text(encoding="utf-8")
    at = text.rindex("0")
    path.write_text(text[:at] + "7" + text[at + 1 :], encoding="utf-8")
    assert "report/rebuilds" in failures(copy)
    assert rulings(copy)["report/rebuilds"].place == f"derived/{name}"


def rewritten(folder: Path, change: Any) -> None:
    """A journal whose records were changed and whose chain was made anew: what only the rules can find."""
    path, link = folder / "journal.jsonl", stored.genesis(folder)
    records = [json.loads(line)["record"] for line in path.read_bytes().splitlines()]
    out = []
    for record in change(records):
        if record["kind"] == "seal":
            record |= {"root": link, "lines": len(out)}
        body = canonical(record)
        import hashlib

        link = hashlib.sha256(link.encode() + body).hexdigest()
        out.append(b'{"hash":"' + link.encode() + b'","record":' + body + b"}\n")
    path.write_bytes(b"".join(out))
    commands.report(folder, None, exploratory=False)


def _drop_outcome(records: list[Any]) -> list[Any]:
    at = next(i for i, r in enumerate(records) if r["kind"] == "answered")
    return records[:at] + records[at + 1 :]


def _edit_usage(records: list[Any]) -> list[Any]:
    call = next(r for r in records if r["kind"] == "call")
    call["tokens_cached"] = call["tokens_in"] + 1
    return records


def _edit_cost(records: list[Any]) -> list[Any]:
    next(r for r in records if r["kind"] == "call")["cost_usd"] = 5.0
    return records


def _edit_prompt(records: list[Any]) -> list[Any]:
    next(r for r in records if r["kind"] == "call" and r["role"] == "solver")["messages"][0]["text"] += " Hint: 7."
    return records


def _edit_reply(records: list[Any]) -> list[Any]:
    call = next(r for r in records if r["kind"] == "call" and r["purpose"] == "thesis")
    call["reply"] = call["reply"].replace("scripted", "edited")
    return records


def _drop_verdict(records: list[Any]) -> list[Any]:
    at = next(i for i, r in enumerate(records) if r["kind"] == "verdict")
    return records[:at] + records[at + 1 :]


def _double_call(records: list[Any]) -> list[Any]:
    at = next(i for i, r in enumerate(records) if r["kind"] == "call")
    return [*records[: at + 1], records[at], *records[at + 1 :]]


def _move_start(records: list[Any]) -> list[Any]:
    next(r for r in records if r["kind"] == "started")["at"] = "2000-01-01T00:00:00.000Z"
    return records


def _drop_seal(records: list[Any]) -> list[Any]:
    return records[:-1]


def _foreign_call(records: list[Any]) -> list[Any]:
    for record in records:
        if record["kind"] in ("call", "started") and record["purpose"] == "sample/2":
            record["owner"] = "nobody"
    return records


def _tell_the_judge(records: list[Any]) -> list[Any]:
    next(r for r in records if r["kind"] == "call" and r["role"] == "judge")["template"][0]["text"] += (
        " The first is by best3."
    )
    return records


@pytest.mark.parametrize(
    ("change", "rules"),
    [
        (_drop_outcome, {"arms/outcomes"}),
        (_edit_usage, {"receipts/usage"}),
        (_edit_cost, {"receipts/usage"}),
        (_edit_prompt, {"receipts/requests", "arms/access"}),
        (_edit_reply, {"arms/access"}),
        (_drop_verdict, {"judging/both_orders"}),
        (_double_call, {"receipts/attempts"}),
        (_move_start, {"freeze/before_calls"}),
        (_drop_seal, {"receipts/sealed"}),
        (_foreign_call, {"receipts/owners"}),
        (_tell_the_judge, {"judging/blind"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_receipts_that_do_not_fit_together_fail_their_rule(copy: Path, change: Any, rules: set[str]) -> None:
    """Also when the chain was made anew: the rules look at what the records say."""
    rewritten(copy, change)
    assert rules <= failures(copy)


def mutate(folder: Path, seed: int) -> str:
    """Flip, delete, double or move something in what vouches; returns the file."""
    rng = random.Random(seed)
    files = [
        folder / "frozen.json",
        folder / "journal.jsonl",
        *sorted(p for p in (folder / "inputs").rglob("*") if p.is_file()),
    ]
    path = rng.choice(files[:2] * 8 + files[2:])
    data = bytearray(path.read_bytes())
    kind = rng.choice(["flip", "delete", "double", "swap"])
    lines = bytes(data).splitlines(keepends=True)
    if kind == "flip" or len(lines) < 3:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(data))
        return path.name
    at = rng.randrange(len(lines) - 1)
    changed = {
        "delete": lines[:at] + lines[at + 1 :],
        "double": [*lines[: at + 1], lines[at], *lines[at + 1 :]],
        "swap": [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]],
    }[kind]
    path.write_bytes(b"".join(changed))
    return path.name


def check_mutation(folder: Path, original: dict[Path, bytes], seed: int) -> None:
    name = mutate(folder, seed)
    if {path: path.read_bytes() for path in original} == original:
        return  # two equal lines were swapped: nothing changed
    with pytest.raises(FairtrialError) as caught:
        stored.load(folder)
    assert name in str(caught.value), (seed, name)
    assert failures(folder) >= {"freeze/whole"}


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def sweep(folder: Path, seeds: range) -> None:
    original = contents(folder)
    for seed in seeds:
        check_mutation(folder, original, seed)
        for path, data in original.items():
            path.write_bytes(data)


def test_mutations_of_a_sealed_run_are_refused_by_name(copy: Path) -> None:
    """Byte flips, deleted, doubled and moved lines in manifest, receipts and stored inputs."""
    sweep(copy, range(40))


@pytest.mark.soak
def test_many_mutations_of_a_sealed_run_are_refused_by_name(copy: Path) -> None:
    """Five hundred of them."""
    sweep(copy, range(1000, 1500))


# --- publish and compare ---------------------------------------------------------------------------------------------


def test_a_published_run_reads_reports_and_audits_like_the_run(copy: Path, tmp_path: Path) -> None:
    """Packed, and every command takes it as it is."""
    commands.audit(copy, harness_audit.rules)
    target = publish.publish(copy, tmp_path / "published")
    assert not (target / "journal.jsonl").exists()
    assert stored.load(target).log == stored.load(copy).log
    assert failures(target) == set()
    with pytest.raises(ResultsError, match="published already"):
        publish.publish(copy, tmp_path / "published")


def test_a_run_without_a_report_is_not_published(copy: Path, tmp_path: Path) -> None:
    """One clear error, and nothing half written."""
    shutil.rmtree(copy / "derived")
    with pytest.raises(ResultsError, match="has no report yet"):
        publish.publish(copy, tmp_path / "published")
    assert not (tmp_path / "published").exists()


def test_an_open_run_is_not_published(tmp_path: Path) -> None:
    """What is not done is no evidence."""
    from harness.errors import StoppedError

    path = write_study(tmp_path, budget={"calls": 5})
    with pytest.raises(StoppedError):
        run_study(path, tmp_path / "results")
    (folder,) = (tmp_path / "results" / "small").iterdir()
    with pytest.raises(ResultsError, match="not sealed"):
        publish.publish(folder, tmp_path / "published")


def test_two_runs_are_compared_by_inputs_and_findings(run: Run, tmp_path: Path) -> None:
    """What moved in the inputs by name, claims side by side, trials whose outcome differs."""
    parts = judged()
    parts["models"]["solver"]["script"]["skill"] = 0.1
    other = run_study(write_study(tmp_path, **parts), tmp_path / "results")
    text = compare.compare(run.folder, other.folder)
    assert re.search(r"inputs: \d+ differ", text)
    assert "  study: " in text
    assert "dialectic-solved" in text
    assert "outcomes that differ:" in text
    assert "B is a replication of A" in compare.compare(run.folder, run.folder)


def test_claims_of_one_run_alone_are_named(run: Run, tmp_path: Path) -> None:
    """A claim or an arm that the other run lacks is no blank."""
    other = run_study(write_study(tmp_path), tmp_path / "results")
    text = compare.compare(run.folder, other.folder)
    assert "not claimed" in text
    assert re.search(r"chain +\S+ +-", text)


def test_an_estimate_that_is_none_is_said_so() -> None:
    """Undefined ratios and open ends have words."""
    one = {"metric": "usd", "arm": "a", "decision": "inconclusive", "why": ""}
    nothing = {"point_low": None, "point_high": None, "low": None, "high": None}
    assert words.effect(one, nothing) == "undefined"
    assert words.interval(one, nothing) == "no interval"
    ranged = {"point_low": 1.0, "point_high": "inf", "low": 0.5, "high": "inf"}
    assert words.effect(one, ranged) == "1.00 to without limit times"
    assert words.interval(one, ranged) == "0.50 to without limit times"
    preference = {"metric": "preference"}
    assert (
        words.effect(preference, {"point_low": -1.0, "point_high": 1.0})
        == "between -100 and +100 points of net preference"
    )


def test_rounding_is_fixed_and_knows_no_nan() -> None:
    """Nine decimals within one, nine significant digits beyond, no negative zero."""
    rounded = findings._rounded({"a": -0.0, "b": 1 / 3, "c": 12345.678901234, "d": (float("inf"), -float("inf"))})
    assert json.dumps(rounded) == '{"a": 0.0, "b": 0.333333333, "c": 12345.6789, "d": ["inf", "-inf"]}'
    with pytest.raises(AssertionError):
        findings._rounded(float("nan"))
    assert journal.now().endswith("Z")

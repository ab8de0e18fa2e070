"""Freeze, run, resume: nothing lost, nothing paid twice, nothing edited unseen."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from analysis import findings
from harness import campaign, freeze, journal, stored
from harness.errors import Cause, DriftError, FreezeError, LockedError, ResultsError, StoppedError
from harness.records import Answered, Call, Failed, Note, Started, Use, Verdict
from harness.stored import Run
from tests.build import ALL_ARMS, claim, run_study, write_study

JUDGED: dict[str, Any] = {
    "arms": {**ALL_ARMS, "chain": {**ALL_ARMS["chain"], "pools": ["countdown"]}},
    "pools": [{"family": "countdown", "sample": 3}, {"family": "advice", "sample": 2}],
    "judges": {
        "j": {
            "models": ["judge"],
            "calibration": "judge-calibration",
            "calibration_sample": 4,
            "same_family": "labelled",
        }
    },
    "claims": [claim("dialectic", "best3"), claim("dialectic", "best3", "preference")],
}


def judged(latency: float = 0.0, **script: Any) -> dict[str, Any]:
    """Parts of a study with every arm, two pools and a judge."""
    base = {"name": "scripted/skill", "max_tokens": 400}
    models = {
        "solver": {**base, "script": {"skill": 0.6, "latency": latency, **script}},
        "judge": {**base, "script": {"skill": 0.8, "latency": latency}},
    }
    return {**JUDGED, "models": models}


def outcomes(run: Run) -> dict[str, dict[str, Any]]:
    """Trial -> outcome without its clock."""
    found = [e for e in run.log.entries if isinstance(e, Answered | Failed)]
    assert len({e.trial for e in found}) == len(found)
    return {e.trial: e.model_dump(exclude={"seconds"}) for e in found}


def verdicts(run: Run) -> set[tuple[Any, ...]]:
    return {(e.subject, e.model, e.order, e.choice, e.formed) for e in run.log.entries if isinstance(e, Verdict)}


# --- freeze ----------------------------------------------------------------------------------------------------------


def test_a_freeze_stores_every_input_and_its_hash(tmp_path: Path) -> None:
    """Tasks, checkers, prompts, arms, judge, reader and plan lie beside the manifest, and the fingerprint covers each."""
    one = campaign.ready(str(write_study(tmp_path, **judged())))
    folder, existed = campaign.prepare(one, tmp_path / "results", [], again=False, new=False)
    frozen = stored.manifest(folder)
    assert not existed
    assert folder.name == frozen.fingerprint[:12]
    names = set(frozen.stored)
    assert {
        "study.toml",
        "plan.jsonl",
        "tables.json",
        "pools/countdown/tasks.jsonl",
        "check/countdown/check.py",
    } <= names
    assert {
        "calibration/judge-calibration/pairs.jsonl",
        "source/arms/chain.py",
        "source/arms/chain_contracts.py",
    } <= names
    assert {"source/prompts/judge_letters.md", "source/reading.py", "source/asking.py"} <= names
    assert len(stored.tasks(folder)["countdown"]) > 3
    assert frozen.environment.python
    assert frozen.families == {"solver": None, "judge": None}


def test_the_fingerprint_moves_with_what_matters_and_with_nothing_else(tmp_path: Path) -> None:
    """Budget, concurrency and the order of a pool's lines are no part of it; a seed or a sampling setting is."""

    def name(**parts: Any) -> str:
        return campaign.ready(str(write_study(tmp_path, **parts))).name

    base = name()
    assert name(budget={"calls": 5}) == base
    assert name(models={"solver": {"name": "scripted/skill", "max_tokens": 200, "concurrency": 3}}) == base
    assert name(seed=6) != base
    assert name(models={"solver": {"name": "scripted/skill", "max_tokens": 201}}) != base
    assert name(claims=[claim("best3", "single")]) != base


def test_adding_an_arm_leaves_the_other_arms_trials_as_they_were(tmp_path: Path) -> None:
    """Ids and seeds come from names, never from a position."""
    few = campaign.ready(str(write_study(tmp_path, arms={"single": ALL_ARMS["single"]}))).plan
    more = campaign.ready(
        str(write_study(tmp_path, arms={"best3": ALL_ARMS["best3"], "single": ALL_ARMS["single"]}))
    ).plan
    assert {t.id: t for t in few.trials}.items() <= {t.id: t for t in more.trials}.items()


def test_arms_are_interleaved_inside_each_block(tmp_path: Path) -> None:
    """All arms of a task and repeat stand together, in an order that is drawn anew for each."""
    plan = campaign.ready(str(write_study(tmp_path, repeats=3))).plan
    blocks = [plan.trials[i : i + 2] for i in range(0, len(plan.trials), 2)]
    assert all(a.task == b.task and a.repeat == b.repeat and a.arm != b.arm for a, b in blocks)
    assert len({tuple(trial.arm for trial in block) for block in blocks}) == 2


def test_a_second_freeze_of_the_same_is_refused_and_again_starts_another(tmp_path: Path) -> None:
    """A sealed run is never written again."""
    path = write_study(tmp_path)
    first = run_study(path, tmp_path / "results")
    assert run_study(path, tmp_path / "results").folder == first.folder
    one = campaign.ready(str(path))
    with pytest.raises(FreezeError, match="frozen already"):
        freeze.freeze(one.loaded, one.inputs, tmp_path / "results")
    second = run_study(path, tmp_path / "results", again=True)
    assert second.folder.name == f"{first.folder.name}.2"


def test_a_freeze_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    """A file where the folder should be: one clear error and no half-written run."""
    one = campaign.ready(str(write_study(tmp_path)))
    (tmp_path / "results").write_text("a file")
    with pytest.raises(ResultsError, match="cannot be written"):
        freeze.freeze(one.loaded, one.inputs, tmp_path / "results")


# --- drift -----------------------------------------------------------------------------------------------------------


def own_pool(tmp_path: Path) -> Path:
    """A study with a pool, a checker and an arm of its own beside it, frozen and not yet run."""
    from tests.test_docs import examples

    for name, content in examples().items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    path = tmp_path / "studies" / "second-look" / "study.toml"
    campaign.prepare(campaign.ready(str(path)), tmp_path / "results", [], again=False, new=False)
    return path


@pytest.mark.parametrize(
    ("file", "before", "after", "named"),
    [
        ("words.jsonl", "lamp backwards.", "lamp backwords.", "task words/lamp: frozen"),
        ("words.py", "not the word backwards", "not the word backward", "check/words/words.py: frozen"),
        ("second_look.py", "Look again", "Look hard", "source/arms/second_look.py: frozen"),
        ("study.toml", "seed = 7", "seed = 8", "study: frozen"),
    ],
)
def test_a_changed_byte_in_the_checkout_refuses_a_resume_and_is_named(
    tmp_path: Path, file: str, before: str, after: str, named: str
) -> None:
    """Task, checker, arm, study: each is named with both hashes, and nothing is written."""
    path = own_pool(tmp_path)
    changed = path.parent / file
    text = changed.read_text(encoding="utf-8")
    assert before in text
    changed.write_text(text.replace(before, after), encoding="utf-8")
    with pytest.raises(DriftError, match=named) as caught:
        run_study(path, tmp_path / "results")
    assert caught.value.exit_code == 3
    assert len(campaign.folders(tmp_path / "results", "second-look")) == 1
    folder, existed = campaign.prepare(campaign.ready(str(path)), tmp_path / "results", [], again=False, new=True)
    assert not existed
    assert folder.is_dir()


def test_a_pool_in_another_order_is_no_drift(tmp_path: Path) -> None:
    """Pools are hashed over their sorted tasks."""
    path = own_pool(tmp_path)
    pool = path.parent / "words.jsonl"
    pool.write_text("\n".join(reversed(pool.read_text().strip().split("\n"))) + "\n")
    assert run_study(path, tmp_path / "results").log.sealed


@pytest.mark.parametrize(
    "file", ["frozen.json", "inputs/plan.jsonl", "inputs/pools/countdown/tasks.jsonl", "journal.jsonl"]
)
def test_a_changed_byte_in_the_results_is_refused_and_named(tmp_path: Path, file: str) -> None:
    """Manifest, stored inputs and receipts vouch for each other."""
    run = run_study(write_study(tmp_path), tmp_path / "results")
    path = run.folder / file
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises((DriftError, ResultsError), match=re.escape(Path(file).name)):
        stored.load(run.folder)


def test_added_and_missing_stored_files_are_named(tmp_path: Path) -> None:
    """Not one more, not one less."""
    run = run_study(write_study(tmp_path), tmp_path / "results")
    (run.folder / "inputs" / "extra.txt").write_text("x")
    (run.folder / "inputs" / "tables.json").unlink()
    with pytest.raises(DriftError, match=r"(?s)extra.txt: was added.*tables.json: is missing"):
        stored.load(run.folder)


def test_a_folder_without_a_manifest_is_no_run(tmp_path: Path) -> None:
    """The message says where runs lie."""
    with pytest.raises(ResultsError, match=r"no frozen\.json"):
        stored.load(tmp_path)
    with pytest.raises(ResultsError, match="no run there"):
        campaign.latest(tmp_path, "nothing")


# --- kill and resume -------------------------------------------------------------------------------------------------

CHILD = (
    "import sys\nfrom pathlib import Path\nfrom tests.build import run_study\n"
    "run_study(Path(sys.argv[1]), Path(sys.argv[2]))\nprint('sealed')\n"
)
ROOT = Path(__file__).parent.parent


def child(path: Path, results: Path) -> subprocess.Popen[str]:
    """A run in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), str(results)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def lines_in(results: Path) -> int:
    return sum(p.read_bytes().count(b"\n") for p in results.glob("*/*/journal.jsonl"))


def wait_for_lines(process: subprocess.Popen[str], results: Path, count: int) -> bool:
    """Until the journal holds so many lines; False when the run ended before."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return False
        if lines_in(results) >= count:
            return True
        time.sleep(0.004)
    raise AssertionError("the run did not get there")


def end(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=60)
    return out + err


def check_resumed(undisturbed: Run, resumed: Run) -> None:
    """No finished call repeated, orphans marked; outcomes, verdicts and findings as if nothing had happened."""
    assert resumed.log.sealed
    assert outcomes(resumed) == outcomes(undisturbed)
    assert verdicts(resumed) == verdicts(undisturbed)
    calls = [e for e in resumed.log.entries if isinstance(e, Call)]
    answered = Counter((c.owner, c.purpose) for c in calls if c.fault is None)
    assert max(answered.values()) == 1
    assert answered.keys() == {
        (e.owner, e.purpose) for e in undisturbed.log.entries if isinstance(e, Call) and e.fault is None
    }
    one, other = (
        findings.findings(run, findings.rules_for(run, None, exploratory=False)) for run in (undisturbed, resumed)
    )
    assert [name for name in one if one[name] != other[name]] == ["run"]
    orphans = {e.id for e in resumed.log.entries if isinstance(e, Started)} - {c.id for c in calls}
    assert other["run"]["orphans"]["calls"] == len(orphans)
    marked = {e.subject for e in resumed.log.entries if isinstance(e, Note) and e.about == "orphan"}
    assert orphans == marked


def kill_and_resume(tmp_path: Path, seed: int) -> None:
    """Kill a run at a random line, start it again, and compare."""
    rng = random.Random(seed)
    whole = tmp_path / "whole"
    path = write_study(whole, **judged(0.002))
    undisturbed = run_study(path, whole / "results")
    at = rng.randint(2, len(undisturbed.log.entries) - 2)
    results = tmp_path / f"killed-{seed}"
    process = child(path, results)
    wait_for_lines(process, results, at)
    process.send_signal(signal.SIGKILL)
    end(process)
    check_resumed(undisturbed, run_study(path, results))


@pytest.mark.parametrize("seed", range(3))
def test_a_run_that_was_killed_goes_on_as_if_nothing_had_happened(tmp_path: Path, seed: int) -> None:
    """SIGKILL at a random instant, then the same command."""
    kill_and_resume(tmp_path, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 300))
def test_a_run_survives_a_kill_at_any_instant(tmp_path: Path, seed: int) -> None:
    """Two hundred instants."""
    kill_and_resume(tmp_path, seed)


def test_a_kill_inside_the_parallel_gather_pays_no_finding_twice(tmp_path: Path) -> None:
    """Reflection's gathers run at once; those that came are kept, the orphans are asked again."""
    arms = {"reflection": {**ALL_ARMS["reflection"], "angles": ["a", "b", "c", "d"]}}
    models = {"solver": {"name": "scripted/skill", "script": {"skill": 1.0, "latency": 0.5}, "concurrency": 2}}
    path = write_study(tmp_path, arms=arms, pools=[{"family": "countdown", "sample": 1}], models=models)
    results = tmp_path / "results"
    process = child(path, results)
    # Two gathers start, end, and the next two start: six lines. Then two are under way.
    assert wait_for_lines(process, results, 6)
    process.send_signal(signal.SIGKILL)
    end(process)
    run = run_study(path, results)
    calls = Counter(e.purpose for e in run.log.entries if isinstance(e, Call))
    assert max(calls.values()) == 1
    orphans = [e for e in run.log.entries if isinstance(e, Note) and e.about == "orphan"]
    assert len(orphans) == 2
    assert all("#gather/" in str(note.subject) for note in orphans)


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_drains_writes_everything_and_leaves_with_an_error(tmp_path: Path, kind: signal.Signals) -> None:
    """Calls under way come to their end; the run stays open and goes on later without paying twice."""
    whole = tmp_path / "whole"
    path = write_study(whole, **judged(0.02))
    undisturbed = run_study(path, whole / "results")
    results = tmp_path / "stopped"
    process = child(path, results)
    assert wait_for_lines(process, results, 30)
    process.send_signal(kind)
    text = end(process)
    assert process.returncode != 0
    assert "stopped by the operator" in text
    (folder,) = (results / "small").iterdir()
    log = stored.receipts(folder)
    assert not log.sealed
    started = {e.id for e in log.entries if isinstance(e, Started)}
    assert started == {e.id for e in log.entries if isinstance(e, Call)}
    check_resumed(undisturbed, run_study(path, results))


def test_a_second_signal_cancels_and_leaves_receipts(tmp_path: Path) -> None:
    """A call that hangs is cancelled, receipted as such, and asked again on resuming."""
    models = {"solver": {"name": "scripted/skill", "script": {"skill": 1.0, "latency": 3.0}}}
    path = write_study(
        tmp_path, models=models, pools=[{"family": "countdown", "sample": 1}], arms={"single": ALL_ARMS["single"]}
    )
    results = tmp_path / "results"
    process = child(path, results)
    assert wait_for_lines(process, results, 1)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert "cancelled by the operator" in end(process)
    assert process.returncode != 0
    (folder,) = (results / "small").iterdir()
    entries = stored.receipts(folder).entries
    (call,) = [e for e in entries if isinstance(e, Call)]
    assert [e.about for e in entries if isinstance(e, Note)] == ["stopped"]
    assert call.fault is not None
    assert call.fault.symptom == "cancelled"
    assert call.tokens_out is None
    run = run_study(path, results)
    assert [o["kind"] for o in outcomes(run).values()] == ["answered"]


def test_two_runs_on_one_folder_are_not_possible(tmp_path: Path) -> None:
    """The second is refused, with the holder named, and the first is not disturbed."""
    path = write_study(tmp_path, **judged(0.05))
    process = child(path, tmp_path / "results")
    assert wait_for_lines(process, tmp_path / "results", 3)
    with pytest.raises(LockedError, match=f"pid {process.pid} on "):
        run_study(path, tmp_path / "results")
    process.send_signal(signal.SIGINT)
    end(process)


def test_a_full_disk_stops_the_run_and_it_goes_on_afterwards(tmp_path: Path) -> None:
    """A file-size limit stands for the full disk: one clear error, exit code 4, nothing lost."""
    whole = tmp_path / "whole"
    path = write_study(whole, **judged())
    undisturbed = run_study(path, whole / "results")
    limited = (
        "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (60000, 60000))\n"
    )
    results = tmp_path / "full"
    code = limited + CHILD
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), str(results)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "cannot write" in done.stderr
    check_resumed(undisturbed, run_study(path, results))


# --- faults ----------------------------------------------------------------------------------------------------------

ALL_FAULTS = ["rate_limited", "server_error", "hang", "cut", "null_usage", "no_choices"]


def test_a_study_full_of_faults_accounts_for_every_trial(tmp_path: Path) -> None:
    """429 with Retry-After, 500, hang, cut, null usage, empty choices: each planned trial has one outcome with its cause."""
    faults = {"share": 0.5, "kinds": ALL_FAULTS, "retry_after": 0.01, "persistent": True}
    solver = {
        "name": "scripted/skill",
        "timeout_seconds": 0.05,
        "attempts": 2,
        "script": {"skill": 0.7, "faults": faults},
    }
    arms = {"single": ALL_ARMS["single"], "best3": ALL_ARMS["best3"], "reflection": ALL_ARMS["reflection"]}
    path = write_study(tmp_path, arms=arms, models={"solver": solver}, pools=[{"family": "countdown", "sample": 20}])
    run = run_study(path, tmp_path / "results")
    assert run.log.sealed
    assert set(outcomes(run)) == {trial.id for trial in run.plan.trials}
    causes = {e.cause for e in run.log.entries if isinstance(e, Failed)}
    assert (
        {Cause.provider, Cause.timeout} <= causes <= {Cause.provider, Cause.timeout, Cause.truncated, Cause.unreadable}
    )
    calls = [e for e in run.log.entries if isinstance(e, Call)]
    shown = {c.fault.symptom.value for c in calls if c.fault is not None}
    assert {"rate_limited", "server_error", "timed_out", "no_choices"} <= shown
    assert any(c.tokens_out is None and c.fault is None for c in calls)
    assert any(c.finish == "length" for c in calls)


def test_a_transient_fault_is_retried_with_the_same_seed_and_every_attempt_has_its_receipt(tmp_path: Path) -> None:
    """Two failures, then the answer: three receipts, one request."""
    faults = {"share": 1.0, "kinds": ["server_error"], "heals_after": 2}
    models = {"solver": {"name": "scripted/skill", "script": {"skill": 1.0, "faults": faults}}}
    path = write_study(tmp_path, models=models, arms={"single": ALL_ARMS["single"]})
    run = run_study(path, tmp_path / "results")
    calls = [e for e in run.log.entries if isinstance(e, Call)]
    assert Counter(call.attempt for call in calls) == {1: 4, 2: 4, 3: 4}
    assert [call.bucket for call in calls if call.attempt > 1] == ["retry"] * 8
    for owner in {call.owner for call in calls}:
        assert len({call.request_sha256 for call in calls if call.owner == owner}) == 1
    assert all(outcome["passed"] for outcome in outcomes(run).values())


def test_what_cannot_help_is_not_retried(tmp_path: Path) -> None:
    """An overflow is asked once."""
    faults = {"share": 1.0, "kinds": ["overflow"], "persistent": True}
    models = {"solver": {"name": "scripted/skill", "script": {"faults": faults}}}
    run = run_study(write_study(tmp_path, models=models, arms={"single": ALL_ARMS["single"]}), tmp_path / "results")
    assert all(e.attempt == 1 for e in run.log.entries if isinstance(e, Call))
    assert {outcome["cause"] for outcome in outcomes(run).values()} == {Cause.overflow}


def test_a_resume_does_not_ask_again_what_failed_for_good(tmp_path: Path) -> None:
    """The receipt of a failure answers too: the same failure, without a call."""
    faults = {"share": 0.6, "kinds": ["overflow"], "persistent": True}
    parts = judged(0.002, faults=faults)
    path = write_study(tmp_path, **parts)
    undisturbed = run_study(path, tmp_path / "whole")
    process = child(path, tmp_path / "results")
    wait_for_lines(process, tmp_path / "results", len(undisturbed.log.entries) // 2)
    process.send_signal(signal.SIGKILL)
    end(process)
    check_resumed(undisturbed, run_study(path, tmp_path / "results"))


def test_a_journal_of_another_request_fails_the_trial_by_name(tmp_path: Path) -> None:
    """An arm that does not repeat itself on resuming is a bug, said so, and never answered from the wrong receipt."""
    path = write_study(tmp_path, arms={"own": {"kind": "own", "module": "own.py", "roles": {"solver": "solver"}}})
    (path.parent / "own.py").write_text(
        "import itertools\nfrom harness.asking import Arm, user\nfrom harness.records import Answer\n"
        "from harness.errors import StoppedError\nCOUNT = itertools.count()\n"
        "class Own(Arm):\n    kind: str = 'own'\n"
        "    async def __call__(self, question, ask):\n"
        "        number = next(COUNT)\n"
        "        reply = await ask('answer', 'solver', user(f'try {number}'))\n"
        "        if number == 0: raise StoppedError('stop here')\n"
        "        return Answer(text=reply.text)\n"
    )
    with pytest.raises(StoppedError):
        run_study(path, tmp_path / "results")
    one = campaign.ready(str(path))
    # The module is loaded afresh by each reading, so its count starts anew: advance it.
    module = sys.modules[type(one.loaded.arms["own"]).__module__]
    next(module.COUNT)
    (folder,) = (tmp_path / "results" / "small").iterdir()
    campaign.execute(one, folder, lambda _: None, lambda _: None)
    bugs = [e for e in stored.receipts(folder).entries if isinstance(e, Failed)]
    assert len(bugs) == 1
    assert "did not repeat itself on resuming" in bugs[0].message


# --- budgets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cap", "value"), [("calls", 7), ("tokens_out", 230)])
def test_a_budget_is_never_passed_and_a_raised_one_goes_on(tmp_path: Path, cap: str, value: int) -> None:
    """Checked before the call, by reservation; the raised cap is a note, not another study."""
    whole = tmp_path / "whole"
    undisturbed = run_study(write_study(whole), whole / "results")
    path = write_study(tmp_path, budget={cap: value})
    with pytest.raises(StoppedError, match=f"budget.{cap}") as caught:
        run_study(path, tmp_path / "results")
    assert caught.value.exit_code == 6
    (folder,) = (tmp_path / "results" / "small").iterdir()
    calls = [e for e in stored.receipts(folder).entries if isinstance(e, Call)]
    assert (len(calls) if cap == "calls" else sum(c.tokens_out or 0 for c in calls)) <= value
    write_study(tmp_path, budget={cap: 100_000})
    run = run_study(path, tmp_path / "results")
    assert run.folder == folder
    assert outcomes(run) == outcomes(undisturbed)
    assert any(e.about == "budget" for e in run.log.entries if isinstance(e, Note))


def test_a_run_closed_at_its_budget_gives_every_open_trial_its_cause(tmp_path: Path) -> None:
    """Nothing leaves the denominator."""
    path = write_study(tmp_path, budget={"calls": 7})
    with pytest.raises(StoppedError):
        run_study(path, tmp_path / "results")
    run = run_study(path, tmp_path / "results", close=True)
    assert run.log.sealed
    assert set(outcomes(run)) == {trial.id for trial in run.plan.trials}
    assert Cause.budget in {e.cause for e in run.log.entries if isinstance(e, Failed)}


def test_money_is_reckoned_from_the_frozen_price_row(tmp_path: Path) -> None:
    """Cost is tokens times price; a cap in money holds."""
    price = {"tokens_in": 0.001, "tokens_out": 0.01, "source": "a test"}
    models = {"solver": {"name": "scripted/skill", "max_tokens": 50, "price": price}}
    run = run_study(write_study(tmp_path, models=models), tmp_path / "results")
    for call in (e for e in run.log.entries if isinstance(e, Call)):
        assert call.tokens_in is not None
        assert call.tokens_out is not None
        assert call.cost_usd == pytest.approx(call.tokens_in * 0.001 + call.tokens_out * 0.01)
    path = write_study(tmp_path, models=models, budget={"usd": 2.0}, seed=9)
    with pytest.raises(StoppedError, match=r"budget\.usd"):
        run_study(path, tmp_path / "results")


# --- the rest --------------------------------------------------------------------------------------------------------


def test_uses_of_the_visible_check_leave_receipts(tmp_path: Path) -> None:
    """Each attempt's check stands in the journal with what it saw and said."""
    path = write_study(tmp_path, arms={"repair": ALL_ARMS["repair"]}, models=judged()["models"])
    run = run_study(path, tmp_path / "results")
    uses = [e for e in run.log.entries if isinstance(e, Use)]
    attempts = [e for e in run.log.entries if isinstance(e, Call)]
    assert len(uses) == len(attempts) >= 4
    assert all(isinstance(use.output, dict) and "passed" in use.output for use in uses)


def test_a_crashing_checker_fails_its_trials_and_not_the_run(tmp_path: Path) -> None:
    """The cause is a bug, the answer is kept."""
    path = own_pool(tmp_path)
    checker = path.parent / "words.py"
    checker.write_text(checker.read_text().replace("passed = ", "raise RuntimeError('broken')\n    passed = "))
    one = campaign.ready(str(path))
    folder, _ = campaign.prepare(one, tmp_path / "results", [], again=False, new=True)
    campaign.execute(one, folder, lambda _: None, lambda _: None)
    failed = [e for e in stored.receipts(folder).entries if isinstance(e, Failed)]
    assert len(failed) == 6
    assert all(e.cause is Cause.bug and e.answer and "RuntimeError: broken" in e.message for e in failed)


def test_status_tells_where_a_run_stands(tmp_path: Path) -> None:
    """Counts, causes, tokens, and the state; also of an open run."""
    path = write_study(tmp_path, budget={"calls": 7})
    with pytest.raises(StoppedError):
        run_study(path, tmp_path / "results")
    folder = campaign.latest(tmp_path / "results", "small")
    text = "\n".join(campaign.status(folder))
    assert "state     open" in text
    assert "calls     7" in text
    run_study(path, tmp_path / "results", close=True)
    text = "\n".join(campaign.status(folder))
    assert "sealed, root" in text
    assert "budget" in text
    assert campaign.latest(tmp_path / "results", str(folder)) == folder


def test_a_replayed_journal_answers_the_same_study_without_a_model(tmp_path: Path) -> None:
    """`replay/...` gives the recorded replies and refuses what it does not hold."""
    arms = {"single": ALL_ARMS["single"]}
    path = write_study(tmp_path, arms=arms)
    first = run_study(path, tmp_path / "results")
    models = {"solver": {"name": f"replay/{first.folder}", "max_tokens": 200}}
    again = run_study(write_study(tmp_path, arms=arms, models=models), tmp_path / "results")
    assert {k: v["answer"]["text"] for k, v in outcomes(again).items()} == {
        k: v["answer"]["text"] for k, v in outcomes(first).items()
    }
    other = run_study(write_study(tmp_path, arms=arms, models=models, seed=99), tmp_path / "results")
    assert {outcome.get("cause") for outcome in outcomes(other).values()} == {Cause.provider}


def test_journals_hold_no_secret_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys come from the environment and reach no file."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-value")
    run = run_study(write_study(tmp_path), tmp_path / "results")
    for path in run.folder.rglob("*"):
        if path.is_file():
            assert b"sk-very-secret-value" not in path.read_bytes()
    assert json.loads(journal.envelope("", run.frozen)[1])["record"]["kind"] == "frozen"
    assert os.environ["OPENAI_API_KEY"]

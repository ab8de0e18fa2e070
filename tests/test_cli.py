"""The command: it starts light, says one clear thing when something is wrong, and leaves with its own exit code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness import cli, plan_text, study
from harness.progress import Progress
from tests.build import ALL_ARMS, claim, run_study, write_study
from tests.test_run import judged

ROOT = Path(__file__).parent.parent


def fairtrial(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
    command = [sys.executable, "-m", "harness.cli", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)


def called(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, str]:
    """The command in this process: exit code and output."""
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(cli.app, list(arguments))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


def test_help_names_every_command_and_starts_fast(tmp_path: Path) -> None:
    """The best of three starts stays below .3 s of this machine's time, twice that where both cores are busy."""
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        done = fairtrial(tmp_path, "--help")
        seconds.append(time.perf_counter() - began)
    assert done.returncode == 0
    for name in (
        "plan",
        "freeze",
        "run",
        "campaign",
        "status",
        "reanalyse",
        "report",
        "audit",
        "publish",
        "compare",
        "fetch",
    ):
        assert re.search(rf"^  {name} ", done.stdout, re.MULTILINE), name
    assert min(seconds) < 0.6


def test_a_campaign_through_its_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """plan, freeze, campaign, status, reanalyse, report, audit, publish, compare: one after another on one study."""
    write_study(tmp_path, **judged())
    code, text = called(tmp_path, monkeypatch, "plan", "small")
    assert code == 0
    assert "26 trials (1 a task), 6 pairs to judge in both orders" in text
    assert "what it can detect" in text
    code, text = called(tmp_path, monkeypatch, "freeze", "small")
    assert "frozen: results/small/" in text
    code, text = called(tmp_path, monkeypatch, "freeze", "small")
    assert "frozen before: results/small/" in text
    code, text = called(tmp_path, monkeypatch, "campaign", "small")
    assert code == 0
    assert "audit: passed" in text
    assert "report: results/small/" in text
    assert "Does it help?" in text
    folder = next((tmp_path / "results" / "small").iterdir())
    for command, said in (
        ("status", "state     sealed"),
        ("reanalyse", "Does it help?"),
        ("report", "findings.html"),
        ("audit", "audit: passed"),
    ):
        code, text = called(tmp_path, monkeypatch, command, "small")
        assert code == 0
        assert said in text
    code, text = called(tmp_path, monkeypatch, "publish", str(folder))
    assert "published: results/published/small-" in text
    published = next((tmp_path / "results" / "published").iterdir())
    code, text = called(tmp_path, monkeypatch, "compare", str(published), "small")
    assert "B is a replication of A" in text
    code, text = called(tmp_path, monkeypatch, "run", "small")
    assert "going on with" in text


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "nothing"], 2, "nothing: no study there"),
        (["campaign", "smal"], 2, "did you mean 'small'"),
        (["report", "nothing"], 4, "no run there"),
        (["audit", "studies"], 4, "no run there"),
        (["fetch", "qwen"], 5, "no such embedded model"),
        (["compare", "small", "other"], 4, "no run there"),
    ],
)
def test_bad_names_get_one_clear_error_and_their_exit_code(
    tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    """What, where, what would be right; no traceback; nothing written."""
    write_study(tmp_path)
    done = fairtrial(tmp_path, *arguments)
    assert done.returncode == code
    assert message in done.stderr
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "results").rglob("*"))


def test_an_unreadable_study_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """A misspelt key: file, place, right word."""
    path = write_study(tmp_path, repeat=1)
    done = fairtrial(tmp_path, "campaign", str(path))
    assert done.returncode == 2
    assert "study.toml: repeat: unknown key; did you mean 'repeats'?" in done.stderr
    assert not (tmp_path / "results").exists()


def test_a_missing_key_is_refused_with_the_variables_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the freeze."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    write_study(tmp_path, models={"solver": {"name": "anthropic/claude-sonnet-4-5"}})
    done = fairtrial(tmp_path, "run", "small")
    assert done.returncode == 5
    assert "ANTHROPIC_API_KEY" in done.stderr


def test_a_refused_connection_ends_every_trial_with_its_cause(tmp_path: Path) -> None:
    """A server that is down fails the trials, not the command's mind; the report says why."""
    models = {"solver": {"name": "openai/x", "api_base": "http://127.0.0.1:9/v1", "attempts": 1}}
    write_study(tmp_path, models=models, arms={"single": ALL_ARMS["single"]})
    done = fairtrial(tmp_path, "campaign", "small")
    assert done.returncode == 0, done.stderr
    (page,) = tmp_path.glob("results/small/*/derived/findings.md")
    assert "4 planned trials: 0 answered, 4 failed, 0 not done." in page.read_text()
    assert "provider" in page.read_text()


def test_a_drifted_study_and_a_damaged_run_have_their_exit_codes(tmp_path: Path) -> None:
    """3 for drift, 4 for damage; each names what it is."""
    path = write_study(tmp_path, budget={"calls": 3})
    stopped = fairtrial(tmp_path, "run", "small")
    assert stopped.returncode == 6
    assert "budget.calls" in stopped.stderr
    path.write_text(path.read_text().replace("seed = 5", "seed = 6"))
    drifted = fairtrial(tmp_path, "run", "small")
    assert drifted.returncode == 3
    assert "study: frozen" in drifted.stderr
    (folder,) = (tmp_path / "results" / "small").iterdir()
    (folder / "frozen.json").write_bytes((folder / "frozen.json").read_bytes().replace(b"small", b"smell", 1))
    for command in ("reanalyse", "report"):
        damaged = fairtrial(tmp_path, command, str(folder))
        assert damaged.returncode == 4
        assert "frozen.json" in damaged.stderr
    damaged = fairtrial(tmp_path, "audit", str(folder))
    assert damaged.returncode == 4
    assert "frozen.json" in damaged.stdout


def test_a_hopeless_claim_is_refused_by_the_command(tmp_path: Path) -> None:
    """Unless the study accepts it by name."""
    write_study(tmp_path, claims=[claim("best3", "single")], analysis={})
    done = fairtrial(tmp_path, "freeze", "small")
    assert done.returncode == 2
    assert "no result on 4 tasks could support it" in done.stderr


def test_other_rules_need_exploratory(tmp_path: Path) -> None:
    """Refused with exit code 3; with the flag the first line says so."""
    run = run_study(write_study(tmp_path), tmp_path / "results")
    (tmp_path / "rules.toml").write_text("level = 0.9")
    done = fairtrial(tmp_path, "report", str(run.folder), "--rules", "rules.toml")
    assert done.returncode == 3
    done = fairtrial(tmp_path, "reanalyse", str(run.folder), "--rules", "rules.toml", "--exploratory")
    assert done.returncode == 0
    assert done.stdout.startswith("EXPLORATORY")


def test_progress_says_counts_tokens_money_and_time_left(tmp_path: Path) -> None:
    """One line, also where a part is unknown."""
    run = run_study(write_study(tmp_path, **judged()), tmp_path / "results")
    progress = Progress(run.plan, run.log.entries)
    line = progress.line()
    assert line.startswith("26/26 trials (0 failed), 6/6 pairs, ")
    assert progress.seconds_left is None
    progress.began_at, progress.began = 0, progress.began - 64
    progress.judged = 0
    assert "about 15 s left" in progress.line()
    progress.unknown = 1
    assert "at least" in progress.said()


def test_the_plan_warns_of_a_budget_below_the_forecast(tmp_path: Path) -> None:
    """And says nothing of one that is enough."""
    from harness import plan

    loaded = study.load(write_study(tmp_path, budget={"calls": 3, "tokens_out": 10}))
    text = "\n".join(plan_text.lines(loaded, plan.draw(loaded), []))
    assert "budget.calls = 3 may stop it: at most 16 calls are forecast" in text
    assert "budget.tokens_out = 10 may stop it" in text
    assert "no claims: nothing to detect" in text


def test_the_live_display_shows_the_same_line(tmp_path: Path) -> None:
    """On a terminal the line is a bar: driven here in a real pseudo-terminal."""
    import pty

    write_study(tmp_path)
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.environ["PYTHONPATH"] = str(ROOT)
        os.execv(sys.executable, [sys.executable, "-m", "harness.cli", "run", "small"])
    shown = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
    _, state = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(state) == 0
    assert b"8/8 trials" in shown
    assert b"sealed, root" in shown

"""README and code are checked against each other."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def examples() -> dict[str, str]:
    """Path -> content of every README block that begins with `# <path>`."""
    blocks = re.findall(r"^```\w+\n# (\S+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return dict(blocks)


def study_with(tmp_path: Path, model: str) -> Path:
    """The README's example, written out, with one model."""
    for name, content in examples().items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content.replace("scripted/skill", model, 1), encoding="utf-8")
    return tmp_path


def campaign(folder: Path) -> str:
    """Run the example's campaign in a folder and return its report."""
    done = subprocess.run(
        [sys.executable, "-m", "harness.cli", "campaign", "second-look"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=_environment(),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (report,) = folder.glob("results/second-look/*/derived/findings.md")
    return report.read_text(encoding="utf-8")


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(ROOT)}


def test_each_part_of_the_example_is_under_thirty_lines() -> None:
    """An arm, a family and a study, each in under 30 lines."""
    found = examples()
    assert sorted(Path(name).name for name in found) == ["second_look.py", "study.toml", "words.jsonl", "words.py"]
    for name, content in found.items():
        lines = [line for line in content.splitlines() if line.strip()]
        assert len(lines) < 30, name


def test_the_example_runs_on_the_scripted_model(tmp_path: Path) -> None:
    """A reader who copies the blocks gets a campaign with a report."""
    report = campaign(study_with(tmp_path, "scripted/skill"))
    assert "Does a second look at one's own draft solve more?" in report
    assert "look-solves-more" in report


@pytest.mark.embedded
def test_the_example_runs_on_the_embedded_model(tmp_path: Path) -> None:
    """The same on a real language model: the smallest one."""
    from harness.models import weights

    if weights.path("smollm2-135m") is None:
        pytest.skip("no weights of smollm2-135m in the cache: `fairtrial fetch smollm2-135m`")
    report = campaign(study_with(tmp_path, "embedded/smollm2-135m"))
    assert r"served as smollm2-135m, family smollm" in report


def test_every_command_and_session_is_in_the_readme() -> None:
    """The table of commands is the command's own."""
    from harness.cli import app

    names = {str(command.name or command.callback.__name__) for command in app.registered_commands if command.callback}
    table = set(re.findall(r"^\| `(\w+) [A-Z]", README, re.MULTILINE))
    assert table == names
    noxfile = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    sessions = set(re.findall(r"^@nox.session\ndef (\w+)\(", noxfile, re.MULTILINE))
    assert sessions >= {
        "campaign", "tests", "freeze", "plan", "reanalyse", "report", "audit", "compare", "bench", "soak", "lint", "types",
    }  # fmt: skip


def test_every_arm_kind_is_in_the_readme() -> None:
    """The table of arms is the code's own."""
    from harness.arms import KINDS

    section = README.split("## Arms")[1].split("##")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == set(KINDS)


def test_every_key_of_a_study_file_is_in_the_readme() -> None:
    """The table of keys is the schema's own, in both directions."""
    from harness import records

    shown = set(re.findall(r"`(\w+)`", README.split("## The study file")[1].split("## Arms")[0]))
    kinds = (
        records.Study, records.PoolSpec, records.ModelSpec, records.Price, records.Script, records.FaultPlan,
        records.JudgeSpec, records.Gate, records.ClaimSpec, records.Budget, records.AnalysisSpec,
    )  # fmt: skip
    tables = {"pools", "models", "arms", "judges", "claims", "budget", "analysis"}
    keys = {key for kind in kinds for key in kind.model_fields}
    assert keys - tables - shown == set()


def test_the_python_example_runs() -> None:
    """The frame of the published run, as the README reads it."""
    (block,) = re.findall(r"^```python\nfrom pathlib import Path\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", "from pathlib import Path\n" + block],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "best_of_3" in done.stdout


def test_every_link_in_the_readme_leads_somewhere() -> None:
    """No dead relative link."""
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


def test_every_published_run_passes_the_audit() -> None:
    """What the documents cite is whole, and its report is what this code makes of it: a changed layout republishes it."""
    from analysis import audit
    from harness import audit as harness_audit
    from harness import stored

    folders = [path.parent for path in (ROOT / "results" / "published").glob("*/frozen.json")]
    assert folders, "no published run"
    for folder in folders:
        assert stored.load(folder).log.sealed, folder
        failed = [one for one in audit.audit(folder, harness_audit.rules) if one.result in ("FAIL", "ERROR")]
        assert not failed, (folder, failed)


def test_the_project_stands_alone() -> None:
    """The changelog names the version of the project."""
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    assert f"## {version[1]}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

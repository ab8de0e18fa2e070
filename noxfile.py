"""The front door. Every session sets itself up from the lock and hands its `-- arguments` to the command `fairtrial`."""

import nox

nox.options.default_venv_backend = "uv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["tests"]
nox.needs_version = ">=2026.10"


def ready(session: nox.Session) -> None:
    """Install the locked versions, each checked by its hash, then the project in place."""
    session.install("--quiet", "--require-hashes", "-r", "requirements.lock")
    session.install("--quiet", "--no-deps", "-e", ".")


def command(session: nox.Session, name: str, *defaults: str) -> None:
    """Run one subcommand of `fairtrial`."""
    ready(session)
    session.run("fairtrial", name, *(session.posargs or defaults))


@nox.session
def campaign(session: nox.Session) -> None:
    """Freeze, run, judge, analyse, report and audit a study; the default is studies/first-trial on the embedded model."""
    command(session, "campaign")


@nox.session
def freeze(session: nox.Session) -> None:
    """Freeze a study without running it."""
    command(session, "freeze", "first-trial")


@nox.session
def plan(session: nox.Session) -> None:
    """Forecast a study and say what it can detect."""
    command(session, "plan", "first-trial")


@nox.session
def reanalyse(session: nox.Session) -> None:
    """Rebuild the findings of a run from its receipts."""
    command(session, "reanalyse", "first-trial")


@nox.session
def report(session: nox.Session) -> None:
    """Write the reports of a run."""
    command(session, "report", "first-trial")


@nox.session
def audit(session: nox.Session) -> None:
    """Check a run by the deterministic rules."""
    command(session, "audit", "first-trial")


@nox.session
def compare(session: nox.Session) -> None:
    """Set two runs side by side."""
    command(session, "compare")


@nox.session
def tests(session: nox.Session) -> None:
    """The tests, with the coverage floor. Those that need a real model use the smallest one, fetched here."""
    ready(session)
    session.run("fairtrial", "fetch", "smollm2-135m", success_codes=[0, 5])
    arguments = session.posargs or ["-n", "2", "--cov", "--cov-report", "term:skip-covered"]
    session.run("python", "-m", "pytest", "-m", "not soak", "-rs", *arguments)


@nox.session
def soak(session: nox.Session) -> None:
    """The heavy sweeps, seeded: kills at many instants, mutations, coverage of the intervals."""
    ready(session)
    session.run("python", "-m", "pytest", "-m", "soak", "-rs", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Speed, as ratios in one run against a named peer."""
    ready(session)
    for name in ("bench_estimate", "bench_run"):
        session.run("python", "-m", f"tests.bench.{name}", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Style and formatting."""
    ready(session)
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Strict types."""
    ready(session)
    session.run("mypy")

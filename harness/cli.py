"""The `fairtrial` command. Everything heavy is imported inside the commands, so that `--help` is instant."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from harness.errors import FairtrialError

app = typer.Typer(
    name="fairtrial",
    help="Controlled trials of LLM orchestration: freeze the question and the rules, run every arm on the same tasks with a "
    "receipt for each call, judge blind, and report paired intervals that keep failures and unknown costs in.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

StudyArgument = Annotated[str, typer.Argument(help="A study.toml, its folder, or a name in studies/.", metavar="STUDY")]
RunArgument = Annotated[
    str, typer.Argument(help="results/<study>/<fingerprint>, or a study's id: its latest run.", metavar="RESULTS")
]
ResultsOption = Annotated[Path, typer.Option("--results", help="Where runs are written.", metavar="DIR")]
AgainOption = Annotated[bool, typer.Option("--again", help="The same freeze once more, as <fingerprint>.2.")]
NewOption = Annotated[
    bool, typer.Option("--new", help="Leave an open run of other inputs as it is and start beside it.")
]
ExploratoryOption = Annotated[
    bool,
    typer.Option("--exploratory", help="Allow rules other than the frozen ones; the report says so on its first line."),
]
RulesOption = Annotated[
    Path | None, typer.Option("--rules", help="A TOML file of analysis settings, such as level = 0.9.", metavar="FILE")
]
RESULTS = Path("results")


@app.command()
def plan(study: StudyArgument) -> None:
    """Show what a study will do: trials, calls, tokens, money and time, and what it can and cannot detect. Calls no model."""
    from harness import campaign, plan_text

    one = campaign.ready(study)
    for line in plan_text.lines(one.loaded, one.plan, _power(one.loaded)):
        typer.echo(line)


@app.command()
def freeze(
    study: StudyArgument, results: ResultsOption = RESULTS, again: AgainOption = False, new: NewOption = False
) -> None:
    """Fix the question, rules and inputs before any call: fingerprints, and the inputs themselves, in a new results folder."""
    from harness import campaign

    one = campaign.ready(study)
    folder, existed = campaign.prepare(one, results, _underpowered(one.loaded), again=again, new=new)
    typer.echo(f"{'frozen before' if existed else 'frozen'}: {folder}")


@app.command()
def run(
    study: StudyArgument,
    results: ResultsOption = RESULTS,
    again: AgainOption = False,
    new: NewOption = False,
    close: Annotated[
        bool, typer.Option("--close", help="Make no further call: seal an open run as it stands.")
    ] = False,
) -> None:
    """Run a study, or go on with it: trials, judging, seal. A killed run resumes here and nothing is paid twice."""
    _run(study, results, again=again, new=new, close=close)


def _run(study: str, results: Path, *, again: bool, new: bool, close: bool = False) -> Path:
    from harness import campaign, display

    one = campaign.ready(study)
    folder, existed = campaign.prepare(one, results, _underpowered(one.loaded), again=again, new=new)
    begun = "going on with" if existed else "frozen"
    _say(f"{begun} {folder}: {len(one.plan.trials)} trials, {len(one.plan.pairs)} pairs to judge")
    with display.watching() as watch:
        root = campaign.execute(one, folder, _say, watch, close=close)
    _say(f"sealed, root {root[:12]}")
    return folder


@app.command()
def campaign(
    study: Annotated[str, typer.Argument(help="A study.toml, its folder, or a name in studies/.")] = "first-trial",
    results: ResultsOption = RESULTS,
    again: AgainOption = False,
    new: NewOption = False,
) -> None:
    """The whole way: freeze, run, judge, seal, analyse, report, audit. Ends with where the report lies."""
    folder = _run(study, results, again=again, new=new)
    _report(folder, None, exploratory=False)
    failed = _audit(folder)
    typer.echo(_headline(folder))
    typer.echo(f"\nreport: {folder / 'derived' / 'findings.html'}")
    if failed:
        raise typer.Exit(4)


@app.command()
def status(run: RunArgument, results: ResultsOption = RESULTS) -> None:
    """Where a run stands, also while another terminal is at it."""
    from harness import campaign

    for line in campaign.status(campaign.latest(results, run)):
        typer.echo(line)


@app.command()
def reanalyse(
    run: RunArgument,
    results: ResultsOption = RESULTS,
    rules: RulesOption = None,
    exploratory: ExploratoryOption = False,
) -> None:
    """Rebuild the findings from the receipts and the frozen inputs stored with them, byte for byte."""
    from harness.campaign import latest

    folder = latest(results, run)
    _report(folder, rules, exploratory=exploratory)
    typer.echo(_headline(folder))


@app.command()
def report(
    run: RunArgument,
    results: ResultsOption = RESULTS,
    rules: RulesOption = None,
    exploratory: ExploratoryOption = False,
) -> None:
    """Write findings.md, findings.json and findings.html of a run from its receipts."""
    from harness.campaign import latest

    for path in _report(latest(results, run), rules, exploratory=exploratory):
        typer.echo(str(path))


@app.command()
def audit(run: RunArgument, results: ResultsOption = RESULTS) -> None:
    """Check a run by deterministic rules, offline: freeze, chain, receipts, arms, judging, numbers. A failure: exit code 4."""
    from harness.campaign import latest

    if _audit(latest(results, run)):
        raise typer.Exit(4)


@app.command()
def publish(
    run: RunArgument,
    results: ResultsOption = RESULTS,
    to: Annotated[Path | None, typer.Option("--to", help="Where published runs lie.", metavar="DIR")] = None,
) -> None:
    """Pack a sealed run that passes the audit into results/published/, to be committed as evidence."""
    from analysis.publish import publish as pack
    from harness.campaign import latest

    folder = latest(results, run)
    if _audit(folder):
        raise typer.Exit(4)
    typer.echo(f"published: {pack(folder, to or results / 'published')}")


@app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(help="Embedded models, such as qwen2.5-coder-0.5b.", metavar="NAME...")],
) -> None:
    """Fetch and check the weights of embedded models now, rather than at the first run that needs them."""
    from harness.models import weights

    for name in names:
        typer.echo(f"{name}: {weights.fetch(name.removeprefix('embedded/'), _say)}")


@app.command()
def compare(first: RunArgument, second: RunArgument, results: ResultsOption = RESULTS) -> None:
    """Set two runs side by side: what differs in their inputs, and what in their findings."""
    from analysis.compare import compare as set_side_by_side
    from harness.campaign import latest

    typer.echo(set_side_by_side(latest(results, first), latest(results, second)))


def _say(text: str) -> None:
    typer.echo(text, err=True)


def _power(loaded: object) -> list[str]:
    from analysis import planning

    return planning.sentences(loaded)  # type: ignore[arg-type]


def _underpowered(loaded: object) -> list[str]:
    """Claims that no data of the planned size could support.

    Raises:
        FreezeError: there are some, and the study does not accept them by name.
    """
    from analysis import planning

    return planning.hopeless(loaded)  # type: ignore[arg-type]


def _report(folder: Path, rules: Path | None, *, exploratory: bool) -> list[Path]:
    from analysis import commands

    return commands.report(folder, rules, exploratory=exploratory)


def _audit(folder: Path) -> bool:
    from analysis import commands
    from harness import audit as harness_audit

    lines, failed = commands.audit(folder, harness_audit.rules)
    for line in lines:
        typer.echo(line)
    return failed


def _headline(folder: Path) -> str:
    from analysis import commands

    return commands.headline(folder)


def main() -> None:
    """Run the command; an expected error is one message and its own exit code."""
    try:
        app()
    except FairtrialError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        typer.echo("stopped by the operator; start the same command again to go on", err=True)
        sys.exit(130)


if __name__ == "__main__":
    main()

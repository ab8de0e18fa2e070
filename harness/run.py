"""Run a frozen study: trials, then judging, then the seal. Everything paid for is on the disk before it is used.

A killed run is started again by the same command: finished calls are answered from their receipts, unfinished trials go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from pydantic import JsonValue

import tasks as task_pools
from harness import freeze, journal, plan, reading, stored
from harness.ask import Door
from harness.asking import Arm
from harness.canonical import canonical
from harness.errors import Cause, FairtrialError, ResultsError, SetupError, StoppedError, TrialError
from harness.judging import Judge
from harness.models import Models
from harness.progress import Progress
from harness.records import (
    Answer,
    Answered,
    Call,
    Failed,
    Frozen,
    Outcome,
    Pair,
    Question,
    Started,
    Task,
    Trial,
    Verdict,
)
from harness.session import Session
from harness.stored import Plan
from harness.study import Loaded

Watch = Callable[[Progress], None]
Job = Callable[[], Awaitable[None]]
_ENDS_THE_RUN = (ResultsError, SetupError, StoppedError)


async def run(loaded: Loaded, folder: Path, watch: Watch, *, close: bool = False) -> str:
    """Bring a run to its seal, or with `close` seal it as it stands. Returns the root hash.

    Raises:
        LockedError, ResultsError: see `journal.Writer`. StoppedError: a budget, a fatal failure, or the operator ended it.
    """
    frozen, what = stored.manifest(folder), stored.plan(folder)
    specs = loaded.study.models
    with journal.Writer(folder, stored.genesis(folder)) as writer:
        async with Models(dict(specs), loaded.folder) as models:
            session = Session(_with_live_budget(frozen, loaded), writer, models, dict(specs))
            progress = Progress(what, writer.log.entries)

            def on_call(call: Call) -> None:
                progress.count(call)
                watch(progress)

            session.on_call = on_call
            _notes(session, frozen, loaded)
            try:
                with _signals(session):
                    if not close:
                        await _trials(session, loaded, what, progress, watch)
                        progress.phase = "judging"
                        await _judging(session, loaded, what, progress, watch)
            except StoppedError as error:
                session.note("stopped", str(error))
                raise
            _close(session, what)
            return writer.seal()


def _close(session: Session, what: Plan) -> None:
    """Give every trial that has none its outcome: the run was ended by its budget or its provider."""
    stops = [e.text for e in session.writer.log.entries if e.kind == "note" and e.about == "stopped"]
    cause = Cause.budget if stops and stops[-1].startswith("budget.") else Cause.provider
    why = stops[-1] if stops else "the run was closed before its plan was done"
    for trial in what.trials:
        if trial.id not in session.outcomes:
            session.writer.append(Failed(trial=trial.id, cause=cause, message=f"not run: {why}", seconds=0.0))


def _with_live_budget(frozen: Frozen, loaded: Loaded) -> Frozen:
    return frozen.model_copy(update={"study": frozen.study.model_copy(update={"budget": loaded.study.budget})})


def _notes(session: Session, frozen: Frozen, loaded: Loaded) -> None:
    """What a resume must say of itself: orphans, a changed budget, another environment."""
    entries = session.writer.log.entries
    if not entries:
        return
    session.note("resumed", f"{len(entries)} lines were there")
    ended = {entry.id for entry in entries if isinstance(entry, Call)}
    marked = {entry.subject for entry in entries if entry.kind == "note" and entry.about == "orphan"}
    for entry in entries:
        if isinstance(entry, Started) and entry.id not in ended | marked:
            session.note("orphan", "started and never ended: possibly billed, usage unknown", entry.id)
    if loaded.study.budget != frozen.study.budget:
        session.note("budget", f"frozen {frozen.study.budget!r}, now {loaded.study.budget!r}")
    here = freeze.environment(loaded.folder)
    if here != frozen.environment:
        was, now = frozen.environment.model_dump(), here.model_dump()
        moved = [key for key in was if was[key] != now[key]]
        session.note("environment", "; ".join(f"{key}: frozen {was[key]}, now {now[key]}" for key in moved))


@contextlib.contextmanager
def _signals(session: Session) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM lets calls under way end; the second cancels them. Both leave receipts."""
    loop, current = asyncio.get_running_loop(), asyncio.current_task()

    def handle() -> None:
        if session.stop is None:
            session.halt("stopped by the operator; start the same command again to go on")
        elif current is not None:
            current.cancel()

    kinds = (signal.SIGINT, signal.SIGTERM)
    try:
        for kind in kinds:
            loop.add_signal_handler(kind, handle)
    except (NotImplementedError, ValueError, RuntimeError):
        yield  # no signals here (Windows, or not the main thread): Ctrl-C cancels at once
        return
    try:
        yield
    except asyncio.CancelledError:
        raise StoppedError("cancelled by the operator; start the same command again to go on") from None
    finally:
        for kind in kinds:
            loop.remove_signal_handler(kind)


# --- trials ----------------------------------------------------------------------------------------------------------


async def _workers(session: Session, jobs: list[Job], width: int) -> None:
    """Run jobs in their order, a few at a time, until all are done or the run stops."""
    queue = iter(jobs)

    async def work() -> None:
        for job in queue:
            if session.stop is not None:
                return
            # A stop ends each worker by itself, so that the calls of the others come to their end.
            try:
                await job()
            except StoppedError as error:
                session.halt(str(error))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(width, len(jobs)) or 1):
                group.create_task(work())
    except BaseExceptionGroup as errors:
        raise root_cause(errors) from None
    if session.stop is not None:
        raise StoppedError(session.stop)


def root_cause(error: BaseException) -> BaseException:
    """The one error behind a group: a stop first, then a failure of the files, then of a trial, then anything else."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    flat = [root_cause(one) for one in error.exceptions]
    for kind in (asyncio.CancelledError, StoppedError, TrialError, FairtrialError):
        for one in flat:
            if isinstance(one, kind) and not (kind is TrialError and any(_fatal(e) for e in flat)):
                return one
    return flat[0]


def _fatal(error: BaseException) -> bool:
    return isinstance(error, FairtrialError) and not isinstance(error, TrialError)


def _width(session: Session) -> int:
    return min(64, sum(slot._value for slot in session.slots.values()))


async def _trials(session: Session, loaded: Loaded, what: Plan, progress: Progress, watch: Watch) -> None:
    by_id = {(name, task.id): task for name, pool in loaded.pools.items() for task in pool.drawn}

    def job(trial: Trial) -> Job:
        async def go() -> None:
            outcome = await _trial(session, loaded, trial, by_id[trial.pool, trial.task])
            session.writer.append(outcome)
            session.outcomes[trial.id] = outcome
            progress.done["answered" if isinstance(outcome, Answered) else outcome.cause.value] += 1
            watch(progress)

        return go

    watch(progress)
    await _workers(session, [job(trial) for trial in what.trials if trial.id not in session.outcomes], _width(session))


async def _trial(session: Session, loaded: Loaded, trial: Trial, task: Task) -> Outcome:
    """One trial to its outcome. Only what ends the run passes; everything else is data."""
    arm, family = loaded.arms[trial.arm], loaded.pools[trial.pool].family
    question = task_pools.question(task)
    door = Door(session, trial, arm, loaded.arms, task, family, question)
    clock = time.monotonic()
    try:
        answer = await _answer(arm, door, question)
    except TrialError as error:
        detail: dict[str, JsonValue] = {key: _json(value) for key, value in error.detail.items()}
        return Failed(trial=trial.id, cause=error.cause, message=str(error), detail=detail, seconds=_since(clock))
    except _ENDS_THE_RUN:
        raise
    except Exception as error:  # an arm may be anybody's code: its crash is this trial's outcome, never the run's end
        text = f"{type(error).__name__}: {error}"
        return Failed(trial=trial.id, cause=Cause.bug, message=text, seconds=_since(clock))
    return _sound(outcome_of(trial, task, family, answer, _since(clock)))


def _sound(outcome: Outcome) -> Outcome:
    """An outcome that can be written. An arm's detail or a checker's score may hold what JSON cannot, such as NaN."""
    try:
        canonical(outcome)
    except (ValueError, TypeError) as error:
        text = f"the outcome cannot be written: {error}"
        return Failed(trial=outcome.trial, cause=Cause.bug, message=text, seconds=outcome.seconds)
    return outcome


async def _answer(arm: Arm, door: Door, question: Question) -> Answer:
    try:
        answer = await arm(question, door)
    except BaseExceptionGroup as errors:
        raise root_cause(errors) from None
    if not isinstance(answer, Answer):
        raise TypeError(f"an arm returns an Answer, not {type(answer).__name__}")
    return answer


def _since(clock: float) -> float:
    return round(time.monotonic() - clock, 3)


def _json(value: object) -> JsonValue:
    return value if isinstance(value, str | int | float | bool | list | dict) or value is None else str(value)


def outcome_of(trial: Trial, task: Task, family: task_pools.Family, answer: Answer, seconds: float) -> Outcome:
    """Read and score an answer. A text that cannot be read is a failure with its own cause, never a wrong answer."""
    found = reading.read(answer.text, task.answer_format)
    cut = answer.finish == "length"
    if found.value is None or (cut and task.answer_format == "text"):
        cause = Cause.truncated if cut else Cause.refused if answer.finish == "content_filter" else Cause.unreadable
        message = {
            Cause.truncated: "the answer was cut by its length",
            Cause.refused: "the provider's content filter ended the answer",
            Cause.unreadable: f"no well-formed answer of the format {task.answer_format!r}",
        }[cause]
        return Failed(trial=trial.id, cause=cause, message=message, answer=answer, seconds=seconds)
    if family.check is None or task.ground_truth == "judged":
        return Answered(trial=trial.id, answer=answer, reading=found, passed=None, strict_passed=None, seconds=seconds)
    try:
        checked = family.check(task, found)
        strict = checked.passed and found.strict
    except Exception as error:  # a checker may be anybody's code
        text = f"the checker of {trial.pool} failed: {type(error).__name__}: {error}"
        return Failed(trial=trial.id, cause=Cause.bug, message=text, answer=answer, seconds=seconds)
    return Answered(
        trial=trial.id,
        answer=answer,
        reading=found,
        passed=checked.passed,
        strict_passed=strict,
        score=checked.score,
        feedback=checked.feedback,
        seconds=seconds,
    )


# --- judging ---------------------------------------------------------------------------------------------------------


async def _judging(session: Session, loaded: Loaded, what: Plan, progress: Progress, watch: Watch) -> None:
    """Calibration first, then the pairs: every judge model, both orders. A pair with a failed side is not read."""
    seen: set[tuple[str, str, str]] = {
        (e.subject, e.model, e.order) for e in session.writer.log.entries if isinstance(e, Verdict)
    }
    begun = {subject for subject, _, _ in seen}
    questions = {(name, task.id): task.prompt for name, pool in loaded.pools.items() for task in pool.drawn}
    for judge, pairs in loaded.calibration.items():
        questions |= {(str(loaded.study.judges[judge].calibration), pair.id): pair.question for pair in pairs}

    def job(pair: Pair) -> Job:
        async def go() -> None:
            texts = _texts(pair, session.outcomes)
            if texts is not None:
                await _read(session, pair, questions[pair.pool, pair.task], texts, seen)
            if pair.id not in begun:
                progress.judged += 1
            watch(progress)

        return go

    await _workers(session, [job(pair) for pair in what.pairs], _width(session))


async def _read(
    session: Session, pair: Pair, question: str, texts: tuple[str, str], seen: set[tuple[str, str, str]]
) -> None:
    for model in session.frozen.study.judges[pair.judge].models:
        judge = Judge(session, pair.judge, model)
        for order in plan.order_of(session.frozen.study.seed, pair):
            if (pair.id, model, order) not in seen:
                session.writer.append(await judge.read(pair, order, question, *texts))


def _texts(pair: Pair, outcomes: dict[str, Outcome]) -> tuple[str, str] | None:
    if pair.source != "trials":
        return pair.left, pair.right
    left, right = outcomes[pair.left], outcomes[pair.right]
    if isinstance(left, Failed) or isinstance(right, Failed):
        return None
    return left.answer.text, right.answer.text

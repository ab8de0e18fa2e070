"""Every error that fairtrial raises on purpose, and the one table of what a failed call means.

FairtrialError                 one clear message: what, where, what would be right
├── StudyError                 a study file, pool, checker or arm module is not as it must be      exit 2
├── FreezeError                a study may not be frozen as it stands                               exit 2
├── DriftError                 live or stored inputs differ from the frozen ones                    exit 3
├── ResultsError               a results folder is damaged, foreign or unreadable                   exit 4
│   └── LockedError            somebody else is writing there                                       exit 4
├── SetupError                 weights, a key or a server is missing on this machine                exit 5
├── StoppedError               a run ended before its plan did; it can be resumed                   exit 6
├── PromptError                a template and its values do not fit: a bug in an arm or a judge     exit 70
└── TrialError                 inside one trial; ends it with a cause, never the run
    ├── AskError               a call failed for good (carries its symptom)
    ├── ContractError          a reply broke the arm's protocol, also when asked again
    └── CapError               the arm reached its own limit of calls
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Cause(StrEnum):
    """Why a planned trial has no answer. Closed."""

    provider = "provider"
    timeout = "timeout"
    truncated = "truncated"
    overflow = "overflow"
    refused = "refused"
    unreadable = "unreadable"
    contract = "contract"
    halted = "halted"
    cap = "cap"
    budget = "budget"
    tool = "tool"
    bug = "bug"


class Blame(StrEnum):
    """Whose doing a cause is: the arm's own, or the infrastructure's."""

    own = "own"
    infrastructure = "infrastructure"


class Retry(StrEnum):
    """What a symptom asks of the retry loop."""

    never = "never"
    transient = "transient"
    rate_limited = "rate_limited"
    fatal = "fatal"  # never, and the run stops: the next call would fail alike


class Symptom(StrEnum):
    """What one attempt showed. Closed; every model maps what it saw to one of these."""

    rate_limited = "rate_limited"
    server_error = "server_error"
    connection = "connection"
    timed_out = "timed_out"
    authentication = "authentication"
    billing = "billing"
    not_found = "not_found"
    bad_request = "bad_request"
    overflow = "overflow"
    no_choices = "no_choices"
    malformed_body = "malformed_body"
    no_content = "no_content"
    cut = "cut"
    content_filter = "content_filter"
    refusal = "refusal"
    substituted_model = "substituted_model"
    not_in_replay = "not_in_replay"
    run_budget = "run_budget"
    cancelled = "cancelled"
    internal = "internal"


class Meaning(NamedTuple):
    """One row of the table: the cause a symptom ends in, whose doing it is, and whether to try again."""

    cause: Cause
    retry: Retry


SYMPTOMS: dict[Symptom, Meaning] = {
    Symptom.rate_limited: Meaning(Cause.provider, Retry.rate_limited),
    Symptom.server_error: Meaning(Cause.provider, Retry.transient),
    Symptom.connection: Meaning(Cause.provider, Retry.transient),
    Symptom.timed_out: Meaning(Cause.timeout, Retry.transient),
    Symptom.authentication: Meaning(Cause.provider, Retry.fatal),
    Symptom.billing: Meaning(Cause.provider, Retry.fatal),
    Symptom.not_found: Meaning(Cause.provider, Retry.fatal),
    Symptom.bad_request: Meaning(Cause.provider, Retry.never),
    Symptom.overflow: Meaning(Cause.overflow, Retry.never),
    Symptom.no_choices: Meaning(Cause.provider, Retry.transient),
    Symptom.malformed_body: Meaning(Cause.provider, Retry.transient),
    Symptom.no_content: Meaning(Cause.unreadable, Retry.never),
    Symptom.cut: Meaning(Cause.truncated, Retry.never),
    Symptom.content_filter: Meaning(Cause.refused, Retry.never),
    Symptom.refusal: Meaning(Cause.refused, Retry.never),
    Symptom.substituted_model: Meaning(Cause.provider, Retry.never),
    Symptom.not_in_replay: Meaning(Cause.provider, Retry.never),
    Symptom.run_budget: Meaning(Cause.budget, Retry.never),
    Symptom.cancelled: Meaning(Cause.provider, Retry.transient),
    Symptom.internal: Meaning(Cause.bug, Retry.never),
}

BLAME: dict[Cause, Blame] = {
    Cause.provider: Blame.infrastructure,
    Cause.timeout: Blame.infrastructure,
    Cause.truncated: Blame.own,
    Cause.overflow: Blame.own,
    Cause.refused: Blame.own,
    Cause.unreadable: Blame.own,
    Cause.contract: Blame.own,
    Cause.halted: Blame.own,
    Cause.cap: Blame.own,
    Cause.budget: Blame.infrastructure,
    Cause.tool: Blame.own,
    Cause.bug: Blame.infrastructure,
}


class FairtrialError(Exception):
    """The root: its text is one message for a person, and `exit_code` is what the command returns."""

    exit_code = 1


class StudyError(FairtrialError):
    """A study file, pool, checker or arm module is not as it must be."""

    exit_code = 2


class FreezeError(FairtrialError):
    """A study may not be frozen as it stands."""

    exit_code = 2


class DriftError(FairtrialError):
    """Inputs differ from the frozen ones; the text names each with both hashes."""

    exit_code = 3


class ResultsError(FairtrialError):
    """A results folder is damaged, foreign or unreadable."""

    exit_code = 4


class LockedError(ResultsError):
    """Another process is writing to the results folder; the text names it."""


class SetupError(FairtrialError):
    """Weights, a key or a server is missing on this machine."""

    exit_code = 5


class StoppedError(FairtrialError):
    """A run ended before its plan did. Everything is written; starting it again resumes it."""

    exit_code = 6


class PromptError(FairtrialError):
    """A template and its values do not fit together."""

    exit_code = 70


class TrialError(FairtrialError):
    """Ends one trial, with a cause. `detail` is kept with the outcome."""

    def __init__(self, cause: Cause, message: str, detail: dict[str, object] | None = None) -> None:
        super().__init__(message)
        self.cause = cause
        self.detail = detail or {}


class AskError(TrialError):
    """A call failed for good: not to be retried, or retries exhausted."""

    def __init__(self, symptom: Symptom, message: str) -> None:
        super().__init__(SYMPTOMS[symptom].cause, message, {"symptom": symptom.value})
        self.symptom = symptom


class ContractError(TrialError):
    """A reply broke a rule of the arm's protocol, also when asked again. The rule is named."""

    def __init__(self, rule: str, message: str, detail: dict[str, object] | None = None) -> None:
        super().__init__(Cause.contract, f"{rule}: {message}", {"rule": rule, **(detail or {})})


class CapError(TrialError):
    """The arm reached its own limit of calls (`max_calls`)."""

    def __init__(self, message: str, detail: dict[str, object] | None = None) -> None:
        super().__init__(Cause.cap, message, detail)


def nearest(word: str, known: list[str]) -> str:
    """A ready-made hint for an error text: the closest known word, or all of them."""
    from difflib import get_close_matches

    close = get_close_matches(word, known, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(sorted(known)) or 'none'}"

"""The nouns of fairtrial: frozen records, no behaviour. They are the schema of every file on disk.

A misspelt key or value is an error that names it; never a default. None means unknown, and unknown is never zero.
Times are UTC in ISO 8601 with a `Z`; durations are seconds; money is US dollars; tokens are counted by the provider.
The file is long because every noun that more than one room uses stands here and nowhere else.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Annotated, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from harness.errors import Cause, Symptom

SCHEMA_VERSION = 1

METHOD_VERSIONS: dict[str, str] = {
    "interval": "gaffke-midp/1",
    "bootstrap": "exact-lattice/1",
    "bounds": "worst-case-unresolved/1",
    "cost_ratio": "ratio-of-means-expanded-percentile/1",
    "multiplicity": "max-t-midp/1",
    "decision": "interval-beyond-margin/1",
    "pair": "both-orders/1",
    "reader": "last-well-formed/1",
}
"""Names and versions of the analysis rules that a freeze records. A changed number needs a changed version."""

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]*$", max_length=80)]
Format = Literal["line", "json", "code", "choice", "text"]
GroundTruth = Literal["exact", "tests", "labels", "judged"]
Share = Annotated[float, Field(ge=0, le=1)]
Bucket = Literal["deliberation", "retry", "judging", "calibration", "overhead"]
Metric = Literal["solved", "preference", "usd", "tokens_out", "calls"]
Choice = Literal["first", "second", "tie", "abstain"]


class Record(BaseModel):
    """What every noun is: immutable, and closed to keys that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


# --- tasks -----------------------------------------------------------------------------------------------------------


class Task(Record):
    """One line of a pool."""

    kind: Literal["task"] = "task"
    version: Literal[1] = 1
    id: Name
    """Unique in its family."""
    family: Name
    split: Literal["dev", "heldout"]
    cluster: str | None = None
    """Tasks made from one template share a cluster; None: a cluster of its own."""
    prompt: str
    answer_format: Format
    facts: str | None = None
    constraints: str | None = None
    position: str | None = None
    """The asker's own tentative answer; only a chain's attacker is shown it."""
    given: dict[str, JsonValue] | None = None
    """A machine-readable copy of what the prompt itself states, for the family's visible check; never sent to a model."""
    workspace: str | None = None
    reference: JsonValue = None
    """The answer key: for the checker alone."""
    ground_truth: GroundTruth


class LabelledPair(Record):
    """One line of a calibration pool: two texts and the right verdict, with its grounds."""

    kind: Literal["labelled_pair"] = "labelled_pair"
    version: Literal[1] = 1
    id: Name
    stratum: Literal["obvious", "subtle", "adversarial", "equal"]
    question: str
    left: str
    right: str
    label: Literal["left", "right", "tie"]
    grounds: str
    """Why the label is right, so that a reader can check it."""


class Question(Record):
    """All of a task but its reference and ground truth: what an arm may see."""

    id: str
    """family/task."""
    prompt: str
    answer_format: Format
    facts: str | None = None
    constraints: str | None = None
    position: str | None = None
    given: dict[str, JsonValue] | None = None
    workspace: str | None = None


class Reading(Record):
    """What the one reader found in a text: the last well-formed answer of the declared format."""

    format: Format
    value: str | None
    """The answer in canonical form; None: nothing well-formed was found."""
    strict: bool
    """Would the strict reading (the whole text is the answer) have given the same value?"""


class Checked(Record):
    """A checker's verdict on a reading, or a visible check's on a text."""

    passed: bool
    score: float | None = None
    """In [0, 1], where the family grades by degree."""
    feedback: str
    """What failed, in words that give away nothing that the prompt does not state."""


# --- conversation ----------------------------------------------------------------------------------------------------


class ToolCall(Record):
    id: str
    name: str
    arguments: str


class Message(Record):
    role: Literal["system", "user", "assistant", "tool"]
    text: str
    """May hold slots {{label}}, which the Ask alone fills from what `sees` names."""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


class TokenLogprobs(Record):
    """The alternatives at one position of a reply: token -> natural log probability."""

    top: dict[str, float]


class Reply(Record):
    """All that an arm may see of a model."""

    text: str
    finish: str | None = None
    """"stop", "length", "content_filter", "tool_calls", or the provider's own word; None: not told."""
    data: JsonValue = None
    """The parsed object where a schema was asked for and the reply is JSON; None: it is not."""
    tool_calls: tuple[ToolCall, ...] = ()
    logprobs: tuple[TokenLogprobs, ...] | None = None


class Candidate(Record):
    """One of several answers that an arm held before it chose."""

    text: str
    purpose: str
    """The call that brought it."""
    reading: Reading | None = None
    passed: bool | None = None
    """By the visible check, where the arm used it."""


class Answer(Record):
    """What an arm returns. Reading and scoring it is not the arm's business."""

    text: str
    finish: str | None = None
    """The finish of the reply that `text` is taken from: a cut answer that cannot be read failed by truncation."""
    candidates: tuple[Candidate, ...] = ()
    detail: dict[str, JsonValue] = {}
    """What an analyst may want: the protocol's outcome, labels, the ledger. JSON only."""


class Step(Record):
    """One stage of an arm for the forecast: how often it calls which role, and what its prompt holds."""

    role: str
    low: int
    """Calls at least."""
    high: int
    """Calls at most, retries apart."""
    prompt_chars: int = 600
    """Characters of the arm's own template."""
    sees: int = 0
    """Earlier replies that the prompt quotes, about."""


# --- the model seam --------------------------------------------------------------------------------------------------


class Price(Record):
    """One model's price row. US dollars for one token; None: unknown."""

    tokens_in: float | None = None
    tokens_out: float | None = None
    tokens_cached: float | None = None
    source: str


class FaultPlan(Record):
    """Faults that a scripted model or the test server shows, each with a probability drawn from the request's seed."""

    share: float = Field(0.0, ge=0, le=1)
    """Share of attempts that show a fault."""
    kinds: tuple[
        Literal[
            "rate_limited",
            "server_error",
            "hang",
            "cut",
            "null_usage",
            "no_choices",
            "no_content",
            "malformed",
            "wrong_model",
            "refusal",
            "content_filter",
            "overflow",
            "connection",
        ],
        ...,
    ] = ()
    retry_after: float | None = None
    """Seconds that a 429 asks to wait."""
    persistent: bool = False
    """A faulty request stays faulty at every attempt; else it succeeds after `heals_after` attempts."""
    heals_after: int = 1


class Script(Record):
    """How a `scripted/...` model answers. `scripted/skill` uses `skill`; `scripted/file` uses `replies`."""

    skill: dict[str, Share] | Share = 0.5
    """Probability of a right answer, for all roles or by role ("*" is the rest)."""
    spread: float = Field(0.0, ge=0, le=1)
    """How far a task's own probability may lie from `skill`: drawn per task, the same for every arm."""
    first_bias: float = Field(0.0, ge=0, le=1)
    """For judges: the probability of naming the first text whatever it says."""
    abstain: float = Field(0.0, ge=0, le=1)
    replies: str | None = None
    """A JSONL file beside the study: {"role": .., "purpose": .., "contains": .., "text": ..}; the first match answers."""
    latency: float = 0.0
    """Seconds that each reply takes."""
    faults: FaultPlan = FaultPlan()


class ModelSpec(Record):
    """`[models.x]` of a study."""

    name: str
    """`embedded/...`, `scripted/...`, `replay/...`, or any name that litellm knows, such as `openai/...`."""
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    max_tokens: int = Field(512, ge=1)
    """Cap on the tokens of one reply."""
    timeout_seconds: float = Field(180.0, gt=0)
    """Deadline of one attempt."""
    attempts: int = Field(4, ge=1, le=20)
    """Attempts of one call, the first included."""
    concurrency: int | None = Field(None, ge=1)
    """Calls in flight at once. Not part of the fingerprint. None: 1 for `embedded/`, else 8."""
    api_base: str | None = None
    serves: tuple[str, ...] = ()
    """Served names that are accepted besides the name asked for and its dated versions."""
    effort: str | None = None
    extra: dict[str, JsonValue] = {}
    """Further request options, passed through as they are."""
    family: str | None = None
    """Overrides the family table, where the served name is a deployment's own."""
    context_tokens: int | None = None
    """Context window that an embedded model is loaded with. None: 4096."""
    price: Price | None = None
    """Overrides the price table."""
    script: Script | None = None


class Request(Record):
    """One request, as it leaves: the part of a call that its hash covers."""

    messages: tuple[Message, ...]
    temperature: float | None
    top_p: float | None
    max_tokens: int
    seed: int | None
    json_schema: dict[str, JsonValue] | None = None
    tools: tuple[dict[str, JsonValue], ...] | None = None
    logprobs: int | None = None
    """Alternatives wanted at each position."""


class Context(Record):
    """Who asks. For scripted models alone: a real model never sees it."""

    owner: str
    task_id: str
    role: str
    purpose: str
    finished_attempts: int
    """Attempts of this call that came to an end: what faults may depend on."""
    right: str | None = None
    """A reply that keeps the arm's contracts and answers rightly."""
    wrong: str | None = None
    options: dict[str, str] = {}
    """For a judge: the replies "first", "second", "tie" and "abstain" that keep its contract."""


class Fault(Record):
    symptom: Symptom
    message: str
    """Short, and without keys."""
    retry_after: float | None = None


class RawReply(Record):
    """What one attempt brought, right or wrong. Data, not an exception."""

    text: str | None = None
    finish: str | None = None
    model_served: str | None = None
    tokens_in: int | None = Field(None, ge=0)
    tokens_out: int | None = Field(None, ge=0)
    """Reasoning tokens included."""
    tokens_cached: int | None = Field(None, ge=0)
    """A part of tokens_in."""
    tokens_reasoning: int | None = Field(None, ge=0)
    """A part of tokens_out."""
    usage_complete: bool = False
    reasoning_text: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    logprobs: tuple[TokenLogprobs, ...] | None = None
    fault: Fault | None = None


Complete = Callable[[ModelSpec, Request, Context], Awaitable[RawReply]]
"""The model seam: one attempt, no retry."""


# --- a study ---------------------------------------------------------------------------------------------------------


class PoolSpec(Record):
    """`[[pools]]` of a study."""

    family: Name | None = None
    """A folder of tasks/; or give `path` and `check`."""
    path: str | None = None
    """A JSONL file of tasks beside the study."""
    check: str | None = None
    """A Python file beside the study: its checker."""
    split: Literal["dev", "heldout"] = "dev"
    sample: int | None = Field(None, ge=1)
    """Tasks drawn with the study's seed. None: all."""


class Gate(Record):
    accuracy_low: float = Field(0.7, ge=0, le=1)
    """The lower limit of the judge's accuracy on calibration pairs must lie above this."""


class JudgeSpec(Record):
    """`[judges.x]` of a study."""

    models: tuple[str, ...] = Field(min_length=1)
    rule: Literal["unanimous", "majority", "each"] = "each"
    quorum: int | None = None
    method: Literal["letters", "logprobs"] = "letters"
    tie_band: float = Field(0.1, ge=0, lt=0.5)
    """For logprobs: a score within the band is a tie."""
    calibration: str | None = None
    """A family of labelled pairs."""
    calibration_sample: int | None = Field(None, ge=1)
    gate: Gate = Gate()
    same_family: Literal["excluded", "labelled"] = "excluded"
    max_tokens: int | None = None
    pools: tuple[str, ...] | None = None
    """Pools whose answers it judges. None: every pool of ground truth `judged`."""


class ClaimSpec(Record):
    """`[[claims]]` of a study: fixed before the first call."""

    id: Name
    text: str
    arm: str
    baseline: str | tuple[str, ...]
    metric: Metric
    direction: Literal["better", "not_worse", "equivalent"] = "better"
    margin: float = 0.0
    """A difference for solved and preference; for usd, tokens_out and calls a ratio of 1 or more (absent: 1, equal)."""
    pools: tuple[str, ...] | None = None
    target: Literal["population"] = "population"
    """The mean over the tasks that the pool samples from."""
    level: float | None = Field(None, gt=0.5, lt=1)
    basis: Literal["trial"] = "trial"
    """Arms are compared trial by trial, whatever each spends."""
    judge: str | None = None
    """For preference: which judge. None: the only one."""
    unmatched_reason: str | None = None
    """Why an arm of several models is not compared with a `single` of each; printed."""


class Budget(Record):
    """Hard caps. None: no cap of this kind."""

    calls: int | None = Field(None, ge=0)
    tokens_out: int | None = Field(None, ge=0)
    usd: float | None = Field(None, ge=0)


class AnalysisSpec(Record):
    level: float = Field(0.95, gt=0.5, lt=1)
    underpowered: Literal["refused", "accepted"] = "refused"


class Study(Record):
    """A study file, as read. Its arms are raw here; `harness.study` builds them."""

    id: Name
    question: str
    seed: int
    repeats: int = Field(1, ge=1, le=100)
    pools: tuple[PoolSpec, ...] = Field(min_length=1)
    models: dict[Name, ModelSpec] = Field(min_length=1)
    arms: dict[Name, dict[str, JsonValue]] = Field(min_length=1)
    judges: dict[Name, JudgeSpec] = {}
    claims: tuple[ClaimSpec, ...] = ()
    budget: Budget = Budget()
    analysis: AnalysisSpec = AnalysisSpec()


# --- a run -----------------------------------------------------------------------------------------------------------


class ArmSummary(Record):
    """What analysis needs to know of an arm, so that it never has to import one."""

    kind: str
    parameters: dict[str, JsonValue]
    roles: dict[str, str]
    """Role -> model of the study; for a chain with drawn seats, "a|b"."""
    calls_low: int
    calls_high: int
    labels: tuple[str, ...] = ()
    """What must stand beside the arm everywhere: "same-model", "uses the scoring check", ..."""
    pools: tuple[str, ...]


class Environment(Record):
    """Recorded and reported; no drift when it changes."""

    commit: str | None
    dirty: bool | None
    python: str
    platform: str
    packages: dict[str, str]
    host: str


class Frozen(Record):
    """frozen.json: the manifest of a run."""

    kind: Literal["frozen"] = "frozen"
    version: Literal[1] = 1
    study: Study
    fingerprint: str
    """SHA-256 over `inputs`; the folder's name is its first 12 digits."""
    inputs: dict[str, str]
    """Name of an input -> hash of its content."""
    stored: dict[str, str]
    """Path below inputs/ -> SHA-256 of the file's bytes."""
    arms: dict[str, ArmSummary]
    prices: dict[str, Price | None]
    """Model of the study -> the price row used; None: unknown."""
    families: dict[str, str | None]
    """Model of the study -> its family by the frozen table; None: unknown."""
    methods: dict[str, str]
    ground_truth: dict[str, GroundTruth]
    """Pool -> kind of ground truth."""
    splits: dict[str, str]
    tasks: dict[str, int]
    """Pool -> tasks in the plan."""
    warnings: tuple[str, ...] = ()
    """What the study accepted by name; printed by the report."""
    environment: Environment
    frozen_at: str


class Trial(Record):
    """One line of the plan."""

    kind: Literal["trial"] = "trial"
    version: Literal[1] = 1
    id: str
    """arm/family/task/r1."""
    arm: str
    pool: str
    task: str
    """The task's id in its family."""
    repeat: int
    roster: dict[str, str]
    """Role -> model of the study, seats drawn."""
    seed: int


class Pair(Record):
    """Two answers to one task and repeat, to be judged in both orders. Drawn at plan time, or a labelled one."""

    kind: Literal["pair"] = "pair"
    version: Literal[1] = 1
    id: str
    source: Literal["trials", "calibration", "label"]
    judge: str
    pool: str
    task: str
    repeat: int
    arm: str
    """What the left text is: an arm, or "left" of a labelled pair."""
    baseline: str
    left: str
    """Trial id of the arm's answer, or the text of a labelled pair."""
    right: str
    label: Literal["left", "right", "tie"] | None = None
    stratum: str | None = None
    """Kind of a labelled pair: obvious, subtle, adversarial, equal."""


class Started(Record):
    """Written before a call leaves. One without its Call is an orphan: possibly billed, usage unknown."""

    kind: Literal["started"] = "started"
    version: Literal[1] = 1
    id: str
    owner: str
    purpose: str
    attempt: int
    request_sha256: str
    max_tokens: int
    bucket: Bucket
    model: str
    """Model of the study."""
    at: str


class Call(Record):
    """One attempt, paid or not: its receipt."""

    kind: Literal["call"] = "call"
    version: Literal[1] = 1
    id: str
    owner: str
    """A trial's id, a pair reading's, or "probe"."""
    purpose: str
    attempt: int
    """Starts at 1."""
    request_sha256: str
    bucket: Bucket
    role: str
    model: str
    """Model of the study."""
    model_requested: str
    model_served: str | None
    params: dict[str, JsonValue]
    """Sampling settings as sent."""
    messages: tuple[Message, ...]
    """As sent, slots filled."""
    template: tuple[Message, ...] | None
    """Before filling; None: the same as `messages`."""
    json_schema: dict[str, JsonValue] | None = None
    tools: tuple[dict[str, JsonValue], ...] | None = None
    reply: str | None
    tool_calls: tuple[ToolCall, ...] = ()
    logprobs: tuple[TokenLogprobs, ...] | None = None
    reasoning_text: str | None = None
    finish: str | None
    tokens_in: int | None
    tokens_out: int | None
    tokens_cached: int | None
    tokens_reasoning: int | None
    usage_complete: bool
    cost_usd: float | None
    seconds: float
    started_at: str
    saw: dict[str, str]
    """Label of each input that filled a slot -> SHA-256 of its text."""
    fault: Fault | None = None


class Use(Record):
    """One use of a visible check or a tool."""

    kind: Literal["use"] = "use"
    version: Literal[1] = 1
    id: str
    owner: str
    purpose: str
    seq: int
    use: Literal["check", "tool"]
    input: JsonValue
    output: JsonValue
    effect: Literal["none", "workspace"] = "none"
    workspace_sha256: str | None = None
    seconds: float
    error: str | None = None


class Answered(Record):
    kind: Literal["answered"] = "answered"
    version: Literal[1] = 1
    trial: str
    answer: Answer
    reading: Reading
    passed: bool | None
    """None: the pool has no exact check; its answers are judged."""
    strict_passed: bool | None
    """What the strict reading would have scored."""
    score: float | None = None
    feedback: str | None = None
    seconds: float


class Failed(Record):
    kind: Literal["failed"] = "failed"
    version: Literal[1] = 1
    trial: str
    cause: Cause
    message: str
    detail: dict[str, JsonValue] = {}
    answer: Answer | None = None
    """A text that could not be read stays here."""
    seconds: float


class Verdict(Record):
    """One reading of a pair in one order; the swapped order is a second row."""

    kind: Literal["verdict"] = "verdict"
    version: Literal[1] = 1
    subject: str
    """The pair's id."""
    form: Literal["pairwise"] = "pairwise"
    judge: str
    model: str
    """Model of the study that read."""
    order: Literal["left_first", "right_first"]
    method: Literal["letters", "logprobs"]
    reading: int = 1
    formed: bool
    degraded: bool = False
    """Formed only by the repair turn."""
    choice: Choice | None = None
    p_first: float | None = None
    """For logprobs: probability of the first text, renormalised over the two labels."""
    calls: tuple[str, ...] = ()
    cause: Cause | None = None
    """Why none was formed."""
    reason: str | None = None


class Note(Record):
    """What the journal says of itself: a takeover, a changed budget, an orphan, a changed environment."""

    kind: Literal["note"] = "note"
    version: Literal[1] = 1
    about: Literal["orphan", "takeover", "budget", "environment", "repair", "stopped", "resumed", "isolation"]
    text: str
    subject: str | None = None
    at: str


class Seal(Record):
    """The last line: nothing may follow."""

    kind: Literal["seal"] = "seal"
    version: Literal[1] = 1
    root: str
    """Chain hash of the line before."""
    lines: int
    """Lines before this one."""
    at: str


class Ruling(Record):
    """What one rule of an audit says of a run."""

    rule: str
    why: str
    cannot_detect: str
    category: str
    severity: Literal["required", "advisory"]
    result: Literal["PASS", "FAIL", "NOT_APPLICABLE", "BLOCKED", "ERROR"]
    place: str | None = None
    expected: str | None = None
    found: str | None = None


Entry = Annotated[
    Started | Call | Use | Answered | Failed | Verdict | Note | Seal,
    Field(discriminator="kind"),
]
"""One line of a journal."""

Outcome = Answered | Failed


# --- what an arm is handed -------------------------------------------------------------------------------------------


class Ask(Protocol):
    """The only door to a model. Enforces budgets, retries, writes receipts, fills slots."""

    async def __call__(
        self,
        purpose: str,
        role: str,
        messages: tuple[Message, ...],
        *,
        schema: dict[str, JsonValue] | None = None,
        tools: tuple[dict[str, JsonValue], ...] | None = None,
        logprobs: int | None = None,
        max_tokens: int | None = None,
        sees: tuple[str, ...] = (),
        bucket: Bucket | None = None,
    ) -> Reply:
        """One call. `purpose` is a path unique in its trial; `sees` names the earlier purposes, derived labels and
        named inputs (question, facts, constraints, position) that the messages' slots {{label}} may hold.

        Raises:
            AskError: it failed for good.
            CapError: the arm's own limit of calls is reached.
            PromptError: a slot without its label in `sees`, or a label that is unknown.
        """
        ...

    def left(self) -> int | None:
        """Calls that the arm may still make under its own `max_calls`; None: no such limit."""
        ...

    def rng(self, purpose: str) -> random.Random:
        """Randomness seeded by trial and purpose: an arm's only one."""
        ...

    def read(self, text: str) -> Reading:
        """The one reader, for the question's answer format."""
        ...

    def check(self, purpose: str, text: str) -> Checked:
        """The family's visible check on a text; its use leaves a receipt. Only for an arm that declares it.

        Raises:
            TrialError: the arm does not declare it, or the family has none.
        """
        ...

    def verify(self, purpose: str, text: str) -> Checked:
        """The scoring check. Only for an arm with `oracle = true`, which is labelled so everywhere."""
        ...

    def derive(self, label: str, text: str, sees: tuple[str, ...]) -> str:
        """Register text that the arm computed from replies; returns the label. It inherits the labels it names."""
        ...

    def saw(self, label: str) -> str:
        """The text behind a label: a finished reply's, a derived one's, or a named input's."""
        ...

    def scoped(self, prefix: str) -> Ask:
        """The same door with every purpose below `prefix`."""
        ...

    async def run(self, name: str, question: Question) -> Answer:
        """Run another arm of the study inside this one; call it on a scoped Ask."""
        ...

    def seat(self, role: str) -> str:
        """The independence of a role's model from the first role's: independent, same-family, same-model, unverified."""
        ...

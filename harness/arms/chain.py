"""`chain`: premise check, generator, compressor, attacker, synthesiser. Five conversations that may not read each other's notes.

What each role reads is the map `INPUTS` and nothing else; what each must produce is checked by machine (`chain_contracts`).
A broken contract gets one fresh conversation; a second breach ends the trial with role and rule. Never fewer roles, never a
partial answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field, JsonValue

from harness import prompts
from harness.arms import chain_contracts as contracts
from harness.asking import (
    Arm,
    Arms,
    Rule,
    Told,
    answer_field,
    answer_of,
    ask_contract,
    example_answer,
    said,
    seat_seed,
    size,
    task_labels,
    task_text,
    user,
)
from harness.canonical import canonical
from harness.errors import Cause, TrialError
from harness.records import Answer, Ask, Question, Step

INPUTS: dict[str, tuple[str, ...]] = {
    "premise": ("question", "constraints"),
    "generator": ("question", "constraints", "facts", "premise"),
    "compressor": ("question", "generator"),
    "attacker": ("question", "generator", "compressor", "position"),
    "synthesiser": ("question", "constraints", "facts", "premise", "generator", "compressor", "attacker", "inputs"),
}
"""Role -> what it reads. The answering roles read the format instruction too."""


class Chain(Arm):
    """Five roles with separate inputs and contracts."""

    PURPOSE: ClassVar[str] = "premise check, generator, compressor, attacker, synthesiser, each with its own inputs"
    ROLES: ClassVar[tuple[str, ...]] = ("premise", "generator", "compressor", "attacker", "synthesiser")
    FALLBACK: ClassVar[str] = ""

    kind: Literal["chain"] = "chain"
    seat_models: tuple[str, ...] = Field((), max_length=2)
    """Models among which the roles that are not pinned are drawn; one: no draw."""
    seats_by: Literal["seeded", "balanced"] = "seeded"
    """Drawn from study seed, task and repeat, or alternating with the repeat."""
    on_suspect: Literal["force", "halt"] = "force"
    """What follows when the premise check says SUSPECT."""
    claims: int = Field(3, ge=1, le=12)
    """Most claims of the paper."""
    targets: int = Field(5, ge=1, le=5)
    """Most claims that are attacked."""
    allow_reduced_independence: str | None = None
    """Why generator and critics may be of one family; printed by the report."""

    async def __call__(self, question: Question, ask: Ask) -> Answer:
        format = question.answer_format
        heard: dict[str, Told] = {}
        premise = await self._role(ask, question, heard, "premise", contracts.premise_schema(), contracts.premise_rule)
        found = contracts.finding(premise)
        if self.on_suspect == "halt" and said(found, "verdict") == "SUSPECT":
            raise TrialError(Cause.halted, f"the premise is suspect: {said(found, 'defect')}", {"premise": premise})
        schema = contracts.generator_schema(self.claims, answer_field(format))
        paper = await self._role(ask, question, heard, "generator", schema, contracts.generator_rule)
        claims = contracts.table(paper, "claims")
        schema = contracts.compressor_schema(list(claims), self.targets)
        rule: Rule = lambda data: contracts.compressor_rule(data, claims, self.targets)  # noqa: E731 - a rule is a value here
        targets = contracts.vector(await self._role(ask, question, heard, "compressor", schema, rule))
        schema = contracts.attacker_schema(targets)
        rule = lambda data: contracts.attacker_rule(data, targets)  # noqa: E731
        attack = await self._role(ask, question, heard, "attacker", schema, rule, targets=", ".join(targets))
        owed = contracts.due(attack)
        self._hash_inputs(ask, heard)
        schema = contracts.synthesiser_schema(owed, answer_field(format))
        rule = lambda data: contracts.synthesiser_rule(data, owed)  # noqa: E731
        due = ", ".join(owed) or 'nothing (write "none")'
        final = await self._role(ask, question, heard, "synthesiser", schema, rule, due=due)
        return Answer(text=answer_of(ask, format, final), finish="stop", detail=_detail(heard, premise, attack, final))

    async def _role(
        self,
        ask: Ask,
        question: Question,
        heard: dict[str, Told],
        role: str,
        schema: contracts.Data,
        rule: Rule,
        **values: str,
    ) -> contracts.Data:
        """One role in a conversation of its own: its inputs by the map, its contract checked."""
        answering = role in ("generator", "synthesiser")
        named = tuple(name for name in INPUTS[role] if name in ("question", "facts", "constraints", "position"))
        text = prompts.load(f"chain_{role}")
        for earlier, told in heard.items():
            text = text.replace("{{" + earlier + "}}", "{{" + told.label + "}}")
        if answering:
            values["task"] = task_text(question)
            named = (*task_labels(question), "format")
        labels = tuple(heard[name].label for name in INPUTS[role] if name in heard)
        derived = ("inputs",) if "inputs" in INPUTS[role] else ()
        prompt = user(prompts.render(text, **values))
        told = await ask_contract(ask, role, role, prompt, schema, rule, sees=(*named, *labels, *derived))
        heard[role] = told
        return told.data

    def _hash_inputs(self, ask: Ask, heard: dict[str, Told]) -> None:
        """The role table with the hash of what each role wrote, for the synthesiser."""
        rows = [
            f"{role}: {hashlib.sha256(ask.saw(told.label).encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
            for role, told in heard.items()
        ]
        ask.derive("inputs", "\n".join(rows), tuple(told.label for told in heard.values()))

    def steps(self, arms: Arms) -> tuple[Step, ...]:
        halts = self.on_suspect == "halt"
        replies = {"premise": 0, "generator": 1, "compressor": 1, "attacker": 2, "synthesiser": 4}
        return tuple(
            Step(
                role=role,
                low=int(not halts or role == "premise"),
                high=1,
                prompt_chars=size(f"chain_{role}"),
                sees=sees,
            )
            for role, sees in replies.items()
        )

    def models_of_roles(self) -> dict[str, str]:
        drawn = "|".join(self.seat_models)
        return {role: self.roles.get(role, drawn) for role in self.ROLES if role in self.roles or drawn}

    def seats(self, seed: int, task: str, repeat: int) -> dict[str, str]:
        """Even: generator and synthesiser on the first model, the others on the second; odd: the reverse. Pins are not drawn."""
        if not self.seat_models:
            return dict(self.roles)
        odd = (seat_seed(seed, task, repeat) if self.seats_by == "seeded" else seat_seed(seed, task, 0) + repeat) % 2
        first, second = self.seat_models[0], self.seat_models[-1]
        writer, critic = (second, first) if odd else (first, second)
        return {
            role: self.roles.get(role, writer if role in ("generator", "synthesiser") else critic)
            for role in self.ROLES
        }

    def independence(self, families: Mapping[str, str | None]) -> Literal["conforming", "reduced"]:
        """Derived, never declared: generator's family other than the critics', and three distinct models, in every seating."""
        for repeat in (0, 1):
            seats = self.model_copy(update={"seats_by": "balanced"}).seats(0, "", repeat)
            three = [seats.get(role) for role in ("generator", "compressor", "attacker")]
            kinds = [families.get(model or "") for model in three]
            if None in kinds or kinds[0] in kinds[1:] or len(set(three)) < 3:
                return "reduced"
        return "conforming"

    def refusal(self, families: Mapping[str, str | None]) -> str | None:
        if self.independence(families) == "reduced" and not self.allow_reduced_independence:
            return (
                "generator, compressor and attacker are not three models with the generator of a family of its own; "
                'pin such models, or say allow_reduced_independence = "<why>", which the report prints'
            )
        return None

    def labels(self, families: Mapping[str, str | None]) -> tuple[str, ...]:
        return (f"independence: {self.independence(families)}",)

    def prompt_names(self) -> tuple[str, ...]:
        return (*(f"chain_{role}" for role in self.ROLES), "again")

    def sources(self) -> tuple[str, ...]:
        return ("chain_contracts.py",)

    def example(self, purpose: str, role: str, answer: str) -> str:
        value = example_answer(answer)
        claim: JsonValue = {"text": "it follows", "load_bearing": True, "evidence": "derived"}
        replies: dict[str, dict[str, JsonValue]] = {
            "premise": {"suspicion": "none found", "found": {"verdict": "WELL-POSED"}},
            "generator": {"claims": {"C-1": claim}, "weakest": "the last step", "answer": value},
            "compressor": {"map": {"C-1": {"gist": "it follows", "load_bearing": True}}, "attack_vector": ["C-1"]},
            "attacker": {
                "outcomes": {"C-1": {"outcome": "SURVIVES", "reason": "no fault found"}},
                "counts": {"broken": 0, "weakened": 0, "survives": 1},
                "off_vector": contracts.NO_FINDING,
            },
            "synthesiser": {
                "ledger": "none",
                "answer": value,
                "confidence": "high",
                "would_change": "a counterexample",
            },
        }
        return canonical(replies[role]).decode("ascii")


def _detail(
    heard: dict[str, Told], premise: contracts.Data, attack: contracts.Data, final: contracts.Data
) -> dict[str, JsonValue]:
    return {
        "premise": said(contracts.finding(premise), "verdict"),
        "outcomes": {one: said(entry, "outcome") for one, entry in contracts.table(attack, "outcomes").items()},
        "off_vector": said(attack, "off_vector"),
        "ledger": final.get("ledger"),
        "confidence": said(final, "confidence"),
        "would_change": said(final, "would_change"),
        "again": [role for role, told in heard.items() if told.degraded],
    }

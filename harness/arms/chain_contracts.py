"""The contracts of the five-role chain: what each role must produce, checked by machine. A rule is a pure function."""

from __future__ import annotations

from collections import Counter

from pydantic import JsonValue

from harness.asking import closed, said, text_field

DEFECTS = ("false dichotomy", "loaded", "wrong level", "undecidable", "buried question")
EVIDENCE = ("given", "derived", "recalled", "guessed")
OUTCOMES = ("BROKEN", "WEAKENED", "SURVIVES")
NO_FINDING = "NO_OFF_VECTOR_FINDING"
OFF_VECTOR = "OFF-VECTOR"
SHORT = text_field(90)
FLAG: JsonValue = {"type": "boolean"}
Data = dict[str, JsonValue]


def _enum(*words: str) -> JsonValue:
    return {"type": "string", "enum": list(words)}


def table(data: Data, key: str) -> dict[str, Data]:
    """A part of a reply that maps ids to objects; what is no object is left out."""
    value = data.get(key)
    return {k: v for k, v in value.items() if isinstance(v, dict)} if isinstance(value, dict) else {}


def _whole(data: Data, key: str) -> bool:
    value = data.get(key)
    return isinstance(value, dict) and all(isinstance(v, dict) for v in value.values())


# --- schemas ---------------------------------------------------------------------------------------------------------


def premise_schema() -> Data:
    """Premise check: a suspicion first, then what was found: well posed, or suspect with a defect, a reason and a rewording."""
    suspect: Data = {"verdict": _enum("SUSPECT"), "defect": _enum(*DEFECTS), "reason": SHORT, "rewording": SHORT}
    found: JsonValue = {"anyOf": [closed({"verdict": _enum("WELL-POSED")}), closed(suspect)]}
    return closed({"suspicion": SHORT, "found": found})


def generator_schema(most: int, answer: JsonValue) -> Data:
    """Generator: one to `most` numbered claims, the first one load-bearing, the weakest point, and the answer."""
    claim = closed({"text": SHORT, "load_bearing": FLAG, "evidence": _enum(*EVIDENCE)})
    first = closed({"text": SHORT, "load_bearing": {"type": "boolean", "enum": [True]}, "evidence": _enum(*EVIDENCE)})
    ids = [f"C-{n}" for n in range(1, most + 1)]
    held: Data = dict.fromkeys(ids, claim)
    held[ids[0]] = first
    return closed({"claims": closed(held, ids[:1]), "weakest": SHORT, "answer": answer})


def compressor_schema(ids: list[str], most: int) -> Data:
    """Compressor: every id kept, and one to `most` targets."""
    entry = closed({"gist": text_field(60), "load_bearing": FLAG})
    vector: JsonValue = {"type": "array", "items": _enum(*ids), "minItems": 1, "maxItems": min(most, len(ids))}
    return closed({"map": closed(dict.fromkeys(ids, entry)), "attack_vector": vector})


def attacker_schema(targets: list[str]) -> Data:
    """Attacker: an outcome for each target, counts, and what it found outside them."""
    entry = closed({"outcome": _enum(*OUTCOMES), "reason": SHORT})
    number: JsonValue = {"type": "integer", "minimum": 0, "maximum": len(targets)}
    counts = closed({"broken": number, "weakened": number, "survives": number})
    return closed({"outcomes": closed(dict.fromkeys(targets, entry)), "counts": counts, "off_vector": SHORT})


def synthesiser_schema(due: list[str], answer: JsonValue) -> Data:
    """Synthesiser: the ledger over everything that is due, then answer, confidence, and what would change it."""
    entry = closed({"status": _enum("resolved", "unresolved"), "grounds": text_field(70)})
    ledger: JsonValue = closed(dict.fromkeys(due, entry)) if due else _enum("none")
    confidence = _enum("high", "medium", "low")
    return closed({"ledger": ledger, "answer": answer, "confidence": confidence, "would_change": SHORT})


# --- rules -----------------------------------------------------------------------------------------------------------


def premise_rule(data: Data) -> str | None:
    """Exactly one verdict; a suspicion named before it; SUSPECT with one defect, reason and rewording."""
    if not said(data, "suspicion"):
        return "no_suspicion_named"
    found = finding(data)
    if said(found, "verdict") not in ("WELL-POSED", "SUSPECT"):
        return "one_verdict_of_two"
    if said(found, "verdict") == "WELL-POSED":
        return None
    if said(found, "defect") not in DEFECTS:
        return "suspect_needs_a_known_defect"
    return None if said(found, "reason") and said(found, "rewording") else "suspect_needs_reason_and_rewording"


def finding(data: Data) -> Data:
    """What the premise check found, as an object."""
    value = data.get("found")
    return value if isinstance(value, dict) else {}


def generator_rule(data: Data) -> str | None:
    """Claims C-1, C-2, ... without gaps, each with text and evidence class; one load-bearing; an answer."""
    if not _whole(data, "claims"):
        return "claims_are_numbered"
    claims = table(data, "claims")
    if list(claims) != [f"C-{n}" for n in range(1, len(claims) + 1)] or not claims:
        return "claim_ids_run_from_c1"
    for claim in claims.values():
        if not said(claim, "text"):
            return "a_claim_without_text"
        if said(claim, "evidence") not in EVIDENCE:
            return "an_unknown_evidence_class"
        if not isinstance(claim.get("load_bearing"), bool):
            return "load_bearing_is_true_or_false"
    if not any(claim["load_bearing"] for claim in claims.values()):
        return "no_load_bearing_claim"
    if not said(data, "weakest"):
        return "no_weakest_point"
    return None if data.get("answer") else "no_answer"


def compressor_rule(data: Data, claims: dict[str, Data], most: int) -> str | None:
    """Every id unchanged, none new; one to `most` targets that exist, once each, a load-bearing one among them."""
    mapped = table(data, "map")
    if set(claims) - set(mapped):
        return "a_claim_is_missing"
    if set(mapped) - set(claims):
        return "a_new_claim"
    if not all(isinstance(entry.get("load_bearing"), bool) for entry in mapped.values()):
        return "load_bearing_is_true_or_false"
    targets = vector(data)
    if not 1 <= len(targets) <= most:
        return "too_few_or_too_many_targets"
    if len(set(targets)) < len(targets):
        return "a_target_twice"
    if set(targets) - set(claims):
        return "a_target_that_does_not_exist"
    bearing = {one for one, entry in mapped.items() if entry["load_bearing"]}
    return "no_load_bearing_target" if bearing and not bearing & set(targets) else None


def vector(data: Data) -> list[str]:
    """The ids to be attacked."""
    value = data.get("attack_vector")
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def attacker_rule(data: Data, targets: list[str]) -> str | None:
    """An outcome with a reason for every target and no other; counts that match; a finding or exactly none."""
    outcomes = table(data, "outcomes")
    if set(targets) - set(outcomes):
        return "a_target_without_an_outcome"
    if set(outcomes) - set(targets):
        return "an_outcome_without_a_target"
    if any(said(entry, "outcome") not in OUTCOMES for entry in outcomes.values()):
        return "an_unknown_outcome"
    if not all(said(entry, "reason") for entry in outcomes.values()):
        return "an_outcome_without_a_reason"
    found = Counter(said(entry, "outcome").lower() for entry in outcomes.values())
    counts = data.get("counts")
    if not isinstance(counts, dict) or any(counts.get(word.lower()) != found[word.lower()] for word in OUTCOMES):
        return "counts_that_do_not_match"
    return None if said(data, "off_vector") else "no_off_vector_line"


def due(attack: Data) -> list[str]:
    """What the ledger owes a line: every broken or weakened claim, and the off-vector finding."""
    outcomes = table(attack, "outcomes")
    hit = [one for one, entry in outcomes.items() if said(entry, "outcome") != "SURVIVES"]
    return hit if said(attack, "off_vector") == NO_FINDING else [*hit, OFF_VECTOR]


def synthesiser_rule(data: Data, owed: list[str]) -> str | None:
    """A ledger over exactly what is due, `none` only where nothing is; an answer, a confidence, what would change it."""
    if not owed and data.get("ledger") != "none":
        return "a_ledger_where_none_is_due"
    ledger = table(data, "ledger")
    if set(owed) - set(ledger):
        return "the_ledger_leaves_something_out"
    if set(ledger) - set(owed):
        return "the_ledger_names_what_is_not_due"
    if any(said(entry, "status") not in ("resolved", "unresolved") for entry in ledger.values()):
        return "resolved_or_unresolved"
    if any(said(entry, "status") == "resolved" and not said(entry, "grounds") for entry in ledger.values()):
        return "resolved_without_grounds"
    if said(data, "confidence") not in ("high", "medium", "low"):
        return "one_confidence_of_three"
    if not said(data, "would_change"):
        return "nothing_would_change_it"
    return None if data.get("answer") else "no_answer"

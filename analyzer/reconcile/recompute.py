"""What may be believed of an archive: recorded verdicts against the state of their evidence, and against new ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sgl_graph.analyzer.reconcile.consistency import contradictions
from sgl_graph.analyzer.records.archive import EXPORT, LEDGER, MANIFEST, PLAN
from sgl_graph.analyzer.records.ledger import (
    Agreement,
    CoverageVerdict,
    Ledger,
    LifetimeVerdict,
    NumericalVerdict,
    Verdicts,
)

NAMES = ("lifetime", "numerical", "coverage")
#: Ends the statement on what was read where the digest kept elsewhere is another archive's.
OTHER_ARCHIVE = "NOT the archive whose digest was kept elsewhere"
_UNTOUCHED = ("NOT-RUN", "NOT-RECOMPUTED")

Bound = Literal["matches", "differs", "not given"]
AnyVerdict = LifetimeVerdict | NumericalVerdict | CoverageVerdict


@dataclass(frozen=True)
class Verification:
    """How the files of an archive stand to its manifest, and the manifest to the digest kept elsewhere."""

    #: `matches` or `differs` when a digest was given; `not given` else.
    bound: Bound
    manifest_digest: str | None
    #: What is wrong, by file; the manifest itself included.
    damage: Mapping[str, str] = field(default_factory=dict)
    #: Files that an export left out on purpose.
    left_out: Sequence[str] = ()
    state: str = "unknown"
    #: sha256 of the files that are as the manifest says.
    digests: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """For the report's Run line."""
        if self.manifest_digest is None:
            return "no manifest: nothing binds these files"
        if self.bound == "matches":
            return "bound by the digest that was kept elsewhere"
        if self.bound == "differs":
            return OTHER_ARCHIVE
        return "consistent with itself only: no digest kept elsewhere was given"

    def against(self, verdict: str) -> list[str]:
        """What is wrong with the files that a verdict rests on, with each file's name."""
        found = [f"{name}: {why}" for name, why in sorted(self.damage.items()) if rests_on(verdict, name)]
        if self.bound == "differs":
            found.insert(0, f"{MANIFEST}: its digest is not the one kept elsewhere")
        return found


def rests_on(verdict: str, name: str) -> bool:
    """Whether a verdict, or its record, rests on a file of the archive."""
    if name in (MANIFEST, PLAN, LEDGER, EXPORT):
        return True
    folder = name.split("/", 1)[0]
    if verdict == "numerical":
        return folder in ("eager", "eager-repeat", "ordinary") and not name.endswith(("server.log", "server_info.json"))
    if name.startswith("receipts/") or name in ("instrumented/launch.json", "program/launch.json"):
        return True
    return verdict == "coverage" and name in ("map.json", "source.json")


def inspected(ledger: Ledger, verification: Verification, *, run_dir: str) -> Ledger:
    """The recorded ledger as a read-only inspection shows it: what no longer verifies is INCOMPLETE."""
    verdicts = {name: _checked(name, getattr(ledger.verdicts, name), verification) for name in NAMES}
    for name, why in contradictions(ledger).items():
        verdicts[name] = _rejected(verdicts[name], f"recorded PASS, but {why}")
    damaged = verification.damage or verification.bound == "differs"
    agreement = ledger.agreement
    if agreement.status != "unavailable":
        status = "rejected" if damaged and _answers_damaged(verification) else "historical only"
        agreement = agreement.model_copy(update={"status": status})
    return ledger.model_copy(
        update={
            "job": "read-only inspection",
            "run_dir": run_dir,
            "read_file": f"{LEDGER}; {verification.text()}",
            "verdicts": Verdicts.model_validate(verdicts),
            "agreement": agreement,
            "limitations": [*ledger.limitations, *_damage_lines(verification)],
        }
    )


def recomputed(new: Ledger, recorded: Ledger | None, verification: Verification) -> Ledger:
    """New verdicts beside the recorded ones; never better than what was recorded or than the evidence allows."""
    verdicts: dict[str, AnyVerdict] = {}
    contradicted = contradictions(recorded) if recorded is not None else {}
    for name in NAMES:
        verdict = _checked(name, getattr(new.verdicts, name), verification)
        left_out = any(item.endswith(".outputs.json") for item in verification.left_out)
        if name == "numerical" and left_out and not verification.against(name):
            verdict = verdict.model_copy(
                update={"value": "NOT-RECOMPUTED", "evidence": "none", "reason": "the answers are not in this export"}
            )
        old = getattr(recorded.verdicts, name) if recorded is not None else None
        verdicts[name] = _beside(verdict, old)
        if name in contradicted and verdicts[name].value == "PASS":
            verdicts[name] = _rejected(verdicts[name], f"recorded PASS, but {contradicted[name]}")
    recorded_values = {name: getattr(recorded.verdicts, name).value for name in NAMES} if recorded else {}
    agreement = new.agreement
    if any(item.endswith(".outputs.json") for item in verification.left_out) and recorded is not None:
        agreement = Agreement(status="unavailable", reason="the answers are not in this export")
    return new.model_copy(
        update={
            "verdicts": Verdicts.model_validate(verdicts),
            "agreement": agreement,
            "execution_path": {**new.execution_path, "recorded_verdicts": recorded_values},
            "limitations": [*new.limitations, *_damage_lines(verification), *_side_by_side(recorded, verdicts)],
        }
    )


def _checked(name: str, verdict: AnyVerdict, verification: Verification) -> AnyVerdict:
    """The verdict, or INCOMPLETE where something that it rests on does not verify."""
    wrong = verification.against(name)
    if not wrong or verdict.value in _UNTOUCHED:
        return verdict
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    return _rejected(verdict, f"recorded or found {verdict.value}, but its evidence does not verify: {wrong[0]}{more}")


def _rejected(verdict: AnyVerdict, reason: str) -> AnyVerdict:
    update: dict[str, Any] = {"value": "INCOMPLETE", "reason": reason}
    if not isinstance(verdict, NumericalVerdict):
        update["identity"] = verdict.identity.model_copy(update={"status": "rejected"})
    elif verdict.evidence == "verified":
        update["evidence"] = "rejected"
    return verdict.model_copy(update=update)


def _beside(new: AnyVerdict, old: AnyVerdict | None) -> AnyVerdict:
    """The new verdict; where the record disagrees it is rejected, and a PASS that was not recorded is none."""
    if isinstance(old, NumericalVerdict) and _legacy(new) and _legacy(old):
        return new.model_copy(update={"reason": f"recorded {old.value}; {new.reason}"})
    if old is None or old.value == new.value or new.value in _UNTOUCHED:
        if old is None and new.value == "PASS":
            return new.model_copy(
                update={"value": "INCOMPLETE", "reason": f"recomputed PASS ({new.reason}), and no verdict was recorded"}
            )
        return new
    reason = f"recorded {old.value}, recomputed {new.value}: rejected; {new.reason}"
    value = "INCOMPLETE" if new.value == "PASS" else new.value
    update: dict[str, Any] = {"value": value, "reason": reason}
    if not isinstance(new, NumericalVerdict):
        update["identity"] = new.identity.model_copy(update={"status": "rejected"})
    return new.model_copy(update=update)


def _legacy(verdict: AnyVerdict) -> bool:
    return isinstance(verdict, NumericalVerdict) and verdict.evidence == "unverified-legacy"


def _answers_damaged(verification: Verification) -> bool:
    return verification.bound == "differs" or any(
        name.endswith(".outputs.json") or name in (MANIFEST, PLAN, LEDGER, EXPORT) for name in verification.damage
    )


def _damage_lines(verification: Verification) -> list[str]:
    lines = [f"damage: {name}: {why}" for name, why in sorted(verification.damage.items())]
    lines += (
        [f"left out of this export: {len(verification.left_out)} file{'s' * (len(verification.left_out) != 1)}"]
        if verification.left_out
        else []
    )
    return lines


def _side_by_side(recorded: Ledger | None, verdicts: Mapping[str, AnyVerdict]) -> list[str]:
    if recorded is None:
        return ["no ledger was recorded: nothing to hold the recomputation against"]
    pairs = (f"{name} recorded {getattr(recorded.verdicts, name).value}, now {verdicts[name].value}" for name in NAMES)
    return ["recorded and recomputed: " + "; ".join(pairs)]

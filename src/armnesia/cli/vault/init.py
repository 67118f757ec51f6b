"""Commands that make a vault and look at it: init, status, and what decide says of one."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import table
from armnesia.cli.vault.options import (
    BeyondPolicy,
    Keys,
    Levels,
    MaxDelta,
    MaxEpsilon,
    Url,
    changed_policy,
    policy_words,
    tell,
)
from armnesia.core.errors import InvalidInputError
from armnesia.learners import Imitation
from armnesia.unlearners import UNLEARNERS, ImitationRollback
from armnesia.vault import DEFAULT_URL, Configuration, Served, Vault
from armnesia.vault.configuration import DEFAULT_CONFIDENCE
from armnesia.vault.state.connection import keys_path_of
from armnesia.vault.storage.schema import EXTERNAL, MANAGED

OPERATOR_ONLY = "For the operator only: published before and after a deletion, this tells what was deleted."
_WHY_SERVED = {
    "default": "by default: there is no record to decide from",
    "learner": "decided by the learner, from all records",
    "release": "drawn, once, when records were last forgotten",
}


def init(
    url: Url = DEFAULT_URL,
    keys: Keys = None,
    actions: Annotated[
        str | None, typer.Option(help="The whole action set, in order: A,B,C; else that of the first batch.")
    ] = None,
    reward_range: opt.RewardRange = "0,1",
    learner: opt.LearnerName = None,
    confidence: Annotated[
        float | None,
        typer.Option(help=f"The LCB level τ, for good; {DEFAULT_CONFIDENCE:g} if not given."),
    ] = None,
    unlearner: opt.UnlearnerName = "rollback",
    epsilon: opt.Epsilon = None,
    delta: opt.Delta = None,
    penalty: Annotated[str, typer.Option(help="retained, or frozen: see docs/streams.md.")] = "retained",
    external: Annotated[
        bool, typer.Option("--external", help="Leave the rows at their source; hold statistics and digests.")
    ] = False,
    max_epsilon: MaxEpsilon = None,
    max_delta: MaxDelta = None,
    levels: Levels = None,
    beyond: BeyondPolicy = None,
    variants: Any = None,
    as_json: opt.AsJson = False,
) -> None:
    """Make a vault and its keys. Without more words it answers requests by exact rollback."""
    name = learner or (Imitation.name if unlearner == ImitationRollback.name else "lcb")
    if confidence is not None and name == Imitation.name:
        raise InvalidInputError(f"--confidence belongs to lcb and kl_lcb; got it with {name}")
    if unlearner in UNLEARNERS and UNLEARNERS[unlearner].needs_budget and None in (epsilon, delta):
        raise InvalidInputError(f"--unlearner {unlearner} needs both --epsilon and --delta")
    configuration = Configuration(
        actions=opt.action_labels(actions),
        reward_range=opt.two_numbers(reward_range),
        learner=name,
        confidence=DEFAULT_CONFIDENCE if confidence is None else confidence,
        unlearner=unlearner,
        options=variants,
        epsilon=epsilon or 0.0,
        delta=delta or 0.0,
        penalty=cast(Any, penalty),  # any text comes in; what is not known is refused there
        mode=EXTERNAL if external else MANAGED,
    )
    policy = changed_policy(configuration.requests, max_epsilon, max_delta, levels, beyond)
    with Vault.create(url, replace(configuration, policy=policy), keys=keys) as vault:
        status = vault.status()
        keys_file = keys_path_of(url, keys)
        result = {
            "vault": status.vault,
            "location": status.location,
            "keys": keys_file,
            "public_key": vault.public_key(),
            "head": status.head,
            "configuration": status.configuration.to_facts(),
        }
        tell(
            result,
            as_json,
            f"Vault {status.vault} at {status.location}",
            f"Its keys: {keys_file}. Back this file up, apart from the vault: without it nobody can be"
            " forgotten, and whoever has both can test who was.",
            f"Head of the ledger, to be kept elsewhere: {status.head}",
        )


def decide_in_vault(url: str, keys: Path | None, as_json: bool) -> None:
    """What the vault serves."""
    with Vault.open(url, keys=keys) as vault:
        served = vault.decide()
    result = {"action": served.action, "by": served.by, "head": served.head}
    tell(result, as_json, f"Served: {_served_words(served)}")


def status(
    url: Url = DEFAULT_URL,
    keys: Keys = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Also every arm's count, mean and score: FOR THE OPERATOR ONLY.")
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """How the vault stands. For the operator: numbers of records before and after tell what was deleted."""
    with Vault.open(url, keys=keys) as vault:
        found = vault.status(scores=scores)
    configuration = found.configuration
    result = {
        "vault": found.vault,
        "location": found.location,
        "served": {"action": found.served.action, "by": found.served.by},
        "configuration": configuration.to_facts(),
        "records": found.records,
        "suppressed": found.suppressed,
        "head": found.head,
        "erasure": found.erasure,
        "digest_key": found.digest_key,
        "signing_key": found.signing_key,
        "sources": [asdict(source) for source in found.sources],
        "scores": None if found.scores is None else [asdict(arm) for arm in found.scores],
        "note": OPERATOR_ONLY,
    }
    facts: list[list[Any]] = [
        ["vault", found.vault],
        ["location", found.location],
        ["rows", f"{found.records}, {configuration.mode}"],
        ["served", _served_words(found.served)],
        ["learner", f"{configuration.learner}, τ = {configuration.confidence:g}"],
        ["unlearner", configuration.unlearner],
        ["budget", f"ε = {configuration.epsilon:g}, δ = {configuration.delta:g}"],
        ["penalty", configuration.penalty],
        ["policy", policy_words(configuration.requests)],
        ["on the suppression list", found.suppressed],
        ["erasure", found.erasure],
        ["keys", f"digest key {found.digest_key}, signing key {found.signing_key}"],
    ]
    shown = [table("The vault", ["", ""], facts)]
    if found.sources:
        sources = [[source.name, source.records] for source in found.sources]
        shown.append(table("Its sources", ["source", "rows counted from it"], sources))
    if found.scores is not None:
        rows = [list(asdict(arm).values()) for arm in found.scores]
        shown.append(table("Its arms", ["action", "count", "mean", "score"], rows))
    tell(result, as_json, *shown, f"Head of the ledger: {found.head}", OPERATOR_ONLY)


def _served_words(served: Served) -> str:
    if served.action is None:
        return "nothing yet: the vault has no actions before a log is ingested"
    return f"{served.action} ({_WHY_SERVED[served.by]})"

"""The command `init`."""

import csv
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import print_result
from armnesia.cli.parameters import of_kind, with_options_of, with_parameters
from armnesia.cli.vault.like import Proposal
from armnesia.cli.vault.options import VaultOptions, epsilon_and_delta, policy_changes, with_vault_options
from armnesia.core.errors import InvalidInputError
from armnesia.core.identifiers import UserType
from armnesia.core.messages import listed
from armnesia.learners import LCB, LEARNERS
from armnesia.logs.keys import KeyColumn
from armnesia.unlearners import UNLEARNERS, FrozenRollback, Rollback, Tilt
from armnesia.vault import DEFAULT_CONFIDENCE, EXTERNAL, MANAGED, Configuration, Vault
from armnesia.vault.configuration import MOST_DECISIONS

_WITH_ANY_LEARNER = (Rollback, FrozenRollback, Tilt)


@with_parameters(
    UNLEARNERS,
    LEARNERS,
    notes={"confidence": f"In a vault {DEFAULT_CONFIDENCE:g} if not given."},
)
@with_options_of(policy_changes, "policy")
@with_options_of(opt.LogOptions, "log")
@with_vault_options
def init(
    options: VaultOptions,
    like: Annotated[
        str | None,
        typer.Option(
            metavar="LOG",
            help="Take what is not given from a log: actions, range, user type, learner.",
        ),
    ] = None,
    log: Any = None,
    learner: opt.LearnerName = None,
    unlearner: opt.UnlearnerName = "rollback",
    epsilon: opt.Epsilon = None,
    delta: opt.Delta = None,
    gamma: opt.Gamma = None,
    parameters: Any = None,
    penalty: Annotated[
        str, typer.Option(metavar="retained|frozen", help="The penalty of the learner: see docs/streams.md.")
    ] = "retained",
    external: Annotated[
        bool,
        typer.Option(
            "--external", help="Leave the rows at their sources; hold statistics, and nothing of single rows."
        ),
    ] = False,
    may_erase_at_source: Annotated[
        bool,
        typer.Option(
            "--may-erase-at-source",
            help="With --external: rows of forgotten people may be deleted at their source, on request.",
        ),
    ] = False,
    by: opt.By = None,
    most_decisions: Annotated[
        int, typer.Option(help="How many decisions --by may make; rows that bring more are refused.")
    ] = MOST_DECISIONS,
    decisions_file: Annotated[
        Path | None,
        typer.Option(
            help="A CSV file of all decisions, with the columns of --by: rows of others are refused."
        ),
    ] = None,
    user_type: Annotated[
        str | None,
        typer.Option(
            metavar="integer|text", help="How people are named; if not given, as the first ingest does."
        ),
    ] = None,
    organisation: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose vault it is, as certificates say it.")
    ] = None,
    forgotten_from: Annotated[
        Path | None,
        typer.Option(
            metavar="JOURNAL",
            help="The journal of a vault, with its keys beside it: whoever is forgotten there stays out.",
        ),
    ] = None,
    policy: Any = None,
    as_json: opt.AsJson = False,
) -> None:
    """Create a vault and its keys.

    By default it answers requests by exact rollback. --like LOG looks at a log first.
    """
    _warn_of_key_names(by or ())
    kind, learner_kind = opt.chosen_kinds(unlearner, learner, parameters)
    epsilon, delta = epsilon_and_delta(epsilon, delta, gamma)
    if kind.needs_budget:
        opt.make_budget(epsilon, delta, None)  # it must be given
    found = None if like is None else Proposal.of(like, log, by or ())
    if found is None and log.columns != opt.LogOptions():
        raise InvalidInputError(
            "options about the columns of a log belong to --like LOG, which was not given"
        )
    found_type = None if found is None else found.user_type
    for_rare = False
    if found is not None and learner is None and kind in _WITH_ANY_LEARNER:
        learner_kind = found.learner({"confidence": DEFAULT_CONFIDENCE, **of_kind(parameters, LCB)})
        for_rare = learner_kind is not LCB
    learner_parameters = of_kind(parameters, learner_kind)
    configuration = Configuration(
        actions=log.declared_actions() if found is None else found.log.actions,
        reward_range=(log.declared_range() or (0.0, 1.0)) if found is None else found.log.reward_range,
        learner=learner or learner_kind.name,
        unlearner=unlearner,
        unlearner_options=of_kind(parameters, kind),
        epsilon=epsilon or 0.0,
        delta=delta or 0.0,
        penalty=cast(Any, penalty),  # any text; Configuration refuses an unknown one
        mode=EXTERNAL if external else MANAGED,
        may_erase_at_source=may_erase_at_source,
        by=tuple(by or ()),
        most_decisions=most_decisions,
        confidence=learner_parameters.pop("confidence", DEFAULT_CONFIDENCE),
        learner_options=learner_parameters,
        user_type=found_type if user_type is None else UserType.named(user_type),
        organisation=organisation,
    )
    with Vault.create(
        options.url,
        configuration.with_policy(**policy),
        keys=options.keys,
        timeout=options.timeout,
        decisions=None if decisions_file is None else _decisions_in(decisions_file, configuration),
        forgotten_from=forgotten_from,
    ) as vault:
        made = vault.identity()
    print_result(
        made.to_dict(),
        as_json,
        *([] if found is None else found.lines(configuration, for_rare=for_rare)),
        f"Vault {made.vault} at {made.location}",
        f"Keys: {made.keys}. Back this file up, apart from the vault: without it nobody can be"
        " forgotten, and with both files anyone can test whether a person was.",
        f"Journal: {made.keys}.journal. It grows with each change, and restore needs it: back it up, too.",
    )


def _warn_of_key_names(by: Sequence[str]) -> None:
    """Warn of names that are possible, but rather meant otherwise: the keys of a vault are permanent."""
    for name in (column.name for column in map(KeyColumn.parse, by)):
        first, comma, _ = name.partition(",")
        if comma:
            meant = f"--by names one column: for several, repeat it, as in --by {first.strip()} --by …"
        elif name.endswith(":"):
            meant = "edges follow the colon, as in age:18,30"
        else:
            continue
        warnings.warn(f"the rows must have a column named {name!r}; {meant}", stacklevel=3)


def _decisions_in(file: Path, configuration: Configuration) -> list[dict[str, str]]:
    """The decisions that --decisions-file declares: a value of each key column in every line."""
    names = [column.name for column in configuration.key_columns]
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            rows = csv.DictReader(lines, strict=True)
            missing = [name for name in names if name not in (rows.fieldnames or ())]
            if missing:
                raise InvalidInputError(
                    f"--decisions-file {file} must have the columns {listed(names)}; {listed(missing)}"
                    f" {'is' if len(missing) == 1 else 'are'} missing"
                )
            return [{name: row[name] or "" for name in names} for row in rows]
    except OSError as error:
        raise InvalidInputError(f"--decisions-file {file} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error):
        raise InvalidInputError(f"--decisions-file must be a CSV file in UTF-8; {file} is not") from None

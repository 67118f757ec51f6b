"""The command `forget`."""

import dataclasses
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from armnesia.cli import options as opt
from armnesia.cli.interrupts import Interrupted
from armnesia.cli.names import read_names
from armnesia.cli.output import print_result, table
from armnesia.cli.parameters import with_options_of, with_parameters
from armnesia.cli.vault.erase import erasure_lines
from armnesia.cli.vault.ingest import warn_of_gone_rows
from armnesia.cli.vault.options import (
    IgnoreRetention,
    Purge,
    VaultOptions,
    epsilon_and_delta,
    with_vault_options,
)
from armnesia.core.errors import (
    ArmnesiaError,
    InvalidInputError,
    PartlyErasedError,
    UnfinishedError,
    VaultError,
)
from armnesia.core.files import check_new_file
from armnesia.core.messages import counted, listed, system_failure
from armnesia.unlearners import UNLEARNERS, JointRelease
from armnesia.vault import SCREEN_ONLY, Forgotten, Preview, SourceErasures, TouchedDecision, Vault
from armnesia.vault.keys import private_files
from armnesia.vault.ledger.words import day_of

_MOST_NAMES_SHOWN, _MOST_SHOWN = 10, 20
_LEAST_SHOWN = 0.0005
_WITHOUT_USER = "The vault also holds rows without a user, and cannot tell whose they are"
_BY_THEIR_IDS = ": if rows of this request are among them, forget them by their ids (--records)."
_WITHOUT_IDS = ": rows of this request that are among them cannot be named, because they have no ids."
_UNCHANGED = "nothing was changed"
_NOTHING_HELD = "Nothing is held: the vault has no record of this request."


@with_parameters(UNLEARNERS)
@with_options_of(read_names, "named")
@with_vault_options
def forget(
    named: dict[str, Any],
    options: VaultOptions,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would change.")] = False,
    exactly: Annotated[
        bool,
        typer.Option(
            "--exactly", help="Accept names without rows, though the vault has rows of a likely spelling."
        ),
    ] = False,
    case: Annotated[
        str | None,
        typer.Option(metavar="TICKET", help="The request's number in your files; only certificates show it."),
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="WHO", help="Who entered it; only certificates show it.")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="Write the certificate to this new file.")] = None,
    erase_at_source: Annotated[
        bool,
        typer.Option(
            "--erase-at-source", help="Then delete rows of forgotten people at the sources, as erase does."
        ),
    ] = False,
    purge: Purge = False,
    ignore_retention: IgnoreRetention = False,
    unlearner: Annotated[
        str | None,
        typer.Option(
            "--unlearner", metavar="NAME", help=f"Instead of the vault's: one of {', '.join(UNLEARNERS)}."
        ),
    ] = None,
    epsilon: opt.Epsilon = None,
    delta: opt.Delta = None,
    gamma: opt.Gamma = None,
    parameters: Any = None,
    as_json: opt.AsJson = False,
) -> None:
    """Forget people or records, and certify it.

    All that are named together are one request; each has a certificate.
    """
    epsilon, delta = epsilon_and_delta(epsilon, delta, gamma)
    answer: dict[str, Any] = {
        "unlearner": unlearner,
        "epsilon": epsilon,
        "delta": delta,
        "unlearner_options": parameters or None,
        "exactly": exactly,
    }
    if dry_run and erase_at_source:
        raise InvalidInputError("--dry-run changes nothing, so that --erase-at-source has nothing to erase")
    if certificate is not None:
        if dry_run:
            raise InvalidInputError("--dry-run forgets nobody, so there is no --certificate to write")
        if len({name for names in named.values() for name in names}) > 1:
            raise InvalidInputError(
                "--certificate is for a request of one name; of several each has its own, which armnesia"
                " certificate show --out-folder writes afterwards"
            )
        check_new_file(certificate)
    steps = {
        "the erasure at the sources": erase_at_source,
        "the certificate file": certificate is not None,
    }
    with (
        _saying_what_was_done(options, named, [step for step, wanted in steps.items() if wanted], dry_run),
        options.open() as vault,
    ):
        if dry_run:
            _print_preview(vault, named, answer, as_json)
            return
        if not erase_at_source and (purge or ignore_retention):
            raise InvalidInputError("--purge and --ignore-retention go with --erase-at-source: give it, too")
        if erase_at_source:
            vault.check_erasable(purge=purge, ignore_retention=ignore_retention)
        done = vault.forget(**named, **answer, case=case, by=by)
        erased, failure = None, None
        if erase_at_source:
            erased, failure = _erase(vault, purge=purge, ignore_retention=ignore_retention)
            if done.certificate is not None:  # which says by now that nothing is left there
                done = dataclasses.replace(done, certificate=vault.certificate(**named))
        if done.repeated and (case or by):
            warnings.warn(
                "they were forgotten before, so that the case and who entered it are not noted: the"
                " certificate has those of the first request",
                stacklevel=2,
            )
        _print_done(vault, done, named, answer, as_json, certificate, erased)
        if failure is not None:
            raise failure


def _print_done(
    vault: Vault,
    done: Forgotten,
    named: Mapping[str, Any],
    answer: Mapping[str, Any],
    as_json: bool,
    certificate: Path | None = None,
    erased: SourceErasures | None = None,
) -> None:
    """Print what a request did, after its certificate was written."""
    left = [*([] if erased is None else erasure_lines(erased.sources)), *_hints(vault, done)]
    _warn_of_unknown_ids(done, named)
    warn_of_gone_rows(done.rows_gone)
    if certificate is not None:
        _save(done, certificate)
    asked = any(answer[name] is not None for name in ("unlearner", "unlearner_options", "epsilon", "delta"))
    lines = _lines(done, certificate, ignored=done.repeated and asked)
    print_result(
        lambda: {
            **done.to_dict(),
            "not_held": list(done.not_held),
            "certificate_file": certificate,
            **({} if erased is None else {"deleted_at_source": [vars(each) for each in erased.sources]}),
        },
        as_json,
        *lines,
        *left,
    )


def _erase(
    vault: Vault, *, purge: bool, ignore_retention: bool
) -> tuple[SourceErasures | None, UnfinishedError | None]:
    """Delete the rows at the sources; what was done there, and why not all of it."""
    try:
        return vault.erase_at_sources(purge=purge, ignore_retention=ignore_retention), None
    except (ArmnesiaError, OSError) as error:
        what = system_failure(error) if isinstance(error, OSError) else str(error)
        erased = error.erasures if isinstance(error, PartlyErasedError) else None
        return erased, UnfinishedError(
            f"{what.removesuffix('; nothing was changed')}; the request itself is done: run armnesia erase to"
            " do the rest"
        )


@contextmanager
def _saying_what_was_done(
    options: VaultOptions, named: Mapping[str, Any], steps: Sequence[str], dry_run: bool
) -> Iterator[None]:
    """Say after Ctrl-C, or a failure of the system, whether the request is done, and the steps after it."""
    try:
        yield
    except KeyboardInterrupt:
        done = _UNCHANGED if dry_run else _what_was_done(options, named, steps)
        raise Interrupted(f"interrupted; {done}") from None
    except OSError as error:  # such as a full disk that the output is written to
        done = _UNCHANGED if dry_run else _what_was_done(options, named, steps)
        if done == _UNCHANGED:
            raise
        raise UnfinishedError(f"{system_failure(error)}; {done}") from None


def _what_was_done(options: VaultOptions, named: Mapping[str, Any], steps: Sequence[str]) -> str:
    try:
        with options.open() as vault:  # the interrupted connection may be unusable
            is_done = vault.preview(**named, exactly=True).repeated
    except (ArmnesiaError, KeyboardInterrupt):
        return "the request may be done; run the same command again to see: nothing is done twice"
    if not is_done:
        return _UNCHANGED
    missing = f"{' and '.join(steps)} may be missing: " if steps else ""
    return f"the request is done; {missing}run the same command again"


def _print_preview(vault: Vault, named: Mapping[str, Any], answer: Mapping[str, Any], as_json: bool) -> None:
    found = vault.preview(**named, **answer)
    _warn_of_unknown_ids(found, named)
    print_result(found.to_dict, as_json, *_preview_lines(found), *_hints(vault, found))


def _save(done: Forgotten, certificate: Path) -> None:
    if done.certificate is None:  # of many names, which were refused before
        return
    try:
        private_files.write(certificate, done.certificate.to_json())
    except VaultError as error:
        raise UnfinishedError(
            f"{error}; the request itself is done, and armnesia certificate show prints its certificate"
        ) from None


def _hints(vault: Vault, found: Forgotten | Preview) -> list[str]:
    """What was deleted and remains at the sources, and where rows may be that were not found."""
    lines = []
    if isinstance(found, Forgotten) and found.recounted_because is not None:
        lines.append(f"All sources were counted again first: {found.recounted_because}")
    if found.may_be_without_user:
        lines.append(_WITHOUT_USER + (_BY_THEIR_IDS if vault.configuration.may_have_ids else _WITHOUT_IDS))
    return lines


def _warn_of_unknown_ids(found: Forgotten | Preview, named: Mapping[str, Any]) -> None:
    if "records" in named and not found.repeated and found.held < found.named:
        warnings.warn(
            f"ids that belong to no row: {found.named - found.held} of {found.named}; rows ingested without"
            " --id-column have no id and can be forgotten by user only",
            stacklevel=2,
        )


def _lines(done: Forgotten, file: Path | None, *, ignored: bool) -> list[str]:
    """The result in words; `ignored`: an unlearner or a budget was given, but the answer stands already."""
    if done.repeated:
        who = "They were all" if done.named > 1 else "This was"
        first = f"{who} forgotten before: nothing was changed."
    elif done.held == 0:
        first = f"{_NOTHING_HELD} The ledger and the certificate say so. {_left_out(done, 'are')}"
    else:
        change = f". Served before: {done.served_before}; now: {done.served}."
        if done.decisions is not None:
            changed = sum(each.served != each.served_before for each in done.decisions)
            number = counted(len(done.decisions), "decision")
            change = f" in {number}; {changed} of them serve another arm now."
        first = f"Forgotten: {counted(done.records, 'record')}{change}"
    guarantee = [] if done.release is None else [f"Guarantee: {done.release.guarantee}"]
    return [
        first,
        *(["The unlearner and the budget that were given are not used: the first answer stands."] * ignored),
        *_named_lines(done),
        *_before_lines(done),
        *guarantee,
        f"Ledger: entry {done.entry}",
        f"Certificate: {file or _how_to_get_it(done)}",
    ]


def _how_to_get_it(done: Forgotten) -> str:
    """The command that prints the certificate, or writes that of each."""
    if len(done.names.names) > 1:
        return "armnesia certificate show, with the same names and --out-folder FOLDER, writes one for each"
    option = "--user" if done.names.kind == "user" else "--records"
    return f"armnesia certificate show {option} {quote(done.names.names[0])}"


def _before_lines(done: Forgotten) -> list[str]:
    """Who was forgotten before, when, and by which entry."""
    return [
        f"Forgotten before: {_some(each.names)}, on {day_of(each.time)}, by entry {each.entry}"
        for each in done.forgotten_before
    ]


def _some(names: Sequence[str]) -> str:
    """The first names, and where the others are."""
    all_of_them = "; all of them with --json" if len(names) > _MOST_NAMES_SHOWN else ""
    return f"{listed(names, _MOST_NAMES_SHOWN)}{all_of_them}"


def _preview_lines(found: Preview) -> list[Any]:
    if isinstance(found.release, JointRelease) and found.decisions:
        return [
            _decisions_table(found.records, found.decisions, found.release),
            *_named_lines(found),
            *found.method_lines,
            f"Guarantee of all releases together: {found.release.guarantee}",
            f"Nothing was changed. {SCREEN_ONLY}",
        ]
    if found.release is None or found.probabilities is None:
        if found.repeated:
            return ["All of them were forgotten before: nothing would change."]
        return [
            f"{_NOTHING_HELD} {_left_out(found, 'would be')}",
            *_named_lines(found),
            "Nothing was changed.",
        ]
    rows = [[action, count, found.probabilities[action]] for action, count in found.counts.items()]
    return [
        table(
            f"Would be forgotten: {counted(found.records, 'record')}. Served now: {found.served_before}",
            ["action", "records", "P(served then)"],
            rows,
        ),
        *_named_lines(found),
        *found.method_lines,
        f"Guarantee: {found.release.guarantee}",
        f"Nothing was changed. {SCREEN_ONLY}",
    ]


def _decisions_table(records: int, decisions: Sequence[TouchedDecision], release: JointRelease) -> Any:
    """The decisions that lose most records."""
    order = sorted(range(len(decisions)), key=lambda at: -sum(decisions[at].counts.values()))[:_MOST_SHOWN]
    probabilities = release.probabilities.tolist()
    rows = []
    for at in order:
        likely = sorted(zip(probabilities[at], map(str, release.actions), strict=True), reverse=True)[:3]
        shown = ", ".join(f"{action} {chance:.3f}" for chance, action in likely if chance >= _LEAST_SHOWN)
        each = decisions[at]
        rows.append([*each.key.values(), sum(each.counts.values()), each.served_before, shown])
    number = counted(len(decisions), "decision")
    title = f"Would be forgotten: {counted(records, 'record')} in {number}, those with most of them first"
    return table(title, [*decisions[0].key, "records", "served now", "P(served then)"], rows)


def _named_lines(found: Forgotten | Preview) -> list[str]:
    """Which of several named had records, where others may be, and why another unlearner answers."""
    lines = []
    if found.named > 1 and not found.repeated:
        before = found.forgotten_before
        number = before if isinstance(before, int) else sum(len(each.names) for each in before)
        forgotten = f"; {counted(number, 'was', 'were')} forgotten before" if number else ""
        lines.append(f"{found.held} of {found.named} named had records{forgotten}")
    if found.named > 1 and found.not_held:
        lines.append(f"Without records: {_some(found.not_held)}")
    if found.decided_again:
        lines.append(
            f"Decided again by the learner: {counted(found.decided_again, 'other decision')}; their arms were"
            " released by earlier requests, and this level conceals which decisions are touched"
        )
    if found.fallback_because is not None:
        lines.append(f"Answered by exact rollback instead of what was asked for: {found.fallback_because}")
    return lines


def _left_out(found: Forgotten | Preview, verb: str) -> str:
    """What a request changes even if nothing is held: it concerns a name that was mistyped, too."""
    names = "this name" if found.named == 1 else "these names"
    return f"Later rows of {names} {verb} left out from now on; armnesia readmit reverts that."

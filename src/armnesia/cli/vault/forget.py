"""The command `forget`."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from armnesia.cli import options as opt
from armnesia.cli.interrupts import Interrupted
from armnesia.cli.names import read_names
from armnesia.cli.output import print_result, table
from armnesia.cli.parameters import with_options_of, with_parameters
from armnesia.cli.vault.erase import deleted_lines, purge_lines, remains_lines
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
    UnfinishedError,
    VaultError,
)
from armnesia.core.files import check_new_file
from armnesia.core.messages import counted, listed, system_failure
from armnesia.unlearners import UNLEARNERS, JointRelease
from armnesia.vault import SCREEN_ONLY, Forgotten, Preview, TouchedDecision, Vault
from armnesia.vault.ledger.certificate_text import LATER_ROWS, SEARCHED

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
            "--exactly", help="Accept names without rows, though the vault has rows of similar ones."
        ),
    ] = False,
    certificate: Annotated[Path | None, typer.Option(help="Write the certificate to this new file.")] = None,
    erase_at_source: Annotated[
        bool,
        typer.Option(
            "--erase-at-source", help="Then delete rows of forgotten people at the sources, as erase does."
        ),
    ] = False,
    purge: Purge = False,
    ignore_retention: IgnoreRetention = False,
    search: Annotated[
        bool,
        typer.Option(
            help="Afterwards, read the whole vault for what may be left of them, and certify what was read."
        ),
    ] = True,
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

    All that are named together are one request with one certificate.
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
        check_new_file(certificate)
    steps = {
        "the search of the vault": search and not erase_at_source,  # which holds no rows
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
        try:
            done = vault.forget(
                **named,
                **answer,
                erase_at_source=erase_at_source,
                purge=purge,
                ignore_retention=ignore_retention,
                search=search,
            )
        except UnfinishedError as error:
            if error.done is not None:
                _print_done(vault, error.done, named, answer, as_json)
            raise
        _print_done(vault, done, named, answer, as_json, certificate)


def _print_done(
    vault: Vault,
    done: Forgotten,
    named: Mapping[str, Any],
    answer: Mapping[str, Any],
    as_json: bool,
    certificate: Path | None = None,
) -> None:
    """Print what a request did, after its certificate was written."""
    also_held = _also_held(vault, named)
    left = _hints(vault, done, also_held)
    may_erase = "source" in done.certificate.body and vault.configuration.may_erase_at_source
    _warn_of_unknown_ids(done, named)
    warn_of_gone_rows(done.rows_gone)
    if certificate is not None:
        _save(done, certificate)
    asked = any(answer[name] is not None for name in ("unlearner", "unlearner_options", "epsilon", "delta"))
    lines = _lines(done, certificate, ignored=done.repeated and asked, may_erase=may_erase)
    print_result(
        lambda: {
            **done.to_dict(),
            "also_held": also_held,
            "not_held": list(done.not_held),
            "certificate_file": certificate,
        },
        as_json,
        *lines,
        *left,
        *erasure_hint(done, named),
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
            entry = vault.answering_entry(**named)
    except (ArmnesiaError, KeyboardInterrupt):
        return "the request may be done; run the same command again to see: nothing is done twice"
    if entry is None:
        return _UNCHANGED
    missing = f"{' and '.join(steps)} may be missing: " if steps else ""
    return f"forgotten by ledger entry {entry}; {missing}run the same command again"


def _print_preview(vault: Vault, named: Mapping[str, Any], answer: Mapping[str, Any], as_json: bool) -> None:
    found = vault.preview(**named, **answer)
    _warn_of_unknown_ids(found, named)
    also_held = _also_held(vault, named)
    hints = _hints(vault, found, also_held)
    print_result(lambda: {**found.to_dict(), "also_held": also_held}, as_json, *_preview_lines(found), *hints)


def _save(done: Forgotten, certificate: Path) -> None:
    try:
        done.certificate.save(certificate)
    except VaultError as error:
        raise UnfinishedError(
            f"{error}; the request itself is done, and armnesia certificate show prints its certificate"
        ) from None


def _also_held(vault: Vault, named: Mapping[str, Any]) -> list[str] | None:
    """Other spellings that have rows; whatever fails here, the request itself is done."""
    try:
        held = vault.similar_held(**named)
    except ArmnesiaError:
        return None
    return None if held is None else list(held)


def _hints(vault: Vault, found: Forgotten | Preview, also_held: Sequence[str] | None) -> list[str]:
    """What was deleted and remains at the sources, and where rows may be that were not found."""
    lines = []
    if isinstance(found, Forgotten) and found.deleted_at_source is not None:
        erasures = replace(vault.source_erasures(), deleted=found.deleted_at_source)
        lines += [*deleted_lines(erasures), *purge_lines(erasures), *remains_lines(erasures)]
    if isinstance(found, Forgotten) and found.recounted_because is not None:
        lines.append(f"All sources were counted again first: {found.recounted_because}")
    if found.may_be_without_user:
        lines.append(_WITHOUT_USER + (_BY_THEIR_IDS if vault.may_have_ids else _WITHOUT_IDS))
    if also_held:
        lines.append(
            f"The vault also holds rows of {listed(also_held, _MOST_NAMES_SHOWN)}: if that is the same"
            " person, forget this name, too."
        )
    return lines


def erasure_hint(done: Forgotten, named: Mapping[str, Any]) -> list[str]:
    """What the operator can do about deleted bytes that are still in the files."""
    if done.pending_because is None:
        return []
    name = "--user U" if "users" in named else "--records ID"
    then = f"armnesia certificate show {name} --out FILE writes the certificate with erasure complete."
    if done.not_searched_because is not None:
        then = "the same command searches the vault, and its certificate says that erasure is complete."
    return [
        f"To do: deleted bytes are still in the files, because {done.pending_because}. Run"
        f" {done.erasure_steps}; then {then}"
    ]


def _warn_of_unknown_ids(found: Forgotten | Preview, named: Mapping[str, Any]) -> None:
    if "records" in named and not found.repeated and found.held < found.named:
        warnings.warn(
            f"ids that belong to no row: {found.named - found.held} of {found.named}; rows ingested without"
            " --id-column have no id and can be forgotten by user only",
            stacklevel=2,
        )


def _lines(done: Forgotten, file: Path | None, *, ignored: bool, may_erase: bool) -> list[str]:
    """The result in words; `ignored`: an unlearner or a budget was given, but the answer stands already."""
    body = done.certificate.body
    if done.repeated:
        first = f"This request was answered before, by entry {body['sequence']}: nothing was changed."
    elif body["entry"]["kind"] == "nothing_held":
        first = f"{_NOTHING_HELD} The ledger and the certificate say so. {_left_out(done, 'are')}"
    else:
        change = f". Served before: {done.served_before}; now: {done.served}."
        if done.decisions is not None:
            changed = sum(each.served != each.served_before for each in done.decisions)
            number = counted(len(done.decisions), "decision")
            change = f" in {number}; {changed} of them serve another arm now."
        first = f"Forgotten: {counted(done.records, 'record')}{change}"
    erased = f"{body['erasure']['state']}: {body['erasure']['covers']}"
    names_nobody = "It names nobody; certificate show prints it for one person or record at a time."
    return [
        first,
        *(["The unlearner and the budget that were given are not used: the first answer stands."] * ignored),
        *_named_lines(done),
        f"Guarantee: {body['claims']['guarantee']}",
        *(_external_lines(body, erased, may_erase=may_erase) if "source" in body else [f"Erasure: {erased}"]),
        *_search_lines(done),
        f"Ledger: entry {body['sequence']}",
        f"Certificate: {file or 'kept in the vault; see armnesia certificate show'}",
        *([] if done.certificate.opening else [names_nobody]),
    ]


def _search_lines(done: Forgotten) -> list[str]:
    """What was searched, or why nothing was."""
    if done.certificate.searched is not None:
        return [f"Searched: {SEARCHED.format(done.certificate.searched)}"]
    if done.not_searched_because is None or "source" in done.certificate.body:
        return []
    return [f"Not searched: {done.not_searched_because}"]


def _external_lines(body: Mapping[str, Any], erased: str, *, may_erase: bool) -> list[str]:
    """How far the rows are erased in the vault, and at their source."""
    at_source = body["source"]["state"]
    if at_source == "untouched":
        at_source += "; run armnesia erase" if may_erase else "; delete the rows there, then ingest it again"
    else:
        at_source += f"; {LATER_ROWS}"
    return [f"In the vault: {erased}", f"At the source: {at_source}"]


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
            return ["This request was answered before."]
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
        lines.append(f"{found.held} of {found.named} named had records")
    if found.named > 1 and found.not_held:
        all_of_them = "; all of them with --json" if len(found.not_held) > _MOST_NAMES_SHOWN else ""
        lines.append(f"Without records: {listed(found.not_held, _MOST_NAMES_SHOWN)}{all_of_them}")
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

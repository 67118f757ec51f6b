"""The certificates of many people at once."""

from collections.abc import Iterator

from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.ledger.certificate import Certificate
from armnesia.vault.state.certificates import answer_to, certificate_of_entry, open_certificate, read_tree
from armnesia.vault.state.connection import VaultConnection


def certificates_of_each(
    connection: VaultConnection, target: ErasureTarget
) -> Iterator[tuple[str, Certificate | None]]:
    """Each name of a request with its own certificate, opened for it alone; None if there is none."""
    with connection.reading() as transaction:
        normalised = target.normalised(transaction.state.configuration.user_type)
        answers = [(one, answer_to(transaction, one)) for one in normalised.one_by_one()]
    entry: int | None = None
    for one, answer in answers:
        sequence, opening = answer or (0, None)
        if opening is None:
            yield one.names[0], None
            continue
        if sequence != entry:  # most names were in the same request
            entry, certificate = sequence, certificate_of_entry(connection, sequence)
            with connection.reading() as transaction:
                tree = read_tree(transaction, sequence, opening)
        yield one.names[0], open_certificate(certificate, connection, one, opening, tree)

"""Parts of a transaction that can be undone alone."""

from armnesia.vault.storage.database import Session


def set_savepoint(session: Session) -> None:
    """Begin a part of the transaction."""
    session.execute("SAVEPOINT attempt")


def return_to_savepoint(session: Session) -> None:
    """Undo this part, and end it."""
    session.execute("ROLLBACK TO SAVEPOINT attempt")
    session.execute("RELEASE SAVEPOINT attempt")


def release_savepoint(session: Session) -> None:
    """Keep this part, and end it."""
    session.execute("RELEASE SAVEPOINT attempt")

"""The sealed state: the one row of `vault`, and in old versions the table of arms."""

from armnesia.vault.storage.database import Row, Session, Statement
from armnesia.vault.storage.schema import (
    ARM_COLUMNS,
    DECISION_TABLE,
    DIGESTS_COLUMN,
    OLD_VAULT_COLUMNS,
    VAULT_COLUMNS,
    VAULT_TABLE,
    ArmRow,
    OldVaultRow,
    VaultRow,
)


def read_identity(session: Session) -> list[Row]:
    """The vault's id, schema version and configuration."""
    return session.query("SELECT id, schema_version, configuration FROM vault")


def read_vault(session: Session) -> list[VaultRow | OldVaultRow]:
    """The row of the state, of any version that can be read; a damaged vault may have none, or several.

    Which columns there are depends on the version, which is one of them: all are read at once.
    """
    found: list[VaultRow | OldVaultRow] = []
    for _, *values in session.query("SELECT * FROM vault"):
        if len(values) == len(VaultRow._fields):
            found.append(VaultRow(*values))
            continue
        row = OldVaultRow(*values)
        if isinstance(row.seal, str):  # an upgrade from version 1 has added `tallies` at the end
            row = row._replace(tallies=row.seal, seal=row.tallies)
        found.append(row)
    return found


def read_stored_digests(session: Session) -> list[Row]:
    """The table digests as they are stored, of a state that may be broken."""
    return session.query("SELECT tallies FROM vault")


def read_version_and_keys(session: Session) -> Row:
    """The schema version, the versions of the keys, and the seal, of a vault of any version."""
    (found,) = session.query("SELECT schema_version, digest_key, signing_key, seal FROM vault")
    return found


def read_head(session: Session) -> Row:
    """The length and the hash of the ledger, of a vault of any version."""
    (found,) = session.query("SELECT ledger_length, ledger_head FROM vault")
    return found


def read_sealed_columns(session: Session, version: int) -> Row:
    """The columns of the state that a vault of this version seals, in order."""
    (found,) = session.query(f"SELECT {_SEALED_COLUMNS[version]} FROM vault")
    return found


_SEALED_COLUMNS = {
    1: OLD_VAULT_COLUMNS.removesuffix(", tallies, seal"),
    **dict.fromkeys((2, 3, 4), OLD_VAULT_COLUMNS.removesuffix(", seal")),
    **dict.fromkeys((5, 6), VAULT_COLUMNS.removesuffix(", seal")),
}


def insert_vault(row: VaultRow) -> Statement:
    """Store the first state."""
    marks = ", ".join("?" * (len(row) + 1))
    return f"INSERT INTO vault (one, {VAULT_COLUMNS}) VALUES ({marks})", (1, *row)


def update_vault(row: VaultRow) -> Statement:
    """Store a new state."""
    return _UPDATE_VAULT, row


_UPDATE_VAULT = f"UPDATE vault SET {', '.join(f'{name} = ?' for name in VaultRow._fields)}"


def set_vault(session: Session, column: str, value: object) -> None:
    """Set one column of the state."""
    session.execute(f"UPDATE vault SET {column} = ?", value)


def read_arms(session: Session) -> list[ArmRow]:
    """The arms in their order."""
    return [ArmRow(*row) for row in session.query(f"SELECT {ARM_COLUMNS} FROM arm ORDER BY position")]


def replace_state_tables(session: Session) -> None:
    """Put the tables of the state, without rows, in the place of those before version 5."""
    session.execute("DROP TABLE arm")
    session.execute("DROP TABLE vault")
    for table in (VAULT_TABLE, DECISION_TABLE):
        session.execute(table.statement(session.dialect.blob))


def add_digests_column(session: Session) -> None:
    """Add the column of table digests, for vaults of schema version 1."""
    session.execute(f"ALTER TABLE vault ADD COLUMN {DIGESTS_COLUMN.definition(session.dialect.blob)}")

"""What a vault does: one module for each operation; `Vault` has them as its methods."""

from armnesia.vault.operations import (
    arms as arms,
)
from armnesia.vault.operations import (
    certificates as certificates,
)
from armnesia.vault.operations import (
    create as create,
)
from armnesia.vault.operations import (
    decide as decide,
)
from armnesia.vault.operations import (
    forget as forget,
)
from armnesia.vault.operations import (
    ingest as ingest,
)
from armnesia.vault.operations import (
    ledger as ledger,
)
from armnesia.vault.operations import (
    policy as policy,
)
from armnesia.vault.operations import (
    preview as preview,
)
from armnesia.vault.operations import (
    readmit as readmit,
)
from armnesia.vault.operations import (
    restore as restore,
)
from armnesia.vault.operations import (
    rotate as rotate,
)
from armnesia.vault.operations import (
    status as status,
)
from armnesia.vault.operations import (
    subject_requests as subject_requests,
)
from armnesia.vault.operations import (
    tokens as tokens,
)
from armnesia.vault.operations import (
    upkeep as upkeep,
)
from armnesia.vault.operations import (
    verify as verify,
)

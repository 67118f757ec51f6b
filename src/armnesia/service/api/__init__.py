"""The endpoints of the API."""

from armnesia.service.api import decisions, deletions, erasures, health, ledger, records

ROUTERS = tuple(module.router for module in (health, decisions, deletions, erasures, ledger, records))

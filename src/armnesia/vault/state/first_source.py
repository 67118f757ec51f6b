"""What the first source of a vault fixes: its actions, and how its people are named."""

from dataclasses import replace
from typing import Any

from armnesia.core.errors import VaultError
from armnesia.core.identifiers import UserType
from armnesia.logs import Source
from armnesia.vault.state.sealed_state import State, empty_stream


def with_actions(state: State, actions: tuple[Any, ...]) -> State:
    """Fix the actions if they are not fixed yet; refuse if another ingest has fixed others meanwhile."""
    configuration = state.configuration
    if configuration.actions is None:
        configuration = configuration.with_actions(actions)
    elif configuration.actions != actions:
        raise VaultError("the vault's actions were changed meanwhile; ingest again")
    fixed = replace(state, configuration=configuration)
    stream = empty_stream(configuration)
    return fixed if state.decision is not None or stream is None else fixed.with_stream(stream)


def with_user_type(state: State, user_type: UserType | None) -> State:
    """Fix how people are named, if it is not fixed yet; refuse if another ingest has fixed it otherwise."""
    configuration = state.configuration
    if user_type in (None, configuration.user_type):
        return state
    if configuration.user_type is not None:
        raise VaultError("another ingest has fixed how people are named meanwhile; ingest again")
    return replace(state, configuration=configuration.with_user_type(UserType.named(user_type)))


def user_type_for(state: State, source: Source) -> UserType | None:
    """How the vault names people; if that is not fixed yet, as this source does, if it names any."""
    if state.configuration.user_type is not None or source.columns.user is None:
        return state.configuration.user_type
    return source.user_type_of_rows()

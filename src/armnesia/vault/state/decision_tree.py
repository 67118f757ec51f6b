"""The hash tree over the decisions of a vault with key columns: its root is under the seal of the vault.

So every decision that is read is known to be the one stored last, also where an old row is put back, and a
change costs by the decisions that it touches, not by how many there are. A leaf is the keyed digest of a
decision; a node holds the digests of up to 64 children, and its own digest is keyed, too.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from armnesia.core.errors import VaultError
from armnesia.vault.keys.keyring import DIGEST_BYTES, Keyring
from armnesia.vault.state.decisions import digest_of_decision
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session, Statement
from armnesia.vault.storage.schema import DecisionRow

FAN_OUT = 64
_LEVEL_BITS = 26
"""A node's number is its level above this many bits, and its place in the level below them."""


@dataclass(frozen=True)
class DecisionTree:
    """The tree over `size` decisions, whose root is known: nothing is believed that does not lead to it.

    Decisions are numbered from 1. With one decision the root is its digest; with none it is 0.
    """

    keyring: Keyring
    size: int
    root: int

    def check(self, session: Session, rows: Iterable[DecisionRow]) -> None:
        """Refuse decisions that are not those that were stored last."""
        leaves = {row.number - 1: digest_of_decision(row, self.keyring) for row in rows}
        nodes = self._nodes(session, leaves)
        for place, digest in leaves.items():
            if digest != self._child(nodes, 0, place):
                raise changed_decisions()

    def put(
        self, session: Session, rows: Iterable[DecisionRow], size: int
    ) -> tuple["DecisionTree", list[Statement]]:
        """The tree with these decisions, new ones at the end, and the statements that store it and them."""
        rows = list(rows)
        statements = [tables.put_decision(row) for row in rows]
        changed = {row.number - 1: digest_of_decision(row, self.keyring) for row in rows}
        old = self._nodes(session, [place for place in changed if place < self.size])
        old |= self._nodes(session, [self.size - 1] if self.size < size and self.size else [])
        height = _height(size)
        for level in range(height):
            if level == _height(self.size) and self.size:
                changed.setdefault(0, self.root)  # the old top becomes a child
            by_parent: defaultdict[int, dict[int, int]] = defaultdict(dict)
            for place, digest in changed.items():
                by_parent[place // FAN_OUT][place % FAN_OUT] = digest
            changed = {}
            for parent, children in by_parent.items():
                known = old.get((level + 1, parent), b"")
                digests = [known[at : at + DIGEST_BYTES] for at in range(0, len(known), DIGEST_BYTES)]
                digests += [b""] * (max(children) + 1 - len(digests))
                for place, digest in children.items():
                    digests[place] = digest.to_bytes(DIGEST_BYTES)
                data = b"".join(digests)
                statements.append(tables.put_node(_number(level + 1, parent), data))
                changed[parent] = self._digest_of_node(level + 1, parent, data)
        return DecisionTree(self.keyring, size, changed[0] if changed else self.root), statements

    def _nodes(self, session: Session, places: Iterable[int]) -> dict[tuple[int, int], bytes]:
        """The nodes on the paths from these leaves to the root, each checked against its parent."""
        found: dict[tuple[int, int], bytes] = {}
        places = set(places)
        if not places:
            return found
        if not all(0 <= place < self.size for place in places):
            raise changed_decisions()
        for level in range(_height(self.size), 0, -1):
            wanted = sorted({place // FAN_OUT**level for place in places})
            read = tables.read_nodes(session, [_number(level, place) for place in wanted])
            for place in wanted:
                data = read.get(_number(level, place), b"")
                found[level, place] = data
                children = min(FAN_OUT, _width(self.size, level - 1) - FAN_OUT * place)
                digest = self._digest_of_node(level, place, data)
                if len(data) != children * DIGEST_BYTES or digest != self._child(found, level, place):
                    raise changed_decisions()
        return found

    def _child(self, nodes: Mapping[tuple[int, int], bytes], level: int, place: int) -> int:
        """The digest that the parent has of a node or leaf; the top has none but the root."""
        if level == _height(self.size):
            return self.root
        data, at = nodes[level + 1, place // FAN_OUT], place % FAN_OUT * DIGEST_BYTES
        return int.from_bytes(data[at : at + DIGEST_BYTES])

    def _digest_of_node(self, level: int, place: int, data: bytes) -> int:
        digest = self.keyring.hasher(b"decision node")
        digest.update(b"%d:%d:" % (level, place) + data)
        return int.from_bytes(digest.digest())


def build_tree(rows: Iterable[DecisionRow], keyring: Keyring) -> tuple[DecisionTree, dict[int, bytes]]:
    """The tree over all decisions, which are given by their numbers from 1, and its nodes by their numbers.

    >>> keyring = Keyring.create("v-1")
    >>> rows = [DecisionRow(n, f'["{n}"]', "{}", 0, "learner", b"") for n in range(1, 131)]
    >>> tree, nodes = build_tree(rows, keyring)
    >>> tree.size, len(nodes)
    (130, 4)
    """
    leaves = b"".join(digest.to_bytes(DIGEST_BYTES) for digest in _leaves(rows, keyring))
    size = len(leaves) // DIGEST_BYTES
    tree, nodes, below = DecisionTree(keyring, size, 0), dict[int, bytes](), leaves
    for level in range(1, _height(size) + 1):
        step, above = FAN_OUT * DIGEST_BYTES, []
        for place in range(_width(size, level)):
            data = below[place * step : (place + 1) * step]
            nodes[_number(level, place)] = data
            above.append(tree._digest_of_node(level, place, data).to_bytes(DIGEST_BYTES))
        below = b"".join(above)
    return DecisionTree(keyring, size, int.from_bytes(below)), nodes


def _leaves(rows: Iterable[DecisionRow], keyring: Keyring) -> Iterator[int]:
    for number, row in enumerate(rows, 1):
        if row.number != number:
            raise changed_decisions()
        yield digest_of_decision(row, keyring)


def replace_tree(session: Session, rows: Iterable[DecisionRow], keyring: Keyring) -> DecisionTree:
    """Make the whole tree again over the decisions, which are given by their numbers."""
    tree, nodes = build_tree(rows, keyring)
    tables.delete_nodes(session)
    session.execute_together([tables.put_node(node, data) for node, data in nodes.items()])
    return tree


def changed_decisions() -> VaultError:
    """A decision, or the tree over all of them, is not what was stored last."""
    return VaultError(
        "decisions of the vault were changed by something other than armnesia; nothing is decided from them:"
        " run armnesia verify, then armnesia rebuild"
    )


def _height(size: int) -> int:
    """How many levels of nodes are above the leaves."""
    height = 0
    while _width(size, height) > 1:
        height += 1
    return height


def _width(size: int, level: int) -> int:
    """How many nodes, or leaves, a level has."""
    return -(-size // int(FAN_OUT**level))


def _number(level: int, place: int) -> int:
    return level << _LEVEL_BITS | place

"""A certificate in words: one sentence for everybody, what it does not cover, and the technical part.

Nothing of this is signed or stored. It is made from the statement and the opening when it is shown, and says
no more than they do.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from armnesia.core.messages import printable
from armnesia.privacy import Level
from armnesia.vault.keys.canonical_json import parse_time
from armnesia.vault.ledger.checkpoint import Checkpoint, encoded
from armnesia.vault.ledger.entry import Entry
from armnesia.vault.ledger.people import CASE, DELETED, NOTHING, UNCOUNTED, USER, Mention

NOT_COVERED = (
    "Earlier decisions, which were made with the records.",
    "Records of others that exist because of an earlier decision.",
    "Statistics that were published before: their difference from later ones is what was deleted.",
    "Backups, copies, logs and models elsewhere.",
    "Records under other identifiers of the same person, or under none.",
)
_SENTENCES = {
    DELETED: "On {day} {who} deleted {what}, and decided again without {them}.",
    UNCOUNTED: (
        "On {day} {who} stopped counting {what}, and decided again without {them}."
        " They were still at the source then."
    ),
    NOTHING: "On {day} {who} held nothing under the identifier {name}.",
}
_LATER = {
    "compacted": "On {day} the deleted bytes left the files of the database (entry {number}).",
    "erased": "On {day} nothing of it was left at the source with the id {source}{version} (entry {number}).",
    "readmit": "On {day} people of this request were admitted again (entry {number}).",
}
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font: 1rem/1.5 serif; max-width: 42rem; margin: 3rem auto; padding: 0 1rem; }}
.said {{ font-size: 1.25rem; }}
dt {{ font-weight: bold; }}
dd {{ margin: 0 0 .5rem; overflow-wrap: anywhere; }}
</style>
</head>
<body>
<h1>{title}</h1>
{said}
<h2>What it does not cover</h2>
<ul>
{not_covered}
</ul>
<h2>Technical part</h2>
<dl>
{details}
</dl>
</body>
</html>
"""


@dataclass(frozen=True)
class Words:
    """What a certificate says."""

    title: str
    said: tuple[str, ...]
    details: tuple[tuple[str, str], ...]
    not_covered: tuple[str, ...] = NOT_COVERED

    @classmethod
    def of(
        cls,
        entry: Entry,
        person: Mention | None,
        others: Sequence[Mention],
        later: Sequence[Entry],
        at: Checkpoint,
    ) -> "Words":
        """The words for one person of a request, at a checkpoint of the ledger."""
        facts = entry.facts
        guarantee, method = facts.get("budget", {}), facts.get("unlearner", {})
        details = {
            "Entry": f"{entry.number} of vault {entry.vault}, {entry.time}",
            "Level": f"{facts['level']}: {Level.named(facts['level']).meaning}",
            "Guarantee": f"ε = {_number(guarantee.get('epsilon'))}, δ = {_number(guarantee.get('delta'))}",
            "Method": method.get("name"),
            "Served afterwards": facts.get("released"),
            **{"Case" if each.role == CASE else "Entered by": each.text for each in others},
            "Written by": f"{entry.code}, key {entry.signer}",
            "Checkpoint": f"{at.origin}, {at.size} entries, root {encoded(at.root)}",
        }
        shown = ((name, printable(str(value))) for name, value in details.items() if value is not None)
        said = (_sentence(entry, person), *map(_later_sentence, later), *_of_other_sources(entry, later))
        return cls(f"Certificate of entry {entry.number}", said, tuple(shown))

    def text(self) -> str:
        """The words as plain text."""
        lines = [*self.said, "", "It does not cover:", *(f"- {each}" for each in self.not_covered), ""]
        return "\n".join([*lines, *(f"{name}: {value}" for name, value in self.details)]) + "\n"

    def html(self) -> str:
        """The words as a page to print: nothing in it is loaded or run."""
        return _PAGE.format(
            title=escape(self.title),
            said="\n".join(f'<p class="said">{escape(each)}</p>' for each in self.said),
            not_covered="\n".join(f"<li>{escape(each)}</li>" for each in self.not_covered),
            details="\n".join(
                f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in self.details
            ),
        )


def _sentence(entry: Entry, person: Mention | None) -> str:
    """What was done, in words for the person."""
    who = entry.organisation or f"the holder of vault {entry.vault}"
    if person is None:
        return f"On {day_of(entry.time)} {printable(who)} answered a request to delete records."
    name = printable(person.text)
    what, them = f"the records held under the identifier {name}", "them"
    if person.role != USER:
        what, them = f"the record {name}", "it"
    return _SENTENCES[person.outcome].format(
        day=day_of(entry.time), who=printable(who), what=what, them=them, name=name
    )


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _later_sentence(entry: Entry) -> str:
    source = printable(str(entry.facts.get("source")))
    kept = entry.facts.get("state") == "logically deleted"
    version = ", except in its earlier versions" if kept else ""
    return _LATER[entry.kind].format(
        day=day_of(entry.time), number=entry.number, source=source, version=version
    )


def _of_other_sources(entry: Entry, later: Sequence[Entry]) -> Iterator[str]:
    """Where it is not known that nothing is left, if it is known of some sources."""
    erased = {each.facts["source"] for each in later if each.kind == "erased"}
    others = [str(each) for each in entry.facts.get("sources", ()) if each not in erased]
    if erased and others:
        yield f"Of other sources this is not known: {printable(', '.join(others))}."


def day_of(time: str) -> str:
    """The day of a time, in words.

    >>> day_of("2026-11-18T10:42:07.123456Z")
    '18 November 2026'
    """
    moment = parse_time(time)
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"

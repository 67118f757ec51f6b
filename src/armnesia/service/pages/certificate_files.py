"""The files of certificates, always with the present state of erasure."""

import csv
import io
import zipfile
from collections.abc import Sequence

from armnesia.core.spreadsheets import as_text
from armnesia.service.pages.work import OpenedFor
from armnesia.vault import Certificate, Vault


def current(vault: Vault, opened: OpenedFor) -> Certificate:
    """The certificate of a name as it is now: signed again if its erasure has been completed since."""
    issued = vault.certificate_of_entry(opened.sequence)
    return Certificate(issued.body, issued.signature, opened.opening)


def zipped(vault: Vault, certificates: Sequence[OpenedFor]) -> bytes:
    """Numbered files, whose names tell nobody whose they are, and an index for the operator only."""
    index, content = io.StringIO(), io.BytesIO()
    rows = csv.writer(index, lineterminator="\n", quoting=csv.QUOTE_ALL)
    rows.writerow(["file", "name", "entry", "erasure", "held"])
    issued = {
        number: vault.certificate_of_entry(number) for number in {each.sequence for each in certificates}
    }
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, each in enumerate(certificates, 1):
            own = issued[each.sequence]
            file = f"certificate-{number:06}.json"
            archive.writestr(file, Certificate(own.body, own.signature, each.opening).to_json())
            held = "yes" if each.held else "no"
            rows.writerow([file, as_text(str(each.name)), each.sequence, own.erasure, held])
        archive.writestr("index.csv", index.getvalue())
    return content.getvalue()

"""The allowed outcomes of a row: by the definition of the field, or by a line of the lists of exceptions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from capo.crdgen import mutability
from capo.webhooks.tests.table import places
from e2e.misoperation.rows import Row
from e2e.misoperation.trial import EFFECTIVE, HEALED, NOTED, REFUSED, REPLACED, SAME, SHOWN, SILENT, UNNAMED, WARNED

FOLDER: Final = Path(__file__).parent / "table"
RULES: Final[tuple[tuple[str, frozenset[str]], ...]] = (
    (r"Cannot change|Can be set once|May change only to", frozenset({REFUSED, SAME})),
    (r"May change at any time, without effect", frozenset({REFUSED, SAME, WARNED})),
    (r"May change at any time: the bastion is replaced", frozenset({REFUSED, SAME, SHOWN, NOTED, REPLACED})),
    (r"May change|May be added later", frozenset({REFUSED, SAME, SHOWN, NOTED, EFFECTIVE, HEALED})),
)
"""By the sentence of the definition on when a field may change; the first match counts."""
OF_BASTION: Final = "spec.bastion"
"""Of this field and all below it, an edit may replace the bastion."""


@dataclass(frozen=True)
class Exempt:
    """Rows with another outcome than the definition says.

    Args:
        kind, text: regular expressions for the kind and the whole text of the row.
        outcome: their outcome.
        reason: why that is right, or the defect; a sentence.
    """

    kind: str
    text: str
    outcome: str
    reason: str

    def covers(self, row: Row) -> bool:
        """Return whether this exception applies to a row."""
        return bool(re.fullmatch(self.kind, row.kind) and re.fullmatch(self.text, row.text))


RIGHT: Final = (
    Exempt(
        "OpenStackCluster",
        r"spec\.workloadLeftovers.*",
        SILENT,
        "only a deletion searches for what workloads left",
    ),
    Exempt(
        "OpenStackFloatingIPPool",
        r"spec\.maxIPs.*|spec\.reclaimPolicy.*|spec\.preAllocatedFloatingIPs empty",
        SILENT,
        "the limit is not reached, the policy counts when a claim is deleted, and an empty list means none",
    ),
    Exempt(
        "OpenStackFloatingIPPool",
        r"spec\.floatingIPNetwork\.filter\.(notTags|notTagsAny|tags|tagsAny)(\[\])? (empty|wrong \"of-cluster\")",
        SILENT,
        "the only external network matches before and after",
    ),
    Exempt(
        "OpenStackClusterIdentity",
        r"spec\.namespaceSelector(\.matchLabels)? (empty|none)|spec\.namespaceSelector\.matchExpressions empty",
        SILENT,
        "the namespace of the cluster may use the credentials before and after",
    ),
    *(
        Exempt(
            kind,
            r"spec\.template\.metadata.*",
            SILENT,
            "only Cluster API reads labels and annotations of a template, for the objects that it creates from then on",
        )
        for kind in ("OpenStackClusterTemplate", "OpenStackMachineTemplate")
    ),
    Exempt(
        "OpenStackMachine",
        r"spec\.identityRef none",
        SILENT,
        "the server keeps the credentials that it was created with, as the field says",
    ),
    Exempt(
        "OpenStackCluster",
        r"spec\.bastion\.spec\.identityRef\.region wrong .*",
        WARNED,
        "the bastion had no reference of its own: one may be added, without effect, and the warning says so",
    ),
    Exempt(
        "OpenStackCluster",
        r"spec\.driftPolicy.*",
        SILENT,
        "nothing was changed externally",
    ),
    Exempt(
        "OpenStackCluster",
        r"spec\.controlPlaneOmitAvailabilityZone wrong true",
        WARNED,
        "has no effect beside controlPlaneAvailabilityZones; the warning says so",
    ),
    Exempt(
        "OpenStackCluster",
        r"spec\.primarySubnet none|spec\.bastion\.spec\.ports\[\]\.fixedIPs (none|empty)",
        SILENT,
        "the cluster has one subnet, which is the default",
    ),
    Exempt(
        "OpenStackCluster",
        r"spec\.bastion\.spec\.antiAffinity wrong \"none\"",
        SILENT,
        "the value means the same as no field, and no other is admitted for a bastion",
    ),
    Exempt(
        "OpenStackCluster",
        r"spec\.bastion\.spec\.ports\[\]\.profile empty",
        SILENT,
        "an empty profile asks for nothing, as none does",
    ),
    Exempt(
        "OpenStackCluster",
        r"spec\.managedSecurityGroups\.\w+\[\]\.description (wrong .*|none)",
        SILENT,
        "a rule that exists in Neutron keeps its description, as the field says",
    ),
    Exempt(
        "OpenStackCluster",
        r"spec\.managedSecurityGroups\.\w+\[\]\.name wrong .*",
        SILENT,
        "the name is the key of the entry in the list and is not sent to OpenStack, as the field says",
    ),
    Exempt(
        "OpenStackClusterIdentity",
        r"spec\.secretRef\.(name|namespace) wrong .*",
        UNNAMED,
        "users of other namespaces read the condition, so the manager's log alone names the Secret",
    ),
)
"""Exceptions that are right; some of the rows that a line covers may be refused all the same."""
KNOWN: Final = (
    Exempt(
        "OpenStackMachine",
        r"spec\.providerID wrong .*",
        SILENT,
        "a provider ID that is edited by hand is neither refused, shown nor corrected",
    ),
)
"""Exceptions that are defects of the provider: the list only gets shorter."""


def sentence(row: Row) -> str:
    """Return the sentence of the definition on when the field may change."""
    path = row.path
    while True:
        schema = places.at(row.version, path)
        if found := mutability.SENTENCE.findall(schema.get("description", "")):
            return " ".join(text.strip() for text in found)
        if not path.endswith(("[]", "{}")):
            return ""
        path = path[:-2]


def permitted(row: Row) -> frozenset[str]:
    """Return the outcomes that the definition of the field permits."""
    says = sentence(row)
    found = next((outcomes for pattern, outcomes in RULES if re.match(pattern, says)), frozenset({REFUSED, SAME}))
    is_bastions = f"{row.path}.".startswith(f"{OF_BASTION}.") and EFFECTIVE in found
    return found | {REPLACED} if is_bastions else found


def exempt(row: Row) -> Exempt | None:
    """Return the exception that applies to a row, None without one."""
    return next((each for each in (*RIGHT, *KNOWN) if each.covers(row)), None)


@cache
def written(kind: str) -> dict[str, str]:
    """Return the reviewed table of a kind: the outcome of a row, by the text of the row."""
    lines = (FOLDER / f"{kind}.txt").read_text().splitlines()
    return dict(line.split(" -> ") for line in lines)


def write(kind: str, outcomes: dict[str, str]) -> None:
    """Write the table of a kind."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{kind}.txt").write_text("".join(f"{text} -> {outcome}\n" for text, outcome in outcomes.items()))

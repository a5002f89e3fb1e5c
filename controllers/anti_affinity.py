"""Which server group of its cluster an OpenStackMachine gets; pure.

Each cluster has a group for each template, by name, and policy: what survives a move, and what machines know of their
template after it was deleted. Machines without a template share one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from capo.json_types import Object
from controllers import cloned_from, roles

_POLICIES: Final[Mapping[str, Literal["soft-anti-affinity", "anti-affinity"]]] = {
    "soft": "soft-anti-affinity",
    "hard": "anti-affinity",
}
"""Nova's policy by the value of ``antiAffinity``; ``none`` has none."""


@dataclass(frozen=True)
class Group:
    """The group of a template in a cluster.

    Args:
        value: of ``antiAffinity``.
        template: the template's name, empty for machines without one.
    """

    value: str
    template: str

    @property
    def role(self) -> str:
        """The role of the group in the cluster's ledger."""
        return roles.servers(self.value, self.template)

    @property
    def policy(self) -> Literal["soft-anti-affinity", "anti-affinity"]:
        """Nova's name of the policy."""
        return _POLICIES[self.value]

    @property
    def members(self) -> str:
        """Whose group it is, for messages."""
        return f"template {self.template}" if self.template else "machines without a template"


def of_machine(obj: Object) -> Group | None:
    """Return the group of an OpenStackMachine, None if it needs none."""
    # The schema does not require a spec.
    return _group(obj.get("spec") or {}, cloned_from.template_name(obj))


def of_template(template: Object) -> Group | None:
    """Return the group of the machines of an OpenStackMachineTemplate, None if they need none."""
    spec = (template.get("spec") or {}).get("template") or {}
    return _group(spec.get("spec") or {}, str(template["metadata"]["name"]))


def _group(spec: Object, template: str) -> Group | None:
    value = str(spec.get("antiAffinity"))
    return Group(value, template) if value in _POLICIES else None

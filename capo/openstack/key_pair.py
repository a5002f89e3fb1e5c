"""Nova key pairs: looked up, never created. They belong to a user, not to a project.

Source: Compute API, "Keypairs".
"""

from __future__ import annotations

from capo.openstack.cloud import Cloud
from capo.openstack.kinds import NOVA
from capo.openstack.view import View, text


class _Listed(View):
    name = text("keypair", "name")


def is_listed(cloud: Cloud, name: str) -> bool:
    """Return whether the user of the credentials has a key pair of a name; the list is shared for a minute."""

    def ask() -> list[str]:
        found = cloud.list_all("compute", "/os-keypairs", "keypairs", microversion=NOVA)
        return [_Listed(each).name for each in found]

    return cloud.lookups.find("key pairs", ask, lambda each: each == name) is not None

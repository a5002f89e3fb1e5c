"""What decides which resources a service shows to a token.

The services work out what a token may see from their policies, and these know nothing of it but user, project, their
domains, roles and scope. So two tokens of one Keystone that agree in all of that see the same, whichever credentials
they were issued for. A token that has more to it shares with none.
Source: ``RequestContext.to_policy_values`` in oslo.context; ADR 0019.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from keystoneauth1.access.access import AccessInfo

from capo.openstack.foreign import UNREADABLE
from capo.openstack.identity import Credentials

_APPLICATION: Final = "application credential"
_USER: Final = "user"


@dataclass(frozen=True)
class TokenScope:
    """What two tokens agree in if they see the same.

    Args:
        keystone: address, trusted certificates, region and interface: a tenant may run a Keystone that claims to be
            another one, but not at its address under its certificates.
        token: what policies know of the token; for a token that shares with none, the fingerprint of its credentials.
    """

    project_id: str
    keystone: tuple[str | None, ...] = field(repr=False)
    token: tuple[object, ...] = field(repr=False)


def scope_of(credentials: Credentials, access: AccessInfo) -> TokenScope:
    """Return the scope of a token, which has a project."""
    try:
        token = _policy_values(access)
    except UNREADABLE:
        token = None
    entry = credentials.entry
    keystone = (
        entry["auth"]["auth_url"],
        credentials.cacert,
        str(credentials.verifies),
        credentials.region_name,
        credentials.interface,
    )
    return TokenScope(str(access.project_id), keystone, token or (credentials.fingerprint,))


def _policy_values(access: Any) -> tuple[object, ...] | None:
    """Return what policies know of a token; None if it is not that alone which decides what it sees.

    Access rules refuse requests. Trusts and federated tokens depend on more than their user. An application credential
    has the roles that were delegated to it, a user's own token those of the moment: they change apart.
    """
    if access.version != "v3" or access.trust_id or access.is_federated or access.oauth_access_token_id:
        return None
    if access.application_credential_access_rules is not None or access.system_scoped or access.domain_scoped:
        return None
    roles = tuple(sorted({*access.role_ids}))
    names = (access.user_id, access.user_domain_id, access.project_id, access.project_domain_id, *roles)
    if not roles or not all(isinstance(each, str) and each for each in names):
        return None
    kind = _APPLICATION if access.application_credential_id else _USER
    return kind, roles, *names[:4], access.is_admin_project, bool(access.project_is_domain)

"""A wrong value that a schema admits, for every type, format and pattern; ``OVERRIDES`` has better ones.

A new field needs nothing here if its schema has a known type, format and pattern. If the value derived from them is
right by chance, or equals the former one, add a line for the field to ``OVERRIDES``.
"""

from __future__ import annotations

import re
from typing import Any, Final

from capo.json_types import Json
from capo.webhooks.tests.table import places
from e2e.misoperation import bases

UNKNOWN_ID: Final = "00000000-0000-4000-8000-00000000dead"
NO_SUCH: Final = "no-such-"
"""Prefix of wrong texts."""
LARGE: Final = 2**31 - 1
OTHER_ADDRESS: Final = "192.0.2.77"
"""An address of no network here (TEST-NET-1, RFC 5737)."""
FORMATS: Final = {"uuid": UNKNOWN_ID, "ipv4": OTHER_ADDRESS}
PATTERNS: Final = {
    "^[^,]+$": "no-such-tag",
    "^[^ ]+$": "no-such-zone",
    "^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$": "no-such-cluster",
}
OVERRIDES: Final[tuple[tuple[str, tuple[Any, ...]], ...]] = (
    (r".*\.(allowedCIDRs|nodePortAllowedCIDRs)\[\]", ("not-a-cidr", "10.0.0.0/99", "2001:db8::/32")),
    (r".*\.allowedAddressPairs\[\]\.ipAddress", ("not-an-address",)),
    (r".*\.allowedAddressPairs\[\]\.macAddress", ("not-a-mac",)),
    (r".*\.additionalManagedSubnet\.dnsNameservers\[\]", ("not-an-address", "192.0.2.99")),
    (r".*\.dnsNameservers\[\]", ("not-an-address", "2001:db8::53")),
    (r".*\.fixedIPs\[\]\.ipAddress", ("not-an-address", OTHER_ADDRESS)),
    (r".*\.remoteIPPrefix", ("not-a-cidr", "10.0.0.0/99", "2001:db8::/32")),
    (r".*\.remoteGroupID", ("not-an-id", UNKNOWN_ID)),
    (r".*\.protocol", ("no-such-protocol", "999")),
    (r".*\.portRangeMin", (LARGE, -1, 60000)),
    (r".*\.portRangeMax", (LARGE, -1, 1)),
    (r".*\.monitor\.timeout", (LARGE, 11)),
    (r".*\.monitor\.(delay|maxRetries|maxRetriesDown)", (LARGE, 1, 10)),
    (r".*\.(rootVolume|additionalBlockDevices\[\])\.sizeGiB", (LARGE, 2)),
    (r".*\.bool", (True, False)),
    (r".*\.(adminStateUp|ports\[\]\.trunk|managedNetwork\.enablePortSecurity|enableFloatingIP)", (False,)),
    (r".*\.(ovsHWOffload|trustedVF|controlPlaneOmitAvailabilityZone)", (True,)),
    (r".*\.etherType", ("IPv6",)),
    (r".*\.notTags(Any)?\[\]", (bases.TAG,)),
    (r".*\.vnicType", ("no-such-type", "direct")),
    (r".*\.host(ID)?", ("no-such-host",)),
    (r".*\.providerID", ("no-such-id", f"openstack:///{UNKNOWN_ID}")),
)
"""Regular expression for the whole path, and the values; those that the schema refuses are tested as well."""


class NoValueError(Exception):
    """No wrong value can be derived from a schema; the message says where to add one."""


def wrong(path: str, schema: Json, current: Any) -> list[Any]:
    """Return wrong values for a scalar.

    Args:
        current: the value that the running object has, None for none.
    """
    found = next((values for pattern, values in OVERRIDES if re.fullmatch(pattern, path)), None)
    values = list(found) if found is not None else _derived(path, schema, current)
    return [value for value in values if value != current or type(value) is not type(current)]


def _derived(path: str, schema: Json, current: Any) -> list[Any]:
    if "enum" in schema:
        return list(schema["enum"])
    match schema.get("type"):
        case "boolean":
            return [True, False] if current is None else [not current]
        case "integer":
            return [int(schema.get("maximum", LARGE)), int(schema.get("minimum", -1))]
        case "string":
            return [_text(path, schema)]
    raise NoValueError(f"{path}: no value for type {schema.get('type')}; add the path to OVERRIDES in {__name__}")


def _text(path: str, schema: Json) -> str:
    for keyword, known in (("format", FORMATS), ("pattern", PATTERNS)):
        if keyword in schema:
            try:
                return known[schema[keyword]]
            except KeyError:
                raise NoValueError(
                    f"{path}: no value for {keyword} {schema[keyword]}; add it to {keyword.upper()}S,"
                    f" or the path to OVERRIDES, in {__name__}"
                ) from None
    name = [step for step in places.steps(path) if step not in ("[]", "{}")][-1]
    return NO_SUCH + re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()

"""The build timeout of a machine, or of its template, for its OpenStackServer: at its creation and until it runs; pure.

It is never removed from an OpenStackServer: a template may be deleted while its machines are built.
"""

from __future__ import annotations

from api import server_build_timeout
from capo import names
from capo.contract import clusters
from capo.json_types import Object
from controllers import cloned_from


def wanted(obj: Object, template: Object | None) -> dict[str, str]:
    """Return the annotation for the OpenStackServer of a machine: its own, else its template's; empty for none."""
    text = server_build_timeout.text_in(obj)
    if text is None and template is not None:
        text = server_build_timeout.text_in(template)
    return {} if text is None else {names.BUILD_TIMEOUT_ANNOTATION: text}


def missing(obj: Object, template: Object | None, server: Object) -> dict[str, str]:
    """Return the annotation that an OpenStackServer lacks while its server is built; empty if it has it or it runs."""
    if clusters.is_provisioned(obj):
        return {}
    return {key: text for key, text in wanted(obj, template).items() if server_build_timeout.text_in(server) != text}


def is_due(obj: Object, template: Object, server: Object | None) -> bool:
    """Return whether the OpenStackServer of a machine lacks the build timeout of its template."""
    is_clone = server is not None and cloned_from.is_clone(obj, template["metadata"]["name"])
    return is_clone and server is not None and bool(missing(obj, template, server))

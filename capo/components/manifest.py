"""All objects of an installation in the order in which they are applied: the source of components and chart."""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from capo import components
from capo.components import deployment, metrics
from capo.components.deployment import Pod
from capo.crdgen import files
from capo.json_types import Json
from capo.version import VERSION
from capo.webhooks import configuration

REPOSITORY: Final = "localhost/capo"
"""Default name of the image: one that was built locally, since the project has no registry."""
_CANONICAL: Final = re.compile(r"(localhost|[^/.:]*[.:][^/]*)/[a-z0-9./_-]+(:[\w.-]+)?(@sha256:[0-9a-f]{64})?")


class BadImageError(Exception):
    """clusterctl does not support this name of an image."""


def tag(version: str = VERSION) -> str:
    """Return the version in the spelling of tags, folders and clusterctl."""
    return f"v{version.removeprefix('v')}"


def image(name: str = REPOSITORY, version: str = VERSION) -> str:
    """Return the image's full name; a name without tag and digest gets the version as tag.

    Raises:
        BadImageError: the name has no registry. Source: docs/reference/contract.md, C-66.
    """
    if not _CANONICAL.fullmatch(name):
        raise BadImageError(f"{name!r} is no full name of an image, such as registry.example.org/capo:{tag(version)}")
    return name if ":" in name.rpartition("/")[2] else f"{name}:{tag(version)}"


def objects(pod: Pod) -> list[Json]:
    """Return every object but the namespace."""
    return [
        *crds(),
        *accounts(),
        metrics.reader(),
        deployment.service(),
        metrics.service(),
        *deployment.certificate(),
        deployment.deployment(pod),
        webhooks(),
    ]


def crds() -> list[Json]:
    """Return the CRDs; those with several versions use our conversion webhook with its certificate's CA."""
    return [_with_ca(crd) for crd in files.load()]


def accounts() -> list[Json]:
    """Return the provider's ServiceAccount and roles, labelled."""
    return [_labelled(obj) for obj in components.rbac()]


def webhooks() -> Json:
    """Return the validating webhook configuration, with the CA of the webhooks' certificate."""
    found = configuration.validating(deployment.SERVICE)
    return found | {"metadata": found["metadata"] | {"annotations": dict(deployment.INJECT_CA)}}


def text(pod: Pod) -> str:
    """Return ``infrastructure-components.yaml``."""
    return dump([deployment.namespace(), *objects(pod)])


def dump(documents: list[Json], *, width: float = 120) -> str:
    """Return a stream of YAML documents without anchors, which are hard to read and a risk for clusterctl."""
    return yaml.dump_all(documents, Dumper=_Plain, width=width, sort_keys=False)


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _with_ca(crd: Json) -> Json:
    if crd["spec"].get("conversion", {}).get("strategy") != "Webhook":
        return crd
    annotations = crd["metadata"].get("annotations", {}) | deployment.INJECT_CA
    return crd | {"metadata": crd["metadata"] | {"annotations": annotations}}


def _labelled(obj: Json) -> Json:
    labels = obj["metadata"].get("labels", {}) | deployment.PROVIDER_LABEL
    return obj | {"metadata": obj["metadata"] | {"labels": labels}}

"""Manifests that the Go provider's project and its users published, as shapes, and values for their placeholders."""

from __future__ import annotations

from typing import Final

import yaml

from capo.crdgen.tests import go_provider
from capo.json_types import Json
from e2e.clusterctl.objects import VARIABLES

SOME_ID: Final = VARIABLES["OPENSTACK_NETWORK_ID"]
PLACEHOLDERS: Final[dict[str, dict[str, str]]] = {
    "canonical-ck8s-template.yaml": {"changeme": "true"},
    "k0smotron-docs.yaml": {
        "flavor: m1.medium": "flavor: {filter: {name: m1.medium}}",
        "flavor: text-1": "flavor: {filter: {name: text-1}}",
    },
    "kamaji-cp-provider-docs.yaml": {"REDACTED": SOME_ID},
    "openshift-docs-infracluster.yaml": {
        "<api_service_network_id>": SOME_ID,
        "<floating_network_id>": SOME_ID,
        "<control_plane_endpoint_address>": "{host: api.example.org, port: 6443}",
        "<cluster_name>": "name",
    },
    "openshift-docs-machinetemplate.yaml": {"<template_name>": "name"},
    "safespring-talos-3.yaml": {"<external_network_id>": SOME_ID},
}
"""Values for what these files leave to the reader, and for the fields that the Go provider refuses as well."""


def with_values(file: str, text: str) -> str:
    """Return the text of a manifest with real values for its placeholders."""
    for placeholder, value in PLACEHOLDERS.get(file, {}).items():
        text = text.replace(placeholder, value)
    return text


def files(part: str) -> list[str]:
    """Return the names of the files in ``templates`` or ``wild``."""
    return sorted({file for file, _ in go_provider.manifests(part)})


def text(part: str, file: str) -> str:
    """Return the objects of a file as YAML."""
    return yaml.safe_dump_all([obj for name, obj in go_provider.manifests(part) if name == file])


def objects(part: str, file: str) -> list[Json]:
    """Return the objects of a file, with real values for its placeholders."""
    return [obj for obj in yaml.safe_load_all(with_values(file, text(part, file))) if obj]

"""Migrates stored objects of our kinds to the current storage version.

etcd keeps an object in the version in which it was last written, and the API server refuses a CRD that drops a version
in which something may still be stored (``status.storedVersions``). So a release can drop a version only after the one
before it has rewritten everything. Entries of ``managedFields`` in versions that are no longer served are removed as
well: a server-side apply would fail on them.

Source: docs/reference/contract.md, C-69 and C-70; annotation and flag are those of Cluster API's own migrator, so that
either migrator skips a CRD that the other has migrated.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from capo.flag_values import CLEANUP_MANAGED_FIELDS, MIGRATION_PHASES, STORAGE_VERSION_MIGRATION
from capo.json_types import Object
from capo.kube.client import Kube
from capo.kube.errors import Conflict, Gone, KubeError
from capo.kube.kinds import CRD, OURS, Kind

log = logging.getLogger(__name__)

OBSERVED_GENERATION: Final = "crd-migration.cluster.x-k8s.io/observed-generation"


class MigrationError(Exception):
    """Some objects could not be rewritten; the message names them, with the error of the first."""


@dataclass(frozen=True)
class Versions:
    """The versions of a CRD.

    Attributes:
        kind: in the storage version.
        stored: versions in which something may be stored.
        served: versions that are served.
    """

    kind: Kind
    stored: frozenset[str]
    served: frozenset[str]

    @property
    def has_old_versions(self) -> bool:
        """Return whether something may be stored in another version."""
        return self.stored != {self.kind.version}


class Migration:
    """Migrates the CRDs of our kinds, one after the other; may run repeatedly.

    Args:
        phases: what to do, of ``flag_values.MIGRATION_PHASES``.
    """

    def __init__(self, kube: Kube, phases: Collection[str] = MIGRATION_PHASES) -> None:
        self._kube, self._phases = kube, frozenset(phases)

    def run(self) -> None:
        """Migrate every kind to its storage version. Blocks; quick if everything is migrated.

        Raises:
            KubeError: the API server failed or refused; the next run does the rest.
            MigrationError: the API server refuses some objects as they are; all others are migrated.
        """
        troubles = []
        for kind in OURS:
            crd = self._kube.get(CRD, "", f"{kind.plural}.{kind.group}")
            if crd is None or is_migrated(crd):
                continue
            try:
                self._migrate(crd, versions(crd, kind))
            except Conflict as error:
                log.info("Definition was changed by another writer", extra={"kind": kind.kind, "err": str(error)})
            except MigrationError as error:
                troubles.append(str(error))
        if troubles:
            raise MigrationError("; ".join(troubles))

    def _migrate(self, crd: Object, known: Versions) -> None:
        name = crd["metadata"]["name"]
        rewritten = self._rewrite(known)
        if STORAGE_VERSION_MIGRATION in self._phases and known.has_old_versions:
            crd = self._patch(crd, {"status": {"storedVersions": [known.kind.version]}}, subresource="status")
            fields = {"crd": name, "version": known.kind.version, "was": sorted(known.stored), "rewritten": rewritten}
            log.info("Everything is stored in one version", extra=fields)
        if self._phases == MIGRATION_PHASES:
            self._patch(crd, {"metadata": {"annotations": {OBSERVED_GENERATION: _generation(crd)}}})

    def _patch(self, crd: Object, change: dict[str, Any], *, subresource: str | None = None) -> Object:
        metadata = change.get("metadata", {}) | {"resourceVersion": crd["metadata"]["resourceVersion"]}
        body = change | {"metadata": metadata}
        return self._kube.patch(CRD, "", crd["metadata"]["name"], body, subresource=subresource)

    def _rewrite(self, known: Versions) -> int:
        """Rewrite every object that may need it once; return the number of objects."""
        rewrites_all = STORAGE_VERSION_MIGRATION in self._phases and known.has_old_versions
        cleans = CLEANUP_MANAGED_FIELDS in self._phases
        if not (rewrites_all or cleans):
            return 0
        rewritten, refused = 0, []
        for obj in self._kube.list(known.kind):
            cleaned = current_fields(obj, known) if cleans else None
            if not rewrites_all and cleaned is None:
                continue
            try:
                self._touch(known.kind, obj, cleaned)
            except KubeError as error:
                if error.status is None or error.status in (401, 403):
                    raise
                refused.append((f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}", error))
            rewritten += 1
        if refused:
            listed = ", ".join(name for name, _ in refused)
            raise MigrationError(f"{known.kind.kind} {listed} cannot be rewritten: {refused[0][1]}")
        return rewritten

    def _touch(self, kind: Kind, obj: Object, cleaned: list[Any] | None) -> None:
        """Write an object unchanged: the API server stores it in the storage version.

        A conflict means that another client wrote it since, and so in the storage version.
        """
        metadata = obj["metadata"]
        body: dict[str, Any] = {"resourceVersion": metadata["resourceVersion"]}
        if cleaned is not None:
            body["managedFields"] = cleaned
        try:
            self._kube.patch(kind, metadata.get("namespace", ""), metadata["name"], {"metadata": body})
        except (Conflict, Gone):
            return


def versions(crd: Object, kind: Kind) -> Versions:
    """Return the versions of a CRD; pure."""
    listed = crd["spec"]["versions"]
    (storage,) = (version["name"] for version in listed if version["storage"])
    stored = frozenset((crd.get("status") or {}).get("storedVersions") or ())
    served = frozenset(version["name"] for version in listed if version["served"])
    return Versions(Kind(kind.group, storage, kind.plural, kind.kind, kind.is_namespaced), stored, served)


def current_fields(obj: Object, known: Versions) -> list[Any] | None:
    """Return ``managedFields`` without entries in versions that are no longer served; None if all are served; pure.

    An object always keeps one entry: without any, the API server would invent an owner of all its fields at the next
    apply. The replacement owns nothing but the name, and disappears with its manager's next apply.
    """
    entries = list(obj["metadata"].get("managedFields") or ())
    kept = [entry for entry in entries if not _is_stale(entry, known)]
    if len(kept) == len(entries):
        return None
    fields: dict[str, Any] = {"f:metadata": {"f:name": {}}}
    return kept or [{**entries[0], "apiVersion": known.kind.api_version, "fieldsV1": fields}]


def _is_stale(entry: Object, known: Versions) -> bool:
    group, _, version = entry.get("apiVersion", "").rpartition("/")
    return bool(group == known.kind.group and version not in known.served)


def is_migrated(crd: Object) -> bool:
    """Return whether a CRD in its present form was completely migrated; pure."""
    return bool((crd["metadata"].get("annotations") or {}).get(OBSERVED_GENERATION) == _generation(crd))


def _generation(crd: Object) -> str:
    return str(crd["metadata"]["generation"])

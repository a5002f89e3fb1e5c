"""Reads the file of `capo simulate --config`: configuration of the cloud, timings, quotas, initial faults."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, TypeVar

import yaml

from capo.simulator.cloud import Cloud, Config, Json, Timings
from capo.simulator.keystone.service import project_named
from capo.simulator.octavia import service as octavia

T = TypeVar("T")
SECTIONS = ("cloud", "timings", "quotas", "faults")


class BadConfigurationError(ValueError):
    """The file has a key or value that the simulator does not support."""


def read(path: Path | None) -> Json:
    """Return the file's content, empty without a file."""
    if path is None:
        return {}
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise BadConfigurationError(f"{path} is not a mapping")
    _refuse_unknown("the file", document, SECTIONS)
    return document


def make_cloud(document: Json) -> Cloud:
    """Return a cloud, not seeded yet, as the document defines it."""
    settings = dict(document.get("cloud", {}))
    for name in ("zones", "lb_providers"):
        if name in settings:
            settings[name] = tuple(settings[name])
    config = _build(Config, "cloud", settings)
    try:
        octavia.check_providers(config)
    except ValueError as error:
        raise BadConfigurationError(str(error)) from error
    return Cloud(config=config, timings=_build(Timings, "timings", document.get("timings", {})))


def apply(document: Json, cloud: Cloud) -> None:
    """Set the quotas (service, project's name, resource, limit) and the faults of a seeded cloud.

    Raises:
        BadFaultError: A fault is invalid.
    """
    for service, projects in document.get("quotas", {}).items():
        for name, limits in projects.items():
            for resource, limit in limits.items():
                cloud.set_quota(service, project_named(cloud, name), resource, int(limit))
    for fault in document.get("faults", []):
        cloud.faults.add(fault)


def _build(kind: type[T], section: str, values: dict[str, Any]) -> T:
    _refuse_unknown(section, values, tuple(item.name for item in dataclasses.fields(kind)))  # type: ignore[arg-type]
    return kind(**values)


def _refuse_unknown(where: str, values: dict[str, Any], known: tuple[str, ...]) -> None:
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise BadConfigurationError(f"{where} has unknown keys {', '.join(unknown)}; known are {', '.join(known)}")

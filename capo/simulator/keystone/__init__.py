"""Keystone v3: tokens, users, projects, application credentials, the catalogue of services and regions."""

from __future__ import annotations

from capo.simulator.keystone import admin, directory, regions, service, trusts

__all__ = ["admin", "directory", "regions", "service", "trusts"]

"""Writes the clouds.yaml with which clients find the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from capo.simulator.cloud import Cloud
from capo.simulator.keystone import service as keystone


def clouds_document(cloud: Cloud, url: str) -> dict[str, Any]:
    """Return clouds.yaml as a document: `sim`, `sim-appcred` and `sim-admin`."""
    auth_url = f"{url}/identity/v3"
    credential_id, secret = keystone.seeded_credential(cloud)
    entry = {"region_name": cloud.config.region, "identity_api_version": 3, "interface": "public"}
    by_secret = {
        "auth_url": auth_url,
        "application_credential_id": credential_id,
        "application_credential_secret": secret,
    }
    return {
        "clouds": {
            "sim": {
                "auth_type": "password",
                **entry,
                "auth": _password(auth_url, "capi", cloud.config.member_password),
            },
            "sim-appcred": {"auth_type": "v3applicationcredential", **entry, "auth": by_secret},
            "sim-admin": {
                "auth_type": "password",
                **entry,
                "auth": _password(auth_url, "admin", cloud.config.admin_password),
            },
        }
    }


def write_clouds_yaml(cloud: Cloud, url: str, path: Path) -> None:
    """Write clouds.yaml, readable by its owner alone."""
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(clouds_document(cloud, url), sort_keys=False), encoding="utf-8")


def _password(auth_url: str, name: str, password: str) -> dict[str, str]:
    return {
        "auth_url": auth_url,
        "username": name,
        "password": password,
        "project_name": name,
        "user_domain_name": "Default",
        "project_domain_name": "Default",
    }

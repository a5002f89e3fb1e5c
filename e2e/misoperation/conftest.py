"""The API server of the webhooks' tests, for the comparison with the admission chain in process."""

from __future__ import annotations

from capo.webhooks.tests.conftest import administrator, client, installed

__all__ = ["administrator", "client", "installed"]

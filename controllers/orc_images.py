"""Image objects of the OpenStack Resource Controller (ORC), which may be absent.

Source: docs/explanation/go-provider.md, G-20; ORC's conditions ``Available`` and ``Progressing``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capo.engine import conditions
from capo.engine.context import Dependencies
from capo.engine.steps import Wait
from capo.json_types import Object
from capo.kube.errors import Gone
from capo.kube.kinds import ORC_IMAGE

NOT_READY: Final = "InstanceNotReady"
FAILED: Final = "DependencyFailed"
LOOK_AGAIN_S: Final = 30.0
"""Fallback for the watch, which may not run yet if ORC was installed just now."""
_TERMINAL: Final = ("InvalidConfiguration", "UnrecoverableError")


def image_id(deps: Dependencies, namespace: str, name: str) -> str | Wait:
    """Return the id of the image of an ORC Image, or what to wait for."""
    found = deps.store.get(ORC_IMAGE, namespace, name) or deps.kube.get(ORC_IMAGE, namespace, name)
    if found is not None:
        return image_id_of(found)
    if not _is_served(deps, namespace):
        return _wait(
            f"the kind Image of {ORC_IMAGE.api_version} is not served: install the OpenStack Resource Controller, "
            "or name the image by id or filter"
        )
    return _wait(f"Image {namespace}/{name} ({ORC_IMAGE.group}) does not exist")


def image_id_of(image: Object) -> str | Wait:
    """Return the image id of an ORC Image, or the wait that its conditions imply; pure."""
    status: Mapping[str, Any] = image.get("status") or {}
    shown = status.get("conditions") or ()
    what = f"Image {image['metadata']['namespace']}/{image['metadata']['name']} ({ORC_IMAGE.group})"
    if conditions.is_true(shown, "Available") and status.get("id"):
        return str(status["id"])
    progressing = conditions.find(shown, "Progressing") or {}
    is_current = progressing.get("observedGeneration") == image["metadata"].get("generation")
    if is_current and progressing.get("reason") in _TERMINAL:
        return Wait(FAILED, f"{what} cannot become available: {progressing.get('message', '')}", LOOK_AGAIN_S)
    return _wait(f"{what} is not available yet")


def _is_served(deps: Dependencies, namespace: str) -> bool:
    try:
        next(iter(deps.kube.list(ORC_IMAGE, namespace, limit=1)), None)
    except Gone:
        return False
    return True


def _wait(message: str) -> Wait:
    return Wait(NOT_READY, message, LOOK_AGAIN_S)

"""The steps of an OpenStackMachineTemplate; nothing is created, so that a deletion has nothing to remove.

What could not be found out is Unknown: only an answer that proves it makes a condition False.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from capo.engine.steps import Done, Outcome, Plan, Step, Wait, nothing
from capo.errors import CapoError, IdentityError, NotAuthorizedError, ReferenceNotFoundError, TerminalError
from capo.openstack import flavor, image
from capo.openstack.image import Image
from controllers import orc_images
from controllers.openstackmachinetemplate import capacity
from controllers.openstackmachinetemplate.scope import TemplateScope

Ensure = Callable[[TemplateScope], Outcome]


def unless_unknown(ensure: Ensure) -> Ensure:
    """Return the step with outages, refusals and ambiguous answers as a wait of status Unknown."""

    def run(scope: TemplateScope) -> Outcome:
        try:
            return ensure(scope)
        except (ReferenceNotFoundError, TerminalError, IdentityError, NotAuthorizedError):
            raise
        except CapoError as error:
            return Wait(error.reason, error.sentence, status="Unknown")

    return run


def ensure_capacity(scope: TemplateScope) -> Outcome:
    """Report the capacity of nodes, from the flavor and the root volume."""
    wanted, root = scope.spec.flavor, scope.spec.root_volume
    scope.found.flavor = flavor.get(scope.cloud, id_=wanted.id, name=wanted.filter.name if wanted.filter else None)
    found = capacity.of(
        scope.found.flavor,
        root_volume_gib=root.size_gib if root else None,
        mapping=dict(scope.deps.settings.flavor_resources),
    )
    scope.found.capacity = found.resources
    return Done(found.message)


def ensure_node_info(scope: TemplateScope) -> Outcome:
    """Report architecture and operating system of nodes, from the image."""
    found = _image(scope)
    if isinstance(found, Wait):
        return Wait(found.reason, found.message, found.after_s, status="Unknown")
    scope.found.node_info = capacity.node_info(scope.found.flavor, found)
    return Done()


def _image(scope: TemplateScope) -> Image | Wait:
    wanted = scope.spec.image
    if wanted.image_ref is None:
        return image.find(scope.cloud, wanted)
    image_id = orc_images.image_id(scope.deps, scope.key.namespace, wanted.image_ref.name)
    return image_id if isinstance(image_id, Wait) else image.get(scope.cloud, image_id)


STEPS: Final = (
    Step("CapacityReady", ensure=unless_unknown(ensure_capacity), remove=nothing, needs=()),
    Step("NodeInfoReady", ensure=unless_unknown(ensure_node_info), remove=nothing, needs=()),
)
PLAN: Final = Plan(STEPS)

"""The inputs of one reconcile of an OpenStackMachineTemplate, and what its steps found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from api.v1beta2 import OpenStackMachineTemplate
from api.v1beta2.openstackmachine import OpenStackMachineSpec
from capo.engine.context import Dependencies
from capo.engine.steps import Wait
from capo.errors import CapoError
from capo.kube.kinds import Key
from capo.openstack import flavor, image
from capo.openstack.cloud import Cloud
from capo.openstack.flavor import Flavor
from capo.openstack.image import Image
from controllers import orc_images

_FLAVOR: Final = "flavor"
_IMAGE: Final = "image"


@dataclass
class Found:
    """The results of this reconcile's steps.

    Args:
        answers: flavor and image, or the errors of looking them up.
        capacity: None if it is not known.
        node_info: None if it is not known.
    """

    answers: dict[str, object] = field(default_factory=dict)
    capacity: Mapping[str, str] | None = None
    node_info: Mapping[str, str] | None = None


@dataclass(frozen=True)
class TemplateScope:
    """The template and its cloud.

    Args:
        zones: availability zones in which what refers to the template wants its machines.
        zones_of_machines: these, and the failure domains over which a control plane spreads its machines.
        is_shared: other namespaces share the credentials.
    """

    deps: Dependencies
    key: Key
    template: OpenStackMachineTemplate
    cloud: Cloud
    zones: Sequence[str] = ()
    zones_of_machines: Sequence[str] = ()
    is_shared: bool = False
    found: Found = field(default_factory=Found)

    @property
    def spec(self) -> OpenStackMachineSpec:
        """The spec of the machines."""
        return self.template.spec.template.spec

    def flavor(self) -> Flavor:
        """Return the flavor; it is looked up once in a reconcile.

        Raises:
            CapoError: it is missing, or could not be looked up.
        """
        wanted = self.spec.flavor
        name = wanted.filter.name if wanted.filter else None
        answer = self._once(_FLAVOR, lambda: flavor.get(self.cloud, id_=wanted.id, name=name))
        assert isinstance(answer, Flavor)  # noqa: S101 - for the type checker
        return answer

    @property
    def known_flavor(self) -> Flavor | None:
        """The flavor if it was looked up in this reconcile and found."""
        answer = self.found.answers.get(_FLAVOR)
        return answer if isinstance(answer, Flavor) else None

    def node_info_defaults(self, found: Image) -> Mapping[str, str]:
        """Return the values of nodeInfo that are assumed if nothing states them.

        Without the flavor, whose traits may state the architecture, it is the one that was reported.
        """
        defaults = dict(self.deps.settings.node_info_defaults)
        if self.known_flavor is None and not found.architecture:
            reported = self.template.status.node_info
            defaults["architecture"] = (reported.architecture if reported else None) or ""
        return defaults

    def image(self) -> Image | Wait:
        """Return the image, or what to wait for; it is looked up once in a reconcile.

        Raises:
            CapoError: it is missing, or could not be looked up.
        """
        answer = self._once(_IMAGE, self._image)
        assert isinstance(answer, Image | Wait)  # noqa: S101 - for the type checker
        return answer

    def _image(self) -> Image | Wait:
        wanted = self.spec.image
        if wanted.image_ref is None:
            return image.find(self.cloud, wanted)
        image_id = orc_images.image_id(self.deps, self.key.namespace, wanted.image_ref.name)
        # Not polled: the event of the Image requeues the template.
        return replace(image_id, after_s=None) if isinstance(image_id, Wait) else image.get(self.cloud, image_id)

    def _once(self, what: str, ask: Callable[[], object]) -> object:
        """Return the answer to a question of this reconcile; raise the same error each time."""
        answers = self.found.answers
        if what not in answers:
            try:
                answers[what] = ask()
            except CapoError as error:
                answers[what] = error
        answer = answers[what]
        if isinstance(answer, CapoError):
            raise answer
        return answer

"""Networks, subnets, routers and security groups that the user names by id or by filter.

Results are cached for a minute per cloud. Source: docs/explanation/go-provider.md, G-6 (filter -> query).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from api.v1beta2.network import NeutronFilter
from capo.errors import AmbiguousMatchError, CapoError, InvalidSpecError, NotFoundError
from capo.json_types import Body
from capo.openstack.cloud import Cloud
from capo.openstack.kinds import ResourceKind

RECENT_S: Final = 600.0
"""Resources that the poller listed within this time are not requested again: ids, names and CIDRs are stable."""
_ANY_OF: Final = "tags-any"
_QUERY_NAMES: Final = {"tags_any": _ANY_OF, "not_tags": "not-tags", "not_tags_any": "not-tags-any"}


@dataclass(frozen=True)
class Reference:
    """How one kind is looked up.

    Args:
        missing: the error if nothing matches.
    """

    kind: ResourceKind
    missing: type[CapoError]

    @property
    def word(self) -> str:
        """The kind in a sentence."""
        return self.kind.name.replace("_", " ")

    def get(self, cloud: Cloud, resource_id: str) -> Body:
        """Return the resource with an id, from the poller's cache or from the cloud.

        Raises:
            NotFoundError: the kind's own subclass of it.
        """
        item = cloud.poller.item(self.kind.name, resource_id)
        if item is not None and cloud.clock.now() - item.as_of_s <= RECENT_S:
            return item.body
        found: Body = cloud.lookups.get((self.kind.name, resource_id), lambda: self._asked(cloud, resource_id))
        return found

    def _asked(self, cloud: Cloud, resource_id: str) -> Body:
        try:
            answer = cloud.get(self.kind.service, self.kind.path(resource_id))
        except NotFoundError as error:
            raise self.missing(error.message, request_id=error.request_id, status=error.status) from error
        body: Body = answer[self.kind.body_key]
        return body

    def all(self, cloud: Cloud, params: Mapping[str, Any]) -> list[Body]:
        """Return all resources that match a query; at least one.

        Raises:
            NotFoundError: none matches.
        """
        found: list[Body] = cloud.lookups.get(self._question("all", params), lambda: self._listed(cloud, params))
        return found

    def listed(self, cloud: Cloud, resource_id: str | None, wanted: NeutronFilter | None) -> list[Body]:
        """Return what a reference names by lists alone: that a list lacks it proves more than a 404 of one resource.

        Raises:
            NotFoundError: complete lists have none; the kind's own subclass of it.
        """
        return self.all(cloud, {"id": resource_id} if resource_id else self.query(wanted))

    def _question(self, wanted: str, params: Mapping[str, Any]) -> Hashable:
        return (self.kind.name, wanted, tuple(sorted((name, str(value)) for name, value in params.items())))

    def _listed(self, cloud: Cloud, params: Mapping[str, Any]) -> list[Body]:
        asked = _answerable(params)
        found = cloud.list_all(self.kind.service, self.kind.list_path, self.kind.key, params=asked)
        if asked != params:
            found = [body for body in found if set(params[_ANY_OF].split(",")) & set(body.get("tags") or ())]
        if not found:
            raise self.missing(f"no {self.word} matches {words(params)}")
        return found

    def only(self, cloud: Cloud, params: Mapping[str, Any]) -> Body:
        """Return the one resource that matches a query.

        Raises:
            NotFoundError: none matches.
            AmbiguousMatchError: more than one does.
        """
        found: Body = cloud.lookups.get(self._question("only", params), lambda: self._the_one(cloud, params))
        return found

    def _the_one(self, cloud: Cloud, params: Mapping[str, Any]) -> Body:
        found = self._listed(cloud, params)
        if len(found) > 1:
            ids = ", ".join(sorted(body["id"] for body in found)[:5])
            text = f"{len(found)} {self.word}s match {words(params)}"
            raise AmbiguousMatchError(f"{text}: {ids}", if_shared=text)
        return found[0]

    def query(self, wanted: NeutronFilter | None) -> dict[str, Any]:
        """Return a filter as a query.

        Raises:
            InvalidSpecError: neither a filter nor an id was given.
        """
        if wanted is None:
            raise InvalidSpecError(f"a {self.word} is named neither by id nor by filter")
        return query(wanted)


def query(wanted: NeutronFilter) -> dict[str, Any]:
    """Return a filter as Neutron's query; empty fields are omitted."""
    values = {name: value for name, value in wanted.model_dump().items() if value not in ("", 0, (), [], None)}
    return {
        _QUERY_NAMES.get(name, name): ",".join(value) if isinstance(value, list | tuple) else value
        for name, value in values.items()
    }


def only_id(found: Sequence[Body], word: str) -> str:
    """Return the id of the only resource of a list.

    Raises:
        AmbiguousMatchError: there are more.
    """
    if len(found) > 1:
        ids = ", ".join(sorted(str(body["id"]) for body in found)[:5])
        text = f"{len(found)} {word}s match"
        raise AmbiguousMatchError(f"{text}: {ids}", if_shared=text)
    return str(found[0]["id"])


def _answerable(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a query without any-of-tags if it also has all-of-tags: Neutron 2026.2 answers 500 to both together."""
    if "tags" not in params:
        return params
    return {name: value for name, value in params.items() if name != _ANY_OF}


def words(params: Mapping[str, Any]) -> str:
    """Return a query in words."""
    return ", ".join(f"{name} {value}" for name, value in params.items()) or "an empty filter"

"""How much one list may take: its bytes, its resources and its values, before it fills the memory of the manager."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import requests

from capo.errors import CloudUnavailableError
from capo.json_types import Body, Json
from capo.openstack import connections, kinds, load_balancer, pages, port, resource_cache
from capo.openstack.connections import MIB, Limits, values_in
from capo.openstack.pages import LARGEST_ANSWERS, Wanted
from capo.openstack.resource_cache import ResourceCache

DEFAULT = LARGEST_ANSWERS * Limits.max_bytes
ID = "01234567-89ab-cdef-0123-456789abcdef"
MOMENT = "2026-11-28T10:00:00Z"
LINKS = [{"rel": rel, "href": f"https://cloud.example.com:8774/v2.1/servers/{ID}"} for rel in ("self", "bookmark")]
SERVER: Json = {
    **dict.fromkeys(("id", "tenant_id", "user_id", "hostId", "OS-EXT-SRV-ATTR:reservation_id"), ID),
    **dict.fromkeys(("name", "OS-EXT-SRV-ATTR:host", "OS-EXT-SRV-ATTR:hypervisor_hostname"), "prod-md-0-abcde-fghij"),
    **dict.fromkeys(("created", "updated", "OS-SRV-USG:launched_at", "OS-SRV-USG:terminated_at"), MOMENT),
    **dict.fromkeys(("status", "OS-EXT-STS:vm_state", "OS-DCF:diskConfig", "config_drive", "host_status"), "ACTIVE"),
    **dict.fromkeys(("OS-EXT-STS:task_state", "locked_reason", "description", "trusted_image_certificates"), None),
    **dict.fromkeys(("accessIPv4", "accessIPv6", "key_name", "OS-EXT-AZ:availability_zone"), "nova"),
    **{f"OS-EXT-SRV-ATTR:{name}": "" for name in ("instance_name", "launch_index", "hostname", "kernel_id")},
    **{f"OS-EXT-SRV-ATTR:{name}": "" for name in ("ramdisk_id", "root_device_name", "user_data")},
    **dict.fromkeys(("progress", "OS-EXT-STS:power_state", "locked"), 1),
    "image": {"id": ID, "links": LINKS[:1]},
    "flavor": {
        **dict.fromkeys(("vcpus", "ram", "disk", "ephemeral", "swap"), 8192),
        "original_name": "m1.large",
        "extra_specs": {"hw:mem_page_size": "large", "hw:cpu_policy": "shared"},
    },
    "addresses": {
        "prod": [
            {
                "version": 4,
                "addr": "10.6.0.100",
                "OS-EXT-IPS:type": "fixed",
                "OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:0:0:1",
            }
        ]
        * 2
    },
    "links": LINKS,
    "os-extended-volumes:volumes_attached": [{"id": ID, "delete_on_termination": True}],
    "tags": ["capo:aaaaaaaaaaaaa:server", "cluster-api"],
    "security_groups": [{"name": "default"}, {"name": "workers"}],
    "metadata": {"cluster": "prod"},
    "server_groups": [],
}
"""A server as Nova shows it to an administrator, with two addresses."""
PORT: Json = {
    **dict.fromkeys(("id", "network_id", "tenant_id", "project_id", "device_id", "qos_policy_id"), ID),
    **dict.fromkeys(("name", "dns_name", "dns_domain", "binding:host_id"), "prod-md-0-abcde-fghij-0"),
    **dict.fromkeys(("created_at", "updated_at"), MOMENT),
    **dict.fromkeys(("status", "device_owner", "ip_allocation", "mac_address"), "ACTIVE"),
    **dict.fromkeys(("admin_state_up", "port_security_enabled", "propagate_uplink_status", "revision_number"), 1),
    **dict.fromkeys(("resource_request", "hardware_offload_type", "trunk_details", "numa_affinity_policy"), None),
    **{f"binding:{name}": "ovs" for name in ("vnic_type", "vif_type")},
    "binding:profile": {},
    "binding:vif_details": {"port_filter": True, "connectivity": "l2", "bound_drivers": {"0": "ovn"}},
    "fixed_ips": [{"subnet_id": ID, "ip_address": "10.6.0.100"}] * 2,
    "allowed_address_pairs": [{"ip_address": "10.0.0.0/8", "mac_address": "fa:16:3e:00:00:01"}],
    "dns_assignment": [{"ip_address": "10.6.0.100", "hostname": "host", "fqdn": "host.openstacklocal."}] * 2,
    "extra_dhcp_opts": [],
    "description": "Created by cluster-api [capo:aaaaaaaaaaaaa:port-0]",
    "tags": ["cluster-api"],
    "security_groups": [ID, ID],
}


def answer(bodies: Iterable[Json]) -> requests.Response:
    return answer_of(json.dumps({"items": list(bodies)}, separators=(",", ":")).encode())


def answer_of(content: bytes) -> requests.Response:
    response = requests.Response()
    response.status_code, response.url, response.encoding = 200, "https://cloud.example.com/items", "utf-8"
    response.request = requests.Request("GET", response.url).prepare()
    response._content = content
    return response


def read(
    response: requests.Response, max_bytes: int = DEFAULT, keep: Callable[[Body], Body] = lambda _body: {}
) -> list[Body]:
    wanted = Wanted("network", "/items", "items", max_bytes, keep)
    return pages.read(lambda _params: response, wanted, {}).items


def repeated(body: Json, count: int) -> requests.Response:
    """Return a list of so many resources like this one."""
    text = json.dumps(body).encode()
    return answer_of(b'{"items":[' + b",".join([text] * count) + b"]}")


@pytest.mark.parametrize("body", [pytest.param(SERVER, id="servers"), pytest.param(PORT, id="ports")])
def test_a_project_of_ten_thousand_is_listed_with_the_default_size_and_has_room(body: Json) -> None:
    a_tenth = repeated(body, 1000)

    assert len(read(a_tenth, DEFAULT // 10 * 3 // 4)) == 1000
    assert values_in(a_tenth.content) < Limits.max_bytes // connections.VALUE_BYTES // 10  # also without pages


SMALL_PARTS: dict[str, tuple[str, Callable[[int], Json]]] = {
    "networks without content": ("network", lambda i: {"id": f"{i:x}"}),
    "stamped servers": ("server", lambda i: {"id": f"{i:x}", "tags": [f"capo:{i:013}:server"]}),
    "pools of members": ("pool", lambda i: {"id": f"{i:x}", "members": [{"id": f"{i}-{n}"} for n in range(100)]}),
    "pools of empty members": ("pool", lambda i: {"id": f"{i:x}", "members": [{} for _ in range(100)]}),
    "pools of lists": ("pool", lambda i: {"id": f"{i:x}", "members": [[] for _ in range(100)]}),
    "ports of groups": ("port", lambda i: {"id": f"{i:x}", "security_groups": [f"{i}-{n}" for n in range(100)]}),
    "metadata": ("volume", lambda i: {"id": f"{i:x}", "metadata": {f"{i}-{n}": 0 for n in range(100)}}),
}


LARGEST_INDEX = {"port": port.BY_GROUP, "pool": load_balancer.BY_MEMBER}


def largest(create: Callable[[int], Json], max_bytes: int) -> requests.Response:
    """Return a list of such resources that takes nearly all that a list may take."""

    def is_admitted(count: int) -> bool:
        try:
            return bool(read(answer(create(i) for i in range(count)), max_bytes))
        except CloudUnavailableError:
            return False

    low = 1
    while is_admitted(2 * low):
        low *= 2
    for step in (low // 2, low // 4, low // 8):
        low += step if is_admitted(low + step) else 0
    return answer(create(i) for i in range(low))


@pytest.mark.parametrize("parts", SMALL_PARTS)
def test_the_largest_list_of_small_parts_takes_a_small_multiple_of_its_limit(
    monkeypatch: pytest.MonkeyPatch, parts: str
) -> None:
    kind, create = SMALL_PARTS[parts]
    max_bytes = MIB // 4
    monkeypatch.setattr(resource_cache, "MAX_MORE_VALUES", max_bytes // pages.ITEM_BYTES)
    response = largest(create, max_bytes)
    cache = ResourceCache(kinds.KINDS[kind])
    gc.collect()
    tracemalloc.start()
    try:
        cache.take_all(read(response, max_bytes, cache.kind.keep), 1.0)
        cache.find(LARGEST_INDEX.get(kind, resource_cache.BY_NAME), "x")
        gc.collect()
        taken, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert taken < 2.5 * max_bytes
    assert most < 5 * max_bytes


@pytest.mark.parametrize("content", [b'{"items":[%s]}' % b",".join([b"[]"] * 300), b'{"items":' + b"[" * 600])
def test_a_list_of_too_many_values_is_refused_before_it_is_parsed(content: bytes) -> None:
    with pytest.raises(CloudUnavailableError, match="larger than"):
        read(answer_of(content), pages.CACHED_VALUE_BYTES * 500)


def test_the_error_of_a_list_of_small_resources_names_what_counts_and_what_to_do() -> None:
    with pytest.raises(CloudUnavailableError) as caught:
        read(answer({"id": f"{i:x}"} for i in range(2000)), MIB)

    assert caught.value.message == (
        "network: the list of /items is larger than 1 MiB, 4 times --openstack-max-response-size "
        "(each resource counts 1024 bytes more, and each value at least 64); "
        "delete what is not needed, or raise the flag"
    )


def test_the_pages_of_a_list_share_its_limit() -> None:
    content = {"items": [{"id": f"{i:x}"} for i in range(100)], "items_links": [{"rel": "next", "href": "?marker=a"}]}
    response = answer_of(json.dumps(content).encode())
    asked: list[Any] = []

    def get(params: Any) -> requests.Response:
        asked.append(params)
        return response

    with pytest.raises(CloudUnavailableError, match="larger than"):
        pages.read(get, Wanted("network", "/items", "items", MIB, dict), {})

    assert len(asked) < MIB // (100 * pages.ITEM_BYTES) + 1

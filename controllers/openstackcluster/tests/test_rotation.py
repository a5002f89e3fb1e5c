"""Credentials that are replaced under a running cluster: no gap, and what does not work is reported."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from capo.kube.kinds import NAMESPACE, OPENSTACK_CLUSTER, OPENSTACK_CLUSTER_IDENTITY, SECRET
from capo.simulator.keystone.service import change_password
from controllers.credentials import EXPIRES
from controllers.openstackcluster.tests.environment import BASTION, MANAGED, ClusterEnvironment
from controllers.openstackcluster.tests.objects import CLUSTER_NAME
from controllers.tests import application_credentials

ATTENTION = "CredentialsCurrent"


def new_application_credential(world: ClusterEnvironment) -> tuple[str, bytes]:
    """Return the id of a new application credential, and a clouds.yaml with it."""
    made, text = application_credentials.create(world)
    return made["id"], text


def delete_application_credential(world: ClusterEnvironment, credential_id: str) -> None:
    member = world.member
    credentials = world.cloud.table("identity", "application_credentials")
    user_id = credentials[credential_id]["user_id"]
    member.ask("DELETE", f"/identity/v3/users/{user_id}/application_credentials/{credential_id}")
    world.cloud.counter.reset()


def begin_bastion(world: ClusterEnvironment) -> None:
    """Create a cluster whose bastion is being built, so that its server is polled."""
    world.cloud.timings.server_build_s = float("inf")
    world.up(**MANAGED, **BASTION)


def annotate(world: ClusterEnvironment, value: str) -> None:
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"metadata": {"annotations": {"example.org/rotated": value}}})


def wrong(world: ClusterEnvironment) -> bytes:
    return world.simulator.clouds_yaml.read_bytes().replace(b"capi-password", b"wrong")


def credentials_in_use(world: ClusterEnvironment) -> set[str]:
    """Return the ids of application credentials that a cached cloud uses."""
    entries = [cloud.credentials.entry["auth"] for cloud in world.clouds._clouds.values()]
    return {entry["application_credential_id"] for entry in entries if "application_credential_id" in entry}


def warnings(world: ClusterEnvironment) -> list[str]:
    return [reason for type_, reason, _ in world.events.seen if type_ == "Warning"]


def test_a_changed_secret_is_used_as_soon_as_the_cluster_is_annotated(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    credential_id, text = new_application_credential(world)
    world.apply_secret(text=text)
    world.settle(for_s=60)
    assert credentials_in_use(world) == set()

    annotate(world, "1")
    world.settle(for_s=1)

    assert credentials_in_use(world) == {credential_id}
    assert world.is_ready()


def test_a_changed_secret_is_used_at_each_resync(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    for _ in range(3):
        credential_id, text = new_application_credential(world)
        world.apply_secret(text=text)
        world.settle(for_s=0.9 * world.settings.sync_period_s)

        world.resync()
        world.settle(for_s=1)

        assert credential_id in credentials_in_use(world)


def test_an_application_credential_that_is_deleted_after_its_secret_was_replaced_leaves_no_gap(
    world: ClusterEnvironment,
) -> None:
    first, text = new_application_credential(world)
    world.apply_secret(text=text)
    begin_bastion(world)
    second, text = new_application_credential(world)
    world.apply_secret(text=text)
    delete_application_credential(world, first)
    world.events.seen.clear()

    world.settle(for_s=30)

    assert credentials_in_use(world) == {second}
    assert warnings(world) == []
    world.simulator.call(world.cloud.release)
    world.settle(for_s=60)
    assert world.shown("BastionReady")[0] == "True"


def test_changed_credentials_that_are_refused_are_reported_and_the_former_ones_stay_in_use(
    world: ClusterEnvironment,
) -> None:
    world.up(**MANAGED)
    world.apply_secret(text=wrong(world))

    annotate(world, "1")
    world.settle(for_s=60)

    assert world.is_ready()
    assert world.shown(ATTENTION) == ("False", "NewCredentialsNotAccepted")
    assert "Secret default/cloud" in world.message(ATTENTION)
    assert "wrong" not in world.message(ATTENTION)
    assert warnings(world) == ["NewCredentialsNotAccepted"]
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"spec": {"managedSubnets": [{"cidr": "10.6.0.0/24"}]}})
    world.settle(for_s=60)
    assert world.one("subnets")["dns_nameservers"] == []


def test_the_report_says_when_the_secret_is_read_again(world: ClusterEnvironment) -> None:
    good = world.simulator.clouds_yaml.read_bytes()
    world.up(**MANAGED)
    world.apply_secret(text=wrong(world))
    annotate(world, "1")
    world.settle(for_s=60)
    again = "It is read again when an object with this identityRef is edited or annotated, and at each resync."
    assert world.message(ATTENTION).endswith(f". Correct the Secret. {again}")

    world.apply_secret(text=good)
    world.settle(for_s=120)
    assert world.shown(ATTENTION) == ("False", "NewCredentialsNotAccepted")

    world.settle(for_s=world.settings.sync_period_s)
    world.resync()
    world.settle(for_s=1)
    assert world.condition(OPENSTACK_CLUSTER, CLUSTER_NAME, ATTENTION) == {}


def test_refused_credentials_are_tried_once_in_two_minutes_however_often_a_tenant_annotates(
    world: ClusterEnvironment,
) -> None:
    world.up(**MANAGED)
    world.apply_secret(text=wrong(world))
    world.cloud.counter.reset()

    for number in range(20):
        annotate(world, str(number))
        world.settle(for_s=1)

    assert world.requests().count("POST /v3/auth/tokens") == 1


def test_the_report_ends_when_the_secret_is_corrected(world: ClusterEnvironment) -> None:
    good = world.simulator.clouds_yaml.read_bytes()
    world.up(**MANAGED)
    world.apply_secret(text=wrong(world))
    annotate(world, "1")
    world.settle(for_s=60)

    world.apply_secret(text=good)
    annotate(world, "2")
    world.settle(for_s=1)

    assert world.condition(OPENSTACK_CLUSTER, CLUSTER_NAME, ATTENTION) == {}


def test_the_present_content_is_blamed_when_the_cloud_refuses_the_former_credentials_too(
    world: ClusterEnvironment,
) -> None:
    begin_bastion(world)
    world.apply_secret(text=wrong(world))
    annotate(world, "1")
    world.settle(for_s=60)
    assert world.shown("OpenStackAuthenticationSucceeded") == ("True", "Ready")

    world.simulator.call(lambda: change_password(world.cloud, {"user": "capi", "password": "changed"}))
    world.resync()
    world.settle(for_s=60)
    assert world.shown("OpenStackAuthenticationSucceeded") == ("False", "OpenStackAuthenticationFailed")

    text = world.simulator.clouds_yaml.read_bytes().replace(b"capi-password", b"changed")
    world.apply_secret(text=text)
    world.settle(for_s=15)
    assert world.is_ready()


def test_credentials_that_the_cloud_refuses_for_a_moment_are_kept_while_the_secret_has_no_better_ones(
    world: ClusterEnvironment,
) -> None:
    world.up(**MANAGED)
    world.apply_secret(text=wrong(world))
    annotate(world, "1")
    world.settle(for_s=60)
    world.simulator.call(lambda: change_password(world.cloud, {"user": "capi", "password": "lost for a moment"}))
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"spec": {"managedSubnets": [{"cidr": "10.6.0.0/24"}]}})
    world.settle(for_s=300)
    assert world.shown("OpenStackAuthenticationSucceeded") == ("False", "OpenStackAuthenticationFailed")
    assert world.shown(ATTENTION) == ("False", "NewCredentialsNotAccepted")

    world.simulator.call(lambda: change_password(world.cloud, {"user": "capi", "password": "capi-password"}))
    world.settle(for_s=150)

    assert world.shown("OpenStackAuthenticationSucceeded") == ("True", "Ready")
    assert world.one("subnets")["dns_nameservers"] == []


def test_a_service_that_refuses_tokens_is_no_reason_to_take_credentials_that_open_nothing(
    world: ClusterEnvironment,
) -> None:
    world.up(**MANAGED)
    world.add_fault(match={"service": "network"}, effect={"status": 401})
    world.apply_secret(text=wrong(world))
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"spec": {"managedSubnets": [{"cidr": "10.6.0.0/24"}]}})
    world.settle(for_s=60)
    assert world.shown("OpenStackAuthenticationSucceeded") == ("False", "OpenStackAuthenticationFailed")

    world.clear_faults()
    world.settle(for_s=150)

    assert world.shown("OpenStackAuthenticationSucceeded") == ("True", "Ready")
    assert world.shown(ATTENTION) == ("False", "NewCredentialsNotAccepted")


def without_password(text: bytes) -> bytes:
    return text.replace(b"password: capi-password", b"passwort: capi-password")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        pytest.param(lambda text: text + b"\n  half: [an, edit", "clouds.yaml is not YAML", id="not YAML"),
        pytest.param(without_password, "auth.password is missing", id="a field is missing"),
        pytest.param(lambda text: text.replace(b"http://", b"htp://"), "no http(s) URL", id="no address"),
    ],
)
def test_a_slip_in_clouds_yaml_is_reported_and_the_former_credentials_stay_in_use(
    world: ClusterEnvironment, spoil: Callable[[bytes], bytes], words: str
) -> None:
    good = world.simulator.clouds_yaml.read_bytes()
    world.up(**MANAGED)
    world.apply_secret(text=spoil(good))

    annotate(world, "1")
    world.settle(for_s=60)

    assert world.is_ready()
    assert world.shown(ATTENTION) == ("False", "NewCredentialsNotAccepted")
    assert words in world.message(ATTENTION)
    assert "capi-password" not in world.message(ATTENTION)
    assert warnings(world) == ["NewCredentialsNotAccepted"]
    world.apply_secret(text=good)
    annotate(world, "2")
    world.settle(for_s=60)
    assert world.condition(OPENSTACK_CLUSTER, CLUSTER_NAME, ATTENTION) == {}


def test_a_bundle_of_authorities_that_is_half_pasted_leaves_the_former_credentials_in_use(
    world: ClusterEnvironment,
) -> None:
    world.up(**MANAGED)
    data = {
        name: base64.b64encode(text).decode()
        for name, text in (
            ("clouds.yaml", world.simulator.clouds_yaml.read_bytes()),
            ("cacert", b"-----BEGIN CERTIFICATE-----\nMIIB"),
        )
    }
    world.apply(SECRET, {"metadata": {"name": "cloud"}, "data": data})

    annotate(world, "1")
    world.settle(for_s=60)

    assert world.is_ready()
    assert "cacert is not a PEM bundle" in world.message(ATTENTION)


def test_a_secret_without_the_entry_takes_the_credentials_away_at_once(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    world.apply_secret(text=b"clouds: {other: {}}")

    annotate(world, "1")
    world.settle(for_s=1)

    assert world.shown("OpenStackAuthenticationSucceeded") == ("False", "OpenStackAuthenticationFailed")


def test_a_namespace_that_loses_access_is_named_and_learns_nothing_of_the_selector(world: ClusterEnvironment) -> None:
    selector = {
        "matchLabels": {"may": "use"},
        "matchExpressions": [{"key": "former-tenant", "operator": "DoesNotExist"}],
    }
    spec = {"secretRef": {"name": "cloud", "namespace": "default"}, "namespaceSelector": selector}
    world.kube.put(OPENSTACK_CLUSTER_IDENTITY, {"metadata": {"name": "shared", "namespace": ""}, "spec": spec})
    world.kube.put(NAMESPACE, {"metadata": {"name": "default", "namespace": "", "labels": {"may": "use"}}})
    ref = {"type": "ClusterIdentity", "name": "shared", "cloudName": "sim"}
    world.up(**MANAGED, identityRef=ref)
    world.kube.put(NAMESPACE, {"metadata": {"name": "default", "namespace": "", "labels": {"may": "not"}}})

    world.resync()
    world.settle(for_s=60)

    message = world.message("OpenStackAuthenticationSucceeded")
    assert "OpenStackClusterIdentity shared does not admit namespace default: its spec.namespaceSelector" in message
    shown = str([world.osc(), world.events.seen])
    assert not [text for text in ("may=", "'may'", "former-tenant", "DoesNotExist") if text in shown]


@pytest.mark.parametrize(
    ("days", "reasons"),
    [
        pytest.param(15, [], id="15 days"),
        pytest.param(13, ["CredentialsExpire"], id="13 days"),
        pytest.param(2, ["CredentialsExpireSoon"], id="2 days"),
    ],
)
def test_an_application_credential_that_expires_is_reported_once(
    world: ClusterEnvironment, days: int, reasons: list[str]
) -> None:
    credential_id, text = new_application_credential(world)
    ends = datetime.fromtimestamp(world.clock.wall() + days * 86400, UTC)
    credential = world.cloud.table("identity", "application_credentials")[credential_id]
    credential["expires_at"] = f"{ends:%Y-%m-%dT%H:%M:%S.%f}"
    world.apply_secret(text=text)

    world.up(**MANAGED)
    world.resync()
    world.settle(for_s=60)

    assert world.is_ready()
    assert warnings(world) == reasons
    assert world.condition(OPENSTACK_CLUSTER, CLUSTER_NAME, ATTENTION).get("reason", "") == "".join(reasons)


def test_the_expiry_of_credentials_in_use_is_reported_beside_new_ones_that_are_not_accepted(
    world: ClusterEnvironment,
) -> None:
    credential_id, text = new_application_credential(world)
    ends = datetime.fromtimestamp(world.clock.wall() + 2 * 86400, UTC)
    credential = world.cloud.table("identity", "application_credentials")[credential_id]
    credential["expires_at"] = f"{ends:%Y-%m-%dT%H:%M:%S.%f}"
    world.apply_secret(text=text)
    world.up(**MANAGED)
    world.apply_secret(text=wrong(world))

    annotate(world, "1")
    world.settle(for_s=60)

    assert world.shown(ATTENTION) == ("False", "NewCredentialsNotAccepted")
    assert f"expires at {ends:%Y-%m-%dT%H:%M:%S}Z" in world.message(ATTENTION)


def expiry_metric() -> list[float]:
    (metric,) = EXPIRES.collect()
    return [sample.value for sample in metric.samples if sample.labels["name"] == "cloud"]


def test_the_metric_of_an_expiry_ends_when_the_credentials_are_replaced(world: ClusterEnvironment) -> None:
    """An alert on it would else fire for ever, right after the administrator did what it asks for."""
    credential_id, text = new_application_credential(world)
    ends = datetime.fromtimestamp(world.clock.wall() + 86400, UTC).replace(microsecond=0)
    credential = world.cloud.table("identity", "application_credentials")[credential_id]
    credential["expires_at"] = f"{ends:%Y-%m-%dT%H:%M:%S.%f}"
    password = world.simulator.clouds_yaml.read_bytes()
    world.apply_secret(text=text)
    world.up(**MANAGED)
    assert expiry_metric() == [ends.timestamp()]

    world.apply_secret(text=password)
    annotate(world, "1")
    world.settle(for_s=60)

    assert expiry_metric() == []
    assert world.condition(OPENSTACK_CLUSTER, CLUSTER_NAME, ATTENTION) == {}

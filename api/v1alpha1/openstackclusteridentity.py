"""OpenStackClusterIdentity: credentials that an administrator shares with namespaces."""

from __future__ import annotations

from typing import ClassVar, Literal

from api import printer_columns
from api.meta import Conditions, KubernetesObject, LabelSelector
from api.model import Model
from api.schema import Column, Names, NamespaceName, ObjectName
from api.v1beta2.conditions import ConditionType


class OpenStackCredentialSecretReference(Model):
    """A Secret in any namespace."""

    name: ObjectName
    """Name of the Secret."""
    namespace: NamespaceName
    """Namespace of the Secret."""


class OpenStackClusterIdentitySpec(Model):
    """The credentials, and the namespaces that may use them."""

    secret_ref: OpenStackCredentialSecretReference
    """Secret with clouds.yaml, and cacert if needed. May change at any time."""
    namespace_selector: LabelSelector | None = None
    """Labels of the namespaces whose objects may use the credentials; an empty selector means all.
    Default: all. May change at any time."""


class OpenStackClusterIdentityStatus(Model):
    """Observed use of the credentials; only a manager of all namespaces writes it."""

    used_by: int | None = None
    """How many objects have an `identityRef` that names the identity."""
    conditions: Conditions = ()
    """`OpenStackAuthenticationSucceeded`: whether logins with the Secret succeed, and since when."""


class OpenStackClusterIdentity(KubernetesObject):
    """Credentials for OpenStack that objects in several namespaces may use."""

    names: ClassVar[Names] = Names("openstackclusteridentities", short="osci", scope="Cluster")
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Namespace", ".spec.secretRef.namespace", "Namespace of the Secret with the credentials"),
        Column("Secret", ".spec.secretRef.name", "Secret with the credentials"),
        Column("Used By", ".status.usedBy", "How many objects name the identity"),
        printer_columns.state(ConditionType.AUTHENTICATION_SUCCEEDED),
        printer_columns.changed(ConditionType.AUTHENTICATION_SUCCEEDED),
        printer_columns.AGE,
    )

    api_version: Literal["infrastructure.cluster.x-k8s.io/v1alpha1"] = "infrastructure.cluster.x-k8s.io/v1alpha1"
    """Group and version of the kind."""
    kind: Literal["OpenStackClusterIdentity"] = "OpenStackClusterIdentity"
    """Kind of the object."""
    spec: OpenStackClusterIdentitySpec = OpenStackClusterIdentitySpec(
        secret_ref=OpenStackCredentialSecretReference(name="", namespace=""),
    )
    """The credentials, and the namespaces that may use them."""
    status: OpenStackClusterIdentityStatus = OpenStackClusterIdentityStatus()
    """Observed use of the credentials."""

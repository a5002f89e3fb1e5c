"""The error catalogue: every fault that a step may raise, with the next step of the user.

    CapoError
    ├── RetryableError                 may be resolved without a change of the spec: retried with backoff
    │   ├── AmbiguousAnswerError       a write may or may not have taken effect (cut off, timed out, 5xx)
    │   ├── CloudUnavailableError      a read was answered with 5xx, cut off or timed out
    │   ├── RateLimitedError           429, or 503 with Retry-After
    │   ├── ConflictError              409: busy, immutable for now, in use
    │   │   └── AddressesExhaustedError  a network or subnet has no free address
    │   ├── QuotaExceededError         the project's quota refuses it
    │   │   └── ServerGroupFullError   the server group has as many servers as the quota admits
    │   ├── NotAuthorizedError         401 after the token was renewed: wrong credentials
    │   ├── IdentityError              the credentials cannot be read: Secret, key, cloud name, namespace
    │   ├── ForbiddenError             403 by policy
    │   ├── UnsupportedByCloudError    406, 501: the cloud's version or driver cannot do it
    │   ├── NotFoundError              404 of something that must exist
    │   │   ├── ReferenceNotFoundError a referenced resource does not exist
    │   │   │   ├── ImageNotFoundError, FlavorNotFoundError, NetworkNotFoundError, SubnetNotFoundError,
    │   │   │   └── RouterNotFoundError, SecurityGroupNotFoundError, ServerGroupNotFoundError, KeyPairNotFoundError
    │   │   └── BootstrapDataNotFoundError
    │   ├── AmbiguousMatchError        a filter or a name matches more than one
    │   ├── ForeignResourceError       found by name, but stamped by another owner
    │   ├── ServerFailedError          Nova's ERROR with its fault; ServerBuildTimeoutError, ServerRebuiltError
    │   ├── NoValidHostError, PortFailedError    why a server is in ERROR, as are some of the others
    │   ├── VolumeFailedError          Cinder's error states
    │   ├── LoadBalancerFailedError    Octavia's ERROR
    │   ├── WriteRefusedError          the API server, a webhook or a policy refuses a write of ours
    │   └── BlockedError               a resource of another owner blocks a deletion
    └── TerminalError                  the spec must change: retried after an edit, and at each resync
        ├── InvalidSpecError           the spec contradicts itself or the cloud refuses it as malformed (400);
        │                              of a cluster: InvalidClusterSpecError
        ├── UnsupportedFieldError      the spec uses a field that this version does not support yet
        └── OwnerIdCopiedError         the owner id belongs to another object: nothing is changed

"Not yet" is not an error but a :class:`capo.engine.steps.Wait`; :class:`NotYetObserved` is its form below the engine.
Source of the reasons: ``docs/reference/errors.md`` has an entry for each.
"""

from __future__ import annotations

import copy
from typing import ClassVar, Final, Self, TypeVar

from capo import names

MAX_RETRY_AFTER_S: Final = 300.0
"""Upper bound of a requested pause: a service may ask for a day, by mistake or to be left alone."""


MAX_MESSAGE: Final = 8192
"""Maximum characters of an error's message: a user, a tenant or a cloud may have written it, at any length."""
MAX_NAME: Final = 600
"""Maximum characters of an error's resource, and of a request's id."""


class CapoError(Exception):
    """A fault with a reason for conditions and a next step for the user.

    Args:
        message: what happened, in the cloud's own words where it answered.
        request_id: ``x-openstack-request-id`` of the answer, None if there was none.
        status: HTTP status of the answer, None if there was none.
        resource: what it concerns, as ``kind name-or-id``.
        next_step: overrides the class's advice.
        if_shared: the message for an object whose credentials other namespaces share, without resources that may be
            theirs; it names what ``resource`` does. None: both may be shown.
    """

    reason: str = "OpenStackError"
    advice: ClassVar[str] = "See the message."
    retry: str = ""
    """What is retried and when, as a sentence; empty where the advice includes it."""

    def __init__(  # noqa: PLR0913 - each is optional and named at every call
        self,
        message: str,
        *,
        request_id: str | None = None,
        status: int | None = None,
        resource: str | None = None,
        next_step: str | None = None,
        if_shared: str | None = None,
    ) -> None:
        self.message = _cut(message, MAX_MESSAGE)
        super().__init__(self.message)
        self.request_id = request_id
        self.status = status
        self.resource = resource
        self.next_step = next_step or self.advice
        self.if_shared = if_shared

    def about(self, resource: str) -> Self:
        """Return a copy of the fault with its resource; an error may be shared, so it is not changed itself."""
        found = copy.copy(self)
        found.resource = resource
        return found

    def withheld(self) -> Self:
        """Return the fault for an object with shared credentials; the caller logs what it does not show."""
        if self.if_shared is None:
            return self
        found = copy.copy(self)
        found.message, found.resource = _cut(f"{self.if_shared}; the manager's log has more", MAX_MESSAGE), None
        found.args = (found.message,)
        return found

    def retried(self, when: str) -> Self:
        """Return a copy of the fault with another sentence on what is retried and when."""
        found = copy.copy(self)
        found.retry = when
        return found

    @property
    def sentence(self) -> str:
        """The fault as conditions and events show it: reason, resource, the cloud's words, request id, next step."""
        about = f" [{_cut(self.resource, MAX_NAME)}]" if self.resource else ""
        request = f" (request {_cut(self.request_id, MAX_NAME)})" if self.request_id else ""
        return f"{self.reason}{about}: {self._words}{request}. {self.next_step} {self.retry}".rstrip()

    @property
    def _words(self) -> str:
        """Return the message without a final full stop and without a prefix that repeats the reason."""
        words = self.message.removeprefix(f"{self.reason}: ").rstrip()
        return words if words.endswith("...") else words.rstrip(" .")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}..."


E = TypeVar("E", bound=BaseException)


def without_frames(error: E) -> E:
    """Return the error for storage: without frames and causes, which hold credentials and bodies of requests."""
    error.__traceback__ = error.__cause__ = error.__context__ = None
    return error


class RetryableError(CapoError):
    """The fault may be resolved without a change of the spec."""

    retry = "Retried within 2 minutes."


class AmbiguousAnswerError(RetryableError):
    """A write with an unknown effect: it may have taken effect, or still will."""

    reason = "AnswerLost"
    advice = "The provider looks for the result by its stamp before it tries again."
    retry = ""


class CloudUnavailableError(RetryableError):
    """A read that was answered with 5xx, cut off, or timed out."""

    reason = "CloudUnavailable"
    advice = "Check that the OpenStack service is up."


class RateLimitedError(RetryableError):
    """The cloud asks for fewer requests.

    Args:
        retry_after_s: the cloud's value, None without one; at most ``MAX_RETRY_AFTER_S`` is kept.
    """

    reason = "RateLimited"
    advice = "The provider waits for the time that the cloud asks for, at most five minutes."
    retry = ""

    def __init__(self, message: str, *, retry_after_s: float | None = None, request_id: str | None = None) -> None:
        super().__init__(message, request_id=request_id, status=429)
        self.retry_after_s = None if retry_after_s is None else min(retry_after_s, MAX_RETRY_AFTER_S)


class ConflictError(RetryableError):
    """409: the resource is busy, immutable for now, or in use."""

    reason = "Conflict"
    advice = "Wait until the resource is free, or see what uses it."


class AddressesExhaustedError(ConflictError):
    """A network or subnet has no free address."""

    reason = "AddressesExhausted"
    advice = "Delete ports or floating IPs that nothing uses, extend the allocation pools, or name another network."


class QuotaExceededError(RetryableError):
    """The project's quota does not allow another resource."""

    reason = "QuotaExceeded"
    advice = "Raise the project's quota or remove something."


class ServerGroupFullError(QuotaExceededError):
    """The project's quota does not allow another server in the server group."""

    reason = "ServerGroupFull"
    advice = "Raise the project's quota server_group_members, or use one more template, which has a group of its own."


class NotAuthorizedError(RetryableError):
    """The credentials are refused."""

    reason = "NotAuthorized"
    advice = "Correct the credentials in the Secret; it is read again every 10 s."
    retry = ""


class IdentityError(RetryableError):
    """The credentials cannot be read or may not be used here."""

    reason = "IdentityNotUsable"
    advice = "Correct the identityRef or the Secret; it is read again every 10 s."
    retry = ""


class ForbiddenError(RetryableError):
    """403: the cloud's policy refuses this to the credentials."""

    reason = "Forbidden"
    advice = "Give the user the role that the cloud's policy asks for."


class UnsupportedByCloudError(RetryableError):
    """The cloud's version or driver does not support the request: 406 for a microversion, 501, a provider's refusal."""

    reason = "UnsupportedByCloud"
    advice = "Use another setting, or have the cloud upgraded."


class NotFoundError(RetryableError):
    """Something that must exist does not."""

    reason = "NotFound"
    advice = "Create it, or correct the reference in the spec."


class ReferenceNotFoundError(NotFoundError):
    """The referenced resource does not exist; a user has to create it, so it is not searched for again at once."""


class ImageNotFoundError(ReferenceNotFoundError):
    """No image matches."""

    reason = "ImageNotFound"
    advice = "Upload the image, share it with the project, or correct spec.image."


class FlavorNotFoundError(ReferenceNotFoundError):
    """No flavor matches."""

    reason = "FlavorNotFound"
    advice = "Create the flavor, give the project access to it, or correct spec.flavor."


class NetworkNotFoundError(ReferenceNotFoundError):
    """No network matches."""

    reason = "NetworkNotFound"
    advice = "Create the network, share it with the project, or correct the reference."


class SubnetNotFoundError(ReferenceNotFoundError):
    """No subnet matches."""

    reason = "SubnetNotFound"
    advice = "Create the subnet or correct the reference."


class RouterNotFoundError(ReferenceNotFoundError):
    """No router matches."""

    reason = "RouterNotFound"
    advice = "Create the router or correct spec.router."


class SecurityGroupNotFoundError(ReferenceNotFoundError):
    """No security group matches."""

    reason = "SecurityGroupNotFound"
    advice = "Create the security group or correct the reference."


class ServerGroupNotFoundError(ReferenceNotFoundError):
    """No server group matches."""

    reason = "ServerGroupNotFound"
    advice = "Create the server group or correct spec.serverGroup."


class KeyPairNotFoundError(ReferenceNotFoundError):
    """The key pair does not exist for the user of the credentials."""

    reason = "KeyPairNotFound"
    advice = "Create the key pair as the user of the credentials, or correct spec.sshKeyName."


class BootstrapDataNotFoundError(NotFoundError):
    """The bootstrap Secret or its key ``value`` is missing."""

    reason = "BootstrapDataNotFound"
    advice = "Check the bootstrap provider; the Secret must have the key `value`."


class AmbiguousMatchError(RetryableError):
    """More than one resource matches where exactly one must."""

    reason = "AmbiguousMatch"
    advice = "Name the one by its id, or narrow the filter."


class ForeignResourceError(RetryableError):
    """A resource of this name belongs to another owner; it is not changed."""

    reason = "ForeignResource"
    advice = "Rename or remove it, or rename the object here."


class ServerFailedError(RetryableError):
    """Nova put the server into ERROR; the message is its fault.

    Args:
        cause: an error with a more specific reason and advice than those of a failed server.
    """

    reason = "ServerFailed"
    retry = "The provider never recreates a server. If it recovers, the status is updated within a minute."
    advice = "A Machine is replaced by a MachineHealthCheck or by hand; correct the cause first."

    def __init__(
        self,
        server_id: str,
        *,
        fault: str,
        code: int | None = None,
        request_id: str | None = None,
        cause: type[CapoError] | None = None,
    ) -> None:
        next_step = f"{cause.advice} Then replace the Machine." if cause else None
        super().__init__(fault, request_id=request_id, resource=f"server {server_id}", next_step=next_step)
        self.code = code
        self.reason = cause.reason if cause else self.reason


class NoValidHostError(RetryableError):
    """Nova's scheduler found no host for the server."""

    reason = "NoValidHost"
    advice = "Free capacity in the zone, or choose another flavor or failure domain."


class PortFailedError(RetryableError):
    """Nova could not set up the server's network: Neutron did not bind a port, or did not report it in time."""

    reason = "PortFailed"
    advice = "See the port's binding and Neutron's agents on the host."


class ServerBuildTimeoutError(ServerFailedError):
    """Nova has been building the server for longer than the build timeout; if it becomes ACTIVE later, it counts."""

    reason = "ServerBuildTimeout"
    retry = "The provider keeps waiting: if the server becomes ACTIVE, it counts."
    advice = (
        "See Nova's events of the server. If this cloud is slow, raise --server-build-timeout, or annotate the machine "
        f"or its template with {names.BUILD_TIMEOUT_ANNOTATION}."
    )


class ServerRebuiltError(ServerFailedError):
    """The server was rebuilt externally: its original disk was replaced."""

    reason = "ServerRebuilt"
    retry = "The provider does not rebuild servers."
    advice = "Replace the Machine: its disk was wiped, so the node's state is lost."


class VolumeFailedError(RetryableError):
    """Cinder put the volume into an error state."""

    reason = "VolumeFailed"
    advice = "See the volume's messages in Cinder; correct size, type or zone."


class LoadBalancerFailedError(RetryableError):
    """Octavia put the load balancer, or a part of it, into ERROR."""

    reason = "LoadBalancerFailed"
    advice = (
        "Have an admin fail it over (`openstack loadbalancer failover`), or have it deleted and created again with its "
        f"address: annotate the OpenStackCluster with {names.REBUILD_LOAD_BALANCER_ANNOTATION}=<its id>."
    )


class BlockedError(RetryableError):
    """A resource that is not ours blocks a deletion; the message names it."""

    reason = "DeletionBlocked"
    advice = "Delete what the message names."


class WriteRefusedError(RetryableError):
    """The API server refuses a write of the reconcile's outcome: a rule of the CRD, a webhook or a policy."""

    reason = "WriteRefused"
    advice = "Correct the object, or the webhook or policy that the message names."


class TerminalError(CapoError):
    """The spec must change before another attempt makes sense."""

    retry = "Retried when the object is edited, and every 2 minutes."


class InvalidSpecError(TerminalError):
    """The spec contradicts itself, or the cloud refuses it as malformed."""

    reason = "InvalidMachineSpec"
    advice = "Correct the field that the message names."


class InvalidClusterSpecError(InvalidSpecError):
    """The spec of a cluster contradicts itself, or the cloud refuses it as malformed."""

    reason = "InvalidClusterSpec"

    @classmethod
    def from_spec_error(cls, error: InvalidSpecError) -> InvalidClusterSpecError:
        """Return a fault that was found in the spec of a cluster."""
        return cls(
            error.message,
            request_id=error.request_id,
            status=error.status,
            resource=error.resource,
            next_step=error.next_step,
        )


class UnsupportedFieldError(TerminalError):
    """The spec uses a field that this version does not support yet; nothing is created without it."""

    reason = "UnsupportedField"
    advice = "Remove the field, or use a version that handles it."


class OwnerIdCopiedError(TerminalError):
    """The annotation's owner id was created for another object; nothing in the cloud is changed."""

    reason = "OwnerIdCopied"
    advice = "Remove the annotation infrastructure.cluster.x-k8s.io/owner-id from the copy."


class NotYetObserved(Exception):  # noqa: N818 - a state of knowledge, not an error
    """The cloud has not been listed since this object's last write; the poller requeues the object after the list."""

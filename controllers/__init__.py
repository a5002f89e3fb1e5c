"""One package per kind: scope, steps, status, routes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from capo.engine.context import Dependencies
    from capo.engine.store import Change
    from capo.engine.worker import KeyReconciler
    from capo.kube.kinds import Key
    from capo.openstack.clouds import Clouds


def all_controllers(
    deps: Dependencies, wake: Callable[[Key], None], clouds: Clouds | None = None
) -> tuple[KeyReconciler, ...]:
    """Return every controller; they share one set of clouds.

    Args:
        wake: requeues an object whose resources in the cloud changed; called from any thread.
        clouds: in place of those that the settings describe.
    """
    from capo.engine.reconciler import Reconciler
    from capo.flag_values import SCALE_FROM_ZERO
    from capo.openstack.quota_usage import QuotaUsage
    from controllers.credentials import CredentialsCache, used
    from controllers.openstackcluster.controller import ClusterController
    from controllers.openstackclusteridentity.controller import ClusterIdentityController
    from controllers.openstackfloatingippool.controller import FloatingIPPoolController
    from controllers.openstackfloatingippool.orphans import OrphanedAddressController, OrphanedClaimController
    from controllers.openstackmachine.controller import MachineController
    from controllers.openstackmachinetemplate.controller import MachineTemplateController
    from controllers.openstackserver.controller import ServerController

    clouds = clouds or _clouds(deps, wake)
    deps.store.on_reset(lambda: clouds.distrust(deps.ambiguous_window_s))
    deps.store.on_reset(deps.minted.clear)
    deps.store.listen(lambda change: _distrust_if_handed_over(deps, clouds, change))
    identities = CredentialsCache(deps.kube, clouds, deps.clock, max_age_s=deps.settings.sync_period_s)
    deps.housekeeping.append(lambda: identities.tidy(used(deps.store)))
    if interval_s := deps.settings.openstack_quota_interval_s:
        deps.housekeeping.append(QuotaUsage(clouds.in_use, deps.clock.now, interval_s).begin_due)
    templates = [MachineTemplateController(identities, deps)] if deps.settings.feature_gates[SCALE_FROM_ZERO] else []
    return (
        Reconciler(ClusterController(identities, deps), deps),
        Reconciler(MachineController(identities, deps), deps),
        Reconciler(ServerController(identities, deps), deps),
        Reconciler(FloatingIPPoolController(identities, deps), deps),
        OrphanedAddressController(deps),
        OrphanedClaimController(deps),
        ClusterIdentityController(identities, deps, wake),
        *templates,
    )


def _distrust_if_handed_over(deps: Dependencies, clouds: Clouds, change: Change) -> None:
    """Distrust what is known of an object in the cloud if its watch filter gave it to this manager or to another."""
    if change.before is not None and deps.is_selected(change.before) != deps.is_selected(change.obj):
        clouds.distrust_object(change.key)


def _clouds(deps: Dependencies, wake: Callable[[Key], None]) -> Clouds:
    from capo.openstack.clouds import Clouds
    from capo.openstack.connections import Limits

    settings = deps.settings
    return Clouds(
        deps.clock,
        cast("Callable[[Hashable], None]", wake),
        deps.kube.fence or (lambda: None),
        Limits.of(settings),
        max_idle=settings.scope_cache_max_size,
        ca_certs=settings.ca_certs,
        uses_proxies=settings.openstack_uses_proxies,
        sync_period_s=settings.sync_period_s,
    )

from __future__ import annotations

from capo.controllers.openstackfloatingippool.subject import READY, FloatingIPPoolSubject
from capo.controllers.tests.stage import Stage
from capo.kube.kinds import OPENSTACK_FLOATING_IP_POOL as KIND


def test_a_pool_is_told_that_it_is_not_served_and_can_be_deleted() -> None:
    with Stage(lambda _: FloatingIPPoolSubject()) as stage:
        stage.put(KIND, {"metadata": {"name": "pool"}, "spec": {"identityRef": {"name": "x", "cloudName": "sim"}}})

        stage.settle(for_s=60)

        shown = stage.condition(KIND, "pool", READY)
        assert (shown["status"], shown["reason"]) == ("False", "UnsupportedField")
        assert len(stage.kube.writes) == 1
        stage.delete(KIND, "pool")
        assert not stage.exists(KIND, "pool")

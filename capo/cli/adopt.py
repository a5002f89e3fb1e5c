"""``capo adopt``: existing resources become objects; a plan is written for review, then applied."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from capo.cli import common

if TYPE_CHECKING:
    from capo.json_types import Json
    from capo.openstack.cloud import Cloud
    from capo.operations.access import Management
    from capo.operations.adoption.plan import Plan
    from capo.operations.adoption.search import FoundCluster
    from capo.operations.console import Console

_EXAMPLES: Final = {
    "cluster": (
        "# what a lost cluster has in the cloud, as objects to review",
        "capo adopt cluster prod -n team-a --cloud openstack -o prod.yaml",
        "# the same of a cluster that only the Go provider managed",
        "capo adopt cluster prod -n team-a --cloud openstack --from-go-provider -o prod.yaml",
    ),
    "bastion": (
        "# a server that was created by hand, as the bastion of a cluster",
        "capo adopt bastion jump-host --cluster prod -n team-a -o bastion.yaml",
    ),
    "network": (
        "# a network and the load balancer of the API, as those of a new cluster",
        "capo adopt network lan --cluster prod -n team-a --cloud openstack --load-balancer api -o network.yaml",
    ),
    "apply": (
        "# create the objects, unless another management cluster has them",
        "capo adopt apply prod.yaml --kubeconfig new.conf --other old.conf",
    ),
}


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser of ``capo``."""
    parser = common.add_command(
        subparsers,
        "adopt",
        lambda arguments: int(arguments.part(arguments)),
        summary="write objects for resources that exist, and create them after a review; nothing is rebuilt",
        examples=[line for lines in _EXAMPLES.values() for line in lines],
    )
    parts = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_cluster(parts)
    _add_network(parts)
    _add_bastion(parts)
    _add_apply(parts)


def _add_cluster(parts: Any) -> None:
    parser = common.add_part(
        parts,
        "cluster",
        summary="write the plan for a cluster whose objects were lost; reads the cloud alone",
        description="Write the plan for a cluster whose objects were lost, from the stamps of its resources.",
        examples=_EXAMPLES["cluster"],
    )
    parser.add_argument("name", metavar="NAME", help="name of the Cluster")
    parser.add_argument("-n", "--namespace", metavar="NAME", default="default", help="its namespace (default: default)")
    _add_cloud(parser)
    parser.add_argument(
        "--owner", metavar="ID", help="owner id in the stamps, if clusters of several owners have the name"
    )
    parser.add_argument(
        "--endpoint", metavar="HOST[:PORT]", default="", help="control plane endpoint, as for a DNS name"
    )
    parser.add_argument(
        "--network", metavar="ID", help="network that the cluster uses and does not own, if nothing shows which"
    )
    parser.add_argument(
        "--server", metavar="ID", action="append", default=[], help="a server of the cluster; may be repeated"
    )
    parser.add_argument(
        "--from-go-provider",
        action="store_true",
        help="the Go provider alone managed the cluster: find its resources by their names, which prove nothing",
    )
    parser.set_defaults(part=write_cluster)


def _add_cloud(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cloud", metavar="NAME", required=True, help="entry of clouds.yaml for the project")
    parser.add_argument(
        "--clouds", metavar="FILE", help="path of clouds.yaml (default: as the openstack client finds it)"
    )
    parser.add_argument(
        "--identity", metavar="NAME", help="Secret that identityRef is to name (default: NAME-cloud-config)"
    )
    parser.add_argument("--identity-cloud", metavar="NAME", help="entry in that Secret (default: that of --cloud)")
    common.add_requests(parser)
    _add_file(parser)


def _add_network(parts: Any) -> None:
    parser = common.add_part(
        parts,
        "network",
        summary="write the plan for a network that becomes that of a new cluster; reads the cloud alone",
        description="Write the plan for a network, and a load balancer, that become those of a new cluster, which "
        "deletes them one day.",
        examples=_EXAMPLES["network"],
    )
    parser.add_argument("network", metavar="NETWORK", help="id or name of the network")
    parser.add_argument("--load-balancer", metavar="NAME", help="id or name of the load balancer of the API")
    parser.add_argument(
        "--endpoint",
        metavar="HOST[:PORT]",
        default="",
        help="control plane endpoint, as for a DNS name or if no listener has port 6443",
    )
    parser.add_argument("--cluster", metavar="NAME", dest="name", required=True, help="name of the new Cluster")
    parser.add_argument("-n", "--namespace", metavar="NAME", default="default", help="its namespace (default: default)")
    _add_cloud(parser)
    parser.set_defaults(part=write_network)


def _add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, required=True, help="file to write the plan to")


def _add_bastion(parts: Any) -> None:
    parser = common.add_part(
        parts,
        "bastion",
        summary="write the plan for a server that becomes the bastion of a cluster; only reads",
        description="Write the plan for a server that was created by hand and becomes the bastion of a cluster.",
        examples=_EXAMPLES["bastion"],
    )
    parser.add_argument("server", metavar="SERVER", help="id or name of the server, in the project of the cluster")
    parser.add_argument("--cluster", metavar="NAME", required=True, help="name of the OpenStackCluster")
    common.add_management(parser)
    common.add_namespace(parser, has_all=False)
    _add_file(parser)
    parser.set_defaults(part=write_bastion)


def _add_apply(parts: Any) -> None:
    parser = common.add_part(
        parts,
        "apply",
        summary="stamp the resources of a plan and create its objects; refuses if anything has changed since",
        description="Stamp the resources of a plan that have no stamp, and create its objects. "
        "Nothing is done if a resource has changed or belongs to an object that exists.",
        examples=_EXAMPLES["apply"],
    )
    parser.add_argument("plan", metavar="FILE", type=Path, help="the reviewed plan")
    common.add_management(parser)
    parser.add_argument(
        "--other",
        action="append",
        default=[],
        metavar="FILE",
        help="kubeconfig of another management cluster of the project, whose objects are no lost ones; may be repeated",
    )
    parser.set_defaults(part=apply)


def write_cluster(arguments: argparse.Namespace) -> int:
    """Write the plan of a lost cluster; return the exit status."""
    from capo.operations import access
    from capo.operations.adoption import lost_cluster

    console = common.console_of(argparse.Namespace())
    cloud = access.CloudAccess(common.settings_of(arguments)).open(
        access.credentials_in(access.clouds_file(arguments.clouds), arguments.cloud)
    )
    with console.progress("reading the project"):
        found = _found(cloud, arguments)
    plan = lost_cluster.plan(found, cloud.location, _identity(arguments), _endpoint(arguments.endpoint))
    return _written(console, plan, arguments.output)


def _found(cloud: Cloud, arguments: argparse.Namespace) -> FoundCluster:
    from capo import names
    from capo.operations.adoption import network_of_others, search, survey, unstamped
    from capo.operations.errors import ExitStatus, OperatorError

    if arguments.from_go_provider and arguments.owner:
        text = "--owner chooses among stamps, which --from-go-provider has none of"
        raise OperatorError(text, status=ExitStatus.USAGE)
    namespace, name, chosen = arguments.namespace, arguments.name, arguments.server
    if arguments.from_go_provider:
        pools = names.load_balancer(names.cluster_resource_name(namespace, name))
        found = unstamped.find(survey.take(cloud, pools), namespace, name, chosen=chosen)
    else:
        found = search.find(survey.take(cloud), namespace, name, owner=arguments.owner, chosen=chosen)
    return network_of_others.complete(found, arguments.network)


def write_network(arguments: argparse.Namespace) -> int:
    """Write the plan of a network; return the exit status."""
    from capo.operations import access
    from capo.operations.adoption import handmade_network, survey

    console = common.console_of(argparse.Namespace())
    cloud = access.CloudAccess(common.settings_of(arguments)).open(
        access.credentials_in(access.clouds_file(arguments.clouds), arguments.cloud)
    )
    wanted = handmade_network.Wanted(
        arguments.network,
        arguments.load_balancer,
        namespace=arguments.namespace,
        name=arguments.name,
        endpoint=_endpoint(arguments.endpoint),
    )
    with console.progress("reading the project"):
        plan = handmade_network.plan(survey.take(cloud), wanted, cloud.location, _identity(arguments))
    return _written(console, plan, arguments.output)


def write_bastion(arguments: argparse.Namespace) -> int:
    """Write the plan of a bastion; return the exit status."""
    return write_bastion_in(common.management_of(arguments), arguments)


def write_bastion_in(management: Management, arguments: argparse.Namespace) -> int:
    """Write the plan of a bastion of a cluster of this management cluster; return the exit status."""
    from capo.kube.kinds import OPENSTACK_CLUSTER
    from capo.operations.adoption import handmade, survey

    console = common.console_of(argparse.Namespace())
    namespace = arguments.namespace or management.namespace
    cluster = management.get(OPENSTACK_CLUSTER, namespace, arguments.cluster)
    cloud = management.cloud_of(cluster)
    with console.progress("reading the project"):
        plan = handmade.plan(survey.take(cloud), cluster, arguments.server, cloud.location)
    return _written(console, plan, arguments.output)


def _identity(arguments: argparse.Namespace) -> Json:
    name = arguments.identity or f"{arguments.name}-cloud-config"
    return {"name": name, "cloudName": arguments.identity_cloud or arguments.cloud}


def _endpoint(text: str) -> Any:
    """Return the endpoint that an argument names.

    Raises:
        OperatorError: its port is no number.
    """
    from capo.operations.adoption.cluster_manifest import Endpoint
    from capo.operations.errors import ExitStatus, OperatorError

    host, colon, port = text.rpartition(":") if text.count(":") == 1 or "]:" in text else (text, "", "")
    if colon and not port.isdecimal():
        raise OperatorError(f"--endpoint {text}: the port is no number", status=ExitStatus.USAGE)
    return Endpoint(host.strip("[]") or None, int(port) if colon else None)


def _written(console: Console, plan: Plan, path: Path) -> int:
    """Write the file and print its summary; an existing file is kept."""
    from capo.operations import files
    from capo.operations.errors import ExitStatus

    files.write_new(path, plan.to_yaml())
    rows = [(each["kind"], each["metadata"]["name"]) for each in plan.objects]
    console.table(("KIND", "NAME"), rows)
    _list(console, "FINDINGS", plan.findings, style="warning")
    _list(console, "TO COMPLETE", plan.to_complete)
    console.line()
    console.line(f"{path}: {len(plan.objects)} objects for {len(plan.resources)} resources; review it, then apply it")
    return ExitStatus.FOUND if plan.findings else ExitStatus.DONE


def _list(console: Console, title: str, texts: Sequence[str], *, style: str = "") -> None:
    if texts:
        console.line()
        console.line(title)
    for text in texts:
        console.line(f"- {text}", style)


def apply(arguments: argparse.Namespace) -> int:
    """Create the objects of a plan; return the exit status."""
    from capo.operations import access
    from capo.operations.adoption import applying, plan
    from capo.operations.errors import ExitStatus

    console = common.console_of(argparse.Namespace())
    wanted = plan.read(arguments.plan)
    mode = access.Mode.WRITE if any(each.is_to_stamp for each in wanted.resources) else access.Mode.READ
    clouds = access.CloudAccess.of(mode, common.settings_of(arguments))
    target = access.connect(arguments.kubeconfig, arguments.context, mode=access.Mode.WRITE, clouds=clouds)
    others = [access.connect(each, clouds=clouds) for each in arguments.other]
    done: list[str] = []
    try:
        with console.progress("reading the management clusters and the project") as note:

            def report(line: str) -> None:
                note(line)
                done.append(line)

            applying.apply(wanted, target, others, report=report)
    finally:
        for line in done:
            console.line(line)
    return ExitStatus.DONE

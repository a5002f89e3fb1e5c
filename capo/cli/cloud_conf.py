"""``capo cloud-conf``: writes the cloud.conf of the cloud controller and the CSI driver of a cluster."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, Final

_EPILOG: Final = """\
examples:
  # for the credentials that the workloads of the cluster are to have
  kubectl get openstackcluster shop -o yaml >shop.yaml
  capo cloud-conf shop.yaml --clouds workloads.yaml --cloud prod -o cloud.conf
"""


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser of ``capo``."""
    parser = subparsers.add_parser(
        "cloud-conf",
        help="write the cloud.conf of cloud-provider-openstack for a cluster, with its secrets",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("cluster", type=Path, help="file with the OpenStackCluster, as `kubectl get -o yaml` prints it")
    parser.add_argument("--clouds", type=Path, required=True, help="clouds.yaml with the credentials of the workloads")
    parser.add_argument("--cloud", help="entry of clouds.yaml (default: that of spec.identityRef)")
    parser.add_argument("--ca-file", help="path of the certificates to trust, in the pods of both programs")
    parser.add_argument(
        "--lb-provider", help="Octavia's provider for Services (default: that of spec.apiServer.managedLoadBalancer)"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="file to write, which its user alone may read; an existing one is replaced (default: stdout)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the file, and on stderr the options that both programs need; return the exit status."""
    from api.v1beta2 import OpenStackCluster
    from capo.errors import CapoError
    from capo.openstack import cloud_conf, identity
    from capo.operations import files
    from capo.operations.errors import OperatorError
    from capo.printable import printable
    from controllers.openstackcluster import workload_leftovers

    try:
        obj = _read(arguments.cluster)
        cluster = OpenStackCluster.model_validate(obj)
        if refusal := workload_leftovers.refusal(obj):
            raise ValueError(refusal)
        reference = cluster.spec.identity_ref
        entry = arguments.cloud or reference.cloud_name
        credentials = identity.parse(arguments.clouds.read_bytes(), entry, region=reference.region or None)
        printed = cloud_conf.render(credentials, cluster, ca_file=arguments.ca_file, provider=arguments.lb_provider)
        if arguments.output is not None:
            files.replace(arguments.output, printed)
    except (CapoError, OperatorError, OSError, ValueError) as error:
        print(f"capo cloud-conf: {printable(' '.join(str(error).split()))}", file=sys.stderr)
        return 1
    name = printable(workload_leftovers.name_of(obj))
    print(f"openstack-cloud-controller-manager: --cluster-name={name}", file=sys.stderr)
    print(f"cinder-csi-plugin: --cluster={name}", file=sys.stderr)
    if arguments.output is None:
        print(printed, end="")
    return 0


def _read(path: Path) -> dict[str, Any]:
    """Return the object in a file.

    Raises:
        OperatorError: it cannot be read, or is not an OpenStackCluster in v1beta2.
    """
    from capo.operations import files
    from capo.operations.errors import OperatorError

    obj = files.document(path)
    found = (obj.get("kind"), obj.get("apiVersion")) if isinstance(obj, dict) else ()
    if found != ("OpenStackCluster", "infrastructure.cluster.x-k8s.io/v1beta2"):
        raise OperatorError(f"{path} is not an OpenStackCluster in v1beta2")
    return dict(obj)

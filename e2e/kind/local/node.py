"""The node's image: a Debian root file system, kind's own files, Kubernetes' programs, and the images of its pods.

What kind's ``images/base/Dockerfile`` and ``kind build node-image`` do, without an engine and without a registry. In
place of kindnetd, which no package registry has, the reference CNI plugins make a bridge: enough for one node.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from capo.local.errors import BuildFailedError
from capo.local.modules import KUBERNETES
from e2e.kind.local import programs
from tools.image import archive
from tools.image.archive import Image, Link

SUITE: Final = "bookworm"
"""Its systemd still starts with cgroup v1."""
PACKAGES: Final = (
    *("systemd", "systemd-sysv", "dbus", "conntrack", "iptables", "nftables", "iproute2", "ethtool", "util-linux"),
    *("mount", "kmod", "libseccomp2", "pigz", "e2fsprogs", "bash", "ca-certificates", "curl", "jq", "procps", "runc"),
    "hostname",
)
"""What kind's own image installs."""
NAME: Final = f"docker.io/kindest/node:{KUBERNETES}"
_REGISTRY: Final = "registry.k8s.io"
_ENABLED: Final = ("kubelet", "containerd", "undo-mount-hacks")
_WANTS: Final = "etc/systemd/system/multi-user.target.wants"
_UNWANTED: Final = (
    "lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service",
    "lib/systemd/system/multi-user.target.wants/*",
    "etc/systemd/system/*.wants/*",
    "lib/systemd/system/local-fs.target.wants/*",
    "lib/systemd/system/sockets.target.wants/*udev*",
    "lib/systemd/system/sockets.target.wants/*initctl*",
    "lib/systemd/system/basic.target.wants/*",
)
_IN_BIN: Final = ("containerd", "containerd-shim-runc-v2", "ctr", "crictl")
_IN_CNI: Final = ("bridge", "host-local", "loopback", "portmap", "ptp")
_NETWORK: Final = {
    "cniVersion": "1.0.0",
    "name": "bridge",
    "plugins": [
        {
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": True,
            "ipMasq": True,
            "hairpinMode": True,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": "10.244.0.0/24"}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ],
}
_CNI_MANIFEST: Final = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "cni", "namespace": "kube-system"},
    "data": {"cni": "the node's own bridge"},
}
_STORAGE_MANIFEST: Final = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}
_IPTABLES: Final = tuple(f"{family}tables{verb}" for family in ("ip", "ip6") for verb in ("", "-save", "-restore"))
_IPTABLES_LIBRARIES: Final = ("libxtables.so.12", "libmnl.so.0", "libnftnl.so.11", "libc.so.6", "libm.so.6")
_PLUGINS_OFF: Final = (
    *("io.containerd.cri.v1.runtime", "io.containerd.cri.v1.images", "io.containerd.grpc.v1.cri"),
    *("io.containerd.nri.v1.nri", "io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp"),
)


def build(found: Mapping[str, Path], target: Path, *, say: Callable[[str], None] = print) -> None:
    """Write the archive of the node's image.

    Args:
        found: programs by name.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".node-") as scratch:
        root, images, layer = Path(scratch) / "root", Path(scratch) / "images", Path(scratch) / "layer.tar"
        say(f"unpacking Debian packages for {NAME}")
        unpack_debian(root, Path(scratch) / "debian.tar")
        say("writing the images of the node's pods")
        pod_images(found, root, images)
        lay_out(found, root)
        import_images(found, root, sorted(images.iterdir()))
        run("tar", "--directory", root, "--create", "--file", layer, ".")
        entrypoint = ["/usr/local/bin/entrypoint", "/sbin/init"]
        image = Image([NAME], [layer], {}, entrypoint, ["container=docker"], stop_signal="SIGRTMIN+3")
        archive.write(image, target)


def run(*command: str | Path) -> str:
    """Run a program and return what it prints.

    Raises:
        BuildFailedError: it failed; the message has its last lines.
    """
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        tail = "\n".join(ended.stderr.splitlines()[-20:])
        raise BuildFailedError(f"{command[0]} ended with {ended.returncode}:\n{tail}")
    return ended.stdout


def unpack_debian(root: Path, scratch: Path) -> None:
    """Write the root file system."""
    run("mmdebstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", "--quiet", SUITE, scratch)
    root.mkdir()
    run("tar", "--directory", root, "--extract", "--exclude=./dev/*", "--file", scratch)
    scratch.unlink()


def pod_images(found: Mapping[str, Path], root: Path, folder: Path) -> None:
    """Write the images that kubeadm expects."""
    tags = kubeadm_tags(run(found["kubeadm"], "config", "images", "list", f"--kubernetes-version={KUBERNETES}"))
    for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        image = Image([f"{_REGISTRY}/{name}:{KUBERNETES}"], files={f"/usr/local/bin/{name}": found[name]})
        archive.write(image, folder / f"{name}.tar")
    # The rig's etcd, which may be of a later release than the tag.
    etcd = Image([f"{_REGISTRY}/etcd:{tags['etcd']}"], files={"/usr/local/bin/etcd": found["etcd"]})
    archive.write(etcd, folder / "etcd.tar")
    dns = f"{_REGISTRY}/coredns/coredns:{tags['coredns']}"
    archive.write(Image([dns], files={"/coredns": found["coredns"]}, entrypoint=["/coredns"]), folder / "coredns.tar")
    pause = sorted({f"{_REGISTRY}/pause:{tag}" for tag in (tags["pause"], "3.10")})
    archive.write(Image(pause, files={"/pause": found["pause"]}, entrypoint=["/pause"]), folder / "pause.tar")
    proxy = Image([f"{_REGISTRY}/kube-proxy:{KUBERNETES}"], files=proxy_files(found["kube-proxy"], root))
    archive.write(proxy, folder / "kube-proxy.tar")


def kubeadm_tags(listed: str) -> dict[str, str]:
    """Return the tag of each image that kubeadm lists; pure."""
    names = [line.strip() for line in listed.splitlines() if ":" in line]
    return {name.rpartition("/")[2].partition(":")[0]: name.rpartition(":")[2] for name in names}


def proxy_files(kube_proxy: Path, root: Path) -> dict[str, Path | Link]:
    """Return the files of kube-proxy's image: iptables with its libraries and extensions from the root file system."""
    (libraries,) = (root / "usr/lib").glob("*-linux-gnu")
    (loader,) = libraries.glob("ld-linux-*.so.*")
    interpreter = "lib64" if "x86-64" in loader.name else "lib"
    files: dict[str, Path | Link] = {
        "/usr/local/bin/kube-proxy": kube_proxy,
        "/usr/sbin/xtables-nft-multi": root / "usr/sbin/xtables-nft-multi",
        f"/{interpreter}/{loader.name}": loader.resolve(),
        **{f"/usr/sbin/{name}": Link("xtables-nft-multi") for name in _IPTABLES},
        **{f"/lib/{libraries.name}/{name}": (libraries / name).resolve() for name in _IPTABLES_LIBRARIES},
    }
    for extension in (libraries / "xtables").glob("*.so"):
        source = Link(str(extension.readlink())) if extension.is_symlink() else extension
        files[f"/usr/lib/{libraries.name}/xtables/{extension.name}"] = source
    return files


def lay_out(found: Mapping[str, Path], root: Path) -> None:
    """Put kind's files and Kubernetes' programs into the root file system."""
    kind, _ = programs.CLIENTS
    copy_kinds_files(programs.source(kind, "sigs.k8s.io/kind") / "images/base/files", root)
    for folder, names in (("usr/local/bin", _IN_BIN), ("opt/cni/bin", _IN_CNI), ("usr/bin", ("kubelet", "kubeadm"))):
        for name in names:
            install(found[name], root / folder / name)
    install(found["kubectl"], root / "usr/bin/kubectl")
    (root / "etc/kubernetes/manifests").mkdir(parents=True)
    write(root / "kind/version", KUBERNETES)
    write(root / "etc/containerd/cri-base.json", json.dumps(base_spec(json.loads(run(found["ctr"], "oci", "spec")))))
    write(root / "etc/cni/net.d/10-bridge.conflist", json.dumps(_NETWORK))
    write(root / "kind/manifests/default-cni.yaml", json.dumps(_CNI_MANIFEST))
    write(root / "kind/manifests/default-storage.yaml", json.dumps(_STORAGE_MANIFEST))
    # A machine with cgroup v1, and root without CAP_SYS_RESOURCE.
    edit(root / "etc/default/kubelet", r"^(KUBELET_EXTRA_ARGS=.*)$", r"\1 --fail-cgroupv1=false")
    edit(root / "etc/containerd/config.toml", r"restrict_oom_score_adj = false", "restrict_oom_score_adj = true")


def copy_kinds_files(files: Path, root: Path) -> None:
    """Do what kind's Dockerfile does to the root file system."""
    for source in sorted(path for path in files.rglob("*") if path.is_file()):
        name = source.relative_to(files)
        install(source, root / name, mode=0o755 if "bin" in name.parts else 0o644)
    for pattern in _UNWANTED:
        for path in root.glob(pattern):
            path.unlink()
    with (root / "etc/systemd/journald.conf").open("a") as settings:
        settings.write("ReadKMsg=no\n")
    (root / _WANTS).mkdir(parents=True, exist_ok=True)
    for unit in _ENABLED:
        (root / _WANTS / f"{unit}.service").symlink_to(f"/etc/systemd/system/{unit}.service")
    (root / "etc/systemd/system/systemd-binfmt.service").symlink_to("/dev/null")
    (root / "sbin/init").unlink(missing_ok=True)
    (root / "sbin/init").symlink_to("/usr/lib/systemd/systemd")


def base_spec(spec: dict[str, object]) -> dict[str, object]:
    """Return the specification of every container: containerd's own with kind's hook and without limits; pure."""
    process = spec["process"]
    assert isinstance(process, dict)
    hook = {"createContainer": [{"path": "/kind/bin/mount-product-files.sh"}]}
    return {**spec, "process": {key: process[key] for key in process if key != "rlimits"}, "hooks": hook}


def install(source: Path, target: Path, *, mode: int = 0o755) -> None:
    """Copy a file with a mode."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(mode)


def write(path: Path, text: str) -> None:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def edit(path: Path, pattern: str, replacement: str) -> None:
    """Replace a line that has to be there.

    Raises:
        BuildFailedError: it is not: the file is of another release.
    """
    text, count = re.subn(pattern, replacement, path.read_text(), count=1, flags=re.MULTILINE)
    if not count:
        raise BuildFailedError(f"{path.name} has no line {pattern!r}")
    path.write_text(text)


def import_images(found: Mapping[str, Path], root: Path, images: list[Path]) -> None:
    """Load images into the store of the node's containerd, which runs on this machine for that moment."""
    with tempfile.TemporaryDirectory(prefix="kind-node-") as scratch:
        state = Path(scratch)
        settings = {
            "version": 3,
            "root": str(root / "var/lib/containerd"),
            "state": str(state / "state"),
            "disabled_plugins": list(_PLUGINS_OFF),
        }
        lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
        lines += ["[grpc]", f"address = {json.dumps(str(state / 'socket'))}"]
        lines += ["[ttrpc]", f"address = {json.dumps(str(state / 'ttrpc'))}"]
        (state / "config.toml").write_text("\n".join(lines))
        with containerd(found["containerd"], state):
            for image in images:
                options = ("--label=io.cri-containerd.pinned=pinned", "--all-platforms", "--no-unpack")
                address = ("--address", state / "socket", "--namespace", "k8s.io")
                run(found["ctr"], *address, "images", "import", *options, image)


@contextmanager
def containerd(program: Path, state: Path) -> Iterator[None]:
    """Run containerd until the block ends."""
    with (
        (state / "log").open("w") as log,
        subprocess.Popen([program, "--config", state / "config.toml"], stdout=log, stderr=log) as process,
    ):
        try:
            ends_s = time.monotonic() + 60
            while not (state / "socket").exists():
                if process.poll() is not None or time.monotonic() > ends_s:
                    raise BuildFailedError(f"containerd does not start:\n{(state / 'log').read_text()[-2000:]}")
                time.sleep(0.1)
            yield
        finally:
            process.terminate()

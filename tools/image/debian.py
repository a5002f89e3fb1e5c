"""Bases for the image from Debian packages, for machines without an image registry: ``make image BASE=debian``.

The builder is a small Debian with Python. The base has Python, the libraries it needs and certificates, and no shell:
its packages are unpacked, their scripts do not run. mmdebstrap writes equal archives from equal packages.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tools.image import archive, engines
from tools.image.archive import Image

SUITE: Final = "trixie"
"""Debian 13, with Python 3.13 like the images of the Python project that are the default."""
BUILDER: Final = f"localhost/capo-builder:{SUITE}"
BASE: Final = f"localhost/capo-base:{SUITE}"
CERTIFICATES: Final = "etc/ssl/certs/ca-certificates.crt"
_EPOCH: Final = "0"
_UNUSED: Final = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/lintian")
_UNUSED_TOOLS: Final = (
    "usr/bin/mawk",
    "usr/bin/openssl",
    "usr/bin/tar",
    "usr/bin/dpkg*",
    "usr/bin/update-alternatives",
    "usr/sbin/start-stop-daemon",
    "var/cache/*",
    "var/lib/apt/lists/*",
)
_ANY_CERTIFICATES: Final = (
    'mkdir -p "$1/etc/ssl/certs"',
    f'find "$1/usr/share/ca-certificates" -name "*.crt" | sort | xargs cat > "$1/{CERTIFICATES}"',
)
_LIST_OF_PACKAGES: Final = (  # where scanners look for the packages of a base whose package manager never ran
    'mkdir -p "$1/var/lib/dpkg/status.d"',
    'for deb in "$1"/var/cache/apt/archives/*.deb; do'
    ' dpkg-deb --field "$deb" > "$1/var/lib/dpkg/status.d/$(dpkg-deb --field "$deb" Package)"; done',
)
_EXCLUDED: Final = tuple(f"--dpkgopt=path-exclude=/{folder}/*" for folder in _UNUSED)


class MissingToolError(Exception):
    """A program is not installed; the message names its Debian package."""


def require(*programs: str) -> None:
    """Require programs of Debian packages with the same names.

    Raises:
        MissingToolError: some are not installed.
    """
    missing = [name for name in programs if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None]
    if missing:
        raise MissingToolError(f"{', '.join(missing)} missing: apt-get install {' '.join(missing)}")


def builder_command(target: Path, authorities: Path) -> list[str]:
    """Return the command that writes the builder's file system; pure.

    Args:
        authorities: this machine's certificates: pip in the builder trusts the same package index as here.
    """
    pip = f'printf "[global]\\ncert = /{CERTIFICATES}\\n" > "$1/etc/pip.conf"'
    hooks = [f'cp "{authorities}" "$1/{CERTIFICATES}"', pip]
    packages = "python3,python3-venv,ca-certificates"
    return _command("apt", packages, hooks, [SUITE, str(target)])


def base_command(target: Path) -> list[str]:
    """Return the command that writes the base's file system; pure."""
    removed = " ".join(f'"$1"/{path}' for path in (*_UNUSED, *_UNUSED_TOOLS))
    hooks = [*_ANY_CERTIFICATES, *_LIST_OF_PACKAGES, f"rm -rf {removed}", 'mkdir -p "$1/tmp" && chmod 1777 "$1/tmp"']
    return _command("extract", "base-files,python3,ca-certificates", hooks, [SUITE, str(target)])


def _command(variant: str, packages: str, hooks: Sequence[str], tail: Sequence[str]) -> list[str]:
    options = [f"--variant={variant}", f"--include={packages}", "--quiet", *_EXCLUDED]
    stage = "extract" if variant == "extract" else "customize"  # the variant ends after its packages are unpacked
    return ["mmdebstrap", *options, *(f"--{stage}-hook={hook}" for hook in hooks), *tail]


def make(engine: str, folder: Path, *, say: Callable[[str], None] = print) -> None:
    """Load builder and base into the engine; existing archives in the folder are reused."""
    authorities = Path(os.environ.get("SSL_CERT_FILE", f"/{CERTIFICATES}"))
    for name, command in ((BUILDER, builder_command), (BASE, None)):
        loaded = folder / f"{name.rpartition('/')[2].replace(':', '-')}.tar"
        if not loaded.exists():
            require("mmdebstrap")
            say(f"unpacking Debian packages for {name}")
            folder.mkdir(parents=True, exist_ok=True)
            layer = folder / "layer.tar"
            argv = base_command(layer) if command is None else command(layer, authorities)
            subprocess.run(argv, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": _EPOCH})
            archive.write(Image([name], layers=[layer]), loaded)
            layer.unlink()
        engines.load(engine, loaded)

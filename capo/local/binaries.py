"""Where the programs of a rig come from: the first place that has them.

1. a folder that the user gives (an option, or ``CAPO_LOCAL_BIN``);
2. for etcd and kube-apiserver ``KUBEBUILDER_ASSETS``, as other Kubernetes projects use it;
3. our cache in the user's cache folder, keyed by version;
4. a build from pinned Go modules, into that cache.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from capo.local import gobuild
from capo.local.errors import MissingToolError, RigError
from capo.local.modules import MODULES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from capo.local.modules import Module, Program

_IN_KUBEBUILDER_ASSETS: Final = frozenset({"etcd", "kube-apiserver"})


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return our folder in the user's cache folder."""
    base = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME", "~")).expanduser() / ".cache")
    return Path(base) / "capo" / "local"


@dataclass(frozen=True)
class Binaries:
    """The programs that one user has.

    Attributes:
        cache: our cache.
        given: a folder that wins over all others, or None.
        assets: the folder of ``KUBEBUILDER_ASSETS``, or None.
    """

    cache: Path
    given: Path | None = None
    assets: Path | None = None

    @classmethod
    def from_environment(cls, given: Path | None = None, *, environ: Mapping[str, str] = os.environ) -> Binaries:
        """Return what options and environment say."""
        folder, assets = environ.get("CAPO_LOCAL_BIN"), environ.get("KUBEBUILDER_ASSETS")
        if given is None and folder:
            given = Path(folder)
        if given is not None and not given.is_dir():
            raise RigError(f"the folder of binaries {given} does not exist")
        return cls(cache_folder(environ), given, Path(assets) if assets else None)

    def find(self, name: str) -> Path | None:
        """Return the path of a program that is there, or None."""
        module, _ = _origin(name)
        places = [self.given] if self.given else []
        if self.assets and name in _IN_KUBEBUILDER_ASSETS:
            places.append(self.assets)
        places.append(self.cache / module.key())
        return next((place / name for place in places if (place / name).is_file()), None)

    def require(self, names: Iterable[str], *, say: Callable[[str], None]) -> dict[str, Path]:
        """Return the paths of programs, building those that are nowhere.

        Args:
            names: programs, and the file of Cluster API's manifests.
            say: gets a line whenever a build goes on.

        Raises:
            MissingToolError: some are missing and there is no Go to build them with.
        """
        wanted = list(dict.fromkeys(names))
        missing = [name for name in wanted if self.find(name) is None]
        if missing and not gobuild.has_go():
            raise MissingToolError(
                f"{', '.join(missing)} missing, and no Go to build them: install Go 1.26 or newer (https://go.dev/dl), "
                "or set CAPO_LOCAL_BIN (for etcd and kube-apiserver also KUBEBUILDER_ASSETS) to a folder that has them"
            )
        if missing:
            self._build(missing, say)
        return {name: path for name in wanted if (path := self.find(name)) is not None}

    def _build(self, missing: list[str], say: Callable[[str], None]) -> None:
        origins = [_origin(name) for name in missing]
        total_s = sum(program.expected_s for _, program in origins)
        say(f"building {len(missing)} programs into {self.cache}: about {total_s} s with empty caches, once")
        for module in MODULES:
            programs = [program for origin, program in origins if origin is module]
            if programs:
                gobuild.build(module, programs, self.cache, say=say)


def _origin(name: str) -> tuple[Module, Program]:
    for module in MODULES:
        for program in module.programs:
            if program.name == name:
                return module, program
    raise RigError(f"no module of ours builds {name}")

"""The wheel of this project, and a list of requirements that installs it and what it needs by their hashes.

The project owns no name in a package index, so nothing installs it from there.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tools.image.lock import EXTRAS, FOLDER, ROOT

LOCK: Final = "operator"
REQUIREMENTS: Final = "requirements.txt"
SUMS: Final = "SHA256SUMS"


def write(folder: Path, *, epoch_s: int) -> Path:
    """Build the wheel into a folder and write its requirements and checksums beside it; return the wheel.

    Args:
        epoch_s: time of all files in the wheel, so that those of one commit are equal.

    Raises:
        subprocess.CalledProcessError: uv cannot build it, for example because what builds it cannot be downloaded.
    """
    for former in folder.glob("*.whl"):
        former.unlink()
    shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)  # setuptools would add modules that were deleted since
    uv = str(Path(sys.executable).parent / "uv")
    constraints = ["--build-constraints", str(FOLDER / "build.txt"), "--require-hashes"]
    command = [uv, "build", "--wheel", "--quiet", *constraints, "--out-dir", str(folder.absolute()), str(ROOT)]
    subprocess.run(command, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch_s)})
    (wheel,) = folder.glob("*.whl")
    lock = (FOLDER / f"{LOCK}.txt").read_text(encoding="utf-8")
    (folder / REQUIREMENTS).write_text(requirements(wheel.name, _digest(wheel), lock), encoding="utf-8")
    sums = [f"{_digest(path)}  {path.name}\n" for path in (wheel, folder / REQUIREMENTS)]
    (folder / SUMS).write_text("".join(sums), encoding="utf-8")
    return wheel


def requirements(wheel: str, digest: str, lock: str) -> str:
    """Return what ``pip install --require-hashes -r`` installs from the folder of the wheel; pure."""
    extras = ",".join(EXTRAS[LOCK])
    how = f"# In this folder: pip install --require-hashes -r {REQUIREMENTS}"
    return f"{how}\n./{wheel}[{extras}] --hash=sha256:{digest}\n{lock}"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()

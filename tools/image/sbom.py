"""The bill of materials of the image's Python packages, in CycloneDX.

The packages of a Debian base are listed in the base, where scanners look for them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tools.image.lock import FOLDER, ROOT

TOOL: Final = "cyclonedx-bom==7.5.0"
"""Runs in an environment of its own: what it depends on changes what requests imports."""
NAME: Final = "sbom.cdx.json"


def write(folder: Path) -> Path:
    """Install the lock into an environment, describe it, and return the file; equal inputs give equal files."""
    uv, target = str(Path(sys.executable).parent / "uv"), folder / NAME
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        environment = Path(scratch) / "environment"
        python = environment / "bin" / "python"
        subprocess.run([uv, "venv", "--quiet", str(environment)], check=True)
        install = [uv, "pip", "sync", "--quiet", f"--python={python}", "--require-hashes", str(FOLDER / "image.txt")]
        subprocess.run(install, check=True)
        describe = [
            uv,
            "tool",
            "run",
            "--quiet",
            "--from",
            TOOL,
            "cyclonedx-py",
            "environment",
            "--output-reproducible",
        ]
        describe += [f"--pyproject={ROOT / 'pyproject.toml'}", f"--output-file={target}", str(python)]
        subprocess.run(describe, check=True)
    return target

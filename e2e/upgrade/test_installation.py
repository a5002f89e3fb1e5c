"""The released version is another installation, and a manager of either version runs nothing of the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.upgrade import installation
from e2e.upgrade.environment import upgrade_environment
from e2e.upgrade.installation import RELEASED_COMMIT, REPOSITORY, Installation, Version
from e2e.upgrade.matrix import VERSIONS, Setting

pytestmark = [pytest.mark.integration, pytest.mark.crash]


def test_the_two_versions_are_installed_in_different_places(installations: dict[Version, Installation]) -> None:
    present, released = installations["present"], installations["released"]

    assert present.package == REPOSITORY / "capo"
    assert released.package.is_relative_to(released.python.parents[1])
    assert not released.package.is_relative_to(REPOSITORY)


def test_the_source_of_the_released_version_is_that_of_its_commit(installations: dict[Version, Installation]) -> None:
    released = installations["released"]

    for file in ("engine/manager.py", "api/v1beta2/openstackcluster.py", "components/rbac.yaml"):
        assert (released.package / file).read_bytes() == (released.source / "capo" / file).read_bytes()
    assert RELEASED_COMMIT[:12] in released.source.parent.name


@pytest.mark.parametrize("version", VERSIONS)
def test_a_manager_and_its_children_run_their_own_installation(setting: Setting, version: Version) -> None:
    wanted = setting.installations[version]
    certificates = setting.ground.rig.webhook_cert_dir
    with upgrade_environment(setting.ground, setting.nurseries) as made:
        made.use(version, f"--webhook-cert-dir={certificates}")
        made.start()
        made.wait_until("it serves webhooks", lambda: children(made.manager.pid))

        assert made.manager.log.read_text().splitlines()[0] == f"capo is imported from {wanted.package}"
        assert children(made.manager.pid) == {str(wanted.python)}


def children(pid: int) -> set[str]:
    """Return the programs of a process's children."""
    found = [child for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]
    return {Path(f"/proc/{child}/cmdline").read_text().split("\0")[0] for child in found}


def test_a_commit_that_a_shallow_clone_lacks_is_an_error_with_the_remedy() -> None:
    with pytest.raises(installation.InstallationError, match="git fetch --unshallow"):
        installation.archive("1" * 40)

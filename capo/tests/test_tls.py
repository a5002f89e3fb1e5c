from __future__ import annotations

import ssl

import pytest

from capo import tls


@pytest.mark.parametrize(
    ("flag", "expected"), [("VersionTLS12", ssl.TLSVersion.TLSv1_2), ("VersionTLS13", ssl.TLSVersion.TLSv1_3)]
)
def test_the_lowest_version_is_the_one_that_is_asked_for(flag: str, expected: ssl.TLSVersion) -> None:
    assert tls.server_context(flag).minimum_version == expected


@pytest.mark.parametrize("suite", tls.CIPHER_SUITES)
def test_each_cipher_suite_is_known_to_openssl(suite: str) -> None:
    names = [cipher["name"] for cipher in tls.server_context("VersionTLS12", [suite]).get_ciphers()]

    assert tls.CIPHER_SUITES[suite] in names
    assert {name for name in names if not name.startswith("TLS_")} == {tls.CIPHER_SUITES[suite]}


def test_suites_of_tls_1_3_alone_leave_the_choice_to_python() -> None:
    some, usual = (tls.server_context("VersionTLS12", suites) for suites in (sorted(tls.TLS13_SUITES), ()))

    assert some.get_ciphers() == usual.get_ciphers()

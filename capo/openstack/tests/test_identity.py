import datetime
import json
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from keystoneauth1.identity import generic, v3

from capo.errors import IdentityError
from capo.openstack import identity, tokens

AUTH = {
    "auth_url": "https://keystone.example:5000/v3",
    "username": "u",
    "password": "geheim",
    "project_name": "p",
    "user_domain_name": "Default",
    "project_domain_name": "Default",
}


def clouds(**entry: Any) -> bytes:
    return yaml.safe_dump({"clouds": {"one": {"auth": AUTH, **entry}, "two": {}}}).encode()


def bundle() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")])
    now = datetime.datetime.now(tz=datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM)


def test_a_password_entry_is_read() -> None:
    credentials = identity.parse(clouds(region_name="R", interface="internal"), "one")

    assert credentials.region_name == "R"
    assert credentials.interface == "internal"
    assert credentials.verifies
    assert isinstance(tokens.plugin(credentials), v3.Password)


def test_the_region_of_the_reference_comes_before_that_of_the_entry() -> None:
    assert identity.parse(clouds(region_name="R"), "one", None, "S").region_name == "S"


def test_an_identity_root_without_version_is_discovered() -> None:
    credentials = identity.parse(clouds(auth={**AUTH, "auth_url": "https://keystone.example:5000/"}), "one")

    assert isinstance(tokens.plugin(credentials), generic.Password)


def test_an_application_credential_is_read_without_being_named_as_such() -> None:
    auth = {"auth_url": AUTH["auth_url"], "application_credential_id": "i", "application_credential_secret": "s"}

    assert isinstance(tokens.plugin(identity.parse(clouds(auth=auth), "one")), v3.ApplicationCredential)


def test_a_token_is_read() -> None:
    auth = {"auth_url": AUTH["auth_url"], "token": "t", "project_id": "p"}

    assert isinstance(tokens.plugin(identity.parse(clouds(auth=auth, auth_type="v3token"), "one")), v3.Token)


def test_a_password_of_digits_stays_what_was_written() -> None:
    text = b"clouds: {one: {auth: {auth_url: 'http://k/v3', username: u, password: 0123, project_id: 1e3}}}"

    entry = identity.parse(text, "one").entry

    assert (entry["auth"]["password"], entry["auth"]["project_id"]) == ("0123", "1e3")


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        pytest.param("interface", "internalURL", "internal", id="older spelling"),
        pytest.param("endpoint_type", "adminURL", "admin", id="older word"),
        pytest.param("endpoint_type", "", "public", id="empty"),
    ],
)
def test_the_interface_may_be_spelt_in_older_ways_w_81(field: str, value: str, expected: str) -> None:
    assert identity.parse(clouds(**{field: value}), "one").interface == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [({"tenant_name": "t"}, {"project_name": "t"}), ({"default_domain": "d"}, {"user_domain_name": "d"})],
    ids=["tenant", "default domain"],
)
def test_older_names_of_fields_are_understood(given: dict[str, str], expected: dict[str, str]) -> None:
    auth = {"auth_url": "http://k/v3", "username": "u", "password": "p", "project_name": "p", **given}

    assert expected.items() <= identity.parse(clouds(auth=auth), "one").entry["auth"].items()


@pytest.mark.parametrize("text", ["no", "false", "Off", "0"])
def test_verification_can_be_switched_off(text: str) -> None:
    assert not identity.parse(b"clouds: {one: " + str({"auth": AUTH, "verify": text}).encode() + b"}", "one").verifies


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        pytest.param(b"a: [", "one", "not YAML in line", id="no YAML"),
        pytest.param(b"\x80\x81", "one", "not YAML", id="no text"),
        pytest.param(b"[" * 100_000, "one", "not YAML", id="nested too deeply"),
        pytest.param(clouds() + b"#" * 2**17, "one", "more than 128 KiB", id="too large to be parsed in a moment"),
        pytest.param(b"[]", "one", "no mapping `clouds`", id="no mapping"),
        pytest.param(clouds(), "three", "no cloud 'three'; it has: one, two", id="unknown cloud"),
        pytest.param(clouds(), "two", "no mapping `auth`", id="empty entry"),
        pytest.param(clouds(auth_type="v3oidcpassword"), "one", "auth_type 'v3oidcpassword'", id="auth type"),
        pytest.param(clouds(cacert="/etc/ssl/x"), "one", "put the bundle into the Secret", id="CA file"),
        pytest.param(clouds(cert="/etc/ssl/x"), "one", "cert is a path", id="client certificate"),
        pytest.param(clouds(key="/etc/ssl/x"), "one", "key is a path", id="client key"),
        pytest.param(clouds(profile="https://x/y"), "one", "profile is a URL", id="profile URL"),
        pytest.param(clouds(interface="secret"), "one", "interface 'secret'", id="interface"),
        pytest.param(clouds(verify="maybe"), "one", "verify 'maybe'", id="verify"),
        pytest.param(clouds(auth={**AUTH, "password": ""}), "one", "auth.password is missing", id="password"),
        pytest.param(clouds(auth={**AUTH, "project_name": ""}), "one", "auth.project_id or", id="project"),
        pytest.param(clouds(auth={**AUTH, "auth_url": "file:///etc"}), "one", "no http(s) URL", id="scheme"),
        pytest.param(clouds(auth={**AUTH, "username": ["x"]}), "one", "username is not text", id="list"),
        pytest.param(
            clouds(auth={"auth_url": "http://k", "application_credential_secret": "x"}),
            "one",
            "application_credential_id or",
            id="application credential",
        ),
    ],
)
def test_what_is_wrong_is_named_and_no_secret_shown_w_81(text: bytes, name: str, words: str) -> None:
    with pytest.raises(IdentityError) as caught:
        identity.parse(text, name)

    assert words in caught.value.message
    assert "geheim" not in caught.value.sentence


def test_a_bundle_without_certificate_is_refused_w_81() -> None:
    with pytest.raises(IdentityError, match="not a PEM bundle"):
        identity.parse(clouds(), "one", b"no certificate")


def test_a_bundle_of_certificates_is_taken() -> None:
    pem = bundle()

    assert identity.parse(clouds(), "one", pem).cacert == pem.decode()


def test_a_path_beside_the_bundle_is_ignored_and_the_bundle_used() -> None:
    pem = bundle()

    assert identity.parse(clouds(cacert="/home/me/ca.crt"), "one", pem).cacert == pem.decode()


@pytest.mark.parametrize("value", [b"null", b"~", b"Null", b"''", b""], ids=repr)
@pytest.mark.parametrize("name", ["cacert", "cert", "key"])
def test_a_file_that_is_null_is_none(name: str, value: bytes) -> None:
    text = (
        b"clouds: {one: " + str({"auth": AUTH}).encode().rstrip(b"}") + b"}, " + name.encode() + b": " + value + b"}}"
    )

    assert identity.parse(text, "one", b"\n").cacert is None


def test_a_blank_bundle_beside_a_path_does_not_stand_in_for_it() -> None:
    with pytest.raises(IdentityError, match="put the bundle into the Secret's key cacert"):
        identity.parse(clouds(cacert="/etc/ssl/x"), "one", b"\n")


@pytest.mark.parametrize("name", ["cert", "key"])
def test_client_files_are_refused_also_beside_a_bundle(name: str) -> None:
    with pytest.raises(IdentityError, match=f"{name} is a path"):
        identity.parse(clouds(**{name: "/etc/ssl/x"}), "one", bundle())


def test_an_empty_bundle_is_none() -> None:
    assert identity.parse(clouds(), "one", b" \n").cacert is None


def test_the_fingerprint_covers_entry_bundle_and_region_and_nothing_else() -> None:
    plain = identity.parse(clouds(), "one").fingerprint

    others = [
        identity.parse(clouds(auth={**AUTH, "password": "x"}), "one").fingerprint,
        identity.parse(clouds(), "one", bundle()).fingerprint,
        identity.parse(clouds(), "one", None, "R").fingerprint,
    ]

    assert identity.parse(clouds(), "one").fingerprint == plain
    assert len({plain, *others}) == 4


def test_secrets_do_not_show_when_credentials_are_printed() -> None:
    assert "geheim" not in repr(identity.parse(clouds(), "one"))


def laughs(levels: int) -> str:
    """Return YAML whose last anchor expands to ten to the power of ``levels`` words."""
    lines = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(["a0: &a0 [x, x, x, x, x, x, x, x, x, x]", *lines, ""])


@pytest.mark.parametrize("place", ["profile", "region_name", "auth", "verify", "cacert"])
def test_aliases_that_stand_for_a_text_without_end_are_never_written_out(place: str) -> None:
    text = f"{laughs(30)}clouds: {{one: {{auth: {json.dumps(AUTH)}}}}}".replace("{auth", f"{{{place}: *a29, auth", 1)
    text = text.replace(", auth: {", ", later: {", 1) if place == "auth" else text

    if place == "profile":
        assert identity.parse(text.encode(), "one").verifies
    else:
        with pytest.raises(IdentityError) as caught:
            identity.parse(text.encode(), "one")
        assert len(str(caught.value)) < 200


def test_a_file_that_takes_long_to_parse_is_refused() -> None:
    with pytest.raises(IdentityError, match="more than 128 KiB"):
        identity.parse(clouds() + b"#" * identity.MAX_CLOUDS_YAML, "one")


@pytest.mark.parametrize("sign", ["[", "- ", "{a: ", "? ", "!a ", "&a ", "'", '"', "|\n", "%a\n", "a: ", "\t", "[\n"])
def test_no_text_of_signs_is_a_fault_of_the_program(sign: str) -> None:
    with pytest.raises(IdentityError):
        identity.parse((sign * 10_000).encode(), "one")


def test_a_cloud_that_is_missing_is_told_with_some_of_those_that_are_there() -> None:
    text = yaml.safe_dump({"clouds": {f"{number:04}{'x' * 300}": {} for number in range(500)}}).encode()

    with pytest.raises(IdentityError) as caught:
        identity.parse(text, "one")

    assert len(str(caught.value)) < 6000


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://", "is missing or no http"),
        ("http://[", "has no host"),
        ("https://[x]:5000", "has no host"),
        ("http://a:b/v3", "has no host"),
        ("http://a:99999", "has no host"),
        ("https:///v3", "has no host"),
    ],
)
def test_a_url_that_leads_nowhere_is_refused(url: str, words: str) -> None:
    with pytest.raises(IdentityError, match=f"auth_url {words}"):
        identity.parse(clouds(auth={**AUTH, "auth_url": url}), "one")

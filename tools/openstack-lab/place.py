"""The lab's files, ports and passwords."""
import json
import os
import pathlib
import secrets
import time

HERE = pathlib.Path(__file__).resolve().parent
LAB = pathlib.Path(os.environ.get('LAB_DIR') or pathlib.Path.home() / '.cache' / 'openstack-lab').resolve()
VENV = LAB / 'venv'
BIN = VENV / 'bin'
ETC, LOG, RUN, VAR, STATE = (LAB / d for d in
                             ('etc', 'log', 'run', 'var', 'state'))
REGION = os.environ.get('LAB_REGION', 'RegionOne')
AZS = os.environ.get('LAB_AZS', 'az1 az2').split()
HOST = '127.0.0.1'

# The user's, or the one that `up` chose because ports were taken.
OFFSET_FILE = LAB / 'port-offset'
OFFSET = int(os.environ.get('LAB_PORT_OFFSET') or (OFFSET_FILE.exists() and OFFSET_FILE.read_text()) or 0)
PORT = {'keystone': 5000, 'placement': 8778, 'nova': 8774, 'neutron': 9696,
        'glance': 9292, 'cinder': 8776, 'octavia': 9876,
        'mariadb': 23306, 'rabbitmq': 25671, 'rabbitmq-dist': 25672,
        'epmd': 24369, 'memcached': 21211}
PORT = {name: port + OFFSET for name, port in PORT.items()}
URL = {name: f'http://{HOST}:{port}' for name, port in PORT.items()}
AUTH_URL = URL['keystone'] + '/v3'

T0 = time.monotonic()


def say(text):
    print(f'[{time.monotonic() - T0:6.1f}s] {text}', flush=True)


def secret(name):
    """Return a password, created once and kept in the work directory."""
    path = STATE / 'secrets.json'
    known = json.loads(path.read_text()) if path.exists() else {}
    if name not in known:
        known[name] = secrets.token_hex(16)
        partial = path.with_suffix('.partial')
        partial.touch(mode=0o600, exist_ok=True)
        partial.write_text(json.dumps(known, indent=1))
        partial.replace(path)
    return known[name]


def done(name):
    return (STATE / f'{name}.done').exists()


def mark(name):
    (STATE / f'{name}.done').touch()

"""Starts and ends processes; each is known by its pid and start time."""
import os
import pathlib
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

from place import BIN, HOST, LOG, RUN, URL, VAR, say


def start_time(pid):
    try:
        stat = pathlib.Path(f'/proc/{pid}/stat').read_text()
    except OSError:
        return None
    fields = stat[stat.rindex(')') + 2:].split()
    return None if fields[0] == 'Z' else fields[19]


def recorded(name):
    """Return the pid recorded for name, if that very process still runs."""
    try:
        pid, began = (RUN / f'{name}.pid').read_text().split()
    except (OSError, ValueError):
        return None
    return int(pid) if start_time(pid) == began else None


def group_of(pid):
    """Return the processes in the session that pid leads."""
    found = []
    for entry in pathlib.Path('/proc').iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / 'stat').read_text()
            except OSError:
                continue
            fields = stat[stat.rindex(')') + 2:].split()
            if fields[3] == str(pid) and fields[0] != 'Z':
                found.append(int(entry.name))
    return found


def ours():
    """Return parent and session of all processes with the lab's environment."""
    found = {}
    for entry in pathlib.Path('/proc').iterdir():
        if entry.name.isdigit():
            try:
                environ = (entry / 'environ').read_bytes().split(b'\0')
                stat = (entry / 'stat').read_text()
            except OSError:
                continue
            if f'HOME={VAR}'.encode() in environ:
                fields = stat[stat.rindex(')') + 2:].split()
                found[int(entry.name)] = int(fields[1]), int(fields[3])
    return found


def orphans(name):
    """Return the processes of a service whose first process died alone."""
    try:
        pid = int((RUN / f'{name}.pid').read_text().split()[0])
    except (OSError, ValueError):
        return []
    if start_time(pid):   # running, or no longer ours
        return []
    return [p for p, (_, session) in ours().items() if session == pid]


def strays(names):
    """Return our processes that belong to no running service, such as those
    of a start that was killed before it recorded them."""
    leaders = {pid for name in names if (pid := recorded(name))}
    found = ours()

    def belongs(pid):
        parent, session = found.get(pid, (None, None))
        return session in leaders or parent in found and belongs(parent)

    return [pid for pid in found if not belongs(pid)]


def send(number, pids):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def kill(pids, limit=60):
    """Kill processes, and return when they are gone: they hold their ports and files until then."""
    began = {pid: start_time(pid) for pid in pids}
    send(signal.SIGKILL, pids)
    end = time.monotonic() + limit
    while any(t and start_time(pid) == t for pid, t in began.items()):
        if time.monotonic() > end:
            raise SystemExit(f'killed, but not gone: {" ".join(map(str, pids))}')
        time.sleep(0.05)


def environment(more=None):
    """Return our environment without variables of OpenStack clients and Python."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(('OS_', 'PYTHON'))}
    env.update(PATH=f'{BIN}:{env["PATH"]}:/usr/sbin', HOME=str(VAR),
               NO_PROXY='127.0.0.1,localhost', no_proxy='127.0.0.1,localhost',
               **(more or {}))
    return env


def keep_niceness(pid):
    """Give the session that pid leads our own niceness."""
    try:   # where sessions are groups of the scheduler, it counts between processes of one session alone
        pathlib.Path(f'/proc/{pid}/autogroup').write_text(str(os.nice(0)))
    except OSError:
        pass


def start(name, argv, env=None):
    pid = recorded(name)
    if pid:
        send(signal.SIGCONT, group_of(pid))   # it may have been paused
        return
    kill(orphans(name))
    with open(LOG / f'{name}.log', 'ab') as log:
        proc = subprocess.Popen([str(a) for a in argv],
                                env=environment(env), cwd=VAR,
                                stdin=subprocess.DEVNULL, stdout=log,
                                stderr=log, start_new_session=True)
    keep_niceness(proc.pid)
    (RUN / f'{name}.pid').write_text(f'{proc.pid} {start_time(proc.pid)}')


def stop(names, grace=20):
    """Ends the named services together: TERM, then KILL to what is left."""
    left = {}
    for name in names:
        pid = recorded(name)
        if pid:
            left[name] = set(group_of(pid)) | {pid}
            send(signal.SIGTERM, [pid])
            send(signal.SIGCONT, left[name])   # a paused process must get the signal
        else:
            kill(orphans(name))
            (RUN / f'{name}.pid').unlink(missing_ok=True)
    end = time.monotonic() + grace
    while left:
        for name in list(left):
            alive = {p for p in left[name] if start_time(p)}
            if not alive:
                del left[name]
                (RUN / f'{name}.pid').unlink(missing_ok=True)
            elif time.monotonic() > end:
                say(f'killing what is left of {name}')
                send(signal.SIGKILL, alive)
        time.sleep(0.1)


def run(argv, log, env=None):
    """Run a command to its end, its output in log/<log>.log."""
    with open(LOG / f'{log}.log', 'ab') as out:
        code = subprocess.call([str(a) for a in argv], env=environment(env),
                               cwd=VAR, stdin=subprocess.DEVNULL, stdout=out,
                               stderr=out)
    if code:
        raise SystemExit(f'failed ({code}): {" ".join(map(str, argv))}\n'
                         f'see {LOG / log}.log')


def is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def wait_port(port, name, limit=120):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        try:
            socket.create_connection((HOST, port), 1).close()
            return
        except OSError:
            if not recorded(name):
                break
            time.sleep(0.1)
    raise SystemExit(f'{name} does not listen; see {LOG / name}.log')


def wait_http(name, path='/', limit=180):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(URL[name] + path, timeout=30).close()
            return
        except urllib.error.HTTPError as e:
            if e.code < 500:
                return
        except OSError:
            pass
        if not recorded(name):
            break
        time.sleep(0.2)
    raise SystemExit(f'{name} does not answer; see {LOG / name}.log')

"""HTTP/1.1 to nodes: pooled connections, one deadline over all of a call."""

from __future__ import annotations

import http.client
import io
import select
import socket
import ssl
import threading
import time
from typing import Dict, List, Mapping, Optional, Tuple
from urllib.parse import urlsplit

from ._check import bad, shown

BODY_MAX = 1 << 20
"""The longest answer that is read, in bytes."""
IDLE_MAX = 8
"""How many idle connections are kept for each endpoint."""
IDLE_SECONDS = 60.0
"""A connection that was idle for longer is not used again: nodes close it after some minutes."""


class Lost(Exception):
    """There was no whole answer. What was asked may have happened."""


class Unsent(Exception):
    """Nobody was there to ask: it certainly did not happen."""


class Late(Exception):
    """The deadline has passed. What was asked may have happened."""


class Endpoint:
    """One node's HTTP address: ``http://host:port``, ``https://host:port`` or ``host:port``."""

    def __init__(self, given: str, field: str) -> None:
        whole = given if isinstance(given, str) and "://" in given else f"http://{given}"
        try:
            url = urlsplit(whole)
            port = url.port
        except ValueError:
            raise bad(field, f"{shown(given)} is not http://host:port") from None
        if url.scheme not in ("http", "https") or not url.hostname or port is None or url.username is not None \
                or url.path not in ("", "/") or url.query or url.fragment:
            raise bad(field, f"{shown(given)} is not http://host:port")
        self.host, self.port, self.tls = url.hostname, port, url.scheme == "https"

    def __str__(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"


class _Bounded(io.RawIOBase):
    """Reads from a socket until a deadline, however slowly it comes."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        super().__init__()
        self._sock, self._deadline = sock, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "bytearray") -> int:  # type: ignore[override]
        self._sock.settimeout(remaining(self._deadline))
        return self._sock.recv_into(buffer)


class _Reading:
    """What http.client.HTTPResponse wants of a socket."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock, self._deadline = sock, deadline

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Bounded(self._sock, self._deadline))


def remaining(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise Late("the deadline has passed")
    return left


class Transport:
    """Sends requests. Safe for concurrent use; each connection serves one call at a time."""

    def __init__(self, tls: Optional[ssl.SSLContext], headers: Mapping[str, str]) -> None:
        self._tls = tls
        self._headers = dict(headers)
        self._lock = threading.Lock()
        self._idle: Dict[str, List[Tuple[float, socket.socket]]] = {}
        self._closed = False

    def post(self, to: Endpoint, path: str, body: bytes, deadline: float) -> Tuple[int, Dict[str, str], bytes]:
        """Sends one request and reads the whole answer: status, headers in lower case, body."""
        sock = self._take(to)
        while sock is not None:
            try:
                return self._exchange(sock, to, path, body, deadline)
            except Lost as lost:
                # A node that has closed an idle connection has read nothing on it; where it
                # has, a repetition of what this package sends is harmless.
                if getattr(lost, "heard", False):
                    raise
            sock = self._take(to)
        return self._exchange(self._connect(to, deadline), to, path, body, deadline)

    def _connect(self, to: Endpoint, deadline: float) -> socket.socket:
        try:
            sock = socket.create_connection((to.host, to.port), timeout=remaining(deadline))
        except socket.timeout:
            raise Late(f"connect to {to}: the deadline has passed") from None
        except OSError as err:
            raise Unsent(f"connect to {to}: {err}") from err
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if to.tls:
                context = self._tls or ssl.create_default_context()
                sock.settimeout(remaining(deadline))
                sock = context.wrap_socket(sock, server_hostname=to.host)
        except BaseException as err:
            sock.close()
            if isinstance(err, socket.timeout):
                raise Late(f"connect to {to}: the deadline has passed") from None
            if isinstance(err, OSError):
                raise Unsent(f"connect to {to}: {err}") from err
            raise
        return sock

    def _exchange(
        self, sock: socket.socket, to: Endpoint, path: str, body: bytes, deadline: float
    ) -> Tuple[int, Dict[str, str], bytes]:
        host = f"[{to.host}]" if ":" in to.host else to.host
        lines = [f"POST {path} HTTP/1.1", f"Host: {host}:{to.port}", "Content-Type: application/json",
                 f"Content-Length: {len(body)}"]
        lines += [f"{k}: {v}" for k, v in self._headers.items()]
        kept = heard = False
        response: Optional[http.client.HTTPResponse] = None
        try:
            sock.settimeout(remaining(deadline))
            sock.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
            response = http.client.HTTPResponse(_Reading(sock, deadline), method="POST")  # type: ignore[arg-type]
            response.begin()
            heard = True
            data = response.read(BODY_MAX + 1)
            if len(data) > BODY_MAX:
                raise Lost(f"{to} answers more than {BODY_MAX} bytes")
            if response.length:
                raise Lost(f"{to} ended its answer early")
            kept = not response.will_close
            return response.status, {k.lower(): v for k, v in response.getheaders()}, data
        except socket.timeout:
            raise Late(f"{to} did not answer in time") from None
        except (OSError, http.client.HTTPException, ValueError) as err:
            lost = Lost(f"{to}: {type(err).__name__} {err}")
            setattr(lost, "heard", heard or isinstance(err, (http.client.BadStatusLine, ValueError))
                    and not isinstance(err, http.client.RemoteDisconnected))
            raise lost from err
        finally:
            if response is not None:
                response.close()
            if not (kept and self._give(to, sock)):
                sock.close()

    def _take(self, to: Endpoint) -> Optional[socket.socket]:
        while True:
            with self._lock:
                idle = self._idle.get(str(to))
                if not idle:
                    return None
                since, sock = idle.pop()
            if time.monotonic() - since < IDLE_SECONDS and not _readable(sock):
                return sock
            sock.close()

    def _give(self, to: Endpoint, sock: socket.socket) -> bool:
        with self._lock:
            idle = self._idle.setdefault(str(to), [])
            if self._closed or len(idle) >= IDLE_MAX:
                return False
            idle.append((time.monotonic(), sock))
            return True

    def close(self) -> None:
        """Closes idle connections; those in use are closed after their answers."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, {}
        for connections in idle.values():
            for _, sock in connections:
                sock.close()

    def after_fork(self) -> None:
        """Forgets the connections of the parent: two processes must not share one."""
        self._lock = threading.Lock()
        idle, self._idle = self._idle, {}
        for connections in idle.values():
            for _, sock in connections:
                sock.close()


def _readable(sock: socket.socket) -> bool:
    """Whether an idle connection has something to read: it was closed, or is out of step."""
    try:
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(sock, select.POLLIN)
            return bool(poll.poll(0))
        return bool(select.select([sock], [], [], 0)[0])
    except (OSError, ValueError):
        return True

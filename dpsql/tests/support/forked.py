"""Processes that run `python -m …` or `python -c …` without the second that it takes to import dpsql.

House rules:

1. A process that has imported all of dpsql, and runs nothing of it, is forked for each: it has one thread.
2. A fork ends as an interpreter does: it runs what is registered, waits for its threads, dies of its signals.
3. What is tested of the start itself (imports, closed streams, signals on the way) starts an interpreter instead.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from functools import cache
from typing import Any

__all__ = ["Forked", "run_forked"]

_LENGTH = 8
_FOREIGN = ("dpsql.tests", "dpsql.dbapi.sqlalchemy", "dpsql.testing")


class Forked(subprocess.Popen[Any]):
    """As `subprocess.Popen([sys.executable, *arguments])`, for arguments that begin with `-m` or `-c`.

    Of Popen's options those that concern streams, text, `cwd` and `env` are there; others raise ValueError.
    """

    _ended: int
    """A pipe that says the status that `os.waitpid` gives."""

    def __init__(self, arguments: list[str], **options: Any) -> None:
        if options.keys() - {"stdin", "stdout", "stderr", "text", "cwd", "env", "bufsize", "encoding"}:
            raise ValueError(f"a fork has no {sorted(options)}")
        if arguments[0] not in ("-m", "-c"):
            raise ValueError(f"python {arguments[0]} is not forked")
        super().__init__(arguments, **options)

    # `subprocess` asks these three for all that concerns the system: they are as in Python 3.9 to 3.14.

    def _execute_child(self, arguments: list[str], *given: Any) -> None:
        _, _, _, _, cwd, env = given[:6]
        theirs = given[9:15]
        request = {
            "arguments": list(arguments),
            "cwd": os.fspath(cwd) if cwd is not None else os.getcwd(),
            "env": dict(os.environ if env is None else env),
        }
        self._ended, says = os.pipe()
        streams = [own if number < 0 else number for own, number in enumerate((theirs[0], *theirs[3:6:2]))]
        try:
            self.pid = _parent().fork(request, [*streams, says])
        finally:
            os.close(says)
            self._close_pipe_fds(*theirs)  # type: ignore[attr-defined]
        self._child_created = True

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if wait_flags:
            ended = select.poll()  # `select` takes no descriptor above 1,023
            ended.register(self._ended, select.POLLIN)
            if not ended.poll(0):
                return 0, 0
        said = os.read(self._ended, _LENGTH)
        os.close(self._ended)
        if len(said) < _LENGTH:
            raise ChildProcessError("what waited for the process has ended without a word")
        return self.pid, int.from_bytes(said, "big")

    def _internal_poll(self, _deadstate: int | None = None, **_: Any) -> int | None:
        if self.returncode is None and self._waitpid_lock.acquire(False):  # type: ignore[attr-defined]
            try:
                pid, status = self._try_wait(os.WNOHANG)
                if pid:
                    self._handle_exitstatus(status)  # type: ignore[attr-defined]
            finally:
                self._waitpid_lock.release()  # type: ignore[attr-defined]
        return self.returncode


def run_forked(arguments: list[str], *, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    """Run to the end as `subprocess.run` does, and return what it wrote. Raises subprocess.TimeoutExpired."""
    with Forked(
        arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)


class _Parent:
    """The process that is forked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()],
            )  # fmt: skip
        atexit.register(self._close)

    def fork(self, request: dict[str, Any], descriptors: list[int]) -> int:
        """Return the process id of a fork that has these descriptors: three streams, and one to say its end to."""
        data = json.dumps(request).encode()
        with self._lock:
            socket.send_fds(self._socket, [len(data).to_bytes(_LENGTH, "big")], descriptors)
            self._socket.sendall(data)
            return int.from_bytes(_all(self._socket, _LENGTH), "big")

    def _close(self) -> None:
        self._socket.close()
        self._process.wait()


@cache
def _parent() -> _Parent:
    return _Parent()


def _all(connection: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = connection.recv(length - len(data))
        if not more:
            raise EOFError("the process that is forked has ended")
        data += more
    return data


# --- in the process that is forked ------------------------------------------------------------------------


def _serve(connection: socket.socket) -> dict[str, Any] | None:
    """Fork for each request, and return it in the fork; return None once the tests are gone."""
    while True:
        first, descriptors, _, _ = socket.recv_fds(connection, _LENGTH, 4)
        if not first:
            return None
        request = json.loads(_all(connection, int.from_bytes(first, "big")))
        attendant = os.fork()
        if not attendant:
            return _attended(connection, request, descriptors)
        for number in descriptors:
            os.close(number)
        os.waitpid(attendant, 0)


def _attended(connection: socket.socket, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
    """Return in a fork whose end is waited for by this process, which is nobody's child."""
    if os.fork():
        os._exit(0)
    pid = os.fork()
    if pid:
        os.closerange(0, 3)
        for number in descriptors[:3]:
            os.close(number)
        connection.sendall(pid.to_bytes(_LENGTH, "big"))
        connection.close()
        _, status = os.waitpid(pid, 0)
        os.write(descriptors[3], status.to_bytes(_LENGTH, "big"))
        os._exit(0)
    connection.close()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    atexit.register(gc.unfreeze)  # for what counts, as the interpreter is taken apart, what is left
    for own, number in enumerate(descriptors[:3]):
        os.dup2(number, own)
    for number in descriptors:
        os.close(number)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.stdin = open(0, closefd=False, encoding="utf-8")  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False, encoding="utf-8")  # noqa: SIM115
    sys.stderr = open(2, "w", 1, closefd=False, encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
    return request


def _main() -> None:
    for module in pkgutil.walk_packages(importlib.import_module("dpsql").__path__, "dpsql."):
        if not module.name.startswith(_FOREIGN) and not module.name.endswith("__main__"):
            with suppress(ModuleNotFoundError):  # an optional part
                importlib.import_module(module.name)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the tests
    gc.collect()
    gc.freeze()
    request = _serve(socket.socket(fileno=int(sys.argv[1])))
    if request is None:
        os._exit(0)
    how, what, *rest = request["arguments"]
    if how == "-m":
        sys.argv = [what, *rest]
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        sys.argv = ["-c", *rest]
        exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102  # what `-c` does


if __name__ == "__main__":
    _main()

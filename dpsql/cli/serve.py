"""`dpsql serve`: analysts connect with psql and every other client of Postgres."""

from __future__ import annotations

import asyncio
import errno
import gc
import ipaddress
import os
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from ..words import terminal_text
from .faults import tell
from .settings import CommandSettings, pass_settings

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ..policy import Policy
    from ..server import Options, Server
    from ..server.channel import Network

    Beside = Callable[[Server, asyncio.AbstractEventLoop], AbstractContextManager[object]]

_EVERYWHERE = ("0.0.0.0", "::")

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option(
    "-P", "--policy", "policies", type=click.Path(dir_okay=False, path_type=Path), multiple=True,
    help="A policy to serve. Repeatable: each is a database with the name of its file.",
)  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=5433, show_default=True,
    help="The port to listen on; 0 takes a free one, which the log names.",
)  # fmt: skip
@click.option(
    "--certificate", type=_FILE, help="The certificate for TLS, in PEM; needed beyond this machine."
)
@click.option("--key", type=_FILE, help="The certificate's private key, in PEM, without a passphrase.")
@click.option(
    "--max-connections", type=click.IntRange(1, 10_000), default=100, show_default=True,
    help="How many analysts' connections there may be at once.",
)  # fmt: skip
@click.option(
    "--idle", type=click.FloatRange(1), default=3600.0, show_default=True,
    help="Seconds after which a connection that says nothing is closed.",
)  # fmt: skip
@click.option(
    "--grace", type=click.FloatRange(0), default=10.0, show_default=True,
    help="Seconds that running statements have to finish when the server is told to stop.",
)  # fmt: skip
@click.option(
    "--metrics", metavar="[HOST:]PORT", callback=lambda *given: _address(given[-1]),
    help="Serve counts to Prometheus on an address of their own; without HOST on this machine alone.",
)  # fmt: skip
@click.option(
    "--metrics-token", type=_FILE,
    help="A file with the token that readers of the counts bring; with TLS needed beyond this machine.",
)  # fmt: skip
@click.option(
    "--web", metavar="[HOST:]PORT", callback=lambda *given: _address(given[-1]),
    help="Serve the studio to analysts who log in with their passwords, on an address of its own; without HOST on this "
    "machine alone, beyond it over TLS.",
)  # fmt: skip
@click.option(
    "--trusted-proxy", "proxies", metavar="ADDRESS", multiple=True, callback=lambda *given: _networks(given[-1]),
    help="A proxy, or a network of them, that says by the PROXY protocol, version 2, whom it speaks for. Repeatable.",
)  # fmt: skip
@click.option(
    "--witness", type=click.Path(dir_okay=False, path_type=Path),
    help="A file elsewhere that is told what the ledger has come to: dpsql budget verify --witness finds an old one.",
)  # fmt: skip
@click.option(
    "--witness-command", metavar="COMMAND",
    help="A program, with arguments, that gets the same on its standard input, a line at a time. No shell.",
)  # fmt: skip
@click.option(
    # At most as many as the turns that one name has to log in from one address: each process has one of them at least.
    "--workers", type=click.IntRange(1, 4), default=1, show_default=True,
    help="How many processes serve: each takes a core. Limits and cancels hold over all of them together.",
)  # fmt: skip
@click.option("--one-of", hidden=True, help="Which of the processes of --workers this is: for dpsql itself.")
@pass_settings
def serve(
    settings: CommandSettings, policies: tuple[Path, ...], host: str, port: int, certificate: Path | None,
    key: Path | None, max_connections: int, idle: float, grace: float, metrics: tuple[str, int] | None,
    metrics_token: Path | None, proxies: tuple[Network, ...], witness: Path | None, witness_command: str | None,
    workers: int, one_of: str | None, web: tuple[str, int] | None,
) -> None:  # fmt: skip
    """Serve the policy to analysts over Postgres' protocol, until SIGTERM or Ctrl-C.

    Who may connect is in the policy: dpsql user add NAME prints the line to write. SIGHUP reads the certificate,
    its key and the policy anew. The log goes to standard error, one JSON object a line.

    \b
      dpsql serve
      dpsql serve -P campus.toml -P clinic.toml
      psql -h localhost -p 5433 -U alice campus
    """
    from ..policy import load_policy
    from ..server import CannotListen, Options
    from ..server.processes import OneOf

    options = Options(
        host, port, certificate, key, max_connections=max_connections, idle_seconds=idle, grace_seconds=grace,
        metrics=metrics, metrics_token=metrics_token, trusted_proxies=proxies,
        witness=witness, witness_command=_words(witness_command),
    )  # fmt: skip
    if witness is not None and witness_command is not None:
        raise click.UsageError("--witness is a file, --witness-command a program: give one of them.")
    if metrics is None and metrics_token is not None:
        raise click.UsageError("--metrics-token goes with --metrics.")
    if metrics is not None and find_spec("prometheus_client") is None:
        raise click.UsageError('--metrics takes an optional part: pip install "dpsql[metrics]".')
    loaded = [load_policy(path) for path in _policies(settings, policies)]

    def announce(port: int) -> None:
        for policy in loaded if sys.stderr.isatty() else ():
            first = next(
                (name for name, one in policy.analysts.items() if policy.server.auth or one.password), "NAME"
            )
            tell(f"Analysts connect with: {psql_line(host, port, first, policy.path.stem)}")

    if web is not None and any(policy.server.auth is not None for policy in loaded):
        raise click.UsageError("--web takes passwords that are in the policy; [server] has auth.")
    if web is not None and (workers != 1 or one_of is not None):
        raise click.UsageError("--web goes with one worker: serve the studio from a server of its own.")
    if one_of is not None:
        run_server(loaded, replace(options, one_of=OneOf.parse(one_of)), _tell_parent)
    elif workers == 1:
        run_server(loaded, options, announce, web)
    else:
        from .serve_workers import run_workers

        try:
            run_workers(workers, host, port, announce)
        except CannotListen as error:
            raise click.UsageError(_why_not(error.host, error.port, error.reason)) from None


def _tell_parent(port: int) -> None:
    """Say to the parent that connections are let in."""
    os.write(1, b"%d\n" % port)


def _policies(settings: CommandSettings, own: Sequence[Path]) -> Sequence[Path]:
    """Return the policies to serve: those named here, behind one that was named before the command."""
    parent = click.get_current_context().parent
    source = None if parent is None else parent.get_parameter_source("policy_path")
    if source is ParameterSource.COMMANDLINE or not own:
        return (settings.policy_path, *own)
    return own


_USUAL_LOOKS = (700, 10, 10)
"""Of the collector of garbage: short ones and often, as statements wait for each."""


def run_server(
    policies: Sequence[Policy],
    options: Options,
    announce: Callable[[int], None],
    web: tuple[str, int] | None = None,
) -> None:
    """Serve until told to stop; `announce` is called with the port before the log begins. `web`: the studio's address.

    Raises what the owner has to mend: PolicyError, LedgerError, EngineFailure, click.UsageError.
    """
    from ..server import CannotListen, Server

    try:
        server = Server(policies, options)
        beside = None if web is None else _web(server, web)
    except ValueError as error:
        raise click.UsageError(f"{error}. See --certificate and --key.") from None
    gc.collect()
    gc.freeze()  # the program itself is no garbage, and takes a tenth of a second to look through
    gc.set_threshold(*_USUAL_LOOKS)
    try:
        asyncio.run(server.run(announce, beside))
    except CannotListen as error:
        raise click.UsageError(_why_not(error.host, error.port, error.reason)) from None
    finally:
        gc.unfreeze()  # what ends with the program is told so by the collector
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second Ctrl-C ends what is left, without a traceback


def _web(server: Server, address: tuple[str, int]) -> Beside:
    """Return what opens the studio beside a server. Raises ValueError: beyond this machine it takes TLS."""
    from ..server.channel import is_loopback
    from ..studio.web import web_door

    if not is_loopback(address[0]) and server.encryption is None:
        raise ValueError(f"the studio on {address[0]} can be reached from other machines, which takes TLS")

    def told(link: str) -> None:
        if sys.stderr.isatty():
            tell(f"Analysts log in to the studio at: {link}")

    return lambda server, loop: web_door(address, server, loop, told)


def psql_line(host: str, port: int, user: str, database: str) -> str:
    """Return the command of a shell that connects an analyst."""
    words = [
        "psql",
        "-h",
        "localhost" if host in _EVERYWHERE else host,
        "-p",
        str(port),
        "-U",
        user,
        database,
    ]
    return terminal_text(shlex.join(words))


def _address(given: str | None) -> tuple[str, int] | None:
    """Return host and port of what is given as [HOST:]PORT, an IPv6 address in brackets."""
    if given is None:
        return None
    host, _, port = given.rpartition(":")
    if not (port.isascii() and port.isdecimal() and int(port) <= 65535):
        raise click.BadParameter(f"{given} is no address: write PORT or HOST:PORT.")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


def _words(command: str | None) -> tuple[str, ...]:
    """Return a command's program and arguments, as a shell would split them."""
    if command is None:
        return ()
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise click.UsageError(f"--witness-command: {error}.") from None
    if not words:
        raise click.UsageError("--witness-command names no program.")
    return words


def _networks(given: Sequence[str]) -> tuple[Network, ...]:
    try:
        return tuple(ipaddress.ip_network(one) for one in given)
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from None


def _why_not(host: str, port: int, error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return f"Cannot listen on {host}: this is no address of this machine."
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} is taken: another program listens there. Stop it, or take another with --port."
    return f"Cannot listen on {host}, port {port}: {os.strerror(error.errno or 0)}."

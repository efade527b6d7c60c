"""What lets people in: `dpsql serve`, for psql and every other client of Postgres, `dpsql user`, analysts' passwords
for it, and `dpsql studio`, SQL and its price while one types, in a page of this machine, or the owner's report, as a
file.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import ipaddress
import json
import os
import re
import shlex
import signal
import socket
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..errors import PolicyError
from ..words import terminal_text
from .faults import tell
from .owner import replace_file, write_private
from .terminal import CommandSettings, decimal_text, json_option, pass_settings, wants_json

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ..policy import Policy
    from ..server import Options, Server
    from ..server.channel import Network

    Beside = Callable[[Server, asyncio.AbstractEventLoop], AbstractContextManager[object]]
    from types import FrameType

    from ..engine.dataset import Dataset
    from ..studio.desk import Desk
    from ..studio.server import StudioServer


# --- the server -------------------------------------------------------------------------------------------


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


# --- who may connect --------------------------------------------------------------------------------------


@click.group()
def user() -> None:
    """Passwords of the analysts who may connect to dpsql serve."""


@user.command()
@click.argument("name")
@click.option(
    "--write", "writes", is_flag=True, help="Write the line into the policy, in place of printing it."
)
@click.option(
    "--epsilon",
    type=click.FloatRange(0, min_open=True),
    help="With --write, the cap of an analyst who is new there.",
)
@pass_settings
def add(settings: CommandSettings, name: str, writes: bool, epsilon: float | None) -> None:
    """Ask for a password and print the line that lets NAME connect.

    The line goes into the policy, under [analysts.NAME], by your own hand or with --write, which changes nothing else.
    It holds a verifier, from which the password cannot be read; keep it secret all the same, and the policy for its
    owner alone (chmod 600). Not on a terminal, the password is the first line of standard input.
    """
    from ..pgwire import make_verifier
    from ..policy.section import quote_key

    if not name.strip() or not name.isprintable():
        raise click.UsageError("NAME is a name: letters, digits, blanks and signs.")
    if epsilon is not None and not writes:
        raise click.UsageError("--epsilon goes with --write.")
    before = settings.policy_path.read_text("utf-8") if writes and _can_take(settings, name, epsilon) else ""
    if sys.stdin.isatty():
        password = str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise click.UsageError("There is no password: run this at a terminal, or send it on standard input.")
    line = f'password = "{make_verifier(password).text()}"'
    if not writes:
        tell(f"Write this into the policy, below [analysts.{quote_key(name)}] and its epsilon:")
        click.echo(line)
        return
    _write(settings.policy_path, before, _with_password(before, name, line, epsilon))
    click.echo(f"{terminal_text(name)} can connect. A running server reads it at SIGHUP.")


def _can_take(settings: CommandSettings, name: str, epsilon: float | None) -> bool:
    """Say True where the policy can take a password of a name. Raises click.UsageError, PolicyError."""
    analyst = settings.policy().analysts.get(name)
    shown = terminal_text(name)
    if analyst is None and epsilon is None:
        raise click.UsageError(f"The policy does not name {shown}. Say the cap too: --epsilon 0.5")
    if analyst is not None and analyst.password is not None:
        raise click.UsageError(f"{shown} has a password. Take it out first: dpsql user remove {shown}")
    if analyst is not None and epsilon is not None:
        raise click.UsageError(
            f"{shown} has a cap of {decimal_text(analyst.epsilon)}, which the policy says."
        )
    return True


def _with_password(text: str, name: str, line: str, epsilon: float | None) -> str:
    """Return a policy's text with an analyst's password, and with all else in place, comments too.

    Raises PolicyError where the analyst's section does not begin with a line of its own.
    """
    from ..policy.section import quote_key

    added = tomllib.loads(line)
    wanted: dict[str, Any] = tomllib.loads(text)
    own = wanted.setdefault("analysts", {}).setdefault(name, {})
    own.update(added)
    if epsilon is not None:
        own["epsilon"] = epsilon
        section = f"[analysts.{quote_key(name)}]\nepsilon = {epsilon!r}\n{line}\n"
        candidates = [f"{text.rstrip()}\n\n{section}"]
    else:
        heads = re.finditer(r"^[ \t]*\[.*\][^\n]*(\n|\Z)", text, re.MULTILINE)
        candidates = [f"{text[: head.end()].rstrip()}\n{line}\n{text[head.end() :]}" for head in heads]
    for found in candidates:
        with suppress(tomllib.TOMLDecodeError):
            if tomllib.loads(found) == wanted:
                return found
    raise PolicyError(
        f"analysts.{name} has no section of its own in the policy", hint=f"write it there by hand: {line}"
    )


def _write(path: Path, before: str, after: str) -> None:
    """Put a policy's new text in its place. Raises PolicyError: it means nothing, or the file was changed meanwhile."""
    from ..policy import parse_policy

    parse_policy(after, path)
    if path.read_text("utf-8") != before:
        raise PolicyError(f"{path.name} was changed meanwhile", hint="ask again")
    replace_file(path, after)


@user.command("list")
@json_option
@pass_settings
def list_users(settings: CommandSettings) -> None:
    """List the analysts that the policy names: who may connect, and the cap each has."""
    analysts = settings.policy().analysts
    for name, analyst in analysts.items():
        if wants_json():
            body = {
                "name": name,
                "epsilon": float(analyst.epsilon),
                "may_connect": analyst.password is not None,
            }
            click.echo(json.dumps(body))
        else:
            connects = "may connect" if analyst.password is not None else "has no password, cannot connect"
            click.echo(f"{terminal_text(name)}  epsilon {decimal_text(analyst.epsilon)}  {connects}")
    if not analysts:
        tell("The policy names no analyst: dpsql user add NAME prints what to write.")


@user.command()
@click.argument("name")
@pass_settings
def remove(settings: CommandSettings, name: str) -> None:
    """Take the password of NAME out of the policy: they cannot connect any more.

    A running server knows it from its next SIGHUP on, and ends their connections then. Their section and its cap stay,
    since what they spent stays spent.
    """
    path = settings.policy_path
    analyst = settings.policy().analysts.get(name)
    if analyst is None or analyst.password is None:
        raise click.UsageError(
            f"The policy has no password of {terminal_text(name)}; dpsql user list shows who has one."
        )
    text = path.read_text("utf-8")
    replace_file(path, _without_password(text, name))
    click.echo(f"{terminal_text(name)} cannot connect any more. A running server reads it at SIGHUP.")


def _without_password(text: str, name: str) -> str:
    """Return a policy's text without the line of an analyst's password, and with all else in place.

    A line is taken out only if what remains means what was there before without the password. Raises PolicyError where
    the password does not stand in a line of its own.
    """
    wanted: dict[str, Any] = tomllib.loads(text)
    del wanted["analysts"][name]["password"]
    for found in re.finditer(r"^.*password.*\n?", text, re.MULTILINE):
        rest = text[: found.start()] + text[found.end() :]
        try:
            if tomllib.loads(rest) == wanted:
                return rest
        except tomllib.TOMLDecodeError:
            continue
    raise PolicyError(
        f"the password of {name} does not stand in a line of its own",
        hint="take it out of the policy by hand",
    )


# --- the page of this machine -----------------------------------------------------------------------------


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default="a free one",
    help="The port to listen on.",
)
@click.option(
    "--also",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="Another policy file, to be chosen in the page; may be given several times.",
)
@click.option(
    "--export",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the owner's report to FILE, complete in itself, in place of serving.",
)
@pass_settings
def studio(settings: CommandSettings, port: int, also: tuple[Path, ...], file: Path | None) -> None:
    """Write SQL in a page that says, while you type, what it would cost and how far off it would be.

    Serves this machine's browsers, behind the one-time link that it prints, until Ctrl-C. Prices are free, and while
    you type no row is read; Ctrl+Enter runs the statement and charges it. Answers are tables and charts with their
    error bars. The owner also sees what is spent, by whom and on what, and tries another policy.

    \b
      dpsql studio
      dpsql -P campus.toml --analyst ada studio --port 8040
      dpsql studio --also clinic.toml
      dpsql studio --export report.html
    """
    from ..engine.dataset import Dataset

    if also and file is not None:
        raise click.UsageError("A report is of one policy: leave --also out.")
    with ExitStack() as stack:
        datasets = [stack.enter_context(closing(Dataset.open(one))) for one in (settings.policy_path, *also)]
        if file is not None:
            _export(file, datasets[0])
        else:
            _serve(port, datasets, settings.analyst)


def _export(file: Path, dataset: Dataset) -> None:
    """Write the report, for its owner's eyes alone: it has analysts' statements in it."""
    from ..studio.report import report_of

    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        write_private(draft, report_of(dataset))
        draft.replace(file)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise click.UsageError(f"{file} cannot be written: {error.strerror}.") from None
    click.echo(f"Written to {terminal_text(str(file))}: one file, complete in itself.")


def _serve(port: int, datasets: Sequence[Dataset], analyst: str) -> None:
    """Serve until Ctrl-C or SIGTERM. Raises click.UsageError: the port is taken."""
    from ..studio.desk import Desk

    with ExitStack() as stack:
        desks = [stack.enter_context(closing(Desk(one, analyst))) for one in datasets]
        for one in datasets:
            one.backend.close_idle()  # while somebody thinks, whoever loads data may
        server = _server(port, desks)
        with _serving(server):
            click.echo(server.door.link)
            tell("Open it on this machine: the link opens once. Ctrl-C ends it.")


def _server(port: int, desks: Sequence[Desk]) -> StudioServer:
    """Return the server. Raises click.UsageError: the port is taken."""
    from ..studio.server import StudioServer

    try:
        return StudioServer(port, *desks)
    except OSError as error:
        why = "is taken" if error.errno == errno.EADDRINUSE else os.strerror(error.errno or 0)
        raise click.UsageError(f"Port {port}: {why}. Take another with --port.") from None


@contextmanager
def _serving(server: StudioServer) -> Iterator[None]:
    """Serve behind the block, and after it until Ctrl-C or SIGTERM; then close the server."""
    stopped = threading.Event()

    def stop(_: int, __: FrameType | None) -> None:
        stopped.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
        stopped.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        server.shutdown()
        server.server_close()
        thread.join()

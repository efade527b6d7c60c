"""`dpsql studio`: SQL and its price while one types, in a page of this machine; or the owner's report, as a file."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..words import terminal_text
from .faults import tell
from .owner import write_private
from .settings import CommandSettings, pass_settings

if TYPE_CHECKING:
    from types import FrameType

    from ..engine.dataset import Dataset
    from ..studio.desk import Desk
    from ..studio.server import StudioServer


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

"""`dpsql page`: the owner's page, served on this machine or written to a file."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .faults import tell
from .owner import write_private
from .settings import CommandSettings, pass_settings
from .terminal import terminal_text

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["page", "serving"]


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default="a free one",
    help="The port to listen on.",
)
@click.option(
    "--export",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the page to FILE, complete in itself, in place of serving it.",
)
@pass_settings
def page(settings: CommandSettings, port: int, file: Path | None) -> None:
    """Show what is spent, by whom and on what, the policy in sentences, and what other settings would do.

    Serves one page to this machine's browsers, behind the token in the link that it prints, until Ctrl-C. Everything
    comes from the ledger, the stored releases and the policy: no row is read, and nothing is charged.

    \b
      dpsql page
      dpsql page --export campus.html
    """
    from ..engine.dataset import Dataset
    from ..studio.facts import bench_statements, facts_of
    from .owner_page.write import write_page

    with closing(Dataset.open(settings.policy_path)) as dataset:
        bench = bench_statements(dataset)
        dataset.backend.close_idle()  # the database is not asked again: whoever loads data may

        def write() -> str:
            return write_page(facts_of(dataset, bench))

        if file is not None:
            _export(file, write())
        else:
            _serve(port, write)


def _export(file: Path, content: str) -> None:
    """Write the page, for its owner's eyes alone: it has analysts' statements in it."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        write_private(draft, content)
        draft.replace(file)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise click.UsageError(f"{file} cannot be written: {error.strerror}.") from None
    click.echo(f"Written to {terminal_text(str(file))}: one file, complete in itself.")


def _serve(port: int, write: Callable[[], str]) -> None:
    """Serve until Ctrl-C or SIGTERM. Raises click.UsageError: the port is taken."""
    from .owner_page.server import PageServer

    try:
        server = PageServer(port, write)
    except OSError as error:
        why = "is taken" if error.errno == errno.EADDRINUSE else os.strerror(error.errno or 0)
        raise click.UsageError(f"Port {port}: {why}. Take another with --port.") from None
    with serving(server):
        click.echo(server.link)
        tell("Open it on this machine; whoever has the link sees the page. Ctrl-C ends it.")


@contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[None]:
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

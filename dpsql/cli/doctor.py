"""`dpsql doctor`: what of an installation is not as it should be, in one screen; and what is installed.

House rules:

1. Whatever is broken, each other thing is looked at, and a look that fails is a line of the screen: no traceback.
2. A look asks for no row of anybody, changes nothing but what each opening of a ledger puts in order, and ends: no
   server keeps it waiting for longer than `_LONGEST_SECONDS`.

What is installed beside dpsql, as a software bill of materials: CycloneDX 1.6, in JSON, with licences.

It is made of what the installer has recorded of each package in this environment. Its own libraries make such bills of
lock files and need a dozen packages for it, which would be in every bill then.
"""

from __future__ import annotations

import glob
import json
import os
import platform
import re
import shutil
import sqlite3
import ssl
import stat
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from enum import Enum
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import DpsqlError, EngineFailure, LedgerMissing
from ..records import dataclass
from ..regex import regex
from ..waits import Stop, is_told, until
from ..words import terminal_text
from .check import missing_or_old, untested
from .terminal import CommandSettings, json_option, pass_settings, wants_json

if TYPE_CHECKING:
    from ..policy import Policy

# --- what is installed beside dpsql, as a software bill of materials ----------------------------------------


_NAME = regex(r"[\w.-]+")
_CLASSIFIER = "License :: "
_LONGEST_NAME = 80
"""Characters of a field "License" that is a name; longer ones are whole texts."""


def bill_of_materials() -> dict[str, Any]:
    """Return the bill: every package of this environment with its licence, what each depends on, and what Python is
    built with.
    """
    found = {_normal(one.metadata["Name"]): one for one in metadata.distributions() if one.metadata["Name"]}
    parts = {name: _component(name, one) for name, one in sorted(found.items())}
    own = parts.pop("dpsql", {"type": "application", "bom-ref": "dpsql", "name": "dpsql"})
    own["type"] = "application"
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid4()}",
        "version": 1,
        "metadata": {"timestamp": datetime.now(UTC).isoformat(timespec="seconds"), "component": own},
        "components": [*parts.values(), *_built_in()],
        "dependencies": [
            {"ref": _reference(name, one), "dependsOn": sorted(set(_needs(one, found)))}
            for name, one in sorted(found.items())
        ],
    }


def _component(name: str, one: metadata.Distribution) -> dict[str, Any]:
    reference = _reference(name, one)
    body: dict[str, Any] = {"type": "library", "bom-ref": reference, "name": one.metadata["Name"]}
    body |= {"version": one.version, "purl": reference}
    if licences := _licences(one):
        body["licenses"] = licences
    return body


def _licences(one: metadata.Distribution) -> list[dict[str, Any]]:
    """Return a package's licences as it states them: an SPDX expression, else names."""
    if expression := _field(one, "License-Expression"):
        return [{"expression": expression}]
    classified = [
        text.removeprefix(_CLASSIFIER).removeprefix("OSI Approved :: ")
        for text in one.metadata.get_all("Classifier") or ()
        if text.startswith(_CLASSIFIER) and text != f"{_CLASSIFIER}OSI Approved"
    ]
    stated = " ".join(_field(one, "License").split())
    names = classified or ([stated] if stated and len(stated) <= _LONGEST_NAME else [])
    return [{"license": {"name": name}} for name in dict.fromkeys(names)]


def _field(one: metadata.Distribution, name: str) -> str:
    return (one.metadata[name] or "") if name in one.metadata else ""


def _needs(one: metadata.Distribution, found: dict[str, metadata.Distribution]) -> Iterator[str]:
    """Yield the references of what a package requires, as far as it is here: optional parts count if they are."""
    for requirement in one.requires or ():
        match = _NAME.match(requirement)
        name = _normal(match[0]) if match else ""
        if name in found and found[name] is not one:
            yield _reference(name, found[name])


def _built_in() -> Iterator[dict[str, Any]]:
    """Yield what is no package: Python, and the libraries that it was built with and that dpsql uses."""
    openssl = re.match(r"(\S+) (\S+)", ssl.OPENSSL_VERSION)
    for kind, name, version in (
        ("platform", platform.python_implementation(), platform.python_version()),
        ("library", "SQLite", sqlite3.sqlite_version),
        ("library", *(openssl.groups() if openssl else ("OpenSSL", ssl.OPENSSL_VERSION))),
    ):
        yield {"type": kind, "bom-ref": f"built-in:{name}@{version}", "name": name, "version": version}


def _reference(name: str, one: metadata.Distribution) -> str:
    """Return a package's URL, by which a bill's readers know it."""
    return f"pkg:pypi/{name}@{one.version}"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


# --- `dpsql doctor`: what of an installation is not as it should be, in one screen; and what is installed ---


_LONGEST_SECONDS = 20.0
_MIB = 2**20
_LEAST_MIB, _FEW_MIB = 50, 500
"""Free on a ledger's disk: below the first it is wrong, below the second worth a word."""
_ENDS_SOON = timedelta(days=14)
_SHOWN = 3
"""Sentences of one thing; the others are counted."""


class State(Enum):
    """How a thing is found: problems alone make the exit code."""

    OK = "ok"
    LEFT_OUT = "-"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Look:
    """What was found of one thing."""

    state: State
    said: str


Looks = Iterator[Look]


@dataclass(slots=True)
class Installation:
    """What is looked at, and what earlier looks have found for later ones."""

    path: Path
    certificate: Path | None
    key: Path | None
    policy: Policy | None = None
    moment: tuple[datetime, str] | None = None
    """The ledger's last one, and how the clock differs from it in a way that matters."""


@click.command()
@click.option("--certificate", type=click.Path(path_type=Path), help="The server's certificate, to look at.")
@click.option("--key", type=click.Path(path_type=Path), help="Its private key.")
@click.option(
    "--sbom", is_flag=True, help="Print what is installed, with its licences, as CycloneDX in JSON; no look."
)
@json_option
@pass_settings
def doctor(settings: CommandSettings, certificate: Path | None, key: Path | None, sbom: bool) -> None:
    """Say in one screen what of this installation is not as it should be.

    Looks at the versions of what dpsql is built on, the policy and who can read it, the database and whether the policy
    fits it, the ledger with its log and who can read them, the clock, the disks, and with --certificate and --key at
    the server's TLS. Changes nothing, and reads no row. What a policy says of each table: dpsql check.

    Ends with exit code 0 where nothing has to be mended, warnings or not; else with that of the first problem: 5 the
    installation or the policy, 6 the database, 7 the ledger.
    """
    if sbom:
        click.echo(json.dumps(bill_of_materials(), indent=2))
        return
    installation = Installation(settings.policy_path, certificate, key)
    found: list[tuple[str, Look]] = []
    code = 0
    for name, problem_code, look in _LOOKS:
        looks = _told(look, installation)
        found += [(name, one) for one in looks]
        if not code and any(one.state is State.PROBLEM for one in looks):
            code = problem_code
    _show(found)
    click.get_current_context().exit(code)


def _show(found: list[tuple[str, Look]]) -> None:
    if wants_json():
        for name, one in found:
            click.echo(json.dumps({"of": name, "state": one.state.value, "said": one.said}))
        return
    for name, one in found:
        click.echo(f"{one.state.value:<9}{name:<17}{terminal_text(one.said)}")


def _told(look: Callable[[Installation], Looks], installation: Installation) -> list[Look]:
    """Return what a look finds; one that fails is told as a problem, by our own words or by its kind alone."""
    found: list[Look] = []
    with until(Stop.after(_LONGEST_SECONDS)):
        try:
            found.extend(look(installation))
        except DpsqlError as error:
            found.append(Look(State.PROBLEM, _said(error)))
        except OSError as error:
            said = error.strerror or type(error).__name__
            found.append(Look(State.PROBLEM, f"cannot be looked at: {said}"))
        except Exception as error:  # noqa: BLE001  # whatever is broken is what this command is for
            found.append(Look(State.PROBLEM, f"cannot be looked at: {type(error).__name__}"))
    return found


def _said(error: DpsqlError) -> str:
    if is_told():
        return f"does not answer within {_LONGEST_SECONDS:g} seconds"
    if isinstance(error, EngineFailure) and error.detail:
        return _one_line(f"{error.message} ({error.detail})")
    return _one_line(f"{error.message}; {error.hint}" if error.hint else error.message)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _few(state: State, sentences: list[str], more: str) -> Looks:
    """Yield the first sentences; `more`: where the others are."""
    for sentence in sentences[:_SHOWN]:
        yield Look(state, _one_line(sentence))
    if len(sentences) > _SHOWN:
        yield Look(state, f"and {len(sentences) - _SHOWN} more: {more}")


def _of_policy(look: Callable[[Installation, Policy], Looks]) -> Callable[[Installation], Looks]:
    """Return a look at what a policy names, which is left out where none was read."""

    def looks(it: Installation) -> Looks:
        if it.policy is None:
            yield Look(State.LEFT_OUT, "not looked at: that takes a policy")
        else:
            yield from look(it, it.policy)

    return looks


# --- each thing ---------------------------------------------------------------------------------------------


def _versions(_: Installation) -> Looks:
    wrong, newer = list(missing_or_old()), list(untested())
    yield from _few(State.PROBLEM, wrong, "pip check")
    yield from _few(State.WARNING, [f"{one}; see dpsql/constraints.txt" for one in newer], "pip list")
    if not wrong and not newer:
        yield Look(State.OK, f"Python {platform.python_version()}, and what dpsql is built on as tested")


def _policy(it: Installation) -> Looks:
    from ..policy import is_open_to_others, load_policy

    it.policy = known = load_policy(it.path)
    said = list(_rights(known.path, known.source, may_be_read=True))
    yield from said
    if is_open_to_others(known):
        yield Look(
            State.WARNING, f"others can read {known.source}, and the verifiers of passwords in it: chmod 600"
        )
    elif not said:
        yield Look(State.OK, f"{known.source} can be read, and changed by its owner alone")


@_of_policy
def _database(it: Installation, known: Policy) -> Looks:
    from ..backends import open_backend
    from ..backends.backend import Severity
    from ..plan.views import build_catalog, view_reports
    from ..policy import check as check_policy
    from ..policy.catalog import check_access
    from .owner import read_live_schema

    live = read_live_schema(known.database, known.files)
    problems = list(view_reports(check_policy(known, live), known, live).problems)
    if not problems:
        problems = [error.message for error in check_access(known, build_catalog(known, live))]
    backend = open_backend(known.database, known.read_from, known.files, is_recorded=False)
    findings = backend.findings()
    backend.close_idle()
    problems += [one.to_text() for one in findings if one.severity is Severity.ERROR]
    warnings = [one.to_text() for one in findings if one.severity is Severity.WARNING]
    yield from _few(State.PROBLEM, problems, "dpsql check")
    yield from _few(State.WARNING, warnings, "dpsql check")
    if not problems and not warnings:
        yield Look(State.OK, f"can be read, and fits the policy: {len(live.tables)} tables")


@_of_policy
def _ledger(it: Installation, known: Policy) -> Looks:
    from ..engine.ledgers import open_ledger

    try:
        with closing(open_ledger(known, create=False)) as store:
            clock = store.status().clock
            it.moment = datetime.fromisoformat(store.moment()), clock
    except LedgerMissing:
        yield Look(
            State.PROBLEM,
            "is not there: dpsql budget create makes a new dataset's; one that was lost is restored",
        )
        return
    yield Look(State.OK, "opens, and agrees with its log")


@_of_policy
def _ledger_files(it: Installation, known: Policy) -> Looks:
    files = _files_of(known)
    if not files:
        yield Look(State.LEFT_OUT, "none are there yet")
        return
    wrong = [one for file in files for one in _rights(file, file.name, may_be_read=False)]
    yield from wrong
    if not wrong:
        yield Look(State.OK, f"{files[0].parent} has them, for their owner alone")


def _files_of(policy: Policy) -> list[Path]:
    """Return what stands on this machine of a ledger and its log: all that begins with its name, sealed parts too."""
    is_file = policy.ledger.startswith("sqlite:")
    path = Path(policy.ledger.removeprefix("sqlite:")) if is_file else policy.ledger_log
    return sorted(path.parent.glob(f"{glob.escape(path.name)}*"))


def _rights(path: Path, name: str, *, may_be_read: bool) -> Looks:
    """Yield what is wrong with who owns a file, and with what others may do to it and to its folder."""
    if path.is_symlink() and not may_be_read:
        yield Look(State.PROBLEM, f"{name} is a link: put the file itself there")
        return
    found, folder = path.stat(), path.parent.stat()
    if found.st_uid not in (0, os.geteuid()):
        yield Look(State.WARNING, f"{name} belongs to another user than the one who runs this")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        yield Look(State.PROBLEM, f"others can change {name}: chmod go-w")
    elif found.st_mode & 0o077 and not may_be_read:
        yield Look(State.WARNING, f"others can read {name}: chmod go-rwx")
    if folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX:
        yield Look(
            State.PROBLEM, f"everybody can put another file in the place of {name}: chmod o-w its folder"
        )


def _clock(it: Installation) -> Looks:
    if it.moment is None:
        yield Look(State.LEFT_OUT, "not looked at: there is no ledger that opens to compare it with")
        return
    (last, differs), now = it.moment, datetime.now(UTC)
    if differs:
        yield Look(State.PROBLEM, f"{differs}; periods go by the ledger's: dpsql budget clock")
    elif now < last:
        yield Look(State.WARNING, f"is before the ledger's last record, of {last.isoformat()}")
    else:
        yield Look(
            State.OK, f"{now.isoformat(timespec='seconds')}; the ledger's last moment is {last.isoformat()}"
        )


@_of_policy
def _disk(it: Installation, known: Policy) -> Looks:
    folder = _ledger_folder(known)
    free = shutil.disk_usage(folder).free // _MIB
    if not os.access(folder, os.W_OK | os.X_OK):
        yield Look(State.PROBLEM, f"{folder} cannot be written, and every charge is written there")
    elif free < _LEAST_MIB:
        yield Look(State.PROBLEM, f"{free:,} MiB are free in {folder}, where every charge is written")
    elif free < _FEW_MIB:
        yield Look(State.WARNING, f"{free:,} MiB are free in {folder}, where every charge is written")
    else:
        yield Look(State.OK, f"{free:,} MiB are free in {folder}")


def _ledger_folder(policy: Policy) -> Path:
    if policy.ledger.startswith("sqlite:"):
        return Path(policy.ledger.removeprefix("sqlite:")).parent
    return policy.ledger_log.parent


def _temporary(it: Installation) -> Looks:
    from ..memory import MIB, MemoryLimits

    folder = tempfile.gettempdir()
    with tempfile.TemporaryFile() as file:
        file.write(b"\0" * 4096)
    free = shutil.disk_usage(folder).free // _MIB
    known = it.policy
    server = None if known is None else known.server
    memory = None if server is None or server.memory_mib is None else server.memory_mib * MIB
    files = None if server is None or server.files_mib is None else server.files_mib * MIB
    wanted = MemoryLimits.of(memory, files).files // _MIB
    if free < wanted:
        yield Look(
            State.WARNING,
            f"{free:,} MiB are free in {folder}; a server's answers may take {wanted:,}: server.files_mib",
        )
    else:
        yield Look(State.OK, f"{free:,} MiB are free in {folder}")


def _tls(it: Installation) -> Looks:
    from ..server.channel import end_of_certificate, load_encryption

    certificate, key = it.certificate, it.key
    if certificate is None and key is None:
        yield Look(State.LEFT_OUT, "not looked at: name --certificate and --key")
        return
    try:
        encryption = load_encryption(certificate, key)
    except ValueError as error:
        yield Look(State.PROBLEM, str(error))
        return
    assert encryption is not None
    assert certificate is not None
    end = end_of_certificate(certificate, encryption)
    if end is None or end < datetime.now(UTC):
        yield Look(State.PROBLEM, "the certificate is not valid now: it has expired, or is of a time to come")
    elif end < datetime.now(UTC) + _ENDS_SOON:
        yield Look(State.WARNING, f"the certificate ends on {end:%Y-%m-%d}")
    else:
        yield Look(
            State.OK, f"certificate and key belong together; the certificate is good until {end:%Y-%m-%d}"
        )


_LOOKS: tuple[tuple[str, int, Callable[[Installation], Looks]], ...] = (
    ("versions", 5, _versions),
    ("policy", 5, _policy),
    ("database", 6, _database),
    ("ledger", 7, _ledger),
    ("its files", 7, _ledger_files),
    ("clock", 7, _clock),
    ("disk", 5, _disk),
    ("temporary files", 5, _temporary),
    ("TLS", 5, _tls),
)
"""What is looked at, each with the exit code of a problem there; later ones may need what earlier ones found."""

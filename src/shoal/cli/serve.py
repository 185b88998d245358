"""``shoal serve``: a model behind HTTP, with a page; it learns from traffic and loses nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.models import Model, build, settings_of
from shoal.cli.options import NewClusters, NewModel, NewSettings, ServiceFolder
from shoal.errors import BadInput

if TYPE_CHECKING:
    from shoal.base import Estimator

LIMITS = "Limits"
STORAGE = "Storage"


def serve(
    model_file: Annotated[
        Path | None,
        typer.Argument(metavar="[MODEL]", help="Model file saved by 'shoal fit', or the folder of a service."),
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="Start without a model and learn from traffic.")] = False,
    model: NewModel = Model.bernoulli,
    clusters: NewClusters = None,
    settings: NewSettings = None,
    folder: ServiceFolder = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; addresses other than localhost require a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 selects a free one.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, help="Number of reader processes.")] = 1,
    follow: Annotated[
        Path | None, typer.Option("--follow", help="Serve read-only from the snapshots of another service's folder.")
    ] = None,
    check: Annotated[Path | None, typer.Option("--check", help="Verify a service's folder and exit.")] = None,
    backup: Annotated[
        Path | None,
        typer.Option("--backup", help="Copy the folder to this tar file and exit; the service may be running."),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="Lines of 'write TOKEN' or 'read TOKEN'; also SHOAL_TOKEN.")
    ] = None,
    protect_reads: Annotated[bool, typer.Option("--protect-reads", help="Require a token for reading, too.")] = False,
    publish_seconds: Annotated[
        float, typer.Option(min=0.01, help="Maximum age of the state visible to readers.", rich_help_panel=STORAGE)
    ] = 1.0,
    snapshot_seconds: Annotated[
        float, typer.Option(min=0.1, help="Maximum age of the newest snapshot on disk.", rich_help_panel=STORAGE)
    ] = 60.0,
    journal_mb: Annotated[
        float, typer.Option(min=1, help="Size of the journal at which a snapshot is saved.", rich_help_panel=STORAGE)
    ] = 512.0,
    reserve_mb: Annotated[
        float, typer.Option(min=0, help="Free disk space below which requests are rejected.", rich_help_panel=STORAGE)
    ] = 64.0,
    batch_items: Annotated[
        int, typer.Option(min=1, help="Maximum number of items learned at once.", rich_help_panel=STORAGE)
    ] = 4096,
    max_body_mb: Annotated[
        float, typer.Option(help="Maximum size of a request body (413).", rich_help_panel=LIMITS)
    ] = 16.0,
    max_bulk_mb: Annotated[
        float, typer.Option(help="Maximum size of a bulk body (413).", rich_help_panel=LIMITS)
    ] = 1024.0,
    max_items: Annotated[
        int, typer.Option(help="Maximum number of items per request (413).", rich_help_panel=LIMITS)
    ] = 10_000,
    body_seconds: Annotated[
        float, typer.Option(help="Maximum time to receive a body (408).", rich_help_panel=LIMITS)
    ] = 30.0,
    max_requests: Annotated[
        int, typer.Option(help="Maximum number of concurrent requests (429).", rich_help_panel=LIMITS)
    ] = 200,
    max_streams: Annotated[
        int, typer.Option(help="Maximum number of event streams (429).", rich_help_panel=LIMITS)
    ] = 100,
    queue_requests: Annotated[
        int, typer.Option(help="Maximum number of requests waiting to be written (429).", rich_help_panel=LIMITS)
    ] = 2000,
    queue_items: Annotated[
        int, typer.Option(help="Maximum number of items waiting to be learned (429).", rich_help_panel=LIMITS)
    ] = 200_000,
    keep_journal: Annotated[
        bool, typer.Option("--keep-journal", help="Never trim the journal, for audits.", rich_help_panel=STORAGE)
    ] = False,
    log_level: Annotated[str, typer.Option(help="Log level: debug, info, warning or error.")] = "info",
) -> None:
    """Serve MODEL over HTTP, with a web page; requests are written to disk before they are acknowledged.

    Examples: shoal serve ads.shoal; shoal serve --new --model bernoulli --dir ads
    """
    from shoal.service import Limits, Tokens

    if check is not None:
        _check(check)
        return
    place = follow or folder or folder_of(model_file)
    if backup is not None:
        _backup(place, backup)
        return
    limits = Limits(
        max_body_mb, max_bulk_mb, max_items, body_seconds, max_requests, max_streams, queue_requests, queue_items
    )
    tokens = Tokens.from_surroundings(token_file, protect_reads=protect_reads)
    storage = {
        "publish_seconds": publish_seconds,
        "snapshot_seconds": snapshot_seconds if workers == 1 else min(snapshot_seconds, max(5.0, publish_seconds)),
        "journal_mb": journal_mb,
        "reserve_mb": reserve_mb,
        "batch_items": batch_items,
        "trim": not keep_journal,
    }
    start = None if follow else model_to_start(model_file, place, new, model, clusters, settings or [])
    _run(place, start, follow is not None, host, port, workers, limits, tokens, storage, log_level)


def _run(
    place: Path, start: Estimator | None, follow: bool, host: str, port: int, workers: int, limits: Any, tokens: Any,
    storage: dict[str, Any], log_level: str,
) -> None:  # fmt: skip
    from shoal.service import Service, create_app
    from shoal.service.app import LOCAL_HOSTS
    from shoal.service.logs import set_up_logs
    from shoal.service.model_description import description_of
    from shoal.service.server import configured, listen, require_token_beyond_localhost, run
    from shoal.service.workers import ReaderPlan, serve_with_readers, socket_path

    if log_level not in ("debug", "info", "warning", "error"):
        raise BadInput(f"--log-level {log_level}: choose debug, info, warning or error.")
    require_token_beyond_localhost(host, tokens)
    set_up_logs(None if follow else place, log_level)
    listening = listen(host, port)
    hosts = None if host.strip("[]") in {name.strip("[]") for name in LOCAL_HOSTS} else ()
    service = Service(place, start, follow=follow, limits=limits, tokens=tokens, **({} if follow else storage))
    _announce(service, f"http://{host}:{listening.getsockname()[1]}")
    app = create_app(service, hosts=hosts)
    if workers == 1 or follow:
        run(configured(app), listening)
    else:
        begun = service.view.state.is_fitted
        plan = ReaderPlan(
            place, socket_path(place), limits, tokens, hosts, follow_seconds=min(0.1, storage["publish_seconds"]),
            log_level=log_level, new_model=None if begun else description_of(service.view.model),
        )  # fmt: skip
        serve_with_readers(app, plan, listening, workers)


def _announce(service: Any, url: str) -> None:
    """On standard error: where it is, what was repaired, and every limit."""
    stats = service.stats()
    lines = [
        f"serving {stats['model']} with {stats['clusters']:,} clusters from {service.folder} at {url}",
        f"limits: {service.limits}",
    ]
    if service.tokens:
        lines.append("a token is needed to write" + (" and to read" if service.tokens.protect_reads else ""))
    if stats.get("replayed_items"):
        lines.append(f"{stats['replayed_items']:,} items were learned again from the journal")
    if stats.get("repair"):
        lines.append(f"the journal was damaged: {stats['repair']}")
    lines += [f"a snapshot was damaged: {trouble}" for trouble in stats.get("damaged_snapshots", [])]
    print("\n".join(f"shoal: {line}" for line in lines), file=sys.stderr, flush=True)


def folder_of(model_file: Path | None) -> Path:
    """Where a service keeps its things: the folder given, or one next to the model file."""
    if model_file is None:
        raise BadInput("give a model file, or --new with --dir, or --follow DIR. See shoal serve --help.")
    return model_file if model_file.is_dir() else model_file.with_name(model_file.name + ".service")


def model_to_start(
    model_file: Path | None, place: Path, new: bool, model: Model, clusters: int | None, settings: list[str]
) -> Estimator | None:
    """What a new folder starts from; None where the folder already holds a service."""
    from shoal import load

    if (place / "journal.sqlite").exists():
        if model_file is not None and model_file.is_file():
            _require_same(model_file, place)
        return None
    if new:
        wanted: dict[str, Any] = {"random_state": 0} | settings_of(settings)
        if clusters is not None:
            wanted["n_clusters"] = clusters
        return build(model, wanted)
    if model_file is None or model_file.is_dir():
        raise BadInput(f"{place} holds no service yet. Give a model file, or --new to start from nothing.")
    loaded: Estimator = load(model_file)
    place.mkdir(parents=True, exist_ok=True)
    (place / "service.json").write_text(_origin(model_file), encoding="utf-8")
    return loaded


def _origin(model_file: Path) -> str:
    """Which file a folder was started from."""
    from shoal.store import describe

    saved = (describe(model_file)["provenance"] or {}).get("saved")
    return json.dumps({"saved": saved, "bytes": model_file.stat().st_size})


def _require_same(model_file: Path, place: Path) -> None:
    """Refuse to go on with another model than the folder was started from."""
    kept = place / "service.json"
    if kept.exists() and kept.read_text(encoding="utf-8") != _origin(model_file):
        raise BadInput(
            f"{place} was started from another {model_file.name} than the one there now. To go on with what it has "
            f"learned: shoal serve {place}. To start over: --dir with a new folder."
        )


def _check(place: Path) -> None:
    from shoal.service.folder import check, facts_line

    findings = check(place)
    print(facts_line(findings))
    if not findings.is_whole:
        raise typer.Exit(1)


def _backup(place: Path, file: Path) -> None:
    from shoal.service.folder import backup

    n_bytes = backup(place, file)
    print(f"{file}: {n_bytes / 1e6:,.1f} MB. To restore: mkdir NEW; tar -xf {file} -C NEW; shoal serve NEW")

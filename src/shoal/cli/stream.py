"""``shoal stream``: lines in, assignments and events out; the same journal as the service, without HTTP."""

from __future__ import annotations

import contextlib
import json
import queue
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.models import Model
from shoal.cli.options import NewClusters, NewModel, NewSettings, ServiceFolder
from shoal.cli.serve import folder_of, model_to_start
from shoal.errors import BadInput

if TYPE_CHECKING:
    from shoal.service import Service


def stream(
    model_file: Annotated[
        Path | None,
        typer.Argument(metavar="[MODEL]", help="Model file, or the folder of an earlier stream."),
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="Start without a model and learn from the lines.")] = False,
    model: NewModel = Model.stream,
    clusters: NewClusters = None,
    settings: NewSettings = None,
    folder: ServiceFolder = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="The input is the same as before: skip lines already learned.")
    ] = False,
    batch_lines: Annotated[int, typer.Option(min=1, help="Maximum number of lines learned at once.")] = 500,
    reserve_mb: Annotated[float, typer.Option(min=0, help="Free disk space below which the command stops.")] = 64.0,
) -> None:
    """Learn from lines on standard input, and print the cluster of each item and the events of clusters.

    An input line is an item in JSON, as for POST /learn, or plain text. Output lines are JSON: items have "id",
    "cluster" (-1: unassigned) and "score"; events have "event" and "kind". Output is printed after it was written to
    disk.

    Example: tail -F access.log | shoal stream --new --model stream --dir access
    """
    from shoal.service import Service

    place = folder or folder_of(model_file)
    start = model_to_start(model_file, place, new, model, clusters, settings or [])
    service = Service(place, start, reserve_mb=reserve_mb, publish_seconds=0.01)
    service.writer.start()  # type: ignore[union-attr]
    try:
        lines = numbered(sys.stdin.buffer) if resume else ((None, line) for line in sys.stdin.buffer)
        items = (parsed(line, id_) for id_, line in lines if line.strip())
        learn_and_print(service, items, batch_lines)
    finally:
        service.close()


def numbered(lines: Any) -> Iterator[tuple[str | None, bytes]]:
    """Lines with the ids by which they are known when they come again."""
    return ((f"line {number}", line) for number, line in enumerate(lines, start=1))


def parsed(line: bytes, id_: str | None) -> dict[str, Any]:
    """A line as an item."""
    from pydantic import ValidationError

    from shoal.service.routes_ask import first_trouble
    from shoal.service.schemas import ItemIn

    try:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        item = json.loads(text) if text.lstrip().startswith("{") else {"text": text}
        item = ItemIn.model_validate(item).plain()
    except ValidationError as error:
        raise BadInput(f"line {text[:60]!r}: {first_trouble(error.errors())}") from None
    except ValueError as error:
        raise BadInput(f"line {text[:60]!r} is not JSON: {error}.") from None
    return item if "id" in item or id_ is None else {**item, "id": id_}


def batches_of(items: Iterator[dict[str, Any]], most: int) -> Iterator[list[dict[str, Any]]]:
    """What has come, without waiting for more: the answers to a slow input are not held back."""
    came: queue.Queue[dict[str, Any] | BaseException | None] = queue.Queue(4 * most)

    def read() -> None:
        try:
            for item in items:
                came.put(item)
            came.put(None)
        except BaseException as error:
            came.put(error)

    threading.Thread(target=read, name="lines", daemon=True).start()
    while True:
        batch = [came.get()]
        with contextlib.suppress(queue.Empty):
            while len(batch) < most and isinstance(batch[-1], dict):
                batch.append(came.get_nowait())
        end = batch[-1]
        if whole := [item for item in batch if isinstance(item, dict)]:
            yield whole
        if isinstance(end, BaseException):
            raise end
        if end is None:
            return


def learn_and_print(service: Service, items: Iterator[dict[str, Any]], batch_lines: int) -> None:
    """A batch at a time; until a new model has begun, items are kept back and printed when it has."""
    writer, last_event, unprinted = service.require_writer(), service.view.record.next_event - 1, []
    for batch in batches_of(items, batch_lines):
        receipt = service.learn(batch).result()
        unprinted += batch
        began = service.view.state.is_fitted or writer.lag_items + service.view.record.n_items >= writer.n_to_begin
        if not (began and writer.wait_for(receipt.position, 600) and service.view.state.is_fitted):
            continue
        for answer in service.view.assign(unprinted):
            print(json.dumps({name: answer[name] for name in ("id", "cluster", "score")}, ensure_ascii=False))
        unprinted = []
        for event in service.view.record.events:
            if event["event"] > last_event:
                print(json.dumps(event, ensure_ascii=False))
                last_event = event["event"]
        sys.stdout.flush()
    if unprinted:
        print(
            f"shoal: {len(unprinted)} lines are written and wait: the model begins when {writer.n_to_begin} have come.",
            file=sys.stderr,
        )

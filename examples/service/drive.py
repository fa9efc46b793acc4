"""Start the service, send it users, stop it, and ask Foretest what the new model would do: python drive.py."""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from queue import SimpleQueue

import numpy as np
import shop

import foretest as ft

HERE = Path(__file__).parent
USERS, CLIENTS = 400, 4
JOIN = """
SELECT d.*,
       [CAST(coalesce(list_contains(clicked, item), false) AS DOUBLE) FOR item IN ranking] AS slot_clicks,
       list_sum(slot_clicks) AS clicks
FROM '{log}/displays/*.parquet' AS d
LEFT JOIN (SELECT id, list(item) AS clicked FROM '{log}/clicks/*.parquet' GROUP BY id) USING (id)
"""


@contextmanager
def service(log: Path, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The service in a process of its own, on a port that is free; stopped in the end as a server is, by SIGTERM."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, HERE / "service.py", "--log", log, "--port", str(port), *options])
    try:
        while process.poll() is None and not answers(port):
            time.sleep(0.05)
        yield process, port
    finally:
        process.terminate()
        process.wait()


def answers(port: int) -> bool:
    """Does a server listen on the port by now?"""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def send_users(port: int, displays: int) -> None:
    """One request for each display, and one for each click; what a user does follows from the request's number."""
    connections: SimpleQueue[HTTPConnection] = SimpleQueue()
    for _ in range(CLIENTS):
        connections.put(HTTPConnection("127.0.0.1", port))

    def ask(method: str, path: str, body: dict[str, str] | None = None) -> bytes:
        connection = connections.get()
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            return connection.getresponse().read()
        finally:
            connections.put(connection)

    def visit(number: int) -> None:
        luck = np.random.default_rng([shop.SEED, number])
        user = int(luck.integers(USERS))
        shown = json.loads(ask("GET", f"/ranking?request=r-{number}&user={user}"))
        for item in shop.clicks(user, shown["ranking"], luck):
            ask("POST", "/click", {"id": shown["id"], "item": item})

    try:
        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(visit, range(displays)))
    finally:
        while not connections.empty():
            connections.get().close()


def joined(log: Path) -> ft.Sql:
    """Displays with their clicks, by slot and in all."""
    query = JOIN.format(log=log)
    (log / "join.sql").write_text(query)
    return ft.Sql(query)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", type=Path, default=Path("log"))
    parser.add_argument("--displays", type=int, default=20_000)
    options = parser.parse_args()
    if options.log.exists() and any(options.log.iterdir()):  # the same ids again would be displays twice
        parser.error(f"{options.log} has a log already: remove it, or name another folder with --log.")
    with service(options.log) as (_, port):
        send_users(port, options.displays)
    result = ft.OfflineTest.from_toml(HERE / "settings.toml").run(joined(options.log))
    print(result)
    print(f"The truth, which only this shop knows: {shop.true_uplift():+.1%} clicks a display.")


if __name__ == "__main__":
    main()

"""The server of `heatproof view`: a folder of runs as pages, for this machine only.

It listens on the loopback address, answers GET alone, and only to requests that name that address: a page elsewhere
cannot have it read by a name of its own. What it serves are runs that it found itself, never a path from a request.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import parse_qs, unquote, urlsplit

from heatproof.errors import BadInput, HeatproofError
from heatproof.report import is_intact, report, shown_commit
from heatproof.report.view_pages import compare_page, error_page, list_page
from heatproof.results import Results

HOST = "127.0.0.1"
DEEP = 3  # folders below the given one that are searched for runs
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; base-uri 'none'"


def runs_in(root: Path) -> dict[str, Path]:
    """The runs of a folder by their names in it, the last first; the folder itself may be one."""
    if not root.is_dir():
        raise BadInput(f"{root} is not a folder: give the folder that runs were written to, such as runs/")
    if (root / "run.json").is_file():
        return {root.resolve().name: root}
    found = [path.parent for deep in range(1, DEEP + 1) for path in root.glob("/".join(["*"] * deep) + "/run.json")]
    found.sort(key=lambda path: (-(path / "run.json").stat().st_mtime, str(path)))
    return {path.relative_to(root).as_posix(): path for path in found}


class Viewer(ThreadingHTTPServer):
    """Serves the runs of a folder; `address` is where."""

    daemon_threads = True

    def __init__(self, root: Path, port: int = 0) -> None:
        self.root = root
        runs_in(root)
        self.drawn = TemporaryDirectory(prefix="heatproof-view-")
        super().__init__((HOST, port), Handler)

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_port}/"

    def server_close(self) -> None:
        super().server_close()
        self.drawn.cleanup()

    def page(self, target: str) -> str | bytes:
        """The page of a request; `KeyError` where there is none."""
        wanted = urlsplit(target)
        runs = runs_in(self.root)
        if wanted.path == "/":
            return list_page(self.root, runs)
        if wanted.path.startswith("/report/"):
            return self._report(runs[unquote(wanted.path.removeprefix("/report/"))])
        if wanted.path == "/compare":
            chosen = parse_qs(wanted.query)
            first, second = chosen.get("first", [""])[0], chosen.get("second", [""])[0]
            return compare_page((first, second), (Results.load(runs[first]), Results.load(runs[second])))
        raise KeyError(wanted.path)

    def _report(self, path: Path) -> bytes:
        """The page that the run has, or one drawn anew, beside nothing of the run, where it is not of its results."""
        results = Results.load(path)
        kept = path / "report.html"
        if kept.is_file():
            payload = kept.read_bytes()
            if is_intact(payload) and shown_commit(payload) == results.commit:
                return payload
        target = Path(self.drawn.name) / f"{results.commit or 'report'}.html"
        return (target if target.is_file() else report(results, target)).read_bytes()


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    server: Viewer
    server_version, sys_version = "heatproof", ""

    def do_GET(self) -> None:
        status, payload = self._answer()
        self._send(status, payload, self.wfile.write)

    def do_HEAD(self) -> None:
        status, payload = self._answer()
        self._send(status, payload, lambda _: None)

    def _answer(self) -> tuple[HTTPStatus, str | bytes]:
        port = self.server.server_port
        if self.headers.get("Host") not in (f"{HOST}:{port}", f"localhost:{port}"):
            return HTTPStatus.FORBIDDEN, error_page("This server answers to its own address only.")
        try:
            return HTTPStatus.OK, self.server.page(self.path)
        except KeyError:
            return HTTPStatus.NOT_FOUND, error_page("There is no such run here.")
        except HeatproofError as error:
            return HTTPStatus.UNPROCESSABLE_ENTITY, error_page(str(error))

    def _send(self, status: HTTPStatus, payload: str | bytes, write: Callable[[bytes], object]) -> None:
        own = isinstance(payload, str)
        content = payload.encode("utf-8", "replace") if isinstance(payload, str) else payload
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        if own:  # a report brings its own
            self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        write(content)

    def log_message(self, *_: object) -> None:
        """Nothing: the terminal belongs to the command."""

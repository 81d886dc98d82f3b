"""The files of the page, which are part of the package."""

from __future__ import annotations

import hashlib
import mimetypes
from http import HTTPStatus
from pathlib import Path

from aiohttp import web

from stowage.console.serving.responses import error_response

FOLDER = Path(__file__).parents[1] / "static"
INDEX = "index.html"
_MIN_COMPRESSED = 1_400
"""Bytes; a smaller answer fits into one packet anyway."""
NO_PAGE = "this installation has no page: only /api and /stream answer"

#: Not left to the mime tables of the system.
_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".map": "application/json",
    ".mjs": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".wasm": "application/wasm",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
}


class StaticFiles:
    """Serves the files of a folder, which is listed once: no path of a request reaches the disk.

    Args:
        folder: The folder.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        files = folder.rglob("*") if folder.is_dir() else ()
        self._files = {
            path.relative_to(folder).as_posix(): path for path in files if path.is_file()
        }

    def index(self, request: web.Request) -> web.Response:
        """The page."""
        return self.file(request, INDEX, NO_PAGE)

    def file(self, request: web.Request, name: str, missing: str = "") -> web.Response:
        """A file by its path in the folder."""
        path = self._files.get(name)
        if path is None:
            return error_response(HTTPStatus.NOT_FOUND, missing or f"there is no file {name}")
        body = path.read_bytes()
        tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
        kind = _TYPES.get(path.suffix) or mimetypes.guess_type(name)[0]
        response = web.Response(
            body=body, content_type=kind or "application/octet-stream", headers=headers
        )
        if response.content_type.startswith("text/"):
            response.charset = "utf-8"
        if len(body) > _MIN_COMPRESSED and path.suffix in _TYPES:
            response.enable_compression()
        return response

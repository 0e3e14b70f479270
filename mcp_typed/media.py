"""Images and sounds that a tool returns: files or bytes, made content blocks when they are sent.

Knows content blocks; nothing of tools.
Spec: server/tools, "Image Content", "Audio Content".
"""

from __future__ import annotations

import base64
import mimetypes
import re
from pathlib import Path
from typing import Final

from mcp_core import types as t
from mcp_core.codec import JSONObject

__all__ = ["Audio", "Image"]

# What these suffixes mean here does not depend on the machine's own table of types.
_IMAGES: Final = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".gif": "gif", ".webp": "webp", ".svg": "svg+xml"}
_SOUNDS: Final = {
    ".wav": "wav",
    ".mp3": "mpeg",
    ".ogg": "ogg",
    ".flac": "flac",
    ".aac": "aac",
    ".m4a": "mp4",
}

_SUBTYPE: Final = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")


class _Media:
    """Bytes, or a file that is read when it is sent.

    `format` is what the file's suffix would be, as `png`, or the media type itself; without
    it the file's suffix says.
    """

    _family: str
    _default: str
    _suffixes: dict[str, str]

    def __init__(self, path: str | Path | None = None, data: bytes | None = None, format: str | None = None) -> None:
        if (path is None) == (data is None):
            raise ValueError(f"{type(self).__name__} takes either path or data")
        self.path: Path | None = None if path is None else Path(path)
        self.data: bytes | None = data
        self.mime_type: str = self._mime_type(format)

    def _mime_type(self, format: str | None) -> str:
        if format is not None:
            return self._of_format(format)
        if self.path is None:
            return f"{self._family}/{self._default}"
        subtype = self._suffixes.get(self.path.suffix.lower())
        if subtype is not None:
            return f"{self._family}/{subtype}"
        guessed, _ = mimetypes.guess_type(self.path.name)
        return guessed if guessed is not None and guessed.startswith(self._family) else "application/octet-stream"

    def _of_format(self, format: str) -> str:
        name = format.lower().removeprefix(f"{self._family}/").removeprefix(".")
        if _SUBTYPE.fullmatch(name) is None:
            raise ValueError(f"format must be a suffix such as {self._default!r}, or a media type; got {format!r}")
        return f"{self._family}/{self._suffixes.get(f'.{name}', name)}"

    def _content(self) -> JSONObject:
        data = self.path.read_bytes() if self.path is not None else self.data or b""
        return {"data": base64.b64encode(data).decode("ascii"), "mime_type": self.mime_type}


class Image(_Media):
    """An image to return from a tool: `Image(path="map.png")` or `Image(data=png, format="png")`."""

    _family, _default, _suffixes = "image", "png", _IMAGES

    def to_image_content(self) -> t.ImageContent:
        """Return the content block.

        Raises:
            OSError: The file cannot be read.
        """
        return t.ImageContent(**self._content())


class Audio(_Media):
    """A sound to return from a tool: `Audio(path="rain.wav")` or `Audio(data=wav, format="wav")`."""

    _family, _default, _suffixes = "audio", "wav", _SOUNDS

    def to_audio_content(self) -> t.AudioContent:
        """Return the content block.

        Raises:
            OSError: The file cannot be read.
        """
        return t.AudioContent(**self._content())

"""Exports as they come, zipped: unpacked for as long as they are read."""

from __future__ import annotations

import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from sgl_graph.analyzer.errors import ArchiveCorrupt, HostError

#: No honest export comes near; what holds more is not unpacked.
MOST_FILES, MOST_BYTES = 100_000, 4 << 30


@contextmanager
def unzipped(places: list[Path]) -> Iterator[dict[Path, Path]]:
    """Folders that hold what is in those places which are zip files; they are gone at the end.

    Args:
        places: Folders and files.

    Raises:
        ArchiveCorrupt: A zip file is damaged, or holds what no export holds.
        HostError: There is no room to unpack it.
    """
    files = [place for place in places if place.is_file() and zipfile.is_zipfile(place)]
    if not files:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="sgl-graph-") as folder:
        found = {}
        for number, file in enumerate(dict.fromkeys(files)):
            found[file] = Path(folder).resolve() / str(number)
            _unpack(file, found[file])
        yield found


def _unpack(file: Path, into: Path) -> None:
    into.mkdir()
    try:
        with zipfile.ZipFile(file) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            if len(entries) > MOST_FILES or sum(entry.file_size for entry in entries) > MOST_BYTES:
                raise ArchiveCorrupt(f"{file}: more than {MOST_FILES} files or {MOST_BYTES >> 30} GiB")
            for entry in entries:
                target = into.joinpath(*_parts(file, entry))
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as source, target.open("xb") as out:
                    shutil.copyfileobj(source, out)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ArchiveCorrupt(f"{file}: {error}") from error
    except FileExistsError as error:
        raise ArchiveCorrupt(f"{file}: it holds a name twice") from error
    except NotADirectoryError as error:
        raise ArchiveCorrupt(f"{file}: a file and a folder have the same name") from error
    except OSError as error:
        raise HostError(f"{file} cannot be unpacked into {into.parent}: {error.strerror}") from error


def _parts(file: Path, entry: zipfile.ZipInfo) -> tuple[str, ...]:
    """The parts of an entry's path, which must stay below the folder that it is unpacked to."""
    path = PurePosixPath(entry.filename)
    kind = stat.S_IFMT(entry.external_attr >> 16)
    plain = kind in (0, stat.S_IFREG) and entry.filename.isprintable() and "\\" not in entry.filename
    if not plain or path.is_absolute() or not path.parts or ".." in path.parts:
        raise ArchiveCorrupt(f"{file}: {entry.filename!r} is no plain file within it")
    return path.parts

"""A place in an object store with the methods of `pathlib.Path` that Foretest uses, and files that appear whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import total_ordering
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeAlias

from foretest.background import in_background
from foretest.errors import BadInput
from foretest.stores.addresses import is_address, normal_key, parse_address, parse_listed, refuse_credentials
from foretest.stores.faults import no_bucket, store_fault
from foretest.stores.file_systems import file_system

_CHUNK = 1 << 22  # bytes that are copied at a time


class Stat(NamedTuple):
    """What a store knows of an object, by the names that `os.stat` has."""

    st_size: int
    st_mtime_ns: int


@total_ordering
class RemotePath:
    """An address such as s3://bucket/key. What cannot be read or written is refused by a sentence (BadInput); a missing
    object is a FileNotFoundError, as it is of a local path."""

    def __init__(self, text: str) -> None:
        self.scheme, self.authority, self.key = parse_address(text)

    @classmethod
    def listed_as(cls, name: str) -> RemotePath:
        """The place of a file that a store or a table listed by this address."""
        path = cls.__new__(cls)
        path.scheme, path.authority, path.key = parse_listed(name)
        return path

    def _at(self, key: str) -> RemotePath:
        """Another place in the same bucket; a name that a store lists may have any characters."""
        other = RemotePath.__new__(RemotePath)
        other.scheme, other.authority, other.key = self.scheme, self.authority, key
        return other

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}" + (f"/{self.key}" if self.key else "")

    def __repr__(self) -> str:
        return f"RemotePath({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and str(self) == str(other)

    def __lt__(self, other: Any) -> bool:
        # as local paths are sorted: name by name
        return self.parts < other.parts if isinstance(other, RemotePath) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    def __truediv__(self, name: str) -> RemotePath:
        return self._at(normal_key(f"{self.key}/{name}"))

    # -- names --------------------------------------------------------------------------------------------------------

    @property
    def parts(self) -> tuple[str, ...]:
        """The bucket with its scheme, then the names between slashes."""
        return (f"{self.scheme}://{self.authority}", *(self.key.split("/") if self.key else ()))

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name).suffix

    @property
    def suffixes(self) -> list[str]:
        return PurePosixPath(self.name).suffixes

    @property
    def parent(self) -> RemotePath:
        return self._at(self.key.rpartition("/")[0])

    @property
    def parents(self) -> list[RemotePath]:
        names = self.key.split("/") if self.key else []
        return [self._at("/".join(names[:end])) for end in range(len(names) - 1, -1, -1)]

    def with_name(self, name: str) -> RemotePath:
        return self.parent / name

    def is_relative_to(self, other: str) -> bool:
        parts = RemotePath(other).parts
        return self.parts[: len(parts)] == parts

    def resolve(self) -> RemotePath:
        return self

    absolute = resolve

    # -- what is there ------------------------------------------------------------------------------------------------

    @property
    def file_system(self) -> Any:
        """PyArrow's file system of the bucket."""
        with self.faults_explained():
            return file_system(self.scheme, self.authority)

    @property
    def place(self) -> str:
        """The path within `file_system`."""
        bucket = self.authority.partition("@")[0]
        return f"{bucket}/{self.key}" if self.key else bucket

    @contextmanager
    def faults_explained(self, what: str = "read") -> Iterator[None]:
        """Errors of the store as one sentence; a missing object of an existing bucket stays a FileNotFoundError."""
        import pyarrow as pa

        try:
            yield
        except BadInput:
            raise
        except FileNotFoundError:
            self.refuse_missing_bucket()
            raise FileNotFoundError(2, "No such file or directory", str(self)) from None
        except (pa.ArrowException, OSError) as error:
            raise store_fault(self, error, what) from None

    def refuse_missing_bucket(self) -> None:
        """Refuse an address whose bucket is not there."""
        from pyarrow.fs import FileType

        bucket = self._at("")
        if bucket.info().type is FileType.NotFound:
            raise no_bucket(self)

    def info(self) -> Any:
        """PyArrow's FileInfo: file, directory or not found."""
        import pyarrow as pa

        try:
            # in another thread, as all that the main one waits for: Ctrl-C is heard
            return in_background(lambda: self.file_system.get_file_info(self.place))
        except (pa.ArrowException, OSError) as error:
            raise store_fault(self, error) from None

    def is_file(self) -> bool:
        return bool(self.info().is_file)

    def is_dir(self) -> bool:
        from pyarrow.fs import FileType

        return self.info().type is FileType.Directory

    def exists(self) -> bool:
        from pyarrow.fs import FileType

        return self.info().type is not FileType.NotFound

    def stat(self) -> Stat:
        info = self.info()
        if not info.is_file:
            raise FileNotFoundError(2, "No such file or directory", str(self))
        return Stat(int(info.size), int(info.mtime_ns or 0))

    def listed(self, *, recursive: bool = False) -> list[tuple[RemotePath, bool]]:
        """What is in a folder, in order, each with whether it is a file."""
        from pyarrow.fs import FileSelector

        with self.faults_explained():
            selector = FileSelector(self.place, recursive=recursive)
            infos = in_background(lambda: self.file_system.get_file_info(selector))
        within = len(self.place) - len(self.key)
        found = [(self._at(info.path[within:].strip("/")), bool(info.is_file)) for info in infos]
        return sorted(found, key=lambda pair: pair[0].parts)

    def iterdir(self) -> Iterator[RemotePath]:
        yield from (path for path, _ in self.listed())

    # -- reading ------------------------------------------------------------------------------------------------------

    def open(self, mode: str = "rb") -> Any:
        """The object as a file of Arrow's with random access; its own reads raise what PyArrow raises."""
        assert mode == "rb"
        with self.faults_explained():
            return self.file_system.open_input_file(self.place)

    def read_bytes(self) -> bytes:
        def read() -> bytes:
            with self.open() as file:
                return bytes(file.read())

        with self.faults_explained():
            return in_background(read)

    def read_text(self, encoding: str = "utf-8") -> str:
        return self.read_bytes().decode(encoding)

    def mark(self) -> str:
        """What changes when the object is replaced: its ETag, else time and size."""
        with self.open() as file:
            return mark_of(file)

    # -- writing ------------------------------------------------------------------------------------------------------

    def mkdir(self, parents: bool = False, exist_ok: bool = False) -> None:
        """Nothing: in a store a folder is the beginning of a name."""

    def unlink(self, missing_ok: bool = False) -> None:
        try:
            with self.faults_explained("written"):
                self.file_system.delete_file(self.place)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def upload(self, source: Path) -> None:
        """Write the content of a local file: the store shows the object when it is complete, and not before."""
        with (
            self.faults_explained("written"),
            source.open("rb") as file,
            self.file_system.open_output_stream(self.place, compression=None) as stream,
        ):
            while chunk := file.read(_CHUNK):
                stream.write(chunk)

    def download(self, target: Path) -> None:
        """Copy the object to a local file, a piece at a time."""
        with self.faults_explained(), self.open() as file, target.open("wb") as copy:
            before = mark_of(file)
            while chunk := file.read(_CHUNK):
                try:
                    copy.write(chunk)
                except OSError as error:
                    raise BadInput(
                        f"{self}: its temporary copy {target} cannot be written ({error.strerror or error}). Set TMPDIR"
                        " to a folder with more room."
                    ) from None
        if self.mark() != before:
            raise changed(self)


Location: TypeAlias = Path | RemotePath


def location(text: str | Location) -> Location:
    """The place that a text names: an address of a store, or a local path."""
    if isinstance(text, RemotePath):
        return text
    if isinstance(text, str) and is_address(text):
        return RemotePath(text)
    refuse_credentials(str(text))
    return Path(text)


def listed_location(name: str) -> Location:
    """The place of a file that was listed: its name may have an @, as a place that a user names may not."""
    return RemotePath.listed_as(name) if is_address(name) else Path(name)


def joined(folder: Location, text: str) -> Location:
    """A place that a file in the folder names: relative to the folder, unless it is an address or an absolute path."""
    if is_address(text):
        return RemotePath(text)
    refuse_credentials(text)
    if isinstance(folder, RemotePath) and Path(text).is_absolute():
        raise BadInput(f"{text}: a local path, named by a file in {folder}. Give an address, or a path relative to it.")
    return folder / text


def mark_of(file: Any) -> str:
    """What changes when an open object is replaced: its ETag, else time and size."""
    known = {key.lower(): value for key, value in (file.metadata() or {}).items()}
    names = ("etag",) if known.get("etag") else ("last-modified", "content-length")
    values = [known[name] for name in names if name in known]
    return " ".join(map(repr, values)) or str(file.size())


def changed(path: Location) -> BadInput:
    """The error for a file that is no longer the one that was opened."""
    return BadInput(f"{path}: the file changed while it was read. Run again when nobody writes to it.")


@contextmanager
def unchanged(path: RemotePath, mark: str) -> Iterator[Any]:
    """The object opened to be read, if it is still the one with this mark, before and after."""
    import pyarrow as pa

    try:
        with path.open() as file:
            if mark_of(file) != mark:
                raise changed(path)
            yield file
    except (pa.ArrowException, OSError):
        if path.mark() != mark:  # what was read was partly of another object
            raise changed(path) from None
        raise
    if path.mark() != mark:
        raise changed(path)

"""The file that outlives a process: its tables, its privacy, what is said when it cannot be used."""

from __future__ import annotations

import gc
import os
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker import Broker
from broker.errors import StoreError
from broker.store import Store, Tables
from broker.store_files import user_store

NOTES = Tables("notes", (("CREATE TABLE note (text TEXT NOT NULL) STRICT",),))
NOTES_LATER = Tables("notes", (*NOTES.versions, ("ALTER TABLE note ADD COLUMN author TEXT",)))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data" / "broker.sqlite3"


def texts(store: Store) -> list[str]:
    return [row[0] for row in store.execute("SELECT text FROM note ORDER BY rowid")]


def test_what_was_written_is_there_after_opening_again(path):
    with Store(path) as store:
        store.prepare(NOTES)
        store.execute("INSERT INTO note VALUES (?)", ("kept",))
    with Store(str(path)) as store:
        store.prepare(NOTES)
        assert texts(store) == ["kept"]


def test_components_bring_their_tables_independently(path):
    with Store(path) as store:
        store.prepare(NOTES)
        store.prepare(Tables("others", (("CREATE TABLE other (x) STRICT".replace("x", "x INTEGER"),),)))
        assert store.execute("SELECT name, version FROM component ORDER BY name") == [("notes", 1), ("others", 1)]


def test_a_later_version_changes_the_tables_and_keeps_the_rows(path):
    with Store(path) as store:
        store.prepare(NOTES)
        store.execute("INSERT INTO note VALUES ('old')")
        store.prepare(NOTES_LATER)
        assert store.execute("SELECT * FROM note") == [("old", None)]


def test_tables_of_a_newer_version_are_left_alone(path):
    with Store(path) as store:
        store.prepare(NOTES_LATER)
        with pytest.raises(StoreError) as caught:
            store.prepare(NOTES)
    assert str(caught.value) == (
        f"{path}: its part 'notes' was made by a newer codemode (version 2, known is 1); install that, or use "
        "another file."
    )


def test_a_version_that_fails_leaves_nothing_behind(path):
    broken = Tables("notes", (("CREATE TABLE note (text TEXT)", "CREATE TABLE note (text TEXT)"),))
    with Store(path) as store:
        with pytest.raises(Exception, match="already exists"):
            store.prepare(broken)
        store.prepare(NOTES)
        assert texts(store) == []


def test_a_block_that_raises_takes_no_effect(path):
    with Store(path) as store:
        store.prepare(NOTES)
        with pytest.raises(ZeroDivisionError), store.transaction():
            write_and_fail(store)
        with store.transaction(), store.transaction():
            store.execute("INSERT INTO note VALUES ('kept')")
        assert texts(store) == ["kept"]


def test_a_store_in_memory_is_gone_when_it_is_closed():
    for _ in range(2):
        with Store() as store:
            store.prepare(NOTES)
            assert texts(store) == []
            store.execute("INSERT INTO note VALUES ('gone')")


def test_a_store_that_is_used_after_closing_says_so(path):
    with Store(path) as store:
        store.prepare(NOTES)
    with pytest.raises(StoreError, match=r"it is closed; close it after the brokers that use it\."):
        store.execute("SELECT 1")
    with pytest.raises(StoreError, match="it is closed"), store.transaction():
        pass
    with pytest.raises(StoreError, match="it is closed"):
        Broker(store=store)


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_file_and_folder_are_private_whatever_the_umask(path):
    before = os.umask(0)
    try:
        with Store(path) as store:
            store.prepare(NOTES)
            modes = {one.name: one.stat().st_mode & 0o777 for one in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(["broker.sqlite3", "broker.sqlite3-shm", "broker.sqlite3-wal"], 0o600)
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_a_file_that_others_may_read_is_made_private(path):
    path.parent.mkdir()
    path.touch(0o644)
    path.chmod(0o644)
    Store(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.name != "posix", reason="pipes in the file system are POSIX's")
def test_what_is_no_regular_file_is_refused_and_left_as_it_is(path):
    path.parent.mkdir()
    os.mkfifo(path, 0o644)
    path.chmod(0o644)
    assert refused(path) == f"{path} is no regular file; use another one."
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can act as two other users")
def test_what_another_user_puts_beside_a_store_is_not_taken_over(foreign, tmp_path):
    """SQLite would replay their log: also into a file that they may not read, in a folder where all may write."""
    planted = foreign.with_name("broker.sqlite3-wal")
    with Store(tmp_path / "theirs") as theirs:
        write_note(theirs, "planted")
        log = (tmp_path / "theirs-wal").read_bytes()
    foreign.parent.chmod(0o1777)
    with as_nobody():
        with Store(foreign) as store:
            write_note(store)
        planted.write_bytes(log)
        assert read(foreign) == ["planted"]  # one's own is
    planted.write_bytes(log)
    os.chown(planted, 1_234, 1_234)
    planted.chmod(0o666)
    with as_nobody():
        assert refused(foreign) == (f"{planted} belongs to another user; remove it, or use a file elsewhere.")


def test_the_users_store_is_in_the_data_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("CODEMODE_STORE", raising=False)
    if sys.platform == "linux":
        assert user_store() == tmp_path / "codemode-broker" / "broker.sqlite3"
        Store.in_user_folder().close()
    assert user_store().name == "broker.sqlite3"
    monkeypatch.setenv("CODEMODE_STORE", str(tmp_path / "own.db"))
    assert user_store() == tmp_path / "own.db"


@contextmanager
def as_nobody():
    """Root may write everywhere."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(user)


def write_and_fail(store: Store) -> None:
    store.execute("INSERT INTO note VALUES ('never')")
    raise ZeroDivisionError


def write_much(store: Store) -> None:
    store.execute("INSERT INTO note VALUES ('small')")
    store.execute("INSERT INTO note VALUES (?)", ("x" * 100_000,))


def read(path: Path) -> list[str]:
    with Store(path) as store:
        store.prepare(NOTES)
        return texts(store)


def refused(path) -> str:
    with pytest.raises(StoreError) as caught:
        read(path)
    return str(caught.value)


def test_a_text_that_is_not_unicode_is_named(path):
    with Store(path) as store:
        store.prepare(NOTES)
        for statement in ("INSERT INTO note VALUES (?)", "SELECT text FROM note WHERE text = ?"):
            with pytest.raises(StoreError, match="a text that is not Unicode is not in it and cannot be kept"):
                store.execute(statement, ("\udcff",))
        assert texts(store) == []


def test_a_full_disk_is_named_and_what_was_begun_takes_no_effect(path):
    with Store(path) as store:
        store.prepare(NOTES)
        [[pages]] = store.execute("PRAGMA page_count")
        store.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError) as caught, store.transaction():
            write_much(store)
        assert str(caught.value) == f"{path}: the disk is full; free some space."
        store.execute(f"PRAGMA max_page_count = {pages + 100}")
        store.execute("INSERT INTO note VALUES (?)", ("x" * 100_000,))
        assert [len(text) for text in texts(store)] == [100_000]


READER = """
    import resource, signal, sys
    from pathlib import Path
    import broker.store_files
    from broker.errors import StoreError
    from broker.store import Store, Tables
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # no file can grow, as on a full disk
    broker.store_files._LEAST_BYTES = 2**80
    path, notes = Path(sys.argv[1]), Tables("notes", (("CREATE TABLE note (text TEXT NOT NULL) STRICT",),))
    def refused(action):
        try:
            action()
        except StoreError as error:
            return str(error).removeprefix(str(path))
    reader = Store(path, for_reading=True)
    reader.prepare(notes)
    print(reader.execute("SELECT text FROM note"))
    print(refused(lambda: reader.execute("INSERT INTO note VALUES ('more')")))
    print(refused(lambda: Store(path)))
"""


@pytest.mark.skipif(os.name != "posix", reason="limits on files are POSIX's")
def test_what_is_kept_can_be_read_on_a_full_disk(path):
    with Store(path) as store:
        store.prepare(NOTES)
        store.execute("INSERT INTO note VALUES ('kept')")
    command = [sys.executable, "-c", textwrap.dedent(READER), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603  # ours
    assert done.stderr == ""
    full = ": the disk is full; free some space."
    assert done.stdout.splitlines() == ["[('kept',)]", full, full]


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "broker.sqlite3"
    assert refused(path) == (
        f"{path} cannot be opened: File exists; check that its folder exists and is writable, or use another file."
    )


@pytest.mark.parametrize("given", [":memory:", "file:notes", "file:notes?mode=memory"])
def test_what_is_a_database_to_sqlite_and_no_file_is_refused(monkeypatch, tmp_path, given):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CODEMODE_STORE", str(tmp_path / "data" / "broker.sqlite3"))
    in_memory = "In a program, Store() without a path keeps all in memory."
    assert refused(given) == f"{given} is no path of a file; use one. {in_memory}"
    monkeypatch.setenv("CODEMODE_STORE", given)
    with pytest.raises(StoreError) as caught:
        Store.in_user_folder()
    assert str(caught.value) == f"{given} is no path of a file; set CODEMODE_STORE to one. {in_memory}"
    assert list(tmp_path.iterdir()) == []


def test_a_program_may_go_to_another_folder(monkeypatch, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with Store("broker.sqlite3") as store:
        monkeypatch.chdir("elsewhere")
        write_note(store)
        assert texts(store) == ["kept"]
    assert read(tmp_path / "broker.sqlite3") == ["kept"]


@pytest.mark.skipif(os.name != "posix", reason="Windows keeps the folder that a process is in")
def test_a_store_in_the_folder_that_we_are_in_when_that_is_gone(monkeypatch, tmp_path):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.setenv("CODEMODE_STORE", "broker.sqlite3")
    said = "broker.sqlite3 cannot be opened: No such file or directory; check that its folder exists and is writable"
    assert refused("broker.sqlite3").startswith(said)


@pytest.mark.parametrize("given", ["", "broker.sqlite3"])
def test_the_variable_is_named_to_those_whose_store_it_names_alone(monkeypatch, tmp_path, given):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("CODEMODE_STORE", given)
    monkeypatch.chdir(tmp_path)
    user_store().mkdir(parents=True)
    with pytest.raises(StoreError, match="is no regular file; set CODEMODE_STORE to another one"):
        Store.in_user_folder()
    assert "is no regular file; use another one" in refused(tmp_path.parent)


@pytest.mark.skipif(os.name != "posix", reason="modes of folders are POSIX's")
def test_a_read_only_folder_is_named():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        with as_nobody():
            assert "cannot be opened: Permission denied" in refused(Path(folder) / "broker.sqlite3")


@pytest.fixture
def foreign():
    """The store of somebody else in a folder of theirs, that everybody may read."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "broker.sqlite3"
        yield path


def let_others_read(path):
    for file in path.parent.iterdir():
        file.chmod(0o444)
    path.parent.chmod(0o555)


def notes_read(path):
    with as_nobody(), Store(path, for_reading=True) as store:
        store.prepare(NOTES)
        return texts(store)


def write_note(store, text="kept"):
    store.prepare(NOTES)
    store.execute("INSERT INTO note VALUES (?)", (text,))


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_what_is_kept_can_be_read_where_nothing_can_be_written(foreign):
    with Store(foreign) as store:
        write_note(store)
    let_others_read(foreign)
    assert notes_read(foreign) == ["kept"]
    with as_nobody():
        assert "cannot be opened: Permission denied; check that" in refused(foreign)


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_what_somebody_else_is_writing_is_read_as_it_is_now(foreign):
    with Store(foreign) as store:
        write_note(store)
        let_others_read(foreign)
        assert notes_read(foreign) == ["kept"]
        store.execute("INSERT INTO note VALUES ('new')")
        assert notes_read(foreign) == ["kept", "new"]


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_a_part_that_is_in_the_log_only_is_not_left_out(foreign, tmp_path):
    with Store(tmp_path / "store") as store:
        write_note(store)
        for end in ("", "-wal"):
            foreign.with_name(foreign.name + end).write_bytes((tmp_path / f"store{end}").read_bytes())
    let_others_read(foreign)
    with pytest.raises(StoreError) as caught:
        notes_read(foreign)
    assert str(caught.value).endswith(
        "It cannot be read there either, as a part of it is in broker.sqlite3-wal: copy both to a folder that you may "
        "write to, and use the copy."
    )


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_a_file_that_changes_while_it_is_taken_for_unchanging_is_not_believed(foreign):
    with Store(foreign) as store:
        write_note(store)
    let_others_read(foreign)
    with as_nobody():
        reader = Store(foreign, for_reading=True)
    assert reader.execute("SELECT text FROM note") == [("kept",)]
    foreign.parent.chmod(0o755)
    with Store(foreign) as store:
        store.execute("INSERT INTO note VALUES ('new')")
        with pytest.raises(StoreError, match="it was written to while it was read; try again"):
            reader.execute("SELECT text FROM note")
    reader.close()


def test_a_file_that_is_no_database_is_named(path):
    path.parent.mkdir()
    path.write_bytes(b"something else entirely " * 100)
    assert refused(path) == f"{path}: it is not a database of codemode; move it away, and codemode makes a new one."


def test_a_damaged_file_is_named(path):
    with Store(path) as store:
        store.prepare(NOTES)
        store.execute("INSERT INTO note VALUES (?)", ("x" * 100_000,))
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    written = bytearray(path.read_bytes())
    written[4096 : 3 * 4096] = b"\xff" * 2 * 4096
    path.write_bytes(written)
    assert refused(path) == f"{path}: it is damaged; move it away, and a new one is made."


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE note SET text = CAST(x'1b5bff' AS TEXT)", "it is damaged"),
        ("DROP TABLE note", "its tables are not those of codemode (no such table: note)"),
        ("ALTER TABLE note RENAME COLUMN text TO words", "its tables are not those of codemode (no such column: text)"),
        ("DROP TABLE component", "its tables are not those of codemode (table note already exists)"),
        ("UPDATE component SET version = -1", "its tables are not those of codemode (table note already exists)"),
    ],
)
def test_a_file_that_another_program_has_changed_is_named(path, change, said):
    with Store(path) as store:
        write_note(store)
        assert texts(store) == ["kept"]
    with sqlite3.connect(path) as raw:
        raw.execute(change)
    raw.close()
    assert refused(path) == f"{path}: {said}; move it away, and a new one is made."


def test_a_wrong_statement_is_not_taken_for_damage_in_memory():
    with Store() as store, pytest.raises(sqlite3.OperationalError, match="no such table"):
        store.execute("SELECT text FROM note")


def test_a_damage_that_no_statement_has_met_is_found(path):
    with Store(path) as store:
        write_note(store, "x" * 100_000)
        assert store.first_damage(60) == ""
        assert store.versions() == {"notes": 1}
        [[page]] = store.execute("SELECT rootpage FROM sqlite_master WHERE name = 'note'")
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    written = bytearray(path.read_bytes())
    written[(page - 1) * 4096 + 100 : page * 4096] = b"\xff" * (4096 - 100)
    path.write_bytes(written)
    with Store(path) as store:
        assert "age" in str(store.first_damage(60))


def test_looking_for_damage_ends_with_its_time(path):
    with Store(path) as store:
        write_note(store)
        store.execute(
            "INSERT INTO note WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300000) "
            "SELECT hex(randomblob(100)) FROM n"
        )
        assert store.first_damage(0) is None
        assert texts(store)[0] == "kept"


WRITER = """
    import sys
    from pathlib import Path
    from broker.store import Store, Tables
    with Store(Path(sys.argv[1])) as store:
        store.prepare(Tables("counts", (("CREATE TABLE count (n INTEGER NOT NULL) STRICT",
                                         "INSERT INTO count VALUES (0)"),)))
        for _ in range(100):
            with store.transaction():
                [[n]] = store.execute("SELECT n FROM count")
                store.execute("UPDATE count SET n = ?", (n + 1,))
"""


def test_several_processes_make_and_write_the_same_file_at_once(path):
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(path)]
    writers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]  # noqa: S603  # ours
    assert [(writer.communicate(timeout=60)[1], writer.returncode) for writer in writers] == [("", 0)] * 4
    with Store(path) as store:
        assert store.execute("SELECT n FROM count") == [(400,)]


def test_a_file_that_another_process_keeps_locked_is_named(path, monkeypatch):
    monkeypatch.setattr("broker.store_connection.BUSY_SECONDS", 0.05)
    with Store(path) as first, Store(path) as second:
        first.prepare(NOTES)
        with first.transaction(), pytest.raises(StoreError, match="another process has kept it locked") as caught:
            second.execute("INSERT INTO note VALUES ('late')")
        assert caught.value.is_busy
        second.execute("INSERT INTO note VALUES ('now')")
        assert texts(first) == ["now"]


@pytest.mark.skipif(sys.platform == "win32", reason="open files cannot be moved there")
def test_a_file_that_was_moved_is_written_to_no_more(path):
    moved = path.with_name("moved")
    gone = r"it was moved or removed while in use; restart the program that uses it\."
    with Store(path) as store:
        write_note(store)
        path.rename(moved)
        with pytest.raises(StoreError, match=gone):
            write_note(store, "lost")
        moved.rename(path)
        write_note(store, "back")
        assert texts(store) == ["kept", "back"]
        path.unlink()
        Store(path).close()
        with pytest.raises(StoreError, match=gone):
            texts(store)


def test_a_store_that_nobody_closed_is_closed_with_its_last_user():
    store = Store()
    connection = store._connection  # what Python 3.13 warns of when it is left open
    del store
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")

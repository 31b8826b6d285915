"""Files: every format gives the same rows, in bounded batches; every fault names file, column and row."""

from __future__ import annotations

import gzip
import os
import socket
import stat
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv
from pyarrow import feather, ipc, parquet

import calcore
from calcore.files import (
    InputError,
    choose_columns,
    expand,
    formats,
    intake,
    open_source,
    read_columns,
    take_in,
    take_in_rows,
    write_columns,
)
from calcore.files.arrays import as_arrow, as_numpy
from calcore.files.paths import replacing, spare

SEED = 20240612


def grouped_rows(files: list[str], groups: str, *, score: str | None = None, **options: Any) -> Any:
    return take_in_rows(files, groups=groups, scores=[] if score is None else [("--score", score)], **options)


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def columns(n: int) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    rng = np.random.default_rng(SEED)
    scores = rng.random(n)
    return (rng.random(n) < scores).astype(np.uint8), scores


def table(n: int) -> pa.Table:
    labels, scores = columns(n)
    return pa.table({"id": np.arange(n), "late": labels, "p": scores})


def write_csv(path: str, rows: pa.Table, delimiter: str = ",") -> None:
    options = arrow_csv.WriteOptions(delimiter=delimiter)
    if path.endswith(".gz"):
        with pa.CompressedOutputStream(path, "gzip") as sink:
            arrow_csv.write_csv(rows, sink, options)
    else:
        arrow_csv.write_csv(rows, path, options)


def write_stream(path: str, rows: pa.Table) -> None:
    with pa.OSFile(path, "wb") as sink, ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=300)


def write_arrow(path: str, rows: pa.Table) -> None:
    with pa.OSFile(path, "wb") as sink, ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)


def write_structured(path: str, rows: pa.Table) -> None:
    array = np.zeros(len(rows), [("id", ">i4"), ("late", "?"), ("p", "<f8")])
    for name in rows.column_names:
        array[name] = rows[name].to_numpy()
    np.save(path, array)


def as_arrays(rows: pa.Table) -> dict[str, NDArray[Any]]:
    return {name: rows[name].to_numpy() for name in rows.column_names}


WRITERS: dict[str, Callable[[str, pa.Table], None]] = {
    "rows.parquet": lambda path, rows: parquet.write_table(rows, path, row_group_size=700),
    "rows.pq": lambda path, rows: parquet.write_table(rows, path, compression="zstd"),
    "rows.arrow": write_arrow,
    "rows.arrows": write_stream,
    "rows.feather": lambda path, rows: feather.write_feather(rows, path, compression="lz4"),
    "rows.csv": write_csv,
    "rows.CSV": write_csv,
    "rows.csv.gz": write_csv,
    "rows.tsv": lambda path, rows: write_csv(path, rows, "\t"),
    "semicolons.csv": lambda path, rows: write_csv(path, rows, ";"),
    "rows.npy": write_structured,
    "rows.npz": lambda path, rows: np.savez(path, **as_arrays(rows)),
    "packed.npz": lambda path, rows: np.savez_compressed(path, **as_arrays(rows)),
}


def read(path: str, label: str = "late", score: str = "p") -> tuple[NDArray[Any], NDArray[Any]]:
    batches = list(read_columns(open_source(path), label, [score]))
    assert [batch.start for batch in batches] == list(
        np.cumsum([0, *(len(batch.scores) for batch in batches[:-1])])
    )
    return np.concatenate([b.labels for b in batches]), np.concatenate([b.scores for b in batches])


class TestFormats:
    @pytest.mark.parametrize("name", WRITERS)
    def test_gives_the_rows(self, name: str) -> None:
        WRITERS[name](name, table(2000))
        labels, scores = read(name)
        expected_labels, expected_scores = columns(2000)
        assert np.array_equal(labels, expected_labels)
        assert np.array_equal(scores, expected_scores)
        assert [column.name for column in open_source(name).columns] == ["id", "late", "p"]
        assert open_source(name).n_rows in (2000, None)

    @pytest.mark.parametrize("name", WRITERS)
    def test_names_of_files_need_not_be_text(self, name: str) -> None:
        WRITERS[name](name, table(50))
        strange = os.fsdecode(b"\xfc" + name.encode())
        Path(name).rename(strange)
        assert np.array_equal(read(strange)[1], columns(50)[1])
        with pytest.raises(InputError, match=r"^'\\udcfc.*': no column nope"):
            take_in([strange], label="nope")

    @pytest.mark.parametrize("name", WRITERS)
    def test_batches_are_bounded_and_progress_reaches_the_end(
        self, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(formats, "_CSV_BLOCK", 4096)
        WRITERS[name](name, table(2000))
        source = open_source(name)
        sizes, progress = [], []
        for batch in source.batches(["p"], rows=333):
            sizes.append(batch.num_rows)
            progress.append(source.progress)
        assert sum(sizes) == 2000
        assert max(sizes) <= 333
        assert len(sizes) >= 7
        assert progress == sorted(progress)
        assert progress[-1] >= 0.999

    @settings(max_examples=40, deadline=None)
    @given(
        n=st.integers(1, 60), rows=st.integers(1, 70), fortran=st.booleans(), seed=st.integers(0, 2**32 - 1)
    )
    def test_any_array_in_any_batches(self, n: int, rows: int, fortran: bool, seed: int) -> None:
        array = np.random.default_rng(seed).random((n, 3))
        np.save("any.npy", np.asfortranarray(array) if fortran else array)
        source = open_source("any.npy")
        batches = list(source.batches(["2", "0"], rows=rows))
        assert [len(batch) for batch in batches] == [min(rows, n - i) for i in range(0, n, rows)]
        for name, j in (("2", 2), ("0", 0)):
            assert np.array_equal(np.concatenate([b.column(name).to_numpy() for b in batches]), array[:, j])

    @pytest.mark.parametrize("dtype", ["?", "<i1", ">i4", "<u8", "<f2", ">f4", "<f8"])
    @pytest.mark.parametrize("name", ["a.npz", "a.npy"])
    def test_numpy_types_survive(self, name: str, dtype: str) -> None:
        values = np.array([0, 1, 1], dtype)
        if name == "a.npz":
            np.savez(name, y=values, p=values)
        else:
            array = np.zeros(3, [("y", dtype), ("p", dtype)])
            array["y"] = array["p"] = values
            np.save(name, array)
        labels, scores = read(name, "y", "p")
        assert labels.dtype == scores.dtype == np.dtype(dtype).newbyteorder("=")
        assert labels.tolist() == values.tolist()

    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            (pa.array([True, False, True]), [True, False, True]),
            (pa.array([0.5, 1.0, 0.25], pa.float32()), [0.5, 1.0, 0.25]),
            (pa.array([Decimal("0.25"), Decimal("0.50"), Decimal("1.00")]), [0.25, 0.5, 1.0]),
            (pa.array(["a", "b", "a"]), ["a", "b", "a"]),
            (pa.array(["a", "b", "a"], pa.large_string()), ["a", "b", "a"]),
            (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
            (pa.array([1, 0, 1]).dictionary_encode(), [1, 0, 1]),
            (pa.array([True, False, True]).dictionary_encode(), [True, False, True]),
        ],
    )
    def test_arrow_types(self, values: pa.Array, expected: list[Any]) -> None:
        write_arrow("a.arrow", pa.table({"y": values, "p": [0.1, 0.2, 0.3]}))
        labels, _ = read("a.arrow", "y", "p")
        assert labels.tolist() == expected

    def test_types_of_csv_do_not_come_from_the_first_rows_alone(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(formats, "_CSV_BLOCK", 64)
        Path("a.csv").write_text("y,p\n" + "1,0\n0,1\n" * 30 + "1,0.5\n0,5e-1\n")
        _, scores = read("a.csv", "y", "p")
        assert scores[-3:].tolist() == [1.0, 0.5, 0.5]

    @pytest.mark.parametrize("dtype", [*"?bhilBHILefd", ">i4", ">f8"])
    @given(data=st.data())
    def test_arrow_and_numpy_by_their_memory(self, dtype: str, data: st.DataObject) -> None:
        values = np.array(data.draw(st.lists(st.integers(0, 100), max_size=40))).astype(dtype)
        start, stop = sorted(data.draw(st.tuples(*2 * [st.integers(0, len(values))])))
        native = values.astype(values.dtype.newbyteorder("="))
        arrow = as_arrow(values)
        assert arrow.equals(pa.array(native))
        assert as_arrow(values[start:stop]).equals(pa.array(native[start:stop]))
        back = as_numpy(arrow.slice(start, stop - start))
        assert back.dtype == native.dtype
        assert back.tolist() == native[start:stop].tolist()
        assert not back.flags.writeable

    @pytest.mark.parametrize("dtype", ["i1", "u8", "f2", "f8"])
    def test_numbers_are_lent_not_copied(self, dtype: str) -> None:
        values = np.arange(100).astype(dtype)
        arrow = as_arrow(values)
        back = as_numpy(arrow.slice(7, 50))
        assert np.shares_memory(back, values)
        owned = pa.array(list(range(9)), arrow.type) if dtype != "f2" else arrow
        lent = as_numpy(owned)
        del owned, arrow
        assert lent[8] == 8  # the memory stays as long as what is lent

    def test_buffers_as_arrow_allows_them(self) -> None:
        unaligned = pa.py_buffer(b"x" + np.arange(4.0).tobytes() + b"rest").slice(1)
        assert as_numpy(pa.Array.from_buffers(pa.float64(), 4, [None, unaligned])).tolist() == [0, 1, 2, 3]
        for kind in (pa.float64(), pa.bool_()):
            assert as_numpy(pa.Array.from_buffers(kind, 0, [None, None])).tolist() == []
        behind_a_null = pa.array([None, 1.0, 2.0]).slice(1)
        assert as_numpy(behind_a_null).tolist() == [1.0, 2.0]
        with pytest.raises(pa.ArrowInvalid, match="missing"):
            as_numpy(pa.array([True, None]))

    @pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
    def test_arrow_batches_are_views_where_they_can_be(self, compression: str | None) -> None:
        rows = table(50_000).append_column("junk", pa.array(["junk"] * 50_000))
        with ipc.new_file(
            "a.arrow", rows.schema, options=ipc.IpcWriteOptions(compression=compression)
        ) as writer:
            writer.write_table(rows)
        before = pa.total_allocated_bytes()
        batches = list(open_source("a.arrow").batches(["p", "late"]))
        assert batches[0].schema.names == ["p", "late"]
        assert np.array_equal(batches[0].column("p").to_numpy(), columns(50_000)[1])
        assert (pa.total_allocated_bytes() == before) == (compression is None)

    def test_csv_as_spreadsheets_write_it(self) -> None:
        Path("a.csv").write_bytes(b'\xef\xbb\xbf"y","p q"\r\n1,0.5\r\n\r\n0,"0.25"\r\n')
        labels, scores = read("a.csv", "y", "p q")
        assert labels.tolist() == [1, 0]
        assert scores.tolist() == [0.5, 0.25]

    def test_a_column_may_be_label_and_group_or_score_at_once(self) -> None:
        np.savez("a.npz", y=np.array([0, 1]))
        labels, scores = read("a.npz", "y", "y")
        assert labels.tolist() == scores.tolist() == [0, 1]

    def test_population_is_taken_from_the_metadata(self) -> None:
        rows = table(10).replace_schema_metadata({"population": "visitors of May"})
        parquet.write_table(rows, "a.parquet")
        write_arrow("a.arrow", rows)
        assert open_source("a.parquet").population == "visitors of May"
        assert open_source("a.arrow").population == "visitors of May"
        assert take_in(["a.parquet", "a.arrow"], label="late", score="p").population == "visitors of May"
        write_arrow("b.arrow", table(10))
        assert take_in(["a.parquet", "b.arrow"], label="late", score="p").population == ""


class TestPaths:
    def test_directories_are_searched_in_order_without_hidden_files(self) -> None:
        for name in (
            "d/b.csv",
            "d/a.csv",
            "d/k=1/c.csv",
            "d/.x.csv",
            "d/_SUCCESS",
            "d/_tmp/x.csv",
            "d/.h/x.csv",
        ):
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).touch()
        assert expand(["d"]) == ["d/a.csv", "d/b.csv", "d/k=1/c.csv"]
        assert expand(["d/*.csv"]) == ["d/a.csv", "d/b.csv"]
        assert expand(["d/**/*.csv"]) == ["d/a.csv", "d/b.csv", "d/k=1/c.csv"]
        assert expand(["d/k*", "d/b.csv"]) == ["d/k=1/c.csv", "d/b.csv"]

    def test_a_file_with_the_name_of_a_glob_is_itself(self) -> None:
        Path("a[1].csv").touch()
        Path("a1.csv").touch()
        assert expand(["a[1].csv"]) == ["a[1].csv"]

    @pytest.mark.parametrize(
        ("patterns", "message"),
        [
            (["none.csv"], "none.csv: no such file"),
            (["*.parquet"], r"\*.parquet: no file matches"),
            (["empty"], "empty: no files in this directory"),
            (["a.csv", "a.csv"], "a.csv: given twice; its rows would count twice"),
            (["a.csv", "./a.csv"], r"\./a.csv: given twice \(also as a.csv\)"),
            (["*.csv"], r"link.csv: given twice \(also as a.csv\)"),
            (["broken"], "broken: no such file or directory"),
        ],
    )
    def test_nothing_and_twice_are_faults(self, patterns: list[str], message: str) -> None:
        Path("empty").mkdir()
        Path("a.csv").touch()
        Path("link.csv").symlink_to("a.csv")
        Path("broken").symlink_to("nowhere")
        with pytest.raises(InputError, match=message):
            expand(patterns)

    def test_a_pipe_is_refused_before_it_is_opened(self) -> None:
        Path("d").mkdir()
        os.mkfifo("d/pipe")
        for pattern in ("d/pipe", "d", "d/*"):
            with pytest.raises(
                InputError, match=r"^d/pipe: is not a regular file; write what comes from a pi"
            ):
                take_in([pattern])


class TestDamage:
    @pytest.mark.parametrize("keep", [0, 7, 0.5, 0.98])
    @pytest.mark.parametrize("name", [n for n in WRITERS if "csv" not in n.lower() and "tsv" not in n])
    def test_a_file_cut_short_is_named(self, name: str, keep: float) -> None:
        WRITERS[name](name, table(2000))
        content = Path(name).read_bytes()
        Path(name).write_bytes(content[: int(keep * len(content)) if keep < 1 else int(keep)])
        with pytest.raises(InputError, match=f"^{name}: "):
            read(name)

    def test_a_flipped_byte_in_an_archive_is_noticed(self) -> None:
        np.savez("a.npz", y=np.zeros(1000, np.uint8), p=np.zeros(1000))
        with zipfile.ZipFile("a.npz") as archive:
            offset = archive.getinfo("p.npy").header_offset
        content = bytearray(Path("a.npz").read_bytes())
        content[offset + 4000] ^= 1
        Path("a.npz").write_bytes(content)
        with pytest.raises(InputError, match=r"^a\.npz: Bad CRC-32"):
            read("a.npz", "y", "p")

    def test_a_gzip_cut_short_is_named(self) -> None:
        Path("a.csv.gz").write_bytes(gzip.compress(b"y,p\n" + b"1,0.5\n" * 100_000)[:-200])
        with pytest.raises(InputError, match=r"^a\.csv\.gz: "):
            read("a.csv.gz", "y", "p")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "the file is empty: the first line"),
            ("y,p\n1,0.5\n0,x\n", "column p must hold numbers; got 'x' at data row 2"),
            ("y,p\n1,0.5\n\n\n0,0,5\n", "data row 2 has 3 values where the header has 2"),
            ("y,p\n1\n", "data row 1 has 1 value where the header has 2"),
            ("y,p\n1,0.5\n0,\n", "column p has a missing value at data row 2"),
            ("0.5,1\n0.25,0\n", "the first line must name the columns; got 0.5,1"),
            ("y,p\n1,0.5\n0,0_5\n", "column p must hold numbers; got '0_5' at data row 2"),
            ('"' + "y" * 200_000 + '",p\n', "field larger than field limit"),
        ],
    )
    def test_csv_faults_have_their_data_row(self, text: str, message: str) -> None:
        Path("a.csv").write_text(text)
        with pytest.raises(InputError, match=f"^a.csv: {message}"):
            read("a.csv", "y", "p")

    @pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
    @pytest.mark.parametrize("rows_before", [1, 1000])
    @pytest.mark.parametrize(
        "end",
        [
            '1,"0.5,n',  # the score
            '1,"0.5\n',
            '"1,0.5,n\n',  # the label
            '1,0.5,"n',  # a column that nobody reads
            '1,0.5,"n""',
            '1,0.5,"',
            '1,0.5,"n\n' + "0,0.5,n\n" * 9,  # and all rows behind it
        ],
    )
    def test_a_quote_that_nothing_closes(
        self, end: str, rows_before: int, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(formats, "_CSV_BLOCK", 256)
        content = b"y,p,note\n" + b"0,0.25,n\n" * rows_before
        content += end.encode()
        Path(name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        row = rows_before + 1
        with pytest.raises(InputError, match=f"^{name}: data row {row} opens a quote that nothing closes$"):
            read(name, "y", "p")

    def test_quotes_open_or_closed_as_the_csv_module_has_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rng = np.random.default_rng(SEED)
        closed = ["0,.5,a", '1,.25,"b"', '1,"0.5",c', '0,.125,"d""e"', '1,.5,f"g', '0,.5,""', '1,.5,"h\ni"']
        opened = ['0,.5,"a', '1,"0.5,c', '1,.5,"', '0,.5,"a""']
        for number in range(200):
            monkeypatch.setattr(formats, "_CSV_BLOCK", int(rng.choice([256, 4096])))
            rows = [
                str(row) for row in rng.choice(closed[:-1] if number % 2 else closed, rng.integers(1, 60))
            ]
            if number % 2:
                rows.append(str(rng.choice(opened)))
            text = "y,p,n\n" + "\n".join(rows) + str(rng.choice(["", "\n"]))
            Path("a.csv").write_text(text)
            if number % 2:
                with pytest.raises(InputError, match="opens a quote that nothing closes"):
                    read("a.csv", "y", "p")
                continue
            try:
                assert len(read("a.csv", "y", "p")[0]) == len(rows)
            except InputError as error:  # a line break inside quotes at the end of a block
                assert "over several lines" in str(error)  # noqa: PT017
                assert "h\ni" in text

    def test_a_stray_quote_before_much_text(self) -> None:
        Path("a.csv").write_text('y,p,note\n0,0.5,"n\n' + "1,0.5,n\n" * 50_000)
        with pytest.raises(
            InputError, match=r"^a.csv: data row 1 has a value of more than 131,072 char.*quote"
        ):
            read("a.csv", "y", "p")

    def test_a_quote_in_the_header_that_nothing_closes(self) -> None:
        Path("a.csv").write_text('y,"p\n1,0.5\n')
        with pytest.raises(InputError, match=r"^a.csv: the header opens a quote that nothing closes$"):
            read("a.csv", "y", "p")

    def test_checksums_of_parquet_pages_are_checked(self) -> None:
        n = 1000
        rows = pa.table({"y": np.arange(n) % 2, "p": np.linspace(0, 1, n)})
        parquet.write_table(
            rows, "a.parquet", write_page_checksum=True, use_dictionary=False, compression="none"
        )
        assert len(read("a.parquet", "y", "p")[0]) == n
        content = bytearray(Path("a.parquet").read_bytes())
        content[content.index(np.float64(rows["p"][500].as_py()).tobytes())] ^= 1
        Path("a.parquet").write_bytes(content)
        with pytest.raises(InputError, match=r"^a.parquet: .*(CRC|checksum)"):
            read("a.parquet", "y", "p")

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
    @pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
    def test_utf_16_is_named(self, name: str, encoding: str) -> None:
        mark = "" if encoding == "utf-16" else "\ufeff"
        content = f"{mark}y,p\n1,0.5\n".encode(encoding)
        Path(name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        with pytest.raises(InputError, match=f"^{name}: is UTF-16 text; save it as UTF-8$"):
            open_source(name)

    @pytest.mark.parametrize(
        ("header", "names"),
        [
            ('"my,label";score', ["my,label", "score"]),
            ('"a;b\t","c,d"', ["a;b\t", "c,d"]),
            ('"a ""b, c""";p', ['a "b, c"', "p"]),
        ],
    )
    def test_a_mark_in_a_quoted_name_is_no_delimiter(self, header: str, names: list[str]) -> None:
        mark = ";" if ";" in header.replace("a;b", "") else ","
        Path("a.csv").write_text(f"{header}\n1{mark}0.5\n")
        assert [column.name for column in open_source("a.csv").columns] == names

    @pytest.mark.parametrize(
        ("rows", "bad", "message"),
        [
            ("1,0.5\n", "1.5,0.5\n", "column y holds whole numbers before; got '1.5' at data row 1001"),
            ("true,0.5\n", "2,0.5\n", "column y holds true or false before; got '2' at data row 1001"),
            ("1,0.5\n", "1,none\n", "column p must hold numbers; got 'none' at data row 1001"),
        ],
    )
    def test_csv_faults_in_later_blocks(
        self, rows: str, bad: str, message: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(formats, "_CSV_BLOCK", 256)
        Path("a.csv").write_text("y,p\n" + rows * 1000 + bad)
        with pytest.raises(InputError, match=f"^a.csv: {message}"):
            read("a.csv", "y", "p")

    def test_a_missing_value_has_its_data_row_in_the_file(self) -> None:
        n = formats.BATCH_ROWS + 10
        values = np.full(n, 0.5)
        mask = np.zeros(n, bool)
        mask[[formats.BATCH_ROWS + 4, formats.BATCH_ROWS + 7]] = True
        parquet.write_table(pa.table({"y": np.zeros(n, bool), "p": pa.array(values, mask=mask)}), "a.parquet")
        with pytest.raises(
            InputError, match=f"^a.parquet: column p has a missing value at data row {n - 5}$"
        ):
            read("a.parquet", "y", "p")

    @pytest.mark.parametrize(
        ("save", "message"),
        [
            (lambda: np.save("a.npy", np.zeros(3)), r"needs a 2-D array .* got shape \(3,\)"),
            (lambda: np.save("a.npy", np.zeros((2, 2, 2))), "needs a 2-D array"),
            (
                lambda: np.save("a.npy", np.array([["no", 0.5]], object)),
                r"holds pickled Python objects, .*\.astype\(str\).*np\.savez",
            ),
            (lambda: np.save("a.npy", np.zeros(2, [("y", "O"), ("p", "f8")])), "pickled Python objects"),
        ],
    )
    def test_arrays_that_are_no_columns(self, save: Callable[[], None], message: str) -> None:
        save()
        with pytest.raises(InputError, match=f"^a.npy: .*{message}"):
            open_source("a.npy")

    def test_text_as_pandas_hands_it_out(self) -> None:
        labels = np.array(["no", "yes", "no"], object)
        np.savez("a.npz", y=labels, p=np.full(3, 0.5))
        advice = r"pickled Python objects, which are not read: save text with \.astype\(str\)"
        for job in (
            lambda: read("a.npz", "y", "p"),
            lambda: take_in(["a.npz"]),
            lambda: take_in(["a.npz"], label="y", score="p", pos_label="yes"),
        ):
            with pytest.raises(InputError, match=rf"^a\.npz: (?s:.)*{advice}"):
                job()
        np.savez("a.npz", y=labels.astype(str), p=np.full(3, 0.5))
        assert take_in(["a.npz"], label="y", score="p", pos_label="yes").table.n_positive == 1

    def test_archives_with_unequal_columns(self) -> None:
        np.savez("a.npz", y=np.zeros(3), p=np.zeros(4), m=np.zeros((3, 2)))
        with pytest.raises(
            InputError, match=r"^a.npz: columns must have equal lengths; y has 3, p has 4 rows"
        ):
            read("a.npz", "y", "p")
        with pytest.raises(InputError, match=r"^a.npz: column m holds fixed_size_list<.*>\[2\], not numbers"):
            read("a.npz", "y", "m")

    @pytest.mark.parametrize("words", [["no", None], [0, None], [False, None]])
    def test_missing_values_of_a_dictionary(self, words: list[Any]) -> None:
        labels = pa.DictionaryArray.from_arrays([0, 0, 1, 1], pa.array(words))
        write_arrow("a.arrow", pa.table({"y": labels, "p": [0.5] * 4}))
        with pytest.raises(InputError, match=r"^a.arrow: column y has a missing value at data row 3"):
            read("a.arrow", "y", "p")

    def test_columns_of_other_types_are_named(self) -> None:
        write_arrow("a.arrow", pa.table({"y": pa.array([[1], [0]]), "p": [0.5, 0.5]}))
        with pytest.raises(InputError, match=r"^a.arrow: column y holds list<.*>, not numbers"):
            read("a.arrow", "y", "p")

    def test_unknown_kind_of_file(self) -> None:
        Path("a.txt").touch()
        with pytest.raises(InputError, match=r"^a.txt: unknown kind of file; readable are \.parquet, "):
            open_source("a.txt")


STRANGE = [
    pa.nulls(3),
    pa.array([0, 1, 2**64 - 1], pa.uint64()),
    pa.array([Decimal(10) ** 30, Decimal(0), Decimal(1)]),
    pa.array([Decimal(10) ** 60, Decimal(0), Decimal(1)]),
    pa.array([Decimal(100), Decimal(0), Decimal(100)], pa.decimal128(5, -2)),
    pa.array([np.float16(0.5), np.float16(0), np.float16("nan")], pa.float16()),
    pa.array([0.5, float("inf"), float("nan")]),
    pa.array(["a", None, "b"]).dictionary_encode(),
    pa.DictionaryArray.from_arrays([0, 1, 1], pa.array(["a", None])),
    pa.DictionaryArray.from_arrays([0, 1, 1], pa.array([0.5, None])),
    pa.DictionaryArray.from_arrays([0, 1, 1], pa.array([Decimal(0), Decimal(1)])),
    pa.DictionaryArray.from_arrays([0, 1, 1], pa.nulls(2)),
    pa.array([b"0", b"1", b"1"]),
    pa.array(["0", "1", "1"], pa.string_view()),
    pa.array([b"0", b"1", b"1"], pa.binary(1)),
    pa.array([0, 1, 1], pa.date32()),
    pa.array([0, 1, 1], pa.timestamp("ns", "UTC")),
    pa.array([0, 1, 1], pa.duration("s")),
    pa.array([0, 1, 1], pa.time64("us")),
    pa.array([[0], [1], [1]]),
    pa.array([{"a": 0}, {"a": 1}, {"a": 1}]),
    pa.RunEndEncodedArray.from_arrays([1, 3], [0, 1]),
    pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1, 1], pa.int8())),
    pa.UnionArray.from_dense(
        pa.array([0, 0, 0], pa.int8()), pa.array([0, 1, 2], pa.int32()), [pa.array([0, 1, 1])]
    ),
]


class TestChoice:
    def choose(self, *, label: str | None = None, score: str | None = None, **data: Any) -> tuple[str, str]:
        parquet.write_table(pa.table(data), "a.parquet")
        return choose_columns(open_source("a.parquet"), label, score, command="calcore certify a.parquet")

    @pytest.mark.parametrize(
        "data",
        [
            {"p": [0.25, 0.5, 0.75], "y": [0, 1, 1]},
            {"y": [True, False, True], "p": [0.25, 0.5, 0.75]},
            {"y": ["no", "yes", "no"], "p": [0.25, 0.5, 0.75]},
            {"y": [1, 0, 1], "p": [0.25, 0.5, 0.25]},  # both two-valued: 0/1 wins
            {"y": [1, 0, 1], "p": [0.25, 1.5, 7.0]},  # a fault of the rows, not of the choice
            {"y": [1, 1, 1], "p": [0.25, 0.5, 0.75]},
        ],
    )
    def test_two_columns_need_no_names(self, data: dict[str, Any]) -> None:
        assert self.choose(**data) == ("y", "p")
        assert self.choose(**data, label="y") == ("y", "p")
        assert self.choose(**data, score="p") == ("y", "p")

    def test_columns_that_can_be_neither_are_left_out(self) -> None:
        assert self.choose(y=[1, 0], when=pa.array([1, 2], pa.date32()), p=[0.1, 0.2]) == ("y", "p")

    def test_one_name_decides_even_if_values_do_not(self) -> None:
        assert self.choose(a=[1, 0], b=[0, 1], score="a") == ("b", "a")

    @pytest.mark.parametrize(
        "data", [{"a": [1, 0], "b": [0, 1]}, {"a": [0.1, 0.2, 0.3], "b": [0.1, 0.2, 0.3]}]
    )
    def test_two_ways_to_see_it_are_not_guessed(self, data: dict[str, Any]) -> None:
        with pytest.raises(InputError, match="which column is the label and which the score"):
            self.choose(**data)

    def test_the_message_lists_the_columns_and_completes_the_command(self) -> None:
        with pytest.raises(InputError) as caught:
            self.choose(
                id=[7, 8, 9], **{"is late": [True, False, True]}, p=[0.25, 1 / 3, 0.75], day=["a", "b", "c"]
            )
        assert str(caught.value).splitlines() == [
            "a.parquet: which column is the label and which the score? The columns are",
            "  id       int64   7, 8, 9",
            "  is late  bool    True, False, True",
            "  p        double  0.25, 0.333333, 0.75",
            "  day      string  a, b, c",
            "Name them, for example",
            "  calcore certify a.parquet --label 'is late' --score p",
        ]

    @pytest.mark.parametrize("data", [{"p": [0.25, 0.5]}, {"p": [0.25, 0.5], "days": [[1], [2]]}])
    def test_one_column_is_not_enough(self, data: dict[str, Any]) -> None:
        with pytest.raises(InputError) as caught:
            self.choose(**data)
        lines = str(caught.value).splitlines()
        assert lines[0] == "a.parquet: needs a column of labels and one of scores. The columns are"
        assert len(lines) == 1 + len(data)

    def test_one_column_cannot_be_both(self) -> None:
        with pytest.raises(InputError, match=r"^a\.parquet: --label and --score both name column y$"):
            self.choose(y=[0, 1], p=[0.5, 0.5], label="y", score="y")

    def test_a_column_without_values_is_no_candidate(self) -> None:
        with pytest.raises(InputError, match=r"--label y --score SCORE$"):
            self.choose(y=[0, 1], x=[7, 8], p=pa.nulls(2))
        with pytest.raises(InputError, match=r"^a\.parquet: column p has a missing value at data row 1"):
            read("a.parquet", "y", "p")

    @pytest.mark.parametrize("values", STRANGE, ids=lambda values: str(values.type))
    def test_columns_of_any_type_are_read_or_refused(self, values: pa.Array) -> None:
        for data in (
            {"y": [0, 1, 1], "p": values},
            {"y": values, "p": [0.25, 0.5, 0.75]},
            {"a": [7, 8, 9], "b": [7, 8, 9], "p": values},
        ):
            write_arrow("a.arrow", pa.table(data))
            for names in ({}, {"label": next(iter(data)), "score": "p"}):
                for read_file in (take_in, partial(grouped_rows, groups="p")):
                    with suppress(InputError):
                        read_file(["a.arrow"], **names)
                        read_file(["a.arrow"], **names, pos_label="1")

    def test_a_dot_in_a_name_is_no_path_into_a_struct(self) -> None:
        assert self.choose(a=[{"b": 0.5}] * 2, **{"a.b": [True, False]}, p=[0.1, 0.2]) == ("a.b", "p")
        assert read("a.parquet", "a.b", "p")[0].tolist() == [True, False]

    def test_wide_files_are_not_listed_in_full(self) -> None:
        with pytest.raises(InputError) as caught:
            self.choose(**{f"x{j}": [0.5] for j in range(100)})
        assert len(str(caught.value).splitlines()) == 24
        assert "  and 80 more" in str(caught.value)

    @pytest.mark.parametrize(
        ("label", "hint"),
        [
            ("delayd", "did you mean delayed?"),
            ("DELAYED", "did you mean delayed?"),
            ("zzz", "it has delayed, p"),
        ],
    )
    def test_a_wrong_name_brings_the_close_one(self, label: str, hint: str) -> None:
        with pytest.raises(InputError) as caught:
            self.choose(delayed=[0, 1], p=[0.5, 0.5], label=label)
        assert str(caught.value) == f"a.parquet: no column {label} (--label); {hint}"

    def test_names_given_twice(self) -> None:
        rows = pa.Table.from_arrays(
            [pa.array([0, 1]), pa.array([0, 1]), pa.array([0.5, 0.5])], ["y", "y", "p"]
        )
        write_arrow("a.arrow", rows)
        with pytest.raises(InputError, match=r"2 columns are called y \(--label\)"):
            choose_columns(open_source("a.arrow"), "y", "p", command="")
        with pytest.raises(InputError, match="several columns have the same name: y, y, p"):
            choose_columns(open_source("a.arrow"), None, None, command="")

    @pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.npz", "a.npy", "a.arrow"])
    def test_files_without_rows(self, name: str) -> None:
        rows = table(0)
        {"a.csv": lambda: Path("a.csv").write_text("y,p\n")}.get(
            name, lambda: WRITERS[f"rows{name[1:]}"](name, rows)
        )()
        with pytest.raises(InputError, match=f"^{name}: no rows$"):
            take_in([name])
        with pytest.raises(InputError, match=f"^{name}: no rows$"):
            take_in([name], label="y" if name == "a.csv" else "late", score="p")


class TestIntake:
    @pytest.mark.parametrize("name", WRITERS)
    def test_small_inputs_give_what_python_gives(self, name: str) -> None:
        WRITERS[name](name, table(3000))
        given = take_in([name], label="late", score="p")
        labels, scores = columns(3000)
        assert isinstance(given.table, calcore.ScoreTable)
        expected = calcore.certify(labels, scores, rng=3)
        assert calcore.certify(given.table, rng=3).to_dict() == expected.to_dict()

    @pytest.mark.parametrize("size", [999, 1000, 1001, 1777])
    def test_beyond_the_limit_rows_go_into_cells(self, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(intake, "HELD_ROWS", 1000)
        for i, part in enumerate(np.split(np.arange(size), [300, 700])):
            parquet.write_table(table(size).take(pa.array(part)), f"{i}.parquet")
        given = take_in(["*.parquet"], label="late", score="p")
        labels, scores = columns(size)
        assert given.table.n == size
        assert given.table.n_positive == labels.sum()
        assert isinstance(given.table, calcore.ScoreTable) == (size <= 1000)
        if isinstance(given.table, calcore.CellTable):
            expected = calcore.CellTable().update(labels, scores)
            assert all(map(np.array_equal, given.table.cells(), expected.cells()))

    def test_a_grid_asked_for_is_used_at_once(self) -> None:
        parquet.write_table(table(100), "a.parquet")
        assert (
            take_in(["a.parquet"], label="late", score="p", grid="sqrt").table.describe()
            == "100,800 sqrt cells"
        )
        assert (
            take_in(["a.parquet"], label="late", score="p", n_cells=50).table.describe() == "50 linear cells"
        )

    def test_rare_events_get_a_fine_grid(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(intake, "HELD_ROWS", 20_000)
        scores = np.random.default_rng(SEED).beta(0.2, 199.8, 30_000)
        parquet.write_table(pa.table({"y": scores > 0.001, "p": scores}), "a.parquet")
        given = take_in(["a.parquet"])
        assert isinstance(given.table, calcore.CellTable)
        assert given.table.grid != "linear"

    @pytest.mark.parametrize("held", [10, 10_000])
    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            ({"p": 1.5}, r"column p must lie in \[0, 1\]; got 1\.5 at data row 1235$"),
            ({"p": float("nan")}, r"column p must lie in \[0, 1\]; got nan at data row 1235"),
            ({"y": 2}, "column y must hold labels 0/1 or -1/.1; got 2 at data row 1235"),
            ({"y": -1}, "column y must hold .* got -1 at data row 1235"),
        ],
    )
    def test_faults_are_located_before_and_after_the_limit(
        self, held: int, bad: dict[str, float], message: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(intake, "HELD_ROWS", held)
        monkeypatch.setattr(formats, "_CSV_BLOCK", 1000)
        rows: dict[str, NDArray[Any]] = {"y": np.tile([0, 1], 1000), "p": np.full(2000, 0.5)}
        write_csv("good.csv", pa.table(rows))
        for name, value in bad.items():
            rows[name][1234] = value
        write_csv("z.csv", pa.table(rows))
        with pytest.raises(InputError, match=f"^z.csv: {message}"):
            take_in(["good.csv", "z.csv"])

    def test_labels_have_one_meaning_in_all_files(self) -> None:
        for name, labels in (("a", [0, 1]), ("b", [True, True]), ("c", [1, -1])):
            parquet.write_table(pa.table({"y": labels, "p": [0.5, 0.25]}), f"{name}.parquet")
        assert take_in(["a.parquet", "b.parquet"]).table.n_positive == 3
        message = r"^c.parquet: column y must hold two labels; got -1 at data row 2 beside 1 and 0 \(from a"
        with pytest.raises(InputError, match=message):
            take_in(["a.parquet", "c.parquet"])

    @pytest.mark.parametrize(
        ("labels", "pos_label", "positives"),
        [
            (["no", "yes", "yes"], "yes", 2),
            ([1, 2, 2], "2", 2),
            ([1, 2, 2], "1", 1),
            ([True, False, True], "false", 1),
            (["a", "b", "b"], "b", 2),
            ([2**53, 2**53 + 1, 2**53 + 1], "9007199254740993", 2),
            ([2**53, 2**53 + 1, 2**53 + 1], "9007199254740992.0", 1),
            ([Decimal(2**53), Decimal(2**53 + 1), Decimal(2**53 + 1)], "9007199254740993", 2),
        ],
    )
    def test_positive_label_as_typed(self, labels: list[Any], pos_label: str, positives: int) -> None:
        rows = pa.table({"y": labels, "p": [0.5, 0.25, 0.75]})
        parquet.write_table(rows, "a.parquet")
        assert take_in(["a.parquet"], pos_label=pos_label).table.n_positive == positives
        parquet.write_table(rows.append_column("g", pa.array([1, 2, 3])), "a.parquet")
        grouped = grouped_rows(["a.parquet"], "g", label="y", score="p", pos_label=pos_label)
        assert grouped.labels.sum() == positives

    @pytest.mark.parametrize(
        ("labels", "pos_label", "message"),
        [
            (
                ["no", "yes"],
                None,
                r"holds text \(no, yes\): say which label is positive, --pos-label no or --pos-label yes",
            ),
            (["no", "yes"], "Yes", "--pos-label must be one of the labels of y .*; got 'Yes'"),
            ([1, 2], "two", "--pos-label two: column y holds numbers"),
            ([1, 2], "0_2", "--pos-label 0_2: column y holds numbers"),
            ([1, 2], "3", r"--pos-label must be one of the labels of y \(1, 2\); got 3$"),
            ([True, False], "2", "--pos-label 2: column y holds true and false"),
            ([1, 2], None, "column y must hold labels .* pass --pos-label 2 if 2 is the positive class"),
        ],
    )
    def test_positive_label_faults(self, labels: list[Any], pos_label: str | None, message: str) -> None:
        parquet.write_table(pa.table({"y": labels, "p": [0.5, 0.25]}), "a.parquet")
        with pytest.raises(InputError, match=message):
            take_in(["a.parquet"], label="y", score="p", pos_label=pos_label)

    def test_rounding_errors_are_clipped_by_the_rule_of_their_own_type(self) -> None:
        parquet.write_table(
            pa.table({"y": [1, 0], "p": pa.array([1.0000001, 0.5], pa.float32())}), "a.parquet"
        )
        parquet.write_table(pa.table({"y": [1, 0], "p": [0.25, 0.5]}), "b.parquet")
        assert take_in(["a.parquet"]).table.n_clipped == 1
        assert take_in(["a.parquet", "b.parquet"]).table.n == 4
        assert take_in(["a.parquet", "b.parquet"]).table.n_clipped == 1
        assert take_in(["a.parquet", "b.parquet"], grid="linear").table.n_clipped == 1

    def test_tables_and_rows_add_up(self) -> None:
        labels, scores = columns(900)
        for i, part in enumerate(np.split(np.arange(900), 3)):
            calcore.CellTable().update(labels[part], scores[part]).save(f"{i}.cells")
            parquet.write_table(pa.table({"late": labels[part], "p": scores[part]}), f"{i}.parquet")
        whole = calcore.CellTable().update(labels, scores)
        for patterns in (
            ["*.cells"],
            ["0.cells", "1.parquet", "2.parquet"],
            ["1.cells", "2.cells", "0.parquet"],
        ):
            given = take_in(patterns)
            assert all(map(np.array_equal, given.table.cells(), whole.cells()))
        assert take_in(["*.cells"]).label is None

    def test_tables_of_different_cells_do_not_add_up(self) -> None:
        calcore.CellTable().update([1], [0.5]).save("a.cells")
        calcore.CellTable(grid="sqrt").update([1], [0.5]).save("b.cells")
        with pytest.raises(InputError, match=r"^b.cells: it must have the same grid; got 100,800 sqrt cells"):
            take_in(["a.cells", "b.cells"])
        with pytest.raises(InputError, match=r"^a.cells has 100,800 linear cells already: leave out --grid"):
            take_in(["a.cells"], grid="sqrt")

    @pytest.mark.parametrize("option", ["label", "score", "pos_label"])
    def test_columns_are_no_matter_for_a_saved_table(self, option: str) -> None:
        calcore.CellTable().update([1], [0.5]).save("a.cells")
        words = f"^a.cells: a saved table has its columns already: leave out --{option.replace('_', '-')}$"
        with pytest.raises(InputError, match=words):
            take_in(["a.cells"], **{option: "y"})

    def test_labels_of_files_of_different_types_are_not_rounded(self) -> None:
        big = 2**63 - 1
        parquet.write_table(pa.table({"y": [big, big - 1], "p": [0.5, 0.25]}), "a.parquet")
        labels = pa.array([big, big - 1], pa.uint64())
        parquet.write_table(pa.table({"y": labels, "p": [0.5, 0.25]}), "b.parquet")
        assert take_in(["*.parquet"], label="y", score="p", pos_label=str(big)).table.n_positive == 2

    def test_a_damaged_table_is_named(self) -> None:
        calcore.CellTable().update([1], [0.5]).save("a.cells")
        Path("a.cells").write_bytes(Path("a.cells").read_bytes()[:-3])
        with pytest.raises(InputError, match=r"^a.cells: is damaged"):
            take_in(["a.cells"])

    def test_groups_are_those_of_python(self) -> None:
        labels, scores = columns(2000)
        who = [f"user {i % 300}" for i in range(2000)]
        rows = pa.table({"y": labels, "p": scores, "who": who})
        parquet.write_table(rows.slice(0, 900), "a.parquet")
        parquet.write_table(rows.slice(900), "b.parquet")
        given = grouped_rows(["a.parquet", "b.parquet"], "who", label="y", score="p")
        assert calcore.certify(given.labels, given.scores[0], groups=given.groups.codes, rng=5).to_dict() == (
            calcore.certify(labels, scores, groups=who, rng=5).to_dict()
        )

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
    def test_groups_of_floats_are_equal_as_numbers(self, dtype: type) -> None:
        who = np.array([0.0, -0.0, 0.5], dtype)
        np.savez("a.npz", y=np.array([0, 1, 1]), p=np.full(3, 0.5), g=who)
        given = grouped_rows(["a.npz"], "g", label="y", score="p")
        assert given.groups.codes.tolist() == [0, 0, 1]

    def test_group_faults(self) -> None:
        parquet.write_table(pa.table({"y": [0, 1], "p": [0.5, 0.5], "g": [1, None]}), "a.parquet")
        with pytest.raises(InputError, match=r"^a.parquet: column g has a missing value at data row 2"):
            grouped_rows(["a.parquet"], "g", label="y", score="p")
        parquet.write_table(pa.table({"y": [0, 1], "p": [0.5, 0.5], "g": [1, np.nan]}), "nan.parquet")
        with pytest.raises(InputError, match=r"^nan.parquet: column g has a missing value at data row 2"):
            grouped_rows(["nan.parquet"], "g", label="y", score="p")
        with pytest.raises(InputError, match=r"^a.parquet: no column who \(--groups\); it has y, p, g"):
            grouped_rows(["a.parquet"], "who", label="y", score="p")
        calcore.CellTable().update([1], [0.5]).save("a.cells")
        with pytest.raises(
            InputError, match=r"^a.cells: a saved table has no rows to draw from \(--groups\)"
        ):
            grouped_rows(["a.cells"], "g")

    def test_progress_is_of_bytes_and_rows(self) -> None:
        for name in ("rows.parquet", "rows.csv.gz"):
            WRITERS[name](name, table(2000))
        calls: list[tuple[float, int]] = []
        take_in(
            ["rows.*"],
            label="late",
            score="p",
            progress=lambda fraction, rows: calls.append((fraction, rows)),
        )
        assert calls == sorted(calls)
        assert calls[-1] == (1.0, 4000)


class TestWriting:
    @staticmethod
    def blocks(n: int) -> Callable[[], Iterator[Sequence[NDArray[Any]]]]:
        labels, scores = columns(n)
        return lambda: ((labels[i : i + 100], scores[i : i + 100]) for i in range(0, n, 100))

    @pytest.mark.parametrize("suffix", ["parquet", "pq", "arrow", "feather", "ipc", "csv", "csv.gz", "npz"])
    def test_what_is_written_is_read(self, suffix: str) -> None:
        calls: list[tuple[float, int]] = []
        write_columns(
            f"a.{suffix}", ("y", "p"), self.blocks(1234), 1234, progress=lambda *call: calls.append(call)
        )
        labels, scores = read(f"a.{suffix}", "y", "p")
        expected_labels, expected_scores = columns(1234)
        assert np.array_equal(labels, expected_labels)
        assert np.array_equal(scores, expected_scores)
        assert calls == sorted(calls)
        assert calls[-1] == (1.0, 1234)
        assert os.listdir() == [f"a.{suffix}"]
        strange = os.fsdecode(f"\xfc.{suffix}".encode("latin-1"))
        write_columns(strange, ("y", "p"), self.blocks(100), 100)
        assert len(read(strange, "y", "p")[0]) == 100

    @pytest.mark.parametrize("suffix", ["parquet", "csv.gz", "npz"])
    @pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
    def test_a_stop_on_the_way_leaves_what_was_there(self, suffix: str, error: type[BaseException]) -> None:
        Path(f"a.{suffix}").write_text("before")

        def stopping() -> Iterator[Sequence[NDArray[Any]]]:
            yield from self.blocks(1000)()
            raise error

        with pytest.raises(error):
            write_columns(f"a.{suffix}", ("y", "p"), stopping, 2000)
        assert os.listdir() == [f"a.{suffix}"]
        assert Path(f"a.{suffix}").read_text() == "before"

    def test_faults(self) -> None:
        with pytest.raises(InputError, match=r"^a.txt: unknown kind of file; writable are \.parquet, "):
            write_columns("a.txt", ("y", "p"), self.blocks(10), 10)
        with pytest.raises(InputError, match=r"^no/a.csv: no such directory$"):
            write_columns("no/a.csv", ("y", "p"), self.blocks(10), 10)

    def test_replacing_a_directory_fails_cleanly(self) -> None:
        Path("d").mkdir()
        with pytest.raises(InputError, match=r"^d: is a directory; name a file to write$"), replacing("d"):
            pass
        assert os.listdir() == ["d"]

    @pytest.mark.parametrize(
        ("path", "message"),
        [
            ("pipe", "pipe: is not a regular file; name a file to write"),
            ("to pipe", "to pipe: is not a regular file; name a file to write"),
            ("socket", "socket: is not a regular file; name a file to write"),
            ("d", "d: is a directory; name a file to write"),
            ("d/", "d/: is a directory; name a file to write"),
            ("no/x.npz", "no/x.npz: no such directory"),
            ("no/", "the output must be the name of a file; got 'no/'"),
            ("", "the output must be the name of a file; got ''"),
        ],
    )
    def test_only_files_are_replaced(self, path: str, message: str) -> None:
        os.mkfifo("pipe")
        os.symlink("pipe", "to pipe")
        Path("d").mkdir()
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("socket")
            for refuse in (
                lambda: replacing(path).__enter__(),
                lambda: spare(path, force=True),
            ):
                with pytest.raises(InputError) as caught:
                    refuse()
                assert str(caught.value) == message
        assert sorted(os.listdir()) == ["d", "pipe", "socket", "to pipe"]
        assert stat.S_ISFIFO(os.stat("pipe").st_mode)

    def test_a_link_stays_and_its_file_keeps_its_permissions(self) -> None:
        Path("a.npz").touch(mode=0o600)
        Path("link.npz").symlink_to("a.npz")
        write_columns("link.npz", ("y", "p"), self.blocks(100), 100)
        assert Path("link.npz").is_symlink()
        assert stat.S_IMODE(os.stat("a.npz").st_mode) == 0o600
        assert open_source("a.npz").n_rows == 100

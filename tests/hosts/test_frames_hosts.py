"""Cell tables of DuckDB relations, Dask frames and Spark frames: the core's, bit for bit."""

from __future__ import annotations

import re

import dask.dataframe as dd
import duckdb
import frame_cases as cases
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from calcore_bindings.frames import cell_table
from dask.distributed import Client, LocalCluster
from frame_cases import FAULTS, KINDS, MISSING, S, Y, same
from pyspark.sql import SparkSession

import calcore

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def spark():
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    yield session
    session.stop()


def of_duckdb(table: pa.Table):
    return duckdb.from_arrow(table)


def of_dask(table: pa.Table):
    return dd.from_pandas(table.to_pandas(types_mapper=pd.ArrowDtype), npartitions=3)


LOCAL = {"DuckDB": of_duckdb, "Dask": of_dask}


@pytest.fixture(params=LOCAL)
def engine(request):
    return LOCAL[request.param]


@pytest.fixture(scope="module")
def of_spark(spark, tmp_path_factory):
    """Through Parquet, in two files: unsigned integers, decimals and missing values as Spark reads them."""
    folder = tmp_path_factory.mktemp("frames")

    def frame(table: pa.Table):
        path = folder / str(len(list(folder.iterdir())))
        path.mkdir()
        half = len(table) // 2
        for i, part in enumerate((table.slice(0, half), table.slice(half))):
            pa.parquet.write_table(part, path / f"{i}.parquet")
        return spark.read.parquet(str(path))

    return frame


@pytest.mark.parametrize("grid", cases.GRIDS)
def test_equals_the_core(engine, grid):
    cases.equals_the_core(engine, [(grid, 7), (grid, 1000), (grid, 100_800)])


@pytest.mark.parametrize("grid", cases.GRIDS)
def test_spark_equals_the_core(of_spark, grid):
    cases.equals_the_core(of_spark, [(grid, 100_800)])


def test_segments_and_scores(engine):
    cases.segments_and_scores(engine)


def test_segments_and_scores_of_spark(of_spark):
    cases.segments_and_scores(of_spark)


@pytest.mark.parametrize("name", KINDS)
def test_kinds_of_columns(engine, name):
    cases.kind(engine, name)


@pytest.mark.parametrize("name", ["text", "decimals", "bool labels", "clipped float32", "minus one"])
def test_kinds_of_columns_of_spark(of_spark, name):
    cases.kind(of_spark, name)


def refused(frames, name):
    columns, options, message = FAULTS[name]
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        cell_table(frames(cases.fault_columns(columns)), **({"score": "s", "label": "y"} | options))


@pytest.mark.parametrize("name", FAULTS)
def test_faults(engine, name):
    refused(engine, name)


@pytest.mark.parametrize("name", ["nan", "logits", "classes", "0 and -1", "three texts", "missing segment"])
def test_faults_of_spark(of_spark, name):
    refused(of_spark, name)


def missing(frames, name):
    columns, message = MISSING[name]
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        cell_table(frames(cases.fault_columns(columns)), score="s", label="y")


@pytest.mark.parametrize("name", MISSING)
def test_missing_values(engine, name):
    missing(engine, name)


@pytest.mark.parametrize("name", MISSING)
def test_missing_values_of_spark(of_spark, name):
    missing(of_spark, name)


def test_names_of_spark(of_spark):
    """A dot in a column's name is no field of a struct."""
    table = cell_table(of_spark(pa.table({"it's `y`": Y, "p.1 x": S})), score="p.1 x", label="it's `y`")
    assert same(table, calcore.CellTable().update(Y, S))


def test_sql_of_duckdb(tmp_path):
    labels, scores, table = cases.awkward(1000)
    pa.parquet.write_table(table, tmp_path / "a.parquet")
    query = f"""select "p.1" as p, "it is" = 1 as y from '{tmp_path}/*.parquet' union all select 0.3, true"""
    found = cell_table(duckdb.sql(query), score="p", label="y")
    assert same(found, calcore.CellTable().update([*labels, 1], [*scores, 0.3]))


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_partitions_of_dask(parts):
    """Some of them empty, in any order, lazy, and on two processes."""
    labels, scores, table = cases.awkward(1000)
    order = np.random.default_rng(parts).permutation(len(scores))
    frame = table.take(order).to_pandas()
    pieces = dd.concat(
        [dd.from_pandas(frame, npartitions=parts), dd.from_pandas(frame, npartitions=2).query("`it is` > 5")]
    )
    assert same(cell_table(pieces, score="p.1", label="it is"), calcore.CellTable().update(labels, scores))


def test_processes_of_dask():
    labels, scores, table = cases.awkward(1000)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        found = cell_table(of_dask(table), score="p.1", label="it is")
    assert same(found, calcore.CellTable().update(labels, scores))


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_partitions_of_spark(spark, parts):
    labels, scores, table = cases.awkward(7)
    frame = spark.createDataFrame(table.to_pandas()).repartition(parts)
    empty = frame.where("`it is` > 5")
    found = cell_table(frame.union(empty), score="p.1", label="it is", grid="sqrt")
    assert same(found, calcore.CellTable(grid="sqrt").update(labels, scores))


def test_dask_partitions_of_pandas_without_arrow():
    """NaN in a column of floats is no missing value there, as in pandas."""
    frame = dd.from_pandas(pd.DataFrame({"y": Y, "s": [np.nan, *S[1:]]}), npartitions=2)
    with pytest.raises(ValueError, match=r"score must lie in .*got nan in column 's': drop or fill"):
        cell_table(frame, score="s", label="y")

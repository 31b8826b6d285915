"""The rules of the layout, held by reading the source: one direction of imports, one list of public names."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import calcore

ROOT = Path(calcore.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))

# Each layer may import the layers before it and its own kind; a module's layer is its longest matching
# prefix.
LAYERS = (
    ("calcore.kernels",),
    ("calcore._validate", "calcore._classes", "calcore.bounds", "calcore.figures"),
    ("calcore.binning", "calcore.smoothing", "calcore.total_variation"),
    ("calcore.table",),
    ("calcore.results", "calcore.perturbation"),
    ("calcore.binned", "calcore.unbinned", "calcore.truthful", "calcore.scoring"),
    ("calcore.recalibration", "calcore.dominance", "calcore.comparison", "calcore.diagrams"),
    ("calcore.certificates", "calcore.simulate", "calcore.datasets"),
    ("calcore.semantic",),
    ("calcore.planning", "calcore.monitor", "calcore.drift"),
    ("calcore.reference",),
    ("calcore.report",),
    ("calcore.evaluation",),
    ("calcore.report.page", "calcore.report.sections"),
    ("calcore.files",),
    ("calcore.cli", "calcore.demo"),
    ("calcore.__main__",),
)
THIRD_PARTY = {"numpy", "scipy"}
EXTRAS = {
    "calcore.cli": {"typer", "rich", "pyarrow", "click"},
    "calcore.files": {"pyarrow"},
    "calcore.reference": {"cvxpy"},
    "calcore.simulate": {"pyarrow"},
    "calcore.datasets": {"pyarrow"},
    "calcore.demo": {"rich"},
    "calcore.report": {"rich", "jinja2"},
    "calcore.figures": {"matplotlib"},
    "calcore.semantic": {"openai", "pyarrow", "sentence_transformers"},
}

BINDINGS = ROOT.parent / "bindings" / "calcore_bindings"
HOSTS = {"frames": {"narwhals"}}
"""By binding: what it may import besides."""


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer(name: str) -> int:
    best = max(
        (
            (len(prefix), i)
            for i, group in enumerate(LAYERS)
            for prefix in group
            if (name + ".").startswith(prefix + ".")
        ),
        default=None,
    )
    assert best is not None, f"{name} belongs to no layer; add it to LAYERS"
    return best[1]


def imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            found.append(node.module)
            if node.module == "calcore":
                found += [f"calcore.{a.name}" for a in node.names if (ROOT / f"{a.name}.py").exists()]
                found += [f"calcore.{a.name}" for a in node.names if (ROOT / a.name).is_dir()]
    return found


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_imports_go_one_way(path: Path) -> None:
    name = module_name(path)
    if name == "calcore":  # public names only, loaded on first use
        return
    for target in imports(path):
        if target.startswith("calcore."):
            assert layer(target) <= layer(name), f"{name} imports {target}, which comes later"


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_third_parties(path: Path) -> None:
    name = module_name(path)
    allowed = THIRD_PARTY | set(sys.stdlib_module_names) | {"calcore"}
    if name.startswith("calcore.kernels"):
        allowed = {"numpy", "numba", "math", "calcore", "__future__", "typing", "collections", "llvmlite"}
    allowed |= next(
        (extra for prefix, extra in EXTRAS.items() if (name + ".").startswith(prefix + ".")), set()
    )
    roots = {target.split(".")[0] for target in imports(path)}
    assert roots <= allowed, f"{name} imports {roots - allowed}"


@pytest.mark.parametrize("path", sorted(BINDINGS.rglob("*.py")), ids=lambda path: path.stem)
def test_bindings_import_public_names_and_their_host(path: Path) -> None:
    """Adapters: calcore itself and no module of it, no other binding, NumPy, and the one host."""
    public = [target for target in imports(path) if target.split(".")[0] in ("calcore", "calcore_bindings")]
    assert set(public) <= {"calcore"}, f"{path.stem} imports {public}"
    names = {
        node.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "calcore"
    }
    assert names <= set(calcore.__all__), f"{path.stem} uses {names - set(calcore.__all__)}"
    roots = {target.split(".")[0] for target in imports(path)}
    assert roots <= {"calcore", "numpy"} | set(sys.stdlib_module_names) | HOSTS.get(path.stem, set())


def test_nobody_sorts_or_checks_after_the_table() -> None:
    """Certificates work on tables: they call no input check on columns and sort no scores."""
    entries = {"__init__.py", "multiclass.py", "groups.py", "difference.py", "options.py"}
    for path in (ROOT / "certificates").rglob("*.py"):
        if path.name in entries:  # what users call
            continue
        assert not any(t.endswith("_validate") for t in imports(path)), path
        calls = {
            n.func.attr
            for n in ast.walk(ast.parse(path.read_text()))
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)
        }
        assert "sort" not in calls, path


def test_public_names() -> None:
    assert sorted(calcore.__all__) == [
        "AurocLoss",
        "BinCounts",
        "BinTable",
        "BlackwellComparison",
        "BrierDecomposition",
        "CalibrationMonitor",
        "CalibrationTest",
        "CellTable",
        "Certificate",
        "CertificateSet",
        "CertifiedDifference",
        "ClassesEvaluation",
        "ClasswiseReliability",
        "ClinicalCalibration",
        "CorpDecomposition",
        "DominanceChain",
        "Ecce",
        "EceCurve",
        "Evaluation",
        "ModelComparison",
        "ModelsEvaluation",
        "Optimality",
        "RankingAgreement",
        "RankingVerdict",
        "ReliabilityDiagram",
        "ResidualMap",
        "RiskCoverage",
        "ScoreTable",
        "TemperatureScaling",
        "__version__",
        "auroc",
        "auroc_loss",
        "bernstein",
        "binary_lin_ce",
        "binary_lin_ece",
        "blackwell_compare",
        "brier_decomposition",
        "brier_score",
        "calibration_table",
        "calibration_test",
        "certify",
        "certify_classwise",
        "certify_difference",
        "certify_groups",
        "certify_top_label",
        "classwise_brier",
        "classwise_ece",
        "classwise_lin_ce",
        "classwise_lin_ece",
        "clinical_calibration",
        "compare",
        "conf_ce",
        "conf_ece",
        "confidence_ece",
        "confidence_loss",
        "corp",
        "debiased_ece",
        "debiased_squared_ece",
        "dkw",
        "dominance_chain",
        "drift_test",
        "ecce",
        "ece",
        "ece_curve",
        "empirical_bernstein",
        "evaluate",
        "evaluate_models",
        "full_ece",
        "hoeffding",
        "kernel_ce",
        "kernel_ce_curve",
        "kl_lower",
        "kl_upper",
        "lin_ce",
        "lin_ece",
        "log_loss",
        "mce",
        "multiclass_lin_ce",
        "nadaraya_watson",
        "perturb",
        "quantile_bins",
        "rank_bins",
        "ranking_agreement",
        "ranking_verdict",
        "reliability",
        "reliability_classwise",
        "reliability_top_label",
        "residual_map",
        "risk_coverage",
        "rows_needed",
        "sensitivity",
        "smooth_ece",
        "tv_denoise",
        "tv_gap",
        "uncorrected_conf_ce",
        "uniform_bins",
    ]
    assert all(getattr(calcore, name) is not None for name in calcore.__all__)
    assert set(calcore.__all__) <= set(dir(calcore))
    named = set(re.findall(r"`(\w+)`", calcore.__doc__ or ""))
    assert set(calcore.__all__) - {"__version__"} <= named, "the package's help leaves out names"
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = calcore.nonsense


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import calcore; calcore.__version__", ["numpy", "numba", "scipy", "pyarrow", "typer"]),
        (
            "import calcore; calcore.certify",
            ["pandas", "polars", "pyarrow", "typer", "rich", "torch", "sklearn", "matplotlib", "narwhals"],
        ),
        ("import calcore_bindings", ["calcore", "numpy", "narwhals", "pandas", "polars", "pyarrow"]),
        ("import calcore_bindings.frames", ["pandas", "polars", "pyarrow", "duckdb", "dask", "pyspark"]),
    ],
)
def test_imports_nothing_heavy(statement: str, absent: list[str]) -> None:
    code = f"{statement}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    loaded = set(json.loads(out))
    assert not loaded & set(absent)


def test_every_kernel_uses_the_one_decorator() -> None:
    for path in (ROOT / "kernels").glob("*.py"):
        if path.name in ("_jit.py", "__init__.py"):
            continue
        text = path.read_text()
        assert "njit(" not in text, f"{path.name} compiles by itself"
        assert "@njit" not in text, f"{path.name} compiles by itself"


def test_no_skips() -> None:
    here = Path(__file__).parent
    for path in here.rglob("*.py"):
        if path == Path(__file__):
            continue
        text = path.read_text()
        for word in ("importorskip", "pytest.skip", "mark.skip"):
            assert word not in text, f"{path.name}: {word}"

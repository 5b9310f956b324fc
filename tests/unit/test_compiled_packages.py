"""The host compiles all Python files of a small package. For a large package, it compiles only the files that an
import of the package reads.
"""

from pathlib import Path

from evaluator_host.engine.environments.build.byte_code import with_small_packages


def packages(folder: Path, **modules: int) -> Path:
    for package, count in modules.items():
        (folder / package / "inner").mkdir(parents=True)
        for number in range(count - 1):
            (folder / package / "inner" / f"m{number}.py").touch()
        (folder / package / "__init__.py").touch()
        (folder / package / "data.json").touch()
    (folder / "alone.py").touch()
    (folder / "other.py").touch()
    return folder


def test_of_a_small_package_all_files_are_compiled_and_of_a_large_one_those_that_its_import_reads(
    tmp_path: Path,
) -> None:
    files = packages(tmp_path, small=3, most=300, large=301, unused=2)
    read = ["alone.py", *(f"{package}/__init__.py" for package in ("small", "most", "large"))]
    wanted = with_small_packages(files, read)
    small = {"small/__init__.py", "small/inner/m0.py", "small/inner/m1.py"}
    assert {name for name in wanted if not name.startswith("most/")} == {*small, "alone.py", "large/__init__.py"}
    assert len(wanted) == len(small) + 300 + 2


def test_a_package_that_is_gone_or_a_link_elsewhere_adds_nothing(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (packages(tmp_path / "elsewhere", mine=2)).joinpath("mine").rename(tmp_path / "mine")
    (tmp_path / "files" / "link").symlink_to(tmp_path / "mine")
    assert with_small_packages(tmp_path / "files", ["gone/a.py", "link/__init__.py"]) == {
        "gone/a.py",
        "link/__init__.py",
    }

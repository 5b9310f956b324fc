"""Opens the folders in which a host stores rows and files."""

from evaluator_host.engine.config.settings import Settings
from evaluator_host.platform.datasets.files import FILES, FileFolder, RowsFolder
from evaluator_host.platform.datasets.orphan_files import OrphanFiles


def rows_folder(settings: Settings) -> RowsFolder:
    """Return the folder for the rows of data sets: in the data directory, or in object storage that hosts share.

    Raises:
      Misconfigured: the URL of the object storage is not valid.
    """
    folder = settings.data_dir / "datasets"
    if settings.storage_url is None:
        return RowsFolder(folder)
    from evaluator_host.platform.datasets.object_rows import ObjectRows  # noqa: PLC0415 - an extra

    return ObjectRows(folder, settings.storage_url)


def orphan_files(settings: Settings) -> OrphanFiles:
    """Return the object that removes rows and files to which the host's database does not refer."""
    files = FileFolder(settings.data_dir / FILES)
    return OrphanFiles(settings.data_dir, rows_folder(settings), files)

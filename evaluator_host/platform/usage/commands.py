"""`usage`: what workspaces store."""

from evaluator_host.platform.terminal import options
from evaluator_host.platform.terminal.command import load_settings
from evaluator_host.platform.terminal.console import print_found, table
from evaluator_host.platform.terminal.local_store import with_store


def usage(
    *, url: options.UrlOption = None, data_dir: options.DataDirOption = None, as_json: options.JsonOption = False
) -> None:
    """Show what workspaces store, the largest first; with --url, the workspace of the key alone."""
    if url is not None:
        from evaluator_host.platform.terminal.remote_host import host  # noqa: PLC0415 - other commands need no client

        with host(url) as client:
            found = [client.usage()]
    else:
        settings = load_settings(data_dir=data_dir)
        found = with_store(settings, lambda store: store.usage.list_usage())
    kinds = ("datasets", "files", "evaluators", "jobs", "traces")
    rows = [
        (
            one.workspace,
            _megabytes(one.total_bytes),
            _megabytes(one.quota_bytes) if one.quota_bytes else "any",
            *(_megabytes(getattr(one, f"{kind}_bytes")) for kind in kinds),
        )
        for one in found
    ]
    header = ("WORKSPACE", "MB", "OF", *(kind.upper() for kind in kinds))
    print_found(found, lambda _: table(header, rows), as_json=as_json)


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):.1f}"

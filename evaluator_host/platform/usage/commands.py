"""`usage`: what workspaces store."""

from dataclasses import fields

from evaluator_host.platform.terminal import options
from evaluator_host.platform.terminal.command import load_settings
from evaluator_host.platform.terminal.console import print_found, table
from evaluator_host.platform.terminal.local_store import with_store
from evaluator_host.types.numbers import size_text
from evaluator_host.types.stored import UsageReport

_KINDS = [one.name for one in fields(UsageReport) if one.name.endswith("_bytes") and one.name != "quota_bytes"]
_HEADER = ("WORKSPACE", "LIMIT", "TOTAL", *(kind.removesuffix("_bytes").upper() for kind in _KINDS[1:]))


def usage(
    *,
    url: options.UrlOption = None,
    all_workspaces: options.AllWorkspacesOption = False,
    data_dir: options.DataDirOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Show what workspaces store, the largest first; with --url, or after `login`, only the key's own workspace."""
    if url is not None and not all_workspaces:
        from evaluator_host.platform.terminal.remote_host import host  # noqa: PLC0415 - other commands need no client

        with host(url) as client:
            found = [client.usage()]
        header, cells = _HEADER, [(one.workspace, _limit(one), *_sizes(one)) for one in found]
    else:  # the limit is left out: only the host knows it, since this command may have other settings
        found = with_store(load_settings(data_dir=data_dir), lambda store: store.usage.list_usage())
        header, cells = (_HEADER[0], *_HEADER[2:]), [(one.workspace, *_sizes(one)) for one in found]
    print_found(found, lambda _: table(header, cells), as_json=as_json, none="no workspace stores anything")


def _limit(one: UsageReport) -> str:
    return size_text(one.quota_bytes) if one.quota_bytes else "any"


def _sizes(one: UsageReport) -> tuple[str, ...]:
    return tuple(size_text(getattr(one, kind)) for kind in _KINDS)

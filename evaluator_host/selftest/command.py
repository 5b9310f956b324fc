"""`selftest`: attacks this deployment with hostile evaluators and reports which attacks were stopped."""

import os
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from evaluator_host.engine.config.settings import SandboxChoice, Settings
from evaluator_host.platform.terminal import options
from evaluator_host.platform.terminal.command import load_settings, run_async
from evaluator_host.platform.terminal.console import err, out, plain, print_json
from evaluator_host.selftest.attack import Attack, Group, Guard
from evaluator_host.selftest.catalogue import load_attacks
from evaluator_host.selftest.host import load_host_attacks, missing_file
from evaluator_host.selftest.runner import SelftestReport, attack_deployment
from evaluator_host.selftest.trial import AttackResult, AttackVerdict
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Language
from evaluator_host.types.names import counted

_GOT_THROUGH: Final = 1
_COULD_NOT_RUN: Final = 3
_MARKS: Final = {
    AttackVerdict.STOPPED: ("ok", "green"),
    AttackVerdict.GOT_THROUGH: ("NO", "bold red"),
    AttackVerdict.NOT_RUN: ("??", "yellow"),
}

_RENEW_RUNNER: Final = (
    "the runner in the sandbox belongs to another version: reinstall Evaluator Host, and with Docker run "
    "`evaluator-host images build`"
)
_GRANT_LIMITS: Final = (
    "grant the host cgroups with memory and pids (systemd: Delegate=yes), or use docker; `evaluator-host doctor` says "
    "which limits are in force"
)
_ALWAYS: Final = "let only people you trust use this host, and report the finding as SECURITY.md says"

_ADVICE: Final[dict[Guard, str]] = {
    Guard.NETWORK: "sandboxes have a network: look for an engine, wrapper or OCI hook that adds one to containers",
    Guard.ROOT: "sandboxes see files of this machine: look for an engine or OCI hook that mounts into containers",
    Guard.READ_ONLY: "sandboxes can write to their root: look for a runtime that ignores a read-only root",
    Guard.PROC: "sandboxes see processes of this machine: look for a runtime that shares the pid namespace",
    Guard.IPC: "sandboxes share IPC objects: look for a runtime that shares the ipc namespace",
    Guard.SECCOMP: "the seccomp filter has no effect: use a kernel, engine and runtime with seccomp",
    Guard.CAPABILITIES: "code in sandboxes has extra rights: look for an engine that adds capabilities or another user",
    Guard.ENVIRONMENT: "the host's environment reaches sandboxes: look for an engine or wrapper that passes it on",
    Guard.MEMORY: _GRANT_LIMITS,
    Guard.PROCESSES: _GRANT_LIMITS,
    Guard.DISK: "sandboxes may write without limit: look for a runtime that ignores the size of a tmpfs",
}

BackendOption = Annotated[
    SandboxChoice | None,
    typer.Option(
        help="Kind of sandbox to attack: auto, bubblewrap or docker. Default: the host's backend.", show_default=False
    ),
]
GroupOption = Annotated[
    list[Group] | None,
    typer.Option(metavar="|".join(Group), help="Run only this group of attacks. Repeatable.", show_default="all"),
]
LanguagesOption = Annotated[
    list[Language] | None,
    typer.Option(metavar="|".join(Language), help="Run only attacks in this language. Repeatable.", show_default="all"),
]


def selftest(
    *,
    backend: BackendOption = None,
    group: GroupOption = None,
    language: LanguagesOption = None,
    data_dir: options.DataDirOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Attack this deployment with hostile evaluators.

    Exit 0 if every attack was stopped, 1 if not, 3 if none can run.
    """
    attacks = _possible(_chosen(group, language))
    settings = load_settings(sandbox=backend, data_dir=data_dir)
    report = run_async(lambda: _attacked(settings, attacks))
    if as_json:
        print_json(_as_json(report))
    else:
        out.print(_table(report))
    raise typer.Exit(_exit_code(report))


def _chosen(groups: Sequence[Group] | None, languages: Sequence[Language] | None) -> list[Attack]:
    chosen = [
        attack
        for attack in (*load_attacks(), *load_host_attacks())
        if attack.safe and attack.group in (groups or Group) and attack.language in (languages or Language)
    ]
    if not chosen:
        raise InvalidRequest("the catalogue has no attack of that group and language; leave out --group or --language")
    return chosen


def _possible(attacks: Sequence[Attack]) -> list[Attack]:
    """Return the attacks that can be made with the packages installed here. Print why the others are left out."""
    possible = []
    for attack in attacks:
        missing = missing_file(attack) if attack.group is Group.HOST else None
        if missing is None:
            possible.append(attack)
        else:
            err.print(plain(f"left out the attack {attack.name}: {missing}"))
    return possible


async def _attacked(settings: Settings, attacks: Sequence[Attack]) -> SelftestReport:
    done = 0
    left = Counter(map(_heading, attacks))
    with err.status(counted(len(attacks), "attack")) as status:  # shown on terminals only

        def progress(result: AttackResult) -> None:
            nonlocal done
            done += 1
            status.update(f"{done} of {len(attacks)} attacks; {result.attack.name}: {result.verdict}")
            heading = _heading(result.attack)
            left[heading] -= 1
            if not left[heading] and not err.is_terminal:
                err.print(f"{heading} is done: {done} of {len(attacks)} attacks")

        return await attack_deployment(settings, attacks, at_once=_at_once(), progress=progress)


def _at_once() -> int:
    """Return how many attacks run at a time.

    Most attacks only wait, but too many at once would slow down a host that is in use.
    """
    return max(2, min(8, 2 * (os.cpu_count() or 1)))


def _advice(attack: Attack) -> str:
    """Return what to do if this attack got through. The advice depends on the guard that should have stopped it."""
    known = [_ADVICE[guard] for guard in sorted(attack.without) if guard in _ADVICE]
    return "; ".join([known[0] if known else _RENEW_RUNNER, _ALWAYS])


def _exit_code(report: SelftestReport) -> int:
    if report.host or any(one.verdict is AttackVerdict.GOT_THROUGH for one in report.results):
        return _GOT_THROUGH
    return 0 if report.passed else _COULD_NOT_RUN


def _as_json(report: SelftestReport) -> dict[str, Any]:
    return {
        "passed": report.passed,
        "backend": report.backend,
        "seconds": round(report.seconds, 1),
        "host": list(report.host),
        "attacks": [
            {
                "name": one.attack.name,
                "group": one.attack.group,
                "language": one.attack.language,
                "verdict": one.verdict,
                "why": one.attack.why,
                "like": list(one.attack.like),
                "outcome": one.outcome,
                "problems": list(one.problems),
                "advice": _advice(one.attack) if one.verdict is AttackVerdict.GOT_THROUGH else None,
                "seconds": round(one.seconds, 2),
            }
            for one in report.results
        ],
    }


def _table(report: SelftestReport) -> Text:
    made = Text()
    width = max(len(one.attack.name) for one in report.results)
    heading = ""
    for one in sorted(report.results, key=lambda one: _heading(one.attack)):
        if _heading(one.attack) != heading:
            heading = _heading(one.attack)
            made.append(f"{heading}\n", style="bold")
        mark, style = _MARKS[one.verdict]
        said = one.attack.why if one.verdict is AttackVerdict.STOPPED else "; ".join(one.problems)
        made.append(f"  {mark}", style=style).append(f"  {one.attack.name:<{width}}  {plain(said)}\n")
        if one.verdict is AttackVerdict.GOT_THROUGH:
            made.append(f"{'':<{width + 8}}what to do: {_advice(one.attack)}\n")
    for problem in report.host:
        made.append("host\n  NO", style="bold red").append(f"  {plain(problem)}\n")
    made.append(f"\n{_summary(report)}")
    return made


def _heading(attack: Attack) -> str:
    return f"{attack.language} {attack.group}"


def _summary(report: SelftestReport) -> str:
    counts = {verdict: sum(one.verdict is verdict for one in report.results) for verdict in AttackVerdict}
    told = [f"{count} {verdict}" for verdict, count in counts.items() if count]
    host = "" if report.host else ", and the host is unharmed" if report.passed else ""
    return f"{report.backend}: {', '.join(told)}{host}, in {report.seconds:.0f} s"

"""The attack catalogue: hostile evaluators as data, and what runs them against the deployment at hand.

An *attack* is a short user program, the exact outcome that it must have, and the guards that give it that outcome. One
catalogue serves `evaluator-host selftest` (an operator's settings and backend) and `tests/attacks/` (every backend, and
backends with a guard taken away, on which the attack must be reported as getting through).

    attack.py              Attack, Expected, Guard, Group: the format
    catalogue.py           ATTACKS: every group of every language
    python_<group>.py      the Python attacks of one group: ATTACKS: Final = (python("name", Group.X, PROGRAM, …), …)
    javascript_<group>.py  the same for JavaScript: javascript("javascript-name", Group.X, PROGRAM, …)
    bait.py                what the host lays out for attacks to reach: ports, sockets, a file, a mark
    trial.py               one attack: run it, compare, ask it and its neighbour again, look for what it left
    remains.py             processes, descriptors, mounts, cgroups, containers: before and after
    campaign.py            all of them, several at a time, and a report

How to write one: define `attack(inputs)` and return what it got hold of: nothing (None, False, "", 0, an empty list)
when it got nowhere. A tail is added that scores 1 for something and 0 for nothing (so `NOTHING` is what is expected
by default), and `CALM_SCORE` for a calm row, by which the same evaluator is asked afterwards whether it is still right.
Where the program defines `left(inputs)` too, a calm row calls it: what it returns is what the hostile row left behind.

`inputs` holds `calm`, `row` (another text for each row), and of the bait: `mark` (at most 15 characters; a process or
file that carries it in its name, command line or `/proc/self/comm` is found on the host afterwards), `port` (a listener
on the host's 127.0.0.1), `addresses` (the host's other addresses), `socket` (path of a listening Unix socket),
`abstract` (name of an abstract one), `file` (path of a file with a secret), `pid` (of the host), `passwd` (SHA-256 of
its /etc/passwd), `engine` (paths where a container engine's socket may be).
"""

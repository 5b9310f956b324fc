"""Attacks a deployment with a catalogue of hostile evaluators.

An *attack* is a short user program, with the exact outcome that it must have, and the guards that cause this outcome.
One catalogue is used by `evaluator-host selftest`, with an operator's settings and backend, and by `tests/attacks/`,
with every backend. These tests also switch off single guards; then the report must say that the attack got through.

    attacks/        the catalogue: programs and one TOML file per group; its README.md says how to write an attack
    attack.py       Attack, Expected, Guard, Group: the format
    catalogue.py    load_attacks: reads and checks the catalogue
    host.py         attacks on the API of a second host
    canaries.py     what attacks try to reach on the host: ports, sockets, a file with a secret
    trial.py        one attack: its result, leaks, and whether evaluators still work
    leak_check.py   processes, descriptors, mounts, cgroups, containers: before and after
    runner.py       all attacks, several at a time, and a report
"""

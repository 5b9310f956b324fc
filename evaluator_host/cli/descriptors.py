"""How many descriptors this process may have, and how many of them connections may take."""

import resource
from typing import Final

_WANTED: Final = 65_536
_OWN: Final = 224  # of 1,024: sixteen sandboxes of six each, logs, database, engine, builds
_LEAST: Final = 64


def room_for_connections() -> int:
    """Raise the limit of descriptors as far as it goes, and return how many connections leave enough of them.

    A shell gives a process 1,024 and lets it ask for more; a thousand callers at once and their sandboxes need that.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ceiling = _WANTED if hard == resource.RLIM_INFINITY else min(hard, _WANTED)
    if soft != resource.RLIM_INFINITY and soft < ceiling:
        resource.setrlimit(resource.RLIMIT_NOFILE, (ceiling, hard))
        soft = ceiling
    return max(_LEAST, (ceiling if soft == resource.RLIM_INFINITY else soft) - _OWN)

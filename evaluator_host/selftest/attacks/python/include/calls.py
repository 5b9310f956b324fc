import ctypes, errno, os, platform

libc = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"

def call(x86, arm, *arguments):
    """Return the outcome of a system call: a number, or the name of its error."""
    number = x86 if X86 else arm
    if number is None:
        return "EPERM"
    wide = (ctypes.c_long(one) if isinstance(one, int) else one for one in arguments)
    answer = libc.syscall(ctypes.c_long(number), *wide)
    return errno.errorcode.get(ctypes.get_errno(), "?") if answer == -1 else answer

def allowed(*answers):
    """Return the answers of calls that no filter stopped: even an error shows that the kernel read the arguments."""
    return [answer for answer in answers if answer not in ("EPERM", "ENOSYS")]

"""A process that is shut in: what it may read, write, use up, and how long it may take.

On Linux it has namespaces of its own (`unshare` of util-linux): no network; of the file
system only Python, the project's code and data, read-only, and a folder in memory; no
other process to be seen. Started by root, it runs as a user of its own, otherwise as the
caller; either way it has no privileges.
"""

import math
import os
import secrets
import select
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import cloudpickle
import psutil

from lmbook.execute.keys import ROOT
from lmbook.grade import as_json
from lmbook.grade.inside import LENGTH_DIGITS, START_SECONDS

SETUP_SCRIPT = Path(__file__).with_name("shut-in.sh")
SYSTEM_FOLDERS = ("/usr", "/bin", "/lib", "/lib64", "/etc")
NAMESPACES = ("--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child")
ENDS_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
FIRST_USER = 10**6  # of those that are nobody on any system
USERS = 10**9  # of which each sandbox has one
MOST_PROCESSES = 200  # of a sandbox's user, with their threads
FOLDER_SIZE = "256m"  # bytes it may write
# Of the memory, for a single process: it gets an error, and may go on.
SHARE_OF_A_PROCESS = 0.75
LARGEST_REPLY = 2**28  # bytes of a reply
MEASURE_EVERY = 0.2  # seconds from one measurement of its memory to the next
END_SECONDS = 600  # seconds that a process may take to end once its output has
MOST_WORDS = 500  # characters of what it said before it ended
ENVIRONMENT = {
    "HOME": "/submission",
    "IPYTHONDIR": "/submission/.ipy",
    "LANG": "C.UTF-8",
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PIP_RETRIES": "0",  # there is no network
    "LMCOURSE_DEVICE": "cpu",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
# What `unshare` before util-linux 2.39 says, with exit status 1, if its child was killed.
UNSHARE_ON_KILL = "sigprocmask unblock failed"
PROGRAM = (sys.executable, "-m", "lmbook.grade.inside")


class Stopped(Exception):
    """What was shut in took too long, used too much, or ended: the sandbox is of no use."""


class Ended(Stopped):
    """The process ended, and nothing here had stopped it.

    What was shut in may be to blame, or the machine: where memory runs out, the kernel
    kills some process.
    """


def shut_in_command(root: str, program: tuple[str, ...]) -> list[str]:
    """Return the command that runs a program in namespaces of its own.

    Parameters
    ----------
    root : str
        An empty folder, which becomes the program's file system.
    program : tuple of str
        The program and its arguments.

    Returns
    -------
    list of str
        For `subprocess`: ``setpriv``, which has all killed if this process is; ``unshare``
        with the namespaces; and the script ``shut-in.sh``, which makes the file system and
        starts the program. Its arguments are the folder; how much may be written; options
        of ``prlimit``; options of ``setpriv`` that set the user ("" if this process is not
        root's); the paths that the program may read; "--"; and the program.
    """
    needed = (sys.prefix, sys.base_prefix, str(ROOT / "src"), str(ROOT / "data"))
    readable = [
        path for path in (*SYSTEM_FOLDERS, *dict.fromkeys(needed)) if os.path.lexists(path)
    ]
    namespaces = ("--user", "--map-root-user", *NAMESPACES)
    user_options = ""
    if os.geteuid() == 0:
        # `MOST_PROCESSES` limits all processes of a user together, also those that are
        # still ending. Two sandboxes with the same user would share this number, and the
        # second could not begin while the first uses it up. So each has a random user.
        user = FIRST_USER + secrets.randbelow(USERS)
        namespaces = NAMESPACES
        user_options = f"--reuid={user} --regid={user} --clear-groups"
    limits = f"--nproc={MOST_PROCESSES} --core=0"
    script_arguments = (root, FOLDER_SIZE, limits, user_options, *readable)
    # If the judge is killed, the sandbox is, too.
    return [
        *ENDS_WITH_PARENT,
        "unshare",
        *namespaces,
        "sh",
        str(SETUP_SCRIPT),
        *script_arguments,
        "--",
        *program,
    ]


def why_no_sandbox() -> str:
    """Return why no program can be run in namespaces here, and what to do about it.

    It tries to run ``true`` in them. "" if that works.
    """
    if sys.platform != "linux":
        return (
            f"there are no namespaces on {sys.platform}. Grade on Linux: in a virtual "
            "machine, or on a server"
        )
    with tempfile.TemporaryDirectory() as root:
        try:
            command = shut_in_command(root, ("true",))
            done = subprocess.run(command, capture_output=True, text=True)
        except FileNotFoundError as error:
            return f"{error}: install util-linux"
    if not done.returncode:
        return ""
    reason = done.stderr.strip() or "it failed without a word"
    return f"{reason}. {_advice()}"


def _advice() -> str:
    """Return what to do where the kernel refuses namespaces: a sentence or two.

    The switches in ``/proc/sys`` that may forbid them decide which.
    """
    switches = {
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": (
            "1",
            "Ubuntu 24.04 and later allow namespaces to root only. Either run `sudo make "
            "grade …`, or allow them until the next start: `sudo sysctl -w "
            "kernel.apparmor_restrict_unprivileged_userns=0`",
        ),
        "/proc/sys/kernel/unprivileged_userns_clone": (
            "0",
            "This system allows namespaces to root only. Either run `sudo make grade …`, "
            "or allow them until the next start: `sudo sysctl -w "
            "kernel.unprivileged_userns_clone=1`",
        ),
        "/proc/sys/user/max_user_namespaces": (
            "0",
            "This system allows no namespaces of users. Either run `sudo make grade …`, or "
            "allow them until the next start: `sudo sysctl -w "
            "user.max_user_namespaces=10000`",
        ),
    }
    for path, (refuses, advice) in switches.items():
        with suppress(OSError):
            if Path(path).read_text().strip() == refuses:
                return advice
    return (
        "In a container, start it with the right to make namespaces (Docker: "
        "`--cap-add SYS_ADMIN --security-opt seccomp=unconfined`), or grade outside of it"
    )


class Sandbox:
    """A process of `lmbook.grade.inside`, shut in unless told otherwise.

    Parameters
    ----------
    memory : float
        GiB that it and its children may use, beside what they use once it has begun
        (`begin`).
    unsafe : bool
        Run it without namespaces, where there are none: it may then do what you may.

    Attributes
    ----------
    process : subprocess.Popen
        The process. Requests are written to its standard input, replies are read from its
        standard output; it has a standard error only until it has begun.
    folder : TemporaryDirectory
        Of the sandbox alone.
    memory : float
        What its processes may use, in bytes.
    stopped : bool
        Whether it is of no more use.
    """

    def __init__(self, memory: float, unsafe: bool = False):
        """Start the program ``python -m lmbook.grade.inside``, which waits for requests.

        It has a folder of its own, which lasts as long as the sandbox.

        Parameters
        ----------
        memory : float
            How much its processes may use together, in GiB, beside what they use once it
            has begun (`begin`).
        unsafe : bool
            Whether it runs with the caller's rights and network, not shut in.
        """
        self.memory = memory * 2**30
        self._unsafe = unsafe
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.stopped = False
        self._most_bytes = self.memory  # of its processes
        self._looked = 0.0  # when its memory was measured
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 closed by __exit__
        home = {"HOME": self.folder.name} if unsafe else {}
        self.process = subprocess.Popen(
            PROGRAM if unsafe else shut_in_command(self.folder.name, PROGRAM),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,  # up to where `lmbook.grade.inside` turns it off
            env=ENVIRONMENT | home,
            cwd=self.folder.name if unsafe else "/",
            start_new_session=True,
        )

    def __enter__(self):
        """Return the sandbox; at the end of the ``with`` its program is stopped."""
        return self

    def __exit__(self, *_):
        """Kill the program and all its children, and remove its folder."""
        for each in [*_descendants(self.process.pid), self.process]:
            with suppress(psutil.NoSuchProcess):  # the first of them takes the others along
                each.kill()
        self.process.communicate()
        self._errors.close()
        self.folder.cleanup()

    def begin(self, what: str, code: list[str], *rest) -> None:
        """Let the program begin; what it uses then is no submission's time and memory.

        Beyond what it uses once it has begun, its processes may together use ``memory`` of
        the sandbox, and a single one three quarters of that (`SHARE_OF_A_PROCESS`). A
        single one has no limit of its own if it runs unsafely.

        Parameters
        ----------
        what : str
            "begin", for a notebook's kernel, or "prepare", for answers.
        code : list of str
            The submission's cells: what they import is imported.
        *rest
            Other arguments of the request: for "prepare" the chapter whose checks will run
            there, "" if none will; for "begin" none.

        Raises
        ------
        Stopped
            If it does not begin in time, or ends.
        as_json.Failed
            If there was an error in there.
        """
        room = 0 if self._unsafe else int(self.memory * SHARE_OF_A_PROCESS)
        self._most_bytes = math.inf
        self.ask(what, code, room, *rest, seconds=START_SECONDS)
        self._most_bytes = self.memory + memory_used(self.process.pid)

    def ask(self, *request, seconds: float, held=None) -> object:
        """Send a request to the program, and return its reply.

        If none comes, ``stopped`` is True afterwards.

        Parameters
        ----------
        *request
            The name of what to do: "begin" or "run" (a notebook's kernel), "through" (ask a
            process that waits with an answer), or a function of `lmbook.grade.answers`,
            such as "call"; and its arguments.
        seconds : float
            How long it may take.
        held : callable, optional
            Makes something callable of the number under which the program keeps a function
            that it returned, and of the function's name. Without it such a function
            becomes an object that cannot be called.

        Returns
        -------
        object
            The reply, read from JSON.

        Raises
        ------
        Ended
            If its process ended by itself.
        Stopped
            If it does not reply in time, replies too much or nonsense, or memory runs out.
        as_json.Failed
            If the reply says that there was an error in there.
        ValueError, KeyError, TypeError
            If the reply is JSON of another form.
        """
        deadline = time.monotonic() + seconds
        self.stopped = True  # if nothing comes
        try:
            self._write(cloudpickle.dumps(request), deadline)
            size = self._read_length(deadline)
            if not 0 <= size <= LARGEST_REPLY:
                raise Stopped("what it handed in is too large")
            text = self._read(size, deadline)
        except BrokenPipeError:
            raise self._end() from None
        self.stopped = False
        return as_json.loads(text, held)

    def _write(self, content: bytes, deadline: float) -> None:
        """Write to the program's standard input, without waiting for it to read.

        Parameters
        ----------
        content : bytes
            A request.
        deadline : float
            In seconds of `time.monotonic`.

        Raises
        ------
        Stopped
            If it does not take all of it in time, or uses too much memory meanwhile.
        BrokenPipeError
            If it has ended.
        """
        pipe = self.process.stdin.fileno()
        rest = memoryview(content)
        os.set_blocking(pipe, False)
        while rest:
            self._check(deadline)
            if select.select([], [pipe], [], 0.2)[1]:
                rest = rest[os.write(pipe, rest[: 2**16]) :]

    def _read_length(self, deadline: float) -> int:
        """Return the length in bytes that stands before a reply, as twenty digits.

        If it is no number, or does not come in time, `Stopped` is raised. ``deadline`` : in
        seconds, by `time.monotonic`.
        """
        digits = self._read(LENGTH_DIGITS, deadline)
        try:
            return int(digits)
        except ValueError:
            raise Stopped("what it wrote to the judge is no reply") from None

    def _read(self, size: int, deadline: float) -> bytes:
        """Return the next ``size`` bytes of what the program writes.

        ``deadline`` : float, in seconds of `time.monotonic`; after it, or if too much
        memory is used, `Stopped` is raised. If the program ended, `Ended` is.
        """
        content = bytearray()
        pipe = self.process.stdout.fileno()
        while len(content) < size:
            self._check(deadline)
            if select.select([pipe], [], [], 0.2)[0]:
                more = os.read(pipe, min(size - len(content), 2**20))
                if not more:
                    raise self._end()
                content += more
        return bytes(content)

    def _end(self) -> Stopped:
        """Return an error that says how the process ended, and what it said before.

        An `Ended`, with the exit status or the signal, and the first `MOST_WORDS` bytes of
        its standard error; a `Stopped` if it closed its connection and goes on.
        """
        try:
            status = self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            return Stopped("it closed its connection to the judge")
        self._errors.seek(0)
        words = self._errors.read(MOST_WORDS).decode(errors="replace").strip()
        if UNSHARE_ON_KILL in words:
            status = -signal.SIGKILL
            words = ""
        how = f"exit status {status}"
        if status < 0:
            how = f"signal {-status}, {signal.strsignal(-status)}"
        message = f"its process ended by itself ({how})"
        return Ended(f"{message}: {words}" if words else message)

    def _check(self, deadline: float) -> None:
        """Raise `Stopped` if the sandbox takes too long or too much memory.

        Memory is that of all its processes, measured every `MEASURE_EVERY` seconds at most.
        ``deadline`` : in seconds, by `time.monotonic`.
        """
        if time.monotonic() > deadline:
            raise Stopped("it took too long")
        if time.monotonic() > self._looked + MEASURE_EVERY:
            self._looked = time.monotonic()
            if memory_used(self.process.pid) > self._most_bytes:
                raise Stopped("it used too much memory")


def _descendants(pid: int) -> list[psutil.Process]:
    """Return the children of a process, their children, and so on; [] if it has ended.

    ``pid`` : the process's number.
    """
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def memory_used(pid: int) -> int:
    """Return how many bytes of memory the descendants of a process hold together.

    What several of them share is counted once (PSS). Only Linux tells that; elsewhere it is
    not counted at all (USS). ``pid`` : the process's number.
    """
    total = 0
    for each in _descendants(pid):
        with suppress(psutil.Error):
            memory = each.memory_full_info()
            total += getattr(memory, "pss", memory.uss)
    return total

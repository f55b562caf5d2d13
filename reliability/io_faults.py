"""Disks that fail: a library, compiled here, that makes one call of a process on one file fail with an error.

``environment(…)`` is what a process needs to run under it: the n-th read, write or sync of a file whose path contains
some text fails with EIO, ENOSPC or another error, once or from then on. It needs a C compiler and Linux.
"""

import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final, Literal

Call = Literal["read", "write", "sync"]
SOURCE: Final = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int seen = 0;

static int fails(const char *call, int fd) {
    const char *wanted = getenv("IO_FAULT_CALL"), *part = getenv("IO_FAULT_PATH");
    if (!wanted || !part || strcmp(wanted, call)) return 0;
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    if (!strstr(path, part)) return 0;
    int at = atoi(getenv("IO_FAULT_AT")), now = __sync_add_and_fetch(&seen, 1);
    if (now == at || (now > at && getenv("IO_FAULT_STAYS"))) {
        const char *noted = getenv("IO_FAULT_NOTE");
        if (noted) { FILE *file = fopen(noted, "w"); if (file) fclose(file); }
        errno = atoi(getenv("IO_FAULT_ERRNO"));
        return 1;
    }
    return 0;
}

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__) = 0; if (!real) real = dlsym(RTLD_NEXT, #name)

ssize_t read(int fd, void *to, size_t n) {
    REAL(ssize_t, read, int, void *, size_t); return fails("read", fd) ? -1 : real(fd, to, n);
}
ssize_t pread64(int fd, void *to, size_t n, off64_t at) {
    REAL(ssize_t, pread64, int, void *, size_t, off64_t); return fails("read", fd) ? -1 : real(fd, to, n, at);
}
ssize_t pread(int fd, void *to, size_t n, off_t at) {
    REAL(ssize_t, pread, int, void *, size_t, off_t); return fails("read", fd) ? -1 : real(fd, to, n, at);
}
ssize_t write(int fd, const void *from, size_t n) {
    REAL(ssize_t, write, int, const void *, size_t); return fails("write", fd) ? -1 : real(fd, from, n);
}
ssize_t pwrite64(int fd, const void *from, size_t n, off64_t at) {
    REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t); return fails("write", fd) ? -1 : real(fd, from, n, at);
}
ssize_t pwrite(int fd, const void *from, size_t n, off_t at) {
    REAL(ssize_t, pwrite, int, const void *, size_t, off_t); return fails("write", fd) ? -1 : real(fd, from, n, at);
}
int fsync(int fd) {
    REAL(int, fsync, int); return fails("sync", fd) ? -1 : real(fd);
}
int fdatasync(int fd) {
    REAL(int, fdatasync, int); return fails("sync", fd) ? -1 : real(fd);
}
"""


@functools.cache
def library() -> Path | None:
    """The compiled library; None where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not Path("/proc/self/fd").is_dir():
        return None
    made = Path(tempfile.mkdtemp(prefix="dpfrugal-io-faults-")) / "io_faults.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o", str(made), "-ldl"]
    done = subprocess.run(command, input=SOURCE, text=True, capture_output=True, check=False)
    return None if done.returncode else made


def environment(
    call: Call, path: str, at: int, error: int, *, stays: bool = False, note: Path | None = None
) -> dict[str, str]:
    """For a process whose ``at``-th such call on a file with ``path`` in its path fails; then ``note`` is made."""
    made = library()
    assert made is not None, "there is no C compiler"
    given = {
        "LD_PRELOAD": str(made),
        "IO_FAULT_CALL": call,
        "IO_FAULT_PATH": path,
        "IO_FAULT_AT": str(at),
        "IO_FAULT_ERRNO": str(error),
    }
    return (
        os.environ | given | ({"IO_FAULT_STAYS": "1"} if stays else {}) | ({"IO_FAULT_NOTE": str(note)} if note else {})
    )

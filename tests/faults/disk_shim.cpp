// A disk that fails on demand, for one process: loaded before the C library (LD_PRELOAD), it counts
// every step that changes something below one folder (open for writing, write, sync, truncate,
// rename, link, folder made) and lets the one with a given number fail with a given errno; a lasting
// fault takes all later steps with it, and the write that meets it first keeps half, as a disk that
// fills up does. Nothing else in the process is touched. The functions in torra_disk_* are called by
// tests/faults/failing_disk.py; one thread at a time changes them.

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>

namespace {

char folder[PATH_MAX];
size_t folder_length = 0;
std::atomic<long> reached{0};
long first = 0;
int error = 0;
bool lasting = false;
std::atomic<bool> armed{false};

char trace[1 << 20];
size_t traced = 0;

enum class Fate { well, half, fails };

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

void note(const char* step, const char* path) {
  const size_t left = sizeof trace - traced;
  const int size = snprintf(trace + traced, left, "%s %s\n", step, path + folder_length);
  if (size > 0 && static_cast<size_t>(size) < left) traced += static_cast<size_t>(size);
}

Fate fate(const char* step, const char* path) {
  if (!armed || strncmp(path, folder, folder_length) != 0) return Fate::well;
  const long number = ++reached;
  note(step, path);
  if (first == 0 || number < first || (number > first && !lasting)) return Fate::well;
  if (number == first && lasting && strcmp(step, "write") == 0) return Fate::half;
  errno = error;
  return Fate::fails;
}

Fate fate(const char* step, int file) {
  if (!armed) return Fate::well;
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < 0) return Fate::well;
  path[size] = 0;
  return fate(step, path);
}

bool changes(int flags) { return (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0; }

bool opens(const char* path, int flags) {
  return !changes(flags) || fate("open", path) == Fate::well;
}

}  // namespace

extern "C" {

void torra_disk_arm(const char* below, long number, int code, int lasts) {
  snprintf(folder, sizeof folder, "%s/", below);
  folder_length = strlen(folder);
  reached = 0;
  traced = 0;
  trace[0] = 0;
  first = number;
  error = code;
  lasting = lasts != 0;
  armed = true;
}

long torra_disk_heal() {
  armed = false;
  return reached;
}

const char* torra_disk_trace() { return trace; }

#define OPENING(NAME)                                                        \
  int NAME(const char* path, int flags, ...) {                               \
    va_list more;                                                            \
    va_start(more, flags);                                                   \
    const mode_t mode = (flags & O_CREAT) ? va_arg(more, mode_t) : 0;        \
    va_end(more);                                                            \
    if (!opens(path, flags)) return -1;                                      \
    return next<int (*)(const char*, int, ...)>(#NAME)(path, flags, mode);   \
  }
OPENING(open)
OPENING(open64)

#define WRITING(NAME, PARAMETERS, WHOLE, HALF)                               \
  ssize_t NAME PARAMETERS {                                                  \
    static const auto real = next<ssize_t(*) PARAMETERS>(#NAME);             \
    const Fate now = fate("write", file);                                    \
    if (now == Fate::fails) return -1;                                       \
    return now == Fate::half && size > 1 ? real HALF : real WHOLE;           \
  }
WRITING(write, (int file, const void* data, size_t size), (file, data, size),
        (file, data, size / 2))
WRITING(pwrite, (int file, const void* data, size_t size, off_t at), (file, data, size, at),
        (file, data, size / 2, at))
WRITING(pwrite64, (int file, const void* data, size_t size, off64_t at), (file, data, size, at),
        (file, data, size / 2, at))

#define STEP(NAME, WORD, PARAMETERS, WHERE, GIVEN)                           \
  int NAME PARAMETERS {                                                      \
    static const auto real = next<int(*) PARAMETERS>(#NAME);                 \
    return fate(WORD, WHERE) == Fate::well ? real GIVEN : -1;                \
  }
STEP(fsync, "sync", (int file), file, (file))
STEP(fdatasync, "sync", (int file), file, (file))
STEP(ftruncate, "truncate", (int file, off_t size), file, (file, size))
STEP(ftruncate64, "truncate", (int file, off64_t size), file, (file, size))
STEP(rename, "rename", (const char* from, const char* to) noexcept, to, (from, to))
STEP(link, "link", (const char* from, const char* to) noexcept, to, (from, to))
STEP(mkdir, "mkdir", (const char* path, mode_t mode) noexcept, path, (path, mode))
}

// The part of MQL5 that mql5/TorraBridge.mq5 uses, in C++: types, strings, arrays, files, time and
// hashing, with real bodies. The tests compile the advisor against this and run it.
//
// What it is strict about. `string` and Array offer nothing but what MQL5 offers, so that habits of
// C++ do not compile; an index outside an array ends the program, as it does there; new numbers in
// an array are rubbish, not zero; every file path must lie in the channel's folder and be
// FILE_COMMON; what is written reaches the disk at FileFlush or FileClose; a file opened for
// writing without a share flag shuts out other writers. Time stands still until it is moved.
// What it cannot show is listed in docs/mt5.md: how a real terminal differs.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef long datetime;
static_assert(sizeof(long) == 8, "a long of MQL5 has 64 bits");

//--- strings: a value without methods -------------------------------------------------------------
struct string {
  std::string raw_;
  string() {}
  string(const char *text) : raw_(text) {}
  explicit string(std::string text) : raw_(std::move(text)) {}
  string &operator+=(const string &other) {
    raw_ += other.raw_;
    return *this;
  }
};
inline string operator+(const string &a, const string &b) { return string(a.raw_ + b.raw_); }
inline bool operator==(const string &a, const string &b) { return a.raw_ == b.raw_; }
inline bool operator!=(const string &a, const string &b) { return a.raw_ != b.raw_; }

//--- dynamic arrays -------------------------------------------------------------------------------
namespace shim {
[[noreturn]] inline void die(const char *why, long detail) {
  fprintf(stderr, "the advisor stopped: %s (%ld)\n", why, detail);
  _exit(70);
}
}  // namespace shim

template <class T>
class Array {
  struct Cell {
    T value;
  };
  std::vector<Cell> cells_;

 public:
  T &operator[](long i) {
    if (i < 0 || i >= (long)cells_.size()) shim::die("array out of range", i);
    return cells_[i].value;
  }
  const T &operator[](long i) const { return const_cast<Array &>(*this)[i]; }
  int size_() const { return (int)cells_.size(); }
  void resize_(int size) {
    size_t old = cells_.size();
    cells_.resize(size);
    if constexpr (std::is_arithmetic<T>::value)
      for (size_t i = old; i < cells_.size(); i++) cells_[i].value = (T)0x5A;
  }
};

template <class T>
int ArraySize(const Array<T> &array) {
  return array.size_();
}
template <class T>
int ArrayResize(Array<T> &array, int size, int = 0) {
  if (size < 0) return -1;
  array.resize_(size);
  return size;
}

//--- text -----------------------------------------------------------------------------------------
const uint CP_ACP = 0, CP_UTF8 = 65001;

inline int StringLen(const string &text) { return (int)text.raw_.size(); }
inline ushort StringGetCharacter(const string &text, int at) {
  return at >= 0 && at < StringLen(text) ? (uchar)text.raw_[at] : 0;
}
inline bool StringSetCharacter(string &text, int at, ushort c) {
  if (at < 0 || at >= StringLen(text)) return false;
  text.raw_[at] = (char)c;
  return true;
}
inline string StringSubstr(const string &text, int from, int length = -1) {
  if (from < 0 || from >= StringLen(text) || length == 0) return string();
  return string(text.raw_.substr(from, length < 0 ? std::string::npos : length));
}
inline int StringFind(const string &text, const string &part, int from = 0) {
  size_t at = text.raw_.find(part.raw_, from < 0 ? 0 : from);
  return at == std::string::npos ? -1 : (int)at;
}
inline int StringCompare(const string &a, const string &b, bool = true) {
  int order = a.raw_.compare(b.raw_);
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}
inline int StringReplace(string &text, const string &find, const string &by) {
  int count = 0;
  for (size_t at = 0; (at = text.raw_.find(find.raw_, at)) != std::string::npos; count++) {
    text.raw_.replace(at, find.raw_.size(), by.raw_);
    at += by.raw_.size();
  }
  return count;
}
inline int StringSplit(const string &text, ushort separator, Array<string> &parts) {
  int count = 0;
  size_t from = 0;
  ArrayResize(parts, 0);
  if (text.raw_.empty()) return 0;
  for (;;) {
    size_t to = text.raw_.find((char)separator, from);
    ArrayResize(parts, count + 1);
    parts[count++] = string(text.raw_.substr(from, to == std::string::npos ? to : to - from));
    if (to == std::string::npos) return count;
    from = to + 1;
  }
}
// ASCII alone, and without the reference's "true".
inline bool StringToUpper(string &text) {
  for (char &c : text.raw_)
    if (c >= 'a' && c <= 'z') c = (char)(c - 32);
  return true;
}
inline int StringTrimLeft(string &text) {
  size_t at = text.raw_.find_first_not_of(" \t\r\n");
  text.raw_.erase(0, at);
  return (int)at;
}
inline int StringTrimRight(string &text) {
  size_t old = text.raw_.size();
  text.raw_.erase(text.raw_.find_last_not_of(" \t\r\n") + 1);
  return (int)(old - text.raw_.size());
}
inline long StringToInteger(const string &text) { return strtol(text.raw_.c_str(), nullptr, 10); }
inline double StringToDouble(const string &text) { return strtod(text.raw_.c_str(), nullptr); }
inline string IntegerToString(long value, int length = 0, ushort fill = ' ') {
  std::string text = std::to_string(value);
  while ((int)text.size() < length) text.insert(text.begin(), (char)fill);
  return string(text);
}
inline string DoubleToString(double value, int digits = 8) {
  char text[400];
  snprintf(text, sizeof text, "%.*f", digits, value);
  return string(text);
}
// Copies the end of the string along when no count is given, as the reference says.
inline int StringToCharArray(const string &text, Array<uchar> &bytes, int start = 0, int count = -1,
                             uint = CP_ACP) {
  int length = count < 0 ? StringLen(text) + 1 : count;
  if (ArraySize(bytes) < start + length) ArrayResize(bytes, start + length);
  for (int i = 0; i < length; i++)
    bytes[start + i] = i < StringLen(text) ? (uchar)text.raw_[i] : 0;
  return length;
}
inline string CharArrayToString(const Array<uchar> &bytes, int start = 0, int count = -1,
                                uint = CP_ACP) {
  std::string text;
  for (int i = start; i < ArraySize(bytes) && (count < 0 || i < start + count) && bytes[i]; i++)
    text += (char)bytes[i];
  return string(text);
}

//--- numbers --------------------------------------------------------------------------------------
inline double MathFloor(double x) { return std::floor(x); }
inline double MathAbs(double x) { return std::fabs(x); }
inline double MathMin(double a, double b) { return a < b ? a : b; }
inline double NormalizeDouble(double value, int digits) {
  double scale = std::pow(10.0, digits);
  return std::round(value * scale) / scale;
}

//--- what the driver holds ------------------------------------------------------------------------
namespace shim {
struct Program {
  std::string folder;   // of the channel, on this disk
  std::string channel;  // the only one whose paths are allowed
  double gmt = 0;       // seconds
  double ticks = 0;     // seconds of a clock that never goes back
  std::string crash_at; // failpoint
  int crash_in = 1;     // reached for the n-th time
  int fail_writes = 0;  // FileOpen for writing fails so many times
  int short_writes = 0; // FileWriteArray writes half
  int fail_moves = 0;   // FileMove fails
  int fail_deletes = 0; // FileDelete fails
  int fail_reads = 0;   // FileOpen for reading fails
  std::vector<std::string> log;
  std::string comment;
};
inline Program program;

inline void reach(const char *point) {
  if (program.crash_at == point && --program.crash_in == 0) raise(SIGKILL);
}

inline bool fails(int &counter) { return counter > 0 && counter-- > 0; }

// Torra\<channel>\a\b -> <folder>/a/b; anything else is a fault of the advisor.
inline std::string local(const string &path, int common) {
  std::string head = "Torra\\" + program.channel + "\\", text = path.raw_;
  if ((common & 4096) == 0 || text.compare(0, head.size(), head) != 0) {
    fprintf(stderr, "path outside of the channel: %s\n", text.c_str());
    die("forbidden path", common);
  }
  text = text.substr(head.size());
  for (char &c : text)
    if (c == '\\') c = '/';
  return program.folder + "/" + text;
}

inline bool inside(const std::string &path, const char *folder) {
  return path.compare(0, program.folder.size() + 1 + strlen(folder),
                      program.folder + "/" + folder) == 0;
}

inline bool ends(const std::string &text, const char *end) {
  size_t n = strlen(end);
  return text.size() >= n && text.compare(text.size() - n, n, end) == 0;
}

// The points at which the advisor can be killed, as seen from outside: which file went where.
inline void moved(const std::string &from, const std::string &to) {
  if (inside(from, "inbox/") && inside(to, "work/")) reach("claimed");
  if (inside(to, "work/") && ends(to, ".sending")) reach("intent");
  if (inside(to, "done/")) reach("done_written");
  if (inside(to, "ack/")) reach("ack_written");
}
}  // namespace shim

//--- files ----------------------------------------------------------------------------------------
const int INVALID_HANDLE = -1;
const int FILE_READ = 1, FILE_WRITE = 2, FILE_BIN = 4, FILE_SHARE_READ = 128;
const int FILE_SHARE_WRITE = 256, FILE_REWRITE = 512, FILE_COMMON = 4096;
const int WHOLE_ARRAY = -1;

namespace shim {
struct OpenFile {
  int fd;
  bool writing;
  std::string buffer;
};
inline std::map<int, OpenFile> files;
inline int next_handle = 1;

inline void flush(OpenFile &file) {
  size_t at = 0;
  while (at < file.buffer.size()) {
    ssize_t n = write(file.fd, file.buffer.data() + at, file.buffer.size() - at);
    if (n < 0) break;
    at += n;
  }
  file.buffer.clear();
}

inline void make_folders(const std::string &path) {
  for (size_t at = program.folder.size(); (at = path.find('/', at + 1)) != std::string::npos;)
    mkdir(path.substr(0, at).c_str(), 0777);
}
}  // namespace shim

inline int FileOpen(const string &name, int flags) {
  std::string path = shim::local(name, flags);
  bool writing = (flags & FILE_WRITE) != 0;
  if (writing ? shim::fails(shim::program.fail_writes) : shim::fails(shim::program.fail_reads))
    return INVALID_HANDLE;
  if ((flags & FILE_BIN) == 0) shim::die("only FILE_BIN is known here", flags);
  int mode = (writing ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC;
  int fd = open(path.c_str(), mode, 0666);
  if (fd < 0 && writing && errno == ENOENT) {
    shim::make_folders(path);
    fd = open(path.c_str(), mode, 0666);
  }
  if (fd < 0) return INVALID_HANDLE;
  bool alone = writing && (flags & (FILE_SHARE_READ | FILE_SHARE_WRITE)) == 0;
  if (alone && flock(fd, LOCK_EX | LOCK_NB) != 0) {
    close(fd);
    return INVALID_HANDLE;
  }
  if (writing && ftruncate(fd, 0) != 0) {
    close(fd);
    return INVALID_HANDLE;
  }
  shim::files[shim::next_handle] = {fd, writing, ""};
  return shim::next_handle++;
}
inline void FileFlush(int handle) { shim::flush(shim::files.at(handle)); }
inline void FileClose(int handle) {
  shim::flush(shim::files.at(handle));
  close(shim::files.at(handle).fd);
  shim::files.erase(handle);
}
inline ulong FileSize(int handle) {
  struct stat info;
  return fstat(shim::files.at(handle).fd, &info) == 0 ? (ulong)info.st_size : 0;
}
inline uint FileReadArray(int handle, Array<uchar> &bytes, int start = 0, int count = WHOLE_ARRAY) {
  if (count < 0) count = (int)FileSize(handle);
  std::string text(count, '\0');
  ssize_t n = read(shim::files.at(handle).fd, &text[0], count);
  if (n < 0) return 0;
  if (ArraySize(bytes) < start + (int)n) ArrayResize(bytes, start + (int)n);
  for (ssize_t i = 0; i < n; i++) bytes[start + i] = (uchar)text[i];
  return (uint)n;
}
inline uint FileWriteArray(int handle, const Array<uchar> &bytes, int start = 0,
                           int count = WHOLE_ARRAY) {
  if (count < 0) count = ArraySize(bytes) - start;
  if (shim::fails(shim::program.short_writes)) count /= 2;
  for (int i = 0; i < count; i++) shim::files.at(handle).buffer += (char)bytes[start + i];
  return (uint)count;
}
inline bool FileIsExist(const string &name, int common = 0) {
  struct stat info;
  return stat(shim::local(name, common).c_str(), &info) == 0 && S_ISREG(info.st_mode);
}
inline bool FileDelete(const string &name, int common = 0) {
  std::string path = shim::local(name, common);
  if (shim::fails(shim::program.fail_deletes) || unlink(path.c_str()) != 0) return false;
  if (shim::inside(path, "work/") && shim::ends(path, ".json")) shim::reach("removed");
  return true;
}
inline bool FileMove(const string &source, int common, const string &target, int mode) {
  std::string from = shim::local(source, common), to = shim::local(target, mode);
  if (shim::fails(shim::program.fail_moves)) return false;
  if ((mode & FILE_REWRITE) != 0) {
    if (rename(from.c_str(), to.c_str()) != 0) return false;
  } else if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) != 0) {
    if (errno != EINVAL || link(from.c_str(), to.c_str()) != 0) return false;
    unlink(from.c_str());  // a disk without RENAME_NOREPLACE: the link decides who was first
  }
  shim::moved(from, to);
  return true;
}
inline bool FolderCreate(const string &name, int common = 0) {
  std::string path = shim::local(name, common);
  if (mkdir(path.c_str(), 0777) == 0 || errno == EEXIST) return true;
  shim::make_folders(path);
  return mkdir(path.c_str(), 0777) == 0;
}

// Folder order is what the disk gives: the advisor has to sort.
namespace shim {
struct Search {
  std::vector<std::string> names;
  size_t at;
};
inline std::map<long, Search> searches;
inline long next_search = 1;
}  // namespace shim

inline bool FileFindNext(long search, string &name) {
  shim::Search &found = shim::searches.at(search);
  if (found.at >= found.names.size()) return false;
  name = string(found.names[found.at++]);
  return true;
}
inline void FileFindClose(long search) { shim::searches.erase(search); }
inline long FileFindFirst(const string &filter, string &name, int common = 0) {
  std::string path = shim::local(filter, common);
  size_t slash = path.rfind('/');
  DIR *folder = opendir(path.substr(0, slash).c_str());
  if (!folder) return INVALID_HANDLE;
  shim::Search found = {{}, 0};
  while (dirent *entry = readdir(folder)) {
    std::string text = entry->d_name;
    if (text == "." || text == ".." || fnmatch(path.c_str() + slash + 1, text.c_str(), 0) != 0)
      continue;
    if (entry->d_type == DT_DIR) text += "\\";
    found.names.push_back(text);
  }
  closedir(folder);
  if (found.names.empty()) return INVALID_HANDLE;
  shim::searches[shim::next_search] = found;
  FileFindNext(shim::next_search, name);
  return shim::next_search++;
}

//--- hashing --------------------------------------------------------------------------------------
enum ENUM_CRYPT_METHOD { CRYPT_HASH_SHA256 = 6 };

namespace shim {
// FIPS 180-4; the constants are the first 32 bits of the fractions of roots of primes.
inline uint32_t root_bits(int prime, bool cube) {
  long double root = cube ? cbrtl((long double)prime) : sqrtl((long double)prime);
  return (uint32_t)((root - floorl(root)) * 4294967296.0L);
}
inline uint32_t turn(uint32_t x, int n) { return x >> n | x << (32 - n); }

struct Sha256Constants {
  uint32_t start[8], round[64];
  Sha256Constants() {
    for (int n = 2, count = 0; count < 64; n++) {
      bool prime = true;
      for (int d = 2; d * d <= n; d++) prime = prime && n % d != 0;
      if (!prime) continue;
      if (count < 8) start[count] = root_bits(n, false);
      round[count++] = root_bits(n, true);
    }
  }
};

inline std::string sha256(std::string data) {
  static const Sha256Constants constants;
  uint64_t bits = data.size() * 8;
  data += (char)0x80;
  while (data.size() % 64 != 56) data += '\0';
  for (int i = 56; i >= 0; i -= 8) data += (char)(bits >> i);
  uint32_t h[8];
  memcpy(h, constants.start, sizeof h);
  for (size_t block = 0; block < data.size(); block += 64) {
    uint32_t w[64], v[8];
    const uchar *p = (const uchar *)data.data() + block;
    for (int i = 0; i < 16; i++)
      w[i] = (uint32_t)p[4 * i] << 24 | p[4 * i + 1] << 16 | p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 64; i++)
      w[i] = w[i - 16] + w[i - 7] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) +
             (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(v, h, sizeof v);
    for (int i = 0; i < 64; i++) {
      uint32_t a = v[7] + (turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25)) +
                   ((v[4] & v[5]) ^ (~v[4] & v[6])) + constants.round[i] + w[i];
      uint32_t b = (turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22)) +
                   ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
      for (int j = 7; j > 0; j--) v[j] = v[j - 1];
      v[4] += a;
      v[0] = a + b;
    }
    for (int i = 0; i < 8; i++) h[i] += v[i];
  }
  std::string digest;
  for (uint32_t word : h)
    for (int i = 24; i >= 0; i -= 8) digest += (char)(word >> i);
  return digest;
}
}  // namespace shim

inline int CryptEncode(ENUM_CRYPT_METHOD, const Array<uchar> &data, const Array<uchar> &,
                       Array<uchar> &result) {
  std::string text;
  for (int i = 0; i < ArraySize(data); i++) text += (char)data[i];
  std::string digest = shim::sha256(text);
  ArrayResize(result, 32);
  for (int i = 0; i < 32; i++) result[i] = (uchar)digest[i];
  return 32;
}

//--- the program's surroundings -------------------------------------------------------------------
enum { INIT_SUCCEEDED = 0, INIT_FAILED = 1, INIT_PARAMETERS_INCORRECT = 2 };

namespace shim {
inline std::string shown(const string &value) { return value.raw_; }
inline std::string shown(const char *value) { return value; }
inline std::string shown(double value) { return DoubleToString(value).raw_; }
template <class T>
std::enable_if_t<std::is_integral<T>::value, std::string> shown(T value) {
  return std::to_string(value);
}
template <class... Parts>
std::string joined(const Parts &...parts) {
  std::string text;
  ((text += shown(parts)), ...);
  return text;
}
}  // namespace shim

template <class... Parts>
void Print(const Parts &...parts) {
  shim::program.log.push_back(shim::joined(parts...));
}
template <class... Parts>
void Comment(const Parts &...parts) {
  shim::program.comment = shim::joined(parts...);
}
inline bool EventSetMillisecondTimer(int) { return true; }
inline void EventKillTimer() {}
inline ulong GetTickCount64() { return (ulong)std::llround(shim::program.ticks * 1000); }
inline datetime TimeGMT() { return (datetime)std::floor(shim::program.gmt); }

#include "simulated_broker.hpp"

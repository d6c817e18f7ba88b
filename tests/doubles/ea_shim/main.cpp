// The compiled advisor as a program: one command per line on stdin, one line back on stdout.
//
//   advisor <channel folder> <broker folder>
//
// Single-threaded and deterministic: nothing happens but what a command asks for, no clock runs.
// The market (settings, quotes, faults, clock) is kept in <broker folder>/market as the commands
// that led to it, the bars in bars, the books in books; a restarted program reads all three, after
// the one before has let go of them. The program dies with whoever started it, at once.
// TORRA_EA_CRASH_AT=<failpoint>[:n] kills the program the n-th time it gets there.
//
//   input <name> <value>         an input of the advisor, before init
//   init | deinit                OnInit, OnDeinit
//   timer [n] [seconds]          n rounds of OnTimer, the clock moved by seconds before each
//   step <gmt> <ticks>           OnTimer at a UTC and a steady time; while a signal has no end yet,
//                                also for each of the last 20 seconds that passed
//   clock <gmt> [wall]           set UTC; the steady clock follows forward moves unless "wall"
//   set <name> <value>           broker and account settings, see DEFAULTS in simulated_broker.hpp
//   symbol <name> [term value]…  make or change a symbol, see TERMS there
//   quote <symbol> <bid> <ask> [gmt]   a tick (at a UTC); stops and targets are served
//   ticks <symbol> <msc,bid,ask,last,flags>…   into the terminal's store of ticks, and nothing else
//   book <symbol> [type,price,volume,volume_real]…   an order book, and OnBookEvent
//   no_ticks <symbol> <from> <to>   the store loses those milliseconds
//   fail <retcode> <executed> [volume] [delay]   the next order: 0 not executed, 1 executed (or so
//                                much of it, a share if below 0), 2 left waiting (but for so much of
//                                it); retcode 0 = the true one; the books show it so much later
//   forgive                      no fault of fail, no crash is left
//   fail_check <retcode>         the next OrderCheck
//   file <fault> <n>             the next n: fail_writes, short_writes, fail_moves, fail_deletes,
//                                fail_reads
//   bar <symbol> <seconds> <time> <open> <high> <low> <close> <ticks> <spread>
//   open <symbol> <BUY|SELL> <lots> <magic> <comment> [sl] [tp]   by hand
//   close <ticket> [lots] [reason]                                by hand; reason as DEAL_REASON_*
//   levels <ticket> <sl> <tp>                                     by hand
//   pay <money>                  into the account, or out of it
//   settle                       orders left waiting are executed
//   wipe                         empty books, default settings, no faults
//   crash <failpoint> [n]        as TORRA_EA_CRASH_AT
//   hmac <text>                  the advisor's signature of a text
//   state | log | comment | quit
// A blank within a word, such as a symbol's name, comes and is kept as the character 31.
#include <sys/prctl.h>

#include "mql5_shim.hpp"

namespace shim {
typedef std::vector<std::string> Words;

struct Input {
  void *at;
  void (*set)(void *, const std::string &);
};
inline std::map<std::string, Input> inputs;

inline void put(bool &at, const std::string &text) { at = text == "true"; }
inline void put(int &at, const std::string &text) { at = atoi(text.c_str()); }
inline void put(long &at, const std::string &text) { at = atol(text.c_str()); }
inline void put(double &at, const std::string &text) { at = atof(text.c_str()); }
inline void put(string &at, const std::string &text) { at = string(text); }

struct Register {
  template <class T>
  Register(const char *name, T &variable) {
    inputs[name] = {&variable, [](void *at, const std::string &text) { put(*(T *)at, text); }};
  }
};
}  // namespace shim

#include ADVISOR

namespace shim {
std::string market_folder;
FILE *bar_file = nullptr, *market_file = nullptr;
int market_lines = 0;
bool loading = false;

std::string quoted(const std::string &text) {
  std::string out = "\"";
  for (char c : text) {
    char code[8];
    if ((uchar)c >= 32 && c != '"' && c != '\\' && (uchar)c < 127) {
      out += c;
    } else {
      snprintf(code, sizeof code, "\\u%04x", (uchar)c);
      out += code;
    }
  }
  return out + "\"";
}

std::string with_blanks(std::string text, char from, char to) {
  for (char &c : text)
    if (c == from) c = to;
  return text;
}
Words words_of(const std::string &line) {
  Words words = split(line, ' ');
  for (auto &word : words) word = with_blanks(word, 31, ' ');
  return words;
}

//--- the market as commands: each is appended, and now and then the file is written anew, short
std::string market() {
  std::string text = "clock " + number(program.gmt) + "\n";
  for (auto &pair : broker.settings) text += "set " + pair.first + " " + pair.second + "\n";
  for (auto &pair : broker.symbols) {
    std::string name = with_blanks(pair.first, ' ', 31);
    text += "symbol " + name;
    for (auto &term : pair.second.terms) text += " " + term.first + " " + term.second;
    const Symbol &s = pair.second;
    text += "\nprices " + name + " " + number(s.bid) + " " + number(s.ask) + " " +
            std::to_string(s.time) + "\n";
  }
  for (auto &f : broker.faults)
    text += "fail " + std::to_string(f.retcode) + " " + std::to_string(f.executed) + " " +
            number(f.volume) + " " + number(f.delay) + "\n";
  return text;
}

void shorten_market() {
  std::string path = market_folder + "/market", aside = path + ".new", text = market();
  if (market_file) fclose(market_file);
  market_file = fopen(aside.c_str(), "w");
  if (!market_file) die("the market cannot be kept", errno);
  fwrite(text.data(), 1, text.size(), market_file);
  fflush(market_file);
  rename(aside.c_str(), path.c_str());
  market_lines = 0;
}

void keep(const std::string &line) {
  if (loading) return;
  if (!market_file || ++market_lines > 5000) shorten_market();
  fprintf(market_file, "%s\n", line.c_str());
  fflush(market_file);
}

void arm(const std::string &point) {
  size_t colon = point.find(':');
  program.crash_at = point.substr(0, colon);
  program.crash_in = colon == std::string::npos ? 1 : atoi(point.c_str() + colon + 1);
}

void move_clock(double gmt, bool wall_only) {
  if (gmt > program.gmt && program.gmt > 0 && !wall_only) program.ticks += gmt - program.gmt;
  program.gmt = gmt;
}

// A terminal wakes the advisor four times a second. Of seconds in which nothing waits, one round
// tells as much as all.
void step(double gmt, double ticks) {
  program.gmt = gmt;
  program.ticks = std::max(program.ticks, ticks - 20);
  for (; program.ticks + 1 < ticks && (ArraySize(g_flights) > 0 || g_has_unseen); OnTimer())
    program.ticks += 1;
  program.ticks = ticks;
  OnTimer();
  keep("clock " + number(program.gmt));
}

std::string state() {
  long hidden = 0;
  for (auto &pair : broker.deals) hidden += !broker.visible(pair.second);
  std::string text = "{\"gmt\":" + number(program.gmt) + ",\"sends\":" +
                     std::to_string(broker.sends) + ",\"book_bars\":" +
                     std::to_string(ArraySize(g_book_bars)) + ",\"hidden\":" +
                     std::to_string(hidden) + ",\"balance\":" + number(broker.balance) +
                     ",\"positions\":[";
  const char *comma = "";
  for (auto &pair : broker.positions) {
    const Position &p = pair.second;
    text += std::string(comma) + "{\"ticket\":" + std::to_string(p.ticket) + ",\"symbol\":" +
            quoted(p.symbol) + ",\"side\":" + (p.buy ? "\"LONG\"" : "\"SHORT\"") + ",\"volume\":" +
            number(p.volume) + ",\"price\":" + number(p.price) + ",\"sl\":" + number(p.sl) +
            ",\"tp\":" + number(p.tp) + ",\"magic\":" + std::to_string(p.magic) + ",\"comment\":" +
            quoted(p.comment) + "}";
    comma = ",";
  }
  text += "],\"orders\":[";
  comma = "";
  for (auto &pair : broker.orders) {
    const Order &o = pair.second;
    text += std::string(comma) + "{\"ticket\":" + std::to_string(o.ticket) + ",\"symbol\":" +
            quoted(o.symbol) + ",\"side\":" + (o.buy ? "\"BUY\"" : "\"SELL\"") + ",\"live\":" +
            (o.live ? "true" : "false") + ",\"position\":" + std::to_string(o.position) +
            ",\"volume\":" + number(o.volume) + ",\"magic\":" + std::to_string(o.magic) +
            ",\"comment\":" + quoted(o.comment) + "}";
    comma = ",";
  }
  text += "],\"deals\":[";
  comma = "";
  for (auto &pair : broker.deals) {
    const Deal &d = pair.second;
    text += std::string(comma) + "{\"ticket\":" + std::to_string(d.ticket) + ",\"order\":" +
            std::to_string(d.order) + ",\"position\":" + std::to_string(d.position) +
            ",\"symbol\":" + quoted(d.symbol) + ",\"side\":" + (d.buy ? "\"BUY\"" : "\"SELL\"") +
            ",\"entry\":" + (d.entry == DEAL_ENTRY_IN ? "\"in\"" : "\"out\"") + ",\"volume\":" +
            number(d.volume) + ",\"price\":" + number(d.price) + ",\"profit\":" +
            number(d.profit) + ",\"magic\":" + std::to_string(d.magic) + ",\"comment\":" +
            quoted(d.comment) + ",\"gmt\":" +
            std::to_string(d.time - broker.whole("server_offset")) + ",\"reason\":" +
            std::to_string(d.reason) + "}";
    comma = ",";
  }
  return text + "]}";
}

//--- commands that change the market; true when it was one
bool market_command(const Words &w, const std::string &line) {
  auto word = [&](size_t i) { return i < w.size() ? w[i] : std::string(); };
  auto real = [&](size_t i) { return atof(word(i).c_str()); };
  std::string kept = line;
  if (w[0] == "clock") {
    move_clock(real(1), word(2) == "wall");
  } else if (w[0] == "set") {
    if (!broker.settings.count(word(1))) die(("no setting " + word(1)).c_str(), 0);
    broker.settings[word(1)] = word(2);
  } else if (w[0] == "symbol") {
    Symbol &s = broker.symbols[word(1)];
    if (s.terms.empty())
      for (auto &pair : TERMS) s.terms[pair[0]] = pair[1];
    for (size_t i = 2; i + 1 < w.size(); i += 2) {
      if (!s.terms.count(w[i])) die(("no term " + w[i]).c_str(), 0);
      s.terms[w[i]] = w[i + 1];
    }
  } else if (w[0] == "quote") {
    if (w.size() > 4) program.gmt = real(4);
    broker.quote(word(1), real(2), real(3));
    kept = "prices " + with_blanks(word(1), ' ', 31) + " " + word(2) + " " + word(3) + " " +
           std::to_string(broker.symbols.at(word(1)).time);
  } else if (w[0] == "prices") {
    Symbol &s = broker.symbols.at(word(1));
    s.bid = real(2);
    s.ask = real(3);
    s.time = atol(word(4).c_str());
  } else if (w[0] == "ticks") {
    Symbol &s = broker.symbols.at(word(1));
    for (size_t i = 2; i < w.size(); i++) {
      MqlTick t = {};
      if (sscanf(w[i].c_str(), "%ld,%lf,%lf,%lf,%u", &t.time_msc, &t.bid, &t.ask, &t.last,
                 &t.flags) != 5)
        die(("no tick " + w[i]).c_str(), 0);
      t.time = t.time_msc / 1000;
      s.ticks.push_back(t);
    }
    return true;  // the store of ticks is not kept: it is the broker's to fill
  } else if (w[0] == "no_ticks") {
    std::vector<MqlTick> left;
    for (auto &t : broker.symbols.at(word(1)).ticks)
      if (t.time_msc < atol(word(2).c_str()) || t.time_msc > atol(word(3).c_str()))
        left.push_back(t);
    broker.symbols.at(word(1)).ticks = left;
    return true;
  } else if (w[0] == "book") {
    Symbol &s = broker.symbols.at(word(1));
    s.book.clear();
    for (size_t i = 2; i < w.size(); i++) {
      int type = 0;
      MqlBookInfo entry = {};
      if (sscanf(w[i].c_str(), "%d,%lf,%ld,%lf", &type, &entry.price, &entry.volume,
                 &entry.volume_real) != 4)
        die(("no entry of a book " + w[i]).c_str(), 0);
      entry.type = (ENUM_BOOK_TYPE)type;
      s.book.push_back(entry);
    }
    if (s.watched_book) OnBookEvent(string(word(1)));
    return true;
  } else if (w[0] == "fail") {
    broker.faults.push_back(
        {(uint)atoi(word(1).c_str()), atoi(word(2).c_str()), real(3), real(4)});
  } else if (w[0] == "forgive") {
    broker.faults.clear();
    program.crash_at = "";
  } else if (w[0] == "defaults") {
    broker.faults.clear();
    for (auto &pair : DEFAULTS) broker.settings[pair[0]] = pair[1];
  } else if (w[0] == "failed") {
    broker.faults.erase(broker.faults.begin());
  } else if (w[0] == "bar") {
    MqlRates bar = {atol(word(3).c_str()), real(4), real(5), real(6), real(7),
                    atol(word(8).c_str()), atoi(word(9).c_str()), 0};
    broker.bars[word(1) + " " + word(2)][bar.time] = bar;
    if (!loading) {
      if (!bar_file) bar_file = fopen((market_folder + "/bars").c_str(), "a");
      fprintf(bar_file, "%s\n", line.c_str());
      fflush(bar_file);
      return true;
    }
  } else {
    return false;
  }
  keep(kept);
  return true;
}

void load(const char *name) {
  FILE *file = fopen((market_folder + "/" + name).c_str(), "r");
  if (!file) return;
  char *line = nullptr;
  size_t room = 0;
  ssize_t n;
  while ((n = getline(&line, &room, file)) > 0) {
    std::string text(line, n - (line[n - 1] == '\n'));
    market_command(words_of(text), text);
  }
  free(line);
  fclose(file);
}

std::string hand_command(const Words &w) {
  auto real = [&](size_t i) { return i < w.size() ? atof(w[i].c_str()) : 0; };
  if (w[0] == "open")
    return std::to_string(broker.open_by(w.at(1), w.at(2) == "BUY", real(3), atol(w.at(4).c_str()),
                                         w.at(5) == "-" ? "" : w.at(5), real(6), real(7)));
  ulong ticket = strtoul(w.at(1).c_str(), nullptr, 10);
  if (w[0] == "levels") {
    broker.levels_by(ticket, real(2), real(3));
    return "";
  }
  int reason = w.size() > 3 ? atoi(w[3].c_str()) : DEAL_REASON_CLIENT;
  broker.close_by(ticket, real(2), reason, "");
  return "";
}

std::string answer(const std::string &line) {
  Words w = words_of(line);
  auto after = [&](int words) {
    size_t at = 0;
    while (words-- > 0) at = line.find(' ', at) + 1;
    return line.substr(at);
  };
  if (market_command(w, line)) return "";
  if (w[0] == "timer") {
    int rounds = w.size() > 1 ? atoi(w[1].c_str()) : 1;
    double step = w.size() > 2 ? atof(w[2].c_str()) : 0;
    for (int i = 0; i < rounds; i++) {
      move_clock(program.gmt + step, false);
      OnTimer();
    }
    if (step > 0) keep("clock " + number(program.gmt));
  } else if (w[0] == "step") {
    step(atof(w.at(1).c_str()), atof(w.at(2).c_str()));
  } else if (w[0] == "input") {
    auto found = inputs.find(w.at(1));
    if (found == inputs.end()) return "error no input " + w[1];
    found->second.set(found->second.at, w.size() > 2 ? after(2) : "");
    if (w[1] == "channel") program.channel = after(2);
  } else if (w[0] == "init") {
    program.channel = channel.raw_;
    return std::to_string(OnInit());
  } else if (w[0] == "deinit") {
    OnDeinit(0);
  } else if (w[0] == "fail_check") {
    broker.check_faults.push_back((uint)atoi(w.at(1).c_str()));
  } else if (w[0] == "file") {
    std::map<std::string, int *> faults = {{"fail_writes", &program.fail_writes},
                                           {"short_writes", &program.short_writes},
                                           {"fail_moves", &program.fail_moves},
                                           {"fail_deletes", &program.fail_deletes},
                                           {"fail_reads", &program.fail_reads}};
    *faults.at(w.at(1)) = atoi(w.at(2).c_str());
  } else if (w[0] == "open" || w[0] == "close" || w[0] == "levels") {
    return hand_command(w);
  } else if (w[0] == "pay") {
    broker.pay(atof(w.at(1).c_str()));
  } else if (w[0] == "settle") {
    broker.settle();
  } else if (w[0] == "wipe") {
    broker.wipe();
    market_command({"defaults"}, "defaults");
  } else if (w[0] == "crash") {
    arm(w.at(1) + (w.size() > 2 ? ":" + w[2] : ""));
  } else if (w[0] == "hmac") {
    return HmacHex(string(after(1))).raw_;
  } else if (w[0] == "state") {
    return state();
  } else if (w[0] == "comment") {
    return quoted(program.comment);
  } else if (w[0] == "log") {
    std::string text = "[";
    for (auto &entry : program.log) text += (text == "[" ? "" : ",") + quoted(entry);
    program.log.clear();
    return text + "]";
  } else {
    return "error no command " + w[0];
  }
  return "";
}
}  // namespace shim

int main(int count, char **words) {
  if (count != 3) return 64;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  shim::program.folder = words[1];
  shim::market_folder = words[2];
  if (const char *point = getenv("TORRA_EA_CRASH_AT")) shim::arm(point);
  shim::broker.open(words[2]);
  shim::loading = true;
  shim::load("market");
  shim::load("bars");
  shim::loading = false;
  shim::shorten_market();
  shim::broker.on_fault_used = [] { shim::keep("failed"); };
  char *line = nullptr;
  size_t room = 0;
  ssize_t n;
  while ((n = getline(&line, &room, stdin)) > 0) {
    std::string text(line, n - (line[n - 1] == '\n'));
    if (text == "quit") break;
    std::string reply = shim::answer(text);
    printf("%s\n", reply.compare(0, 5, "error") == 0 ? reply.c_str() : ("ok " + reply).c_str());
    fflush(stdout);
  }
  free(line);
  return 0;
}

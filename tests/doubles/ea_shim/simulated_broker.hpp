// A broker on paper, behind MQL5's trade functions: accounts, symbols, quotes, orders, deals,
// positions, and faults on request. It outlives the advisor: every change of its books is on the
// disk before the advisor hears of it, so that a killed advisor finds what it left.
//
// How it deals. A market order fills at the quote of the moment (a BUY at the ask), whole, or is
// refused with the return code a server would give. Stop before target when a quote passes both;
// both fill at the quote, or at their level with `set stop_fill level`. Deals of stops and targets
// carry no magic number and a comment of the broker's, which is the harder case for a reader.
#pragma once

enum ENUM_DAY_OF_WEEK { SUNDAY, MONDAY, TUESDAY, WEDNESDAY, THURSDAY, FRIDAY, SATURDAY };
enum ENUM_TIMEFRAMES {
  PERIOD_CURRENT = 0, PERIOD_M1 = 1, PERIOD_M5 = 5, PERIOD_M15 = 15, PERIOD_M30 = 30,
  PERIOD_H1 = 0x4001, PERIOD_H4 = 0x4004, PERIOD_D1 = 0x4018
};
enum ENUM_TERMINAL { TERMINAL_CONNECTED = 6, TERMINAL_TRADE_ALLOWED = 8 };
enum ENUM_MQL { MQL_TRADE_ALLOWED = 4 };
enum ENUM_ACCOUNT_INTEGER {
  ACCOUNT_LOGIN, ACCOUNT_TRADE_MODE, ACCOUNT_LEVERAGE, ACCOUNT_TRADE_ALLOWED, ACCOUNT_TRADE_EXPERT,
  ACCOUNT_MARGIN_MODE
};
enum ENUM_ACCOUNT_DOUBLE { ACCOUNT_BALANCE, ACCOUNT_EQUITY, ACCOUNT_MARGIN_FREE };
enum ENUM_ACCOUNT_STRING { ACCOUNT_CURRENCY };
enum { ACCOUNT_TRADE_MODE_DEMO, ACCOUNT_TRADE_MODE_CONTEST, ACCOUNT_TRADE_MODE_REAL };
enum {
  ACCOUNT_MARGIN_MODE_RETAIL_NETTING, ACCOUNT_MARGIN_MODE_EXCHANGE,
  ACCOUNT_MARGIN_MODE_RETAIL_HEDGING
};
enum ENUM_SYMBOL_INTEGER {
  SYMBOL_DIGITS, SYMBOL_TRADE_MODE, SYMBOL_TRADE_STOPS_LEVEL, SYMBOL_FILLING_MODE
};
enum ENUM_SYMBOL_DOUBLE {
  SYMBOL_TRADE_TICK_SIZE, SYMBOL_TRADE_TICK_VALUE, SYMBOL_TRADE_CONTRACT_SIZE, SYMBOL_VOLUME_MIN,
  SYMBOL_VOLUME_STEP, SYMBOL_VOLUME_MAX
};
enum ENUM_SYMBOL_STRING { SYMBOL_CURRENCY_PROFIT };
enum {
  SYMBOL_TRADE_MODE_DISABLED, SYMBOL_TRADE_MODE_LONGONLY, SYMBOL_TRADE_MODE_SHORTONLY,
  SYMBOL_TRADE_MODE_CLOSEONLY, SYMBOL_TRADE_MODE_FULL
};
enum { SYMBOL_FILLING_FOK = 1, SYMBOL_FILLING_IOC = 2 };
enum ENUM_POSITION_INTEGER {
  POSITION_TICKET, POSITION_TIME, POSITION_TYPE, POSITION_MAGIC, POSITION_IDENTIFIER
};
enum ENUM_POSITION_DOUBLE {
  POSITION_VOLUME, POSITION_PRICE_OPEN, POSITION_SL, POSITION_TP, POSITION_PROFIT, POSITION_SWAP
};
enum ENUM_POSITION_STRING { POSITION_SYMBOL, POSITION_COMMENT };
enum { POSITION_TYPE_BUY, POSITION_TYPE_SELL };
enum ENUM_ORDER_INTEGER { ORDER_MAGIC };
enum ENUM_ORDER_STRING { ORDER_COMMENT };
enum ENUM_DEAL_INTEGER {
  DEAL_ORDER, DEAL_TIME, DEAL_TYPE, DEAL_ENTRY, DEAL_MAGIC, DEAL_REASON, DEAL_POSITION_ID
};
enum ENUM_DEAL_DOUBLE {
  DEAL_VOLUME, DEAL_PRICE, DEAL_COMMISSION, DEAL_SWAP, DEAL_PROFIT, DEAL_FEE
};
enum ENUM_DEAL_STRING { DEAL_SYMBOL, DEAL_COMMENT };
enum { DEAL_TYPE_BUY, DEAL_TYPE_SELL, DEAL_TYPE_BALANCE };
enum { DEAL_ENTRY_IN, DEAL_ENTRY_OUT, DEAL_ENTRY_INOUT, DEAL_ENTRY_OUT_BY };
enum {
  DEAL_REASON_CLIENT, DEAL_REASON_MOBILE, DEAL_REASON_WEB, DEAL_REASON_EXPERT, DEAL_REASON_SL,
  DEAL_REASON_TP, DEAL_REASON_SO
};
enum ENUM_TRADE_ACTION { TRADE_ACTION_DEAL = 1, TRADE_ACTION_SLTP = 6 };
enum ENUM_ORDER_TYPE { ORDER_TYPE_BUY, ORDER_TYPE_SELL };
enum ENUM_ORDER_TYPE_FILLING { ORDER_FILLING_FOK, ORDER_FILLING_IOC, ORDER_FILLING_RETURN };
enum : uint {
  TRADE_RETCODE_REQUOTE = 10004, TRADE_RETCODE_REJECT = 10006, TRADE_RETCODE_PLACED = 10008,
  TRADE_RETCODE_DONE = 10009, TRADE_RETCODE_DONE_PARTIAL = 10010, TRADE_RETCODE_ERROR = 10011,
  TRADE_RETCODE_TIMEOUT = 10012, TRADE_RETCODE_INVALID = 10013,
  TRADE_RETCODE_INVALID_VOLUME = 10014, TRADE_RETCODE_INVALID_PRICE = 10015,
  TRADE_RETCODE_INVALID_STOPS = 10016, TRADE_RETCODE_TRADE_DISABLED = 10017,
  TRADE_RETCODE_MARKET_CLOSED = 10018, TRADE_RETCODE_NO_MONEY = 10019,
  TRADE_RETCODE_PRICE_CHANGED = 10020, TRADE_RETCODE_PRICE_OFF = 10021,
  TRADE_RETCODE_TOO_MANY_REQUESTS = 10024, TRADE_RETCODE_NO_CHANGES = 10025,
  TRADE_RETCODE_CLIENT_DISABLES_AT = 10027, TRADE_RETCODE_LOCKED = 10028,
  TRADE_RETCODE_INVALID_FILL = 10030, TRADE_RETCODE_CONNECTION = 10031,
  TRADE_RETCODE_POSITION_CLOSED = 10036, TRADE_RETCODE_LONG_ONLY = 10042,
  TRADE_RETCODE_SHORT_ONLY = 10043, TRADE_RETCODE_CLOSE_ONLY = 10044
};

struct MqlTick {
  datetime time;
  double bid, ask, last;
  ulong volume;
  long time_msc;
  uint flags;
  double volume_real;
};
enum { TICK_FLAG_BID = 2, TICK_FLAG_ASK = 4, TICK_FLAG_LAST = 8, TICK_FLAG_VOLUME = 16 };
enum : uint { COPY_TICKS_INFO = 1, COPY_TICKS_TRADE = 2, COPY_TICKS_ALL = 3 };
enum ENUM_BOOK_TYPE {
  BOOK_TYPE_SELL = 1, BOOK_TYPE_BUY, BOOK_TYPE_SELL_MARKET, BOOK_TYPE_BUY_MARKET
};
struct MqlBookInfo {
  ENUM_BOOK_TYPE type;
  double price;
  long volume;
  double volume_real;
};
struct MqlRates {
  datetime time;
  double open, high, low, close;
  long tick_volume;
  int spread;
  long real_volume;
};
struct MqlTradeRequest {
  ENUM_TRADE_ACTION action;
  ulong magic, order;
  string symbol;
  double volume, price, stoplimit, sl, tp;
  ulong deviation;
  ENUM_ORDER_TYPE type;
  ENUM_ORDER_TYPE_FILLING type_filling;
  datetime expiration;
  string comment;
  ulong position;
};
struct MqlTradeResult {
  uint retcode;
  ulong deal, order;
  double volume, price, bid, ask;
  string comment;
};
struct MqlTradeCheckResult {
  uint retcode;
  double margin, margin_free;
  string comment;
};

namespace shim {
typedef std::map<std::string, std::string> Settings;

struct Symbol {
  Settings terms;
  double bid = 0, ask = 0;
  long time = 0;  // of the quote, server time
  std::vector<MqlTick> ticks;      // the terminal's own store of them
  std::vector<MqlBookInfo> book;   // as it is now
  bool watched_book = false;       // this life of the program asked for it
};
struct Position {
  ulong ticket = 0;
  std::string symbol, comment;
  bool buy = false;
  double volume = 0, price = 0, sl = 0, tp = 0, visible_at = 0;
  long magic = 0, time = 0;
};
struct Order {
  ulong ticket = 0, position = 0;
  std::string symbol, comment;
  bool buy = false, live = false;
  double volume = 0, visible_at = 0, sl = 0, tp = 0;
  long magic = 0, time = 0;
};
struct Deal {
  ulong ticket = 0, order = 0, position = 0;
  std::string symbol, comment;
  bool buy = false;
  int entry = 0, reason = 0;
  double volume = 0, price = 0, profit = 0, commission = 0, visible_at = 0;
  long magic = 0, time = 0;
};
struct Fault {
  uint retcode = 0;
  int executed = 0;   // 0 no, 1 yes, 2 left waiting as an order
  double volume = 0;  // the part that is executed at once; 0 = all, of a waiting order nothing
  double delay = 0;   // seconds until the books show it
};

const char *const DEFAULTS[][2] = {
    {"connected", "1"}, {"algo", "1"}, {"algo_ea", "1"}, {"expert", "1"}, {"trade", "1"},
    {"account", "12345678"}, {"trade_mode", "demo"}, {"margin_mode", "hedging"},
    {"server_offset", "10800"}, {"leverage", "100"}, {"currency", "USD"}, {"free_margin", ""},
    {"visible_after", "0"}, {"mangle", "none"}, {"sl_magic", "zero"}, {"stop_fill", "tick"},
    {"slippage", "0"}, {"commission", "0"}, {"halt_on_check", "0"}, {"history", "1"},
    {"result", "full"}, {"send_takes", "0"}, {"ticks_take", "0"}};
const char *const TERMS[][2] = {
    {"digits", "2"}, {"tick_size", "0.01"}, {"tick_value", "1"}, {"contract", "100"},
    {"lot_min", "0.01"}, {"lot_step", "0.01"}, {"lot_max", "100"}, {"stops_level", "0"},
    {"filling", "1"}, {"fills", "mask"}, {"mode", "full"}, {"currency", "USD"}, {"session", "always"},
    {"watched", "1"}, {"depth", "0"}};

inline std::string number(double value) {
  char text[64];
  snprintf(text, sizeof text, "%.17g", value);
  return text;
}

inline std::vector<std::string> split(const std::string &line, char separator) {
  std::vector<std::string> words;
  size_t from = 0;
  for (;;) {
    size_t to = line.find(separator, from);
    words.push_back(line.substr(from, to == std::string::npos ? to : to - from));
    if (to == std::string::npos) return words;
    from = to + 1;
  }
}

class Broker {
 public:
  Settings settings;
  std::map<std::string, Symbol> symbols;
  std::map<ulong, Position> positions;
  std::map<ulong, Order> orders;
  std::map<ulong, Deal> deals;
  std::map<std::string, std::map<long, MqlRates>> bars;
  std::vector<Position> ghosts;  // closed, and still in the terminal's list for a while
  std::vector<Fault> faults;
  std::vector<uint> check_faults;
  double balance = 10000;
  ulong next = 1000, sends = 0;

  Broker() {
    for (auto &pair : DEFAULTS) settings[pair[0]] = pair[1];
  }
  ~Broker() {
    if (books_) fclose(books_);
  }

  //--- what it knows
  bool on(const char *name) const { return settings.at(name) == "1"; }
  long whole(const char *name) const { return atol(settings.at(name).c_str()); }
  double real(const char *name) const { return atof(settings.at(name).c_str()); }
  long server_time() const { return (long)std::floor(program.gmt) + whole("server_offset"); }
  bool netting() const { return settings.at("margin_mode") != "hedging"; }
  Symbol *symbol(const std::string &name) {
    auto found = symbols.find(name);
    return found == symbols.end() ? nullptr : &found->second;
  }
  static double term(const Symbol &symbol, const char *name) {
    return atof(symbol.terms.at(name).c_str());
  }
  template <class T>
  bool visible(const T &item) const { return item.visible_at <= program.gmt; }

  double profit(const Position &p, double exit, double volume) {
    Symbol &s = symbols.at(p.symbol);
    double way = p.buy ? exit - p.price : p.price - exit;
    return std::round(way / term(s, "tick_size") * term(s, "tick_value") * volume * 100) / 100;
  }
  double floating() {
    double sum = 0;
    for (auto &pair : positions) sum += profit(pair.second, exit_price(pair.second),
                                               pair.second.volume);
    return sum;
  }
  double exit_price(const Position &p) {
    Symbol &s = symbols.at(p.symbol);
    return p.buy ? s.bid : s.ask;
  }
  double margin_of(const Symbol &s, double volume, double price) const {
    return volume * term(s, "contract") * price / real("leverage");
  }
  double free_margin() {
    if (!settings["free_margin"].empty()) return real("free_margin");
    double used = 0;
    for (auto &pair : positions)
      used += margin_of(symbols.at(pair.second.symbol), pair.second.volume, pair.second.price);
    return balance + floating() - used;
  }

  //--- its memory on the disk: the books are appended to, the market is rewritten
  void open(const std::string &folder) {
    folder_ = folder;
    books_ = fopen((folder_ + "/books").c_str(), "a");
    if (!books_) die("the broker's folder cannot be written", errno);
    flock(fileno(books_), LOCK_EX);  // a killed program may not be gone yet
    replay_books();
  }
  void wipe() {
    positions.clear();
    ghosts.clear();
    orders.clear();
    deals.clear();
    faults.clear();
    check_faults.clear();
    balance = 10000;
    sends = 0;
    books_ = freopen((folder_ + "/books").c_str(), "w", books_);
    note("N");
  }

  //--- trading
  bool check(const MqlTradeRequest &q, MqlTradeCheckResult &r) {
    if (!check_faults.empty()) {
      r.retcode = check_faults.front();
      check_faults.erase(check_faults.begin());
      return false;
    }
    r.retcode = refusal(q, false);
    if (r.retcode == 0 && on("halt_on_check")) {
      mkdir((program.folder + "/control").c_str(), 0777);
      FILE *file = fopen((program.folder + "/control/HALT").c_str(), "w");
      if (file) fclose(file);
    }
    return r.retcode == 0;
  }

  bool send(const MqlTradeRequest &q, MqlTradeResult &r) {
    sends++;
    note("N");
    program.gmt += real("send_takes");  // a server that takes seconds to answer
    program.ticks += real("send_takes");
    Fault fault;
    if (!faults.empty()) {
      fault = faults.front();
      faults.erase(faults.begin());
      if (on_fault_used) on_fault_used();
    }
    if (fault.retcode && fault.executed == 0) {
      r.retcode = fault.retcode;
      return fine(r.retcode);
    }
    r.retcode = refusal(q, true);
    if (r.retcode) return false;
    delay_ = fault.delay;
    double part = fault.volume > 0 ? fault.volume : fault.volume < 0 ? share_of(q, -fault.volume)
                                                                     : q.volume;
    if (fault.executed == 2)
      wait(q, r, fault.volume);
    else
      execute(q, r, part);
    bool levels = q.action == TRADE_ACTION_SLTP;  // they move whole or not at all
    if (fault.retcode && !(levels && fault.retcode == TRADE_RETCODE_DONE_PARTIAL))
      r.retcode = fault.retcode;
    delay_ = 0;
    hush(r);
    return fine(r.retcode);
  }

  void quote(const std::string &name, double bid, double ask) {
    Symbol &s = symbols.at(name);
    s.bid = bid;
    s.ask = ask;
    s.time = server_time();
    std::vector<ulong> tickets;
    for (auto &pair : positions)
      if (pair.second.symbol == name) tickets.push_back(pair.first);
    for (ulong ticket : tickets) touch(positions.at(ticket));
  }

  // A position closed by hand (or by the broker): the advisor has no part in it.
  void close_by(ulong ticket, double volume, int reason, const std::string &comment) {
    Position &p = positions.at(ticket);
    leave(p, volume > 0 ? volume : p.volume, exit_price(p), 0, comment, reason, next++);
  }
  ulong open_by(const std::string &name, bool buy, double volume, long magic,
                const std::string &comment, double sl, double tp) {
    MqlTradeRequest q = {};
    MqlTradeResult r = {};
    q.action = TRADE_ACTION_DEAL;
    q.symbol = string(name);
    q.type = buy ? ORDER_TYPE_BUY : ORDER_TYPE_SELL;
    q.volume = volume;
    q.magic = (ulong)magic;
    q.comment = string(comment);
    q.sl = sl;
    q.tp = tp;
    execute(q, r, volume, DEAL_REASON_CLIENT);
    return r.order;
  }
  void levels_by(ulong ticket, double sl, double tp) {
    Position &p = positions.at(ticket);
    p.sl = sl;
    p.tp = tp;
    note_position(p);
  }
  void pay(double money) {
    balance += money;
    note("N");
  }
  void settle() {
    for (auto &pair : orders) {
      Order &order = pair.second;
      if (!order.live) continue;
      order.live = false;
      note_order(order);
      fill(order, order.volume, DEAL_REASON_EXPERT, 0);
    }
  }

  void (*on_fault_used)() = nullptr;

 private:
  std::string folder_;
  FILE *books_ = nullptr;
  double delay_ = 0;  // of the order that is being sent

  // Whole steps of lots, one at least.
  double share_of(const MqlTradeRequest &q, double share) {
    double step = term(symbols.at(q.symbol.raw_), "lot_step");
    return std::max(step, std::round(q.volume * share / step) * step);
  }

  double shown_at() const { return program.gmt + real("visible_after") + delay_; }

  static bool fine(uint retcode) {
    return retcode == TRADE_RETCODE_DONE || retcode == TRADE_RETCODE_PLACED ||
           retcode == TRADE_RETCODE_DONE_PARTIAL;
  }

  // What the answer keeps to itself: unclear codes name nothing; `result bare` leaves out numbers.
  void hush(MqlTradeResult &r) {
    if (r.retcode != TRADE_RETCODE_DONE && r.retcode != TRADE_RETCODE_DONE_PARTIAL) {
      r.deal = 0;
      r.price = r.volume = 0;
      if (r.retcode != TRADE_RETCODE_PLACED) r.order = 0;
    }
    if (settings["result"] == "bare") r.price = r.volume = 0;
  }

  uint refusal(const MqlTradeRequest &q, bool at_server) {
    Symbol *s = symbol(q.symbol.raw_);
    if (at_server && !(on("algo") && on("algo_ea") && on("expert") && on("trade")))
      return TRADE_RETCODE_CLIENT_DISABLES_AT;
    if (at_server && !on("connected")) return TRADE_RETCODE_CONNECTION;
    if (!s) return TRADE_RETCODE_INVALID;
    if (q.position && !positions.count(q.position)) return TRADE_RETCODE_POSITION_CLOSED;
    if (!open_now(*s)) return TRADE_RETCODE_MARKET_CLOSED;
    bool buy = q.type == ORDER_TYPE_BUY;
    if (q.action == TRADE_ACTION_SLTP) {
      Position &p = positions.at(q.position);
      if (same(p.sl, q.sl) && same(p.tp, q.tp)) return TRADE_RETCODE_NO_CHANGES;
      return levels_fit(*s, p.buy, q.sl, q.tp) ? 0u : TRADE_RETCODE_INVALID_STOPS;
    }
    double steps = q.volume / term(*s, "lot_step");
    if (q.volume < term(*s, "lot_min") - 1e-9 || q.volume > term(*s, "lot_max") + 1e-9 ||
        std::fabs(steps - std::round(steps)) > 1e-6)
      return TRADE_RETCODE_INVALID_VOLUME;
    long filling = atol(s->terms.at("filling").c_str());
    long wanted = q.type_filling == ORDER_FILLING_FOK   ? 1
                  : q.type_filling == ORDER_FILLING_IOC ? 2
                                                        : 0;
    // "mask": what the symbol says; else the digits of the modes that are really taken.
    const std::string &fills = s->terms.at("fills");
    bool refused = fills == "mask" ? (wanted ? !(filling & wanted) : filling != 0)
                                   : fills.find(char('0' + q.type_filling)) == std::string::npos;
    if (refused) return TRADE_RETCODE_INVALID_FILL;
    double price = buy ? s->ask : s->bid;
    if (q.price <= 0 || price <= 0) return TRADE_RETCODE_INVALID_PRICE;
    if (at_server &&
        std::fabs(price - q.price) * std::pow(10, term(*s, "digits")) > (double)q.deviation + 0.5)
      return TRADE_RETCODE_REQUOTE;
    if (q.position) {
      Position &p = positions.at(q.position);
      bool fits = p.symbol == q.symbol.raw_ && p.buy != buy && q.volume <= p.volume + 1e-9;
      return fits ? 0u : TRADE_RETCODE_INVALID;
    }
    const std::string &mode = s->terms.at("mode");
    if (mode == "disabled") return TRADE_RETCODE_TRADE_DISABLED;
    if (mode == "close_only") return TRADE_RETCODE_CLOSE_ONLY;
    if (mode == "long_only" && !buy) return TRADE_RETCODE_LONG_ONLY;
    if (mode == "short_only" && buy) return TRADE_RETCODE_SHORT_ONLY;
    if (!levels_fit(*s, buy, q.sl, q.tp)) return TRADE_RETCODE_INVALID_STOPS;
    if (margin_of(*s, q.volume, price) > free_margin()) return TRADE_RETCODE_NO_MONEY;
    return 0;
  }

  static bool same(double a, double b) { return std::fabs(a - b) < 1e-9; }

  bool open_now(const Symbol &s) {
    datetime from, to;
    long now = server_time(), second = now % 86400;
    for (uint i = 0; session(s, (int)((now / 86400 + 4) % 7), i, from, to); i++)
      if (second >= from && second < to) return true;
    return false;
  }

  static bool levels_fit(const Symbol &s, bool buy, double sl, double tp) {
    double point = std::pow(10, -term(s, "digits")), room = term(s, "stops_level") * point - 1e-9;
    double price = buy ? s.bid : s.ask, way = buy ? 1 : -1;
    return (sl == 0 || (price - sl) * way >= std::max(room, 1e-9)) &&
           (tp == 0 || (tp - price) * way >= std::max(room, 1e-9));
  }

  std::string mangled(const std::string &comment) const {
    const std::string &how = settings.at("mangle");
    if (how == "cut") return comment.substr(0, comment.size() / 2);
    if (how == "append") return comment + " [broker]";
    if (how == "replace") return "via server 7";
    return comment;
  }

  Order order_of(const MqlTradeRequest &q) {
    Order order;
    order.ticket = next++;
    order.position = q.position;
    order.symbol = q.symbol.raw_;
    order.comment = mangled(q.comment.raw_);
    order.buy = q.type == ORDER_TYPE_BUY;
    order.volume = q.volume;
    order.visible_at = shown_at();
    order.sl = q.sl;
    order.tp = q.tp;
    order.magic = (long)q.magic;
    order.time = server_time();
    return order;
  }

  void wait(const MqlTradeRequest &q, MqlTradeResult &r, double part) {
    Order order = order_of(q);
    order.live = true;
    if (part > 0) fill(order, part, DEAL_REASON_EXPERT, nullptr);
    order.volume -= part;
    orders[order.ticket] = order;
    note_order(order);
    r.retcode = TRADE_RETCODE_PLACED;
    r.order = order.ticket;
  }

  void execute(const MqlTradeRequest &q, MqlTradeResult &r, double part,
               int reason = DEAL_REASON_EXPERT) {
    r.retcode = TRADE_RETCODE_DONE;
    if (q.action == TRADE_ACTION_SLTP) {
      Position &p = positions.at(q.position);
      p.sl = q.sl;
      p.tp = q.tp;
      note_position(p);
      return;
    }
    Order order = order_of(q);
    orders[order.ticket] = order;
    note_order(order);
    r.order = order.ticket;
    r.volume = part;
    r.deal = fill(order, part, reason, &r.price);
    r.bid = symbols.at(order.symbol).bid;
    r.ask = symbols.at(order.symbol).ask;
  }

  ulong fill(const Order &order, double volume, int reason, double *paid) {
    Symbol &s = symbols.at(order.symbol);
    double slip = real("slippage") * std::pow(10, -term(s, "digits"));
    double price = order.buy ? s.ask + slip : s.bid - slip;
    if (paid) *paid = price;
    Position *p = order.position ? find(order.position)
                  : netting()    ? find_on(order.symbol)
                                 : find(order.ticket);  // the rest of a waiting order
    if (p && p->buy != order.buy && volume <= p->volume + 1e-9)
      return leave(*p, volume, price, order.magic, order.comment, reason, order.ticket);
    if (p && p->buy != order.buy) {
      double rest = volume - p->volume;
      leave(*p, p->volume, price, order.magic, order.comment, reason, order.ticket);
      return enter(order, rest, price, reason, nullptr);
    }
    return enter(order, volume, price, reason, p);
  }

  Position *find(ulong ticket) {
    auto found = positions.find(ticket);
    return found == positions.end() ? nullptr : &found->second;
  }
  Position *find_on(const std::string &name) {
    for (auto &pair : positions)
      if (pair.second.symbol == name) return &pair.second;
    return nullptr;
  }

  ulong enter(const Order &order, double volume, double price, int reason, Position *into) {
    ulong ticket = into ? into->ticket : order.ticket;
    Position p = into ? *into : Position();
    p.price = (p.price * p.volume + price * volume) / (p.volume + volume);
    p.volume += volume;
    p.sl = order.sl;
    p.tp = order.tp;
    if (!into) {
      p.ticket = ticket;
      p.symbol = order.symbol;
      p.comment = order.comment;
      p.buy = order.buy;
      p.magic = order.magic;
      p.time = order.time;
      p.visible_at = order.visible_at;
    }
    positions[ticket] = p;
    note_position(p);
    return book(p, order.buy, DEAL_ENTRY_IN, volume, price, 0, order.magic, order.comment, reason,
                order.ticket);
  }

  ulong leave(Position &p, double volume, double price, long magic, const std::string &comment,
              int reason, ulong order) {
    double gain = profit(p, price, volume);
    ulong deal =
        book(p, !p.buy, DEAL_ENTRY_OUT, volume, price, gain, magic, comment, reason, order);
    balance += gain;
    p.volume -= volume;
    if (p.volume > 1e-9) {
      note_position(p);
    } else {
      note("X\t" + std::to_string(p.ticket));
      Position ghost = p;
      ghost.visible_at = shown_at();
      if (reason == DEAL_REASON_EXPERT) ghosts.push_back(ghost);
      positions.erase(p.ticket);
    }
    note("N");
    return deal;
  }

  ulong book(const Position &p, bool buy, int entry, double volume, double price, double gain,
             long magic, const std::string &comment, int reason, ulong order) {
    Deal deal;
    deal.ticket = next++;
    deal.order = order;
    deal.position = p.ticket;
    deal.symbol = p.symbol;
    deal.comment = comment;
    deal.buy = buy;
    deal.entry = entry;
    deal.reason = reason;
    deal.volume = volume;
    deal.price = price;
    deal.profit = gain;
    deal.commission = -real("commission") * volume;
    deal.visible_at = reason == DEAL_REASON_EXPERT ? shown_at() : program.gmt;
    deal.magic = magic;
    deal.time = server_time();
    deals[deal.ticket] = deal;
    note_deal(deal);
    return deal.ticket;
  }

  // Stop before target.
  void touch(Position &p) {
    double now = exit_price(p), way = p.buy ? 1 : -1;
    bool stopped = p.sl > 0 && (now - p.sl) * way <= 0;
    bool reached = p.tp > 0 && (now - p.tp) * way >= 0;
    if (!stopped && !reached) return;
    double level = stopped ? p.sl : p.tp;
    double price = settings["stop_fill"] == "level" ? level : now;
    long magic = settings["sl_magic"] == "zero" ? 0 : p.magic;
    leave(p, p.volume, price, magic, (stopped ? "[sl " : "[tp ") + number(level) + "]",
          stopped ? DEAL_REASON_SL : DEAL_REASON_TP, next++);
  }

  //--- the books as lines: what, then tab-separated fields, the comment last
  void note(const std::string &line) {
    if (!books_) return;
    if (line == "N")
      fprintf(books_, "N\t%lu\t%lu\t%.17g\n", next, sends, balance);
    else
      fprintf(books_, "%s\n", line.c_str());
    fflush(books_);
  }
  void note_position(const Position &p) {
    note("P\t" + std::to_string(p.ticket) + "\t" + p.symbol + "\t" + (p.buy ? "1" : "0") + "\t" +
         number(p.volume) + "\t" + number(p.price) + "\t" + number(p.sl) + "\t" + number(p.tp) +
         "\t" + std::to_string(p.magic) + "\t" + std::to_string(p.time) + "\t" +
         number(p.visible_at) + "\t" + p.comment);
  }
  void note_order(const Order &o) {
    note("O\t" + std::to_string(o.ticket) + "\t" + std::to_string(o.position) + "\t" + o.symbol +
         "\t" + (o.buy ? "1" : "0") + "\t" + (o.live ? "1" : "0") + "\t" + number(o.volume) + "\t" +
         number(o.sl) + "\t" + number(o.tp) + "\t" + std::to_string(o.magic) + "\t" +
         std::to_string(o.time) + "\t" + number(o.visible_at) + "\t" + o.comment);
    note("N");
  }
  void note_deal(const Deal &d) {
    note("D\t" + std::to_string(d.ticket) + "\t" + std::to_string(d.order) + "\t" +
         std::to_string(d.position) + "\t" + d.symbol + "\t" + (d.buy ? "1" : "0") + "\t" +
         std::to_string(d.entry) + "\t" + std::to_string(d.reason) + "\t" + number(d.volume) +
         "\t" + number(d.price) + "\t" + number(d.profit) + "\t" + number(d.commission) + "\t" +
         std::to_string(d.magic) + "\t" + std::to_string(d.time) + "\t" + number(d.visible_at) +
         "\t" + d.comment);
  }

  static ulong id(const std::string &text) { return strtoul(text.c_str(), nullptr, 10); }
  static double num(const std::string &text) { return atof(text.c_str()); }

  void replay_books() {
    FILE *file = fopen((folder_ + "/books").c_str(), "r");
    if (!file) return;
    char *line = nullptr;
    size_t room = 0;
    ssize_t n;
    while ((n = getline(&line, &room, file)) > 0)
      if (line[n - 1] == '\n') replay(split(std::string(line, n - 1), '\t'));
    free(line);
    fclose(file);
  }
  void replay(const std::vector<std::string> &w) {
    if (w[0] == "N") {
      next = id(w[1]);
      sends = id(w[2]);
      balance = num(w[3]);
    } else if (w[0] == "X") {
      positions.erase(id(w[1]));
    } else if (w[0] == "P") {
      Position &p = positions[id(w[1])];
      p.ticket = id(w[1]);
      p.symbol = w[2];
      p.buy = w[3] == "1";
      p.volume = num(w[4]);
      p.price = num(w[5]);
      p.sl = num(w[6]);
      p.tp = num(w[7]);
      p.magic = atol(w[8].c_str());
      p.time = atol(w[9].c_str());
      p.visible_at = num(w[10]);
      p.comment = w[11];
    } else if (w[0] == "O") {
      Order &o = orders[id(w[1])];
      o.ticket = id(w[1]);
      o.position = id(w[2]);
      o.symbol = w[3];
      o.buy = w[4] == "1";
      o.live = w[5] == "1";
      o.volume = num(w[6]);
      o.sl = num(w[7]);
      o.tp = num(w[8]);
      o.magic = atol(w[9].c_str());
      o.time = atol(w[10].c_str());
      o.visible_at = num(w[11]);
      o.comment = w[12];
    } else if (w[0] == "D") {
      Deal &d = deals[id(w[1])];
      d.ticket = id(w[1]);
      d.order = id(w[2]);
      d.position = id(w[3]);
      d.symbol = w[4];
      d.buy = w[5] == "1";
      d.entry = atoi(w[6].c_str());
      d.reason = atoi(w[7].c_str());
      d.volume = num(w[8]);
      d.price = num(w[9]);
      d.profit = num(w[10]);
      d.commission = num(w[11]);
      d.magic = atol(w[12].c_str());
      d.time = atol(w[13].c_str());
      d.visible_at = num(w[14]);
      d.comment = w[15];
      next = std::max(next, d.ticket + 1);
    }
  }

 public:
  // "always", "closed", or days and seconds of the day: "1:3600-86400,2:0-86400", 0 = Sunday.
  static bool session(const Symbol &s, int day, uint index, datetime &from, datetime &to) {
    const std::string &text = s.terms.at("session");
    if (text == "closed" || (text == "always" && index > 0)) return false;
    from = 0;
    to = 86400;
    if (text == "always") return true;
    for (const std::string &part : split(text, ',')) {
      int at = -1;
      long a = 0, b = 0;
      if (sscanf(part.c_str(), "%d:%ld-%ld", &at, &a, &b) == 3 && at == day && index-- == 0) {
        from = a;
        to = b;
        return true;
      }
    }
    return false;
  }
};
inline Broker broker;
}  // namespace shim

//--- time, terminal, account ----------------------------------------------------------------------
inline datetime TimeTradeServer() { return shim::broker.server_time(); }
inline int PeriodSeconds(ENUM_TIMEFRAMES tf) {
  return tf < 0x4000 ? tf * 60 : (tf - 0x4000) * 3600;
}
inline int TerminalInfoInteger(ENUM_TERMINAL what) {
  return shim::broker.on(what == TERMINAL_CONNECTED ? "connected" : "algo");
}
inline int MQLInfoInteger(ENUM_MQL) { return shim::broker.on("algo_ea"); }
inline long AccountInfoInteger(ENUM_ACCOUNT_INTEGER what) {
  shim::Broker &b = shim::broker;
  const std::string &mode = b.settings.at("trade_mode"), &margin = b.settings.at("margin_mode");
  switch (what) {
    case ACCOUNT_LOGIN: return b.whole("account");
    case ACCOUNT_LEVERAGE: return b.whole("leverage");
    case ACCOUNT_TRADE_ALLOWED: return b.on("trade");
    case ACCOUNT_TRADE_EXPERT: return b.on("expert");
    case ACCOUNT_TRADE_MODE: return mode == "demo" ? 0 : mode == "contest" ? 1 : 2;
    case ACCOUNT_MARGIN_MODE: return margin == "netting" ? 0 : margin == "exchange" ? 1 : 2;
  }
  return 0;
}
inline double AccountInfoDouble(ENUM_ACCOUNT_DOUBLE what) {
  if (what == ACCOUNT_MARGIN_FREE) return shim::broker.free_margin();
  return shim::broker.balance + (what == ACCOUNT_EQUITY ? shim::broker.floating() : 0);
}
inline string AccountInfoString(ENUM_ACCOUNT_STRING) {
  return string(shim::broker.settings.at("currency"));
}

//--- symbols --------------------------------------------------------------------------------------
inline bool SymbolSelect(const string &name, bool select) {
  shim::Symbol *s = shim::broker.symbol(name.raw_);
  if (s) s->terms["watched"] = select ? "1" : "0";
  return s != nullptr;
}
namespace shim {
inline std::vector<std::string> listed(bool watched) {
  std::vector<std::string> names;
  for (auto &pair : broker.symbols)
    if (!watched || pair.second.terms.at("watched") == "1") names.push_back(pair.first);
  return names;
}
}  // namespace shim
inline int SymbolsTotal(bool watched) { return (int)shim::listed(watched).size(); }
inline string SymbolName(int at, bool watched) { return string(shim::listed(watched).at(at)); }
inline long SymbolInfoInteger(const string &name, ENUM_SYMBOL_INTEGER what) {
  shim::Symbol *s = shim::broker.symbol(name.raw_);
  if (!s) return 0;
  if (what == SYMBOL_TRADE_MODE) {
    const char *modes[] = {"disabled", "long_only", "short_only", "close_only", "full"};
    for (int i = 0; i < 5; i++)
      if (s->terms["mode"] == modes[i]) return i;
  }
  return (long)shim::Broker::term(*s, what == SYMBOL_DIGITS                ? "digits"
                                      : what == SYMBOL_TRADE_STOPS_LEVEL ? "stops_level"
                                                                         : "filling");
}
inline double SymbolInfoDouble(const string &name, ENUM_SYMBOL_DOUBLE what) {
  const char *terms[] = {"tick_size", "tick_value", "contract", "lot_min", "lot_step", "lot_max"};
  shim::Symbol *s = shim::broker.symbol(name.raw_);
  return s ? shim::Broker::term(*s, terms[what]) : 0;
}
inline string SymbolInfoString(const string &name, ENUM_SYMBOL_STRING) {
  shim::Symbol *s = shim::broker.symbol(name.raw_);
  return s ? string(s->terms.at("currency")) : string();
}
inline bool SymbolInfoTick(const string &name, MqlTick &tick) {
  shim::Symbol *s = shim::broker.symbol(name.raw_);
  if (!s || s->time == 0) return false;
  tick.time = s->time;
  tick.bid = s->bid;
  tick.ask = s->ask;
  return true;
}
inline bool SymbolInfoSessionTrade(const string &name, ENUM_DAY_OF_WEEK day, uint index,
                                   datetime &from, datetime &to) {
  shim::Symbol *s = shim::broker.symbol(name.raw_);
  return s && shim::Broker::session(*s, day, index, from, to);
}
inline int CopyRates(const string &name, ENUM_TIMEFRAMES tf, int start, int count,
                     Array<MqlRates> &rates) {
  auto &all = shim::broker.bars[name.raw_ + " " + std::to_string(PeriodSeconds(tf))];
  int have = (int)all.size() - start, take = have < count ? have : count;
  if (take <= 0) return -1;
  ArrayResize(rates, take);
  auto bar = all.end();
  std::advance(bar, -start);
  for (int i = take - 1; i >= 0; i--) rates[i] = (--bar)->second;
  return take;
}

// Both ends belong to the range; a terminal may take its time for the first ticks.
inline int CopyTicksRange(const string &name, Array<MqlTick> &ticks, uint = COPY_TICKS_ALL,
                          ulong from = 0, ulong to = 0) {
  shim::Symbol *s = shim::broker.symbol(name.raw_);
  shim::program.gmt += shim::broker.real("ticks_take");
  shim::program.ticks += shim::broker.real("ticks_take");
  ArrayResize(ticks, 0);
  if (!s) return -1;
  int count = 0;
  for (auto &tick : s->ticks) {
    if ((ulong)tick.time_msc < from || (to > 0 && (ulong)tick.time_msc > to)) continue;
    ArrayResize(ticks, count + 1, 4096);
    ticks[count++] = tick;
  }
  return count;
}

//--- the order book: only of symbols that have a depth, only to who asked for it --------------------
inline bool MarketBookAdd(const string &name) {
  shim::Symbol *s = shim::broker.symbol(name.raw_);
  if (!s || shim::Broker::term(*s, "depth") <= 0) return false;
  return s->watched_book = true;
}
inline bool MarketBookRelease(const string &name) {
  shim::Symbol *s = shim::broker.symbol(name.raw_);
  if (!s || !s->watched_book) return false;
  s->watched_book = false;
  return true;
}
inline bool MarketBookGet(const string &name, Array<MqlBookInfo> &entries) {
  shim::Symbol *s = shim::broker.symbol(name.raw_);
  ArrayResize(entries, 0);
  if (!s || !s->watched_book || s->book.empty()) return false;
  ArrayResize(entries, (int)s->book.size());
  for (size_t i = 0; i < s->book.size(); i++) entries[(int)i] = s->book[i];
  return true;
}

//--- positions, orders, history: what the terminal's lists show -----------------------------------
namespace shim {
inline Position selected_position;
inline Order selected_order;
inline std::vector<const Order *> history_orders;
inline std::vector<const Deal *> history_deals;

template <class T>
std::vector<T> shown_of(const std::map<ulong, T> &all) {
  std::vector<T> items;
  for (auto &pair : all)
    if (broker.visible(pair.second)) items.push_back(pair.second);
  return items;
}
inline std::vector<Position> listed_positions() {
  std::vector<Position> items = shown_of(broker.positions);
  for (auto &ghost : broker.ghosts)
    if (ghost.visible_at > program.gmt) items.push_back(ghost);
  return items;
}
inline std::vector<Order> waiting() {
  std::vector<Order> items;
  for (auto &order : shown_of(broker.orders))
    if (order.live) items.push_back(order);
  return items;
}
template <class T>
const T &by_ticket(const std::vector<const T *> &items, ulong ticket) {
  static const T none;
  size_t low = 0, high = items.size();
  while (low < high) {
    size_t middle = (low + high) / 2;
    (items[middle]->ticket < ticket ? low = middle + 1 : high = middle);
  }
  return low < items.size() && items[low]->ticket == ticket ? *items[low] : none;
}
template <class T>
void select(const std::map<ulong, T> &all, long from, long to, std::vector<const T *> &into) {
  for (auto &pair : all)
    if (broker.visible(pair.second) && pair.second.time >= from && pair.second.time <= to)
      into.push_back(&pair.second);
}
inline bool history_there() {
  history_orders.clear();
  history_deals.clear();
  return broker.on("history");
}
}  // namespace shim

inline int PositionsTotal() { return (int)shim::listed_positions().size(); }
inline ulong PositionGetTicket(int at) {
  auto items = shim::listed_positions();
  if (at < 0 || at >= (int)items.size()) return 0;
  shim::selected_position = items[at];
  return items[at].ticket;
}
inline bool PositionSelectByTicket(ulong ticket) {
  for (auto &item : shim::listed_positions()) {
    if (item.ticket != ticket) continue;
    shim::selected_position = item;
    return true;
  }
  return false;
}
inline long PositionGetInteger(ENUM_POSITION_INTEGER what) {
  const shim::Position &p = shim::selected_position;
  switch (what) {
    case POSITION_TICKET: return (long)p.ticket;
    case POSITION_IDENTIFIER: return (long)p.ticket;
    case POSITION_TIME: return p.time;
    case POSITION_TYPE: return p.buy ? POSITION_TYPE_BUY : POSITION_TYPE_SELL;
    case POSITION_MAGIC: return p.magic;
  }
  return 0;
}
inline double PositionGetDouble(ENUM_POSITION_DOUBLE what) {
  const shim::Position &p = shim::selected_position;
  switch (what) {
    case POSITION_VOLUME: return p.volume;
    case POSITION_PRICE_OPEN: return p.price;
    case POSITION_SL: return p.sl;
    case POSITION_TP: return p.tp;
    case POSITION_PROFIT: return shim::broker.profit(p, shim::broker.exit_price(p), p.volume);
    case POSITION_SWAP: return 0;
  }
  return 0;
}
inline string PositionGetString(ENUM_POSITION_STRING what) {
  const shim::Position &p = shim::selected_position;
  return string(what == POSITION_SYMBOL ? p.symbol : p.comment);
}
inline int OrdersTotal() { return (int)shim::waiting().size(); }
inline ulong OrderGetTicket(int at) {
  auto items = shim::waiting();
  if (at < 0 || at >= (int)items.size()) return 0;
  shim::selected_order = items[at];
  return items[at].ticket;
}
inline long OrderGetInteger(ENUM_ORDER_INTEGER) { return shim::selected_order.magic; }
inline string OrderGetString(ENUM_ORDER_STRING) { return string(shim::selected_order.comment); }

inline bool HistorySelect(datetime from, datetime to) {
  if (!shim::history_there()) return false;
  shim::select(shim::broker.orders, from, to, shim::history_orders);
  shim::select(shim::broker.deals, from, to, shim::history_deals);
  return true;
}
inline bool HistorySelectByPosition(ulong position) {
  if (!shim::history_there()) return false;
  for (auto &pair : shim::broker.deals)
    if (pair.second.position == position && shim::broker.visible(pair.second))
      shim::history_deals.push_back(&pair.second);
  return true;
}
inline int HistoryOrdersTotal() { return (int)shim::history_orders.size(); }
inline ulong HistoryOrderGetTicket(int at) { return shim::history_orders.at(at)->ticket; }
inline long HistoryOrderGetInteger(ulong ticket, ENUM_ORDER_INTEGER) {
  return shim::by_ticket(shim::history_orders, ticket).magic;
}
inline string HistoryOrderGetString(ulong ticket, ENUM_ORDER_STRING) {
  return string(shim::by_ticket(shim::history_orders, ticket).comment);
}
inline int HistoryDealsTotal() { return (int)shim::history_deals.size(); }
inline ulong HistoryDealGetTicket(int at) { return shim::history_deals.at(at)->ticket; }
inline long HistoryDealGetInteger(ulong ticket, ENUM_DEAL_INTEGER what) {
  const shim::Deal &d = shim::by_ticket(shim::history_deals, ticket);
  switch (what) {
    case DEAL_ORDER: return (long)d.order;
    case DEAL_TIME: return d.time;
    case DEAL_TYPE: return d.buy ? DEAL_TYPE_BUY : DEAL_TYPE_SELL;
    case DEAL_ENTRY: return d.entry;
    case DEAL_MAGIC: return d.magic;
    case DEAL_REASON: return d.reason;
    case DEAL_POSITION_ID: return (long)d.position;
  }
  return 0;
}
inline double HistoryDealGetDouble(ulong ticket, ENUM_DEAL_DOUBLE what) {
  const shim::Deal &d = shim::by_ticket(shim::history_deals, ticket);
  switch (what) {
    case DEAL_VOLUME: return d.volume;
    case DEAL_PRICE: return d.price;
    case DEAL_PROFIT: return d.profit;
    case DEAL_COMMISSION: return d.commission;
    default: return 0;
  }
}
inline string HistoryDealGetString(ulong ticket, ENUM_DEAL_STRING what) {
  const shim::Deal &d = shim::by_ticket(shim::history_deals, ticket);
  return string(what == DEAL_SYMBOL ? d.symbol : d.comment);
}

//--- trading --------------------------------------------------------------------------------------
inline bool OrderCheck(const MqlTradeRequest &request, MqlTradeCheckResult &result) {
  return shim::broker.check(request, result);
}
inline bool OrderSend(const MqlTradeRequest &request, MqlTradeResult &result) {
  shim::reach("before_send");
  bool accepted = shim::broker.send(request, result);
  shim::reach("after_send");
  return accepted;
}

//+------------------------------------------------------------------+
//| TorraBridge.mq5 - executes the signals of Torra in MetaTrader 5  |
//| MIT licence: see the file LICENSE of the project.                |
//+------------------------------------------------------------------+
// WHAT IT IS. Torra decides on another program's side and drops one small file per decision into
// the folder Common\Files\Torra\<channel>\inbox. This advisor claims the file, asks its own
// questions about it (the guards), sends at most one order for it and writes an answer (the ack).
//
// WHAT IT PROMISES. One order per signal at most, whatever is killed and whenever. It gets there
// in three steps, each of which survives a power cut of this program:
//   1. the claim      inbox\x -> work\x by rename: of two claimants one wins;
//   2. the marker     work\x.sending is written BEFORE the order leaves;
//   3. the journal    done\x is written AFTER the outcome is known, and only then the ack.
// Found after a restart: done\x there -> the same ack again. No done, but the order is at the
// broker (magic number and comment) -> adopted, ack FILLED. No done, a marker, nothing at the
// broker for 15 seconds of connected time -> ack UNKNOWN_NOT_SENT. It never sends again in that
// last case, although the order was probably never sent: "probably" is how people end up with two
// positions. A missed trade is the cheaper mistake.
//
// WHAT IT LEAVES TO OTHERS. Sizes, stops and targets are Torra's; stop and target travel with the
// order and live at the broker, so that open positions are protected while this program is down.
//
// EVERY MESSAGE is one line of flat JSON that ends in an HMAC-SHA256 under the channel key. A file
// that was not written by the holder of the key is refused (auth) before anything in it is read.
//
// LIMITS THAT NO FILE CAN LOOSEN are the inputs below: account, demo_only, max_lots,
// max_positions, max_trades_per_day, allow_trading.
//
// LANGUAGE. Only what MQL5 and C++ have in common, so that the project's tests can compile this
// very file with g++ against a simulated broker and run it. MetaEditor has not seen it: compile it
// with F7 and report any warning.
//
// THE ORDER OF THIS FILE: inputs, constants, values; the timer; claim and work; the guards;
// sending; the look at the broker; outcomes; the four state files; bars; order flow; messages;
// HMAC; files.

#property copyright "The Torra project, MIT licence"
#property version   "2.20"
#property description "Executes Torra's signal files: one order per signal at most."

//--- Inputs. Zero limits mean "no limit", an account of 0 means "never trade".
input string channel            = "main";              // folder Common\Files\Torra\<channel>
input string channel_key        = "";                  // the same as Torra's; empty = do nothing
input long   account            = 0;                   // account that may trade; 0 = never trade
input bool   demo_only          = true;                // refuse to trade on a real account
input double max_lots           = 0.1;                 // largest order in lots; 0 = no limit
input int    max_positions      = 3;                   // open positions of Torra; 0 = no limit
input int    max_trades_per_day = 10;                  // openings per UTC day; 0 = no limit
input bool   allow_trading      = true;                // false: answer, but never trade
input string bar_symbols        = "XAUUSD.m,EURUSD.m"; // symbols whose closed bars are written
input string bar_timeframes     = "M15,H1";            // timeframes of those bars
input bool   write_flow         = true;                // their ticks and order book, too
input string flow_symbols       = "";                  // symbols of it; empty = all of bar_symbols

//+------------------------------------------------------------------+
//| Constants                                                        |
//+------------------------------------------------------------------+
#define EA_VERSION     "2.2"
#define PROTOCOL       2          // version of messages and bars; another one is refused
#define TIMER_MS       250        // one round of work
#define STEP_LIMIT_MS  1000       // a longer gap between two rounds counts as this much waiting
#define BEAT_MS        1000       // heartbeat, and a look at the bars
#define BOOKS_MS       5000       // positions, deals and symbols at least this often
#define LOOK_MS        15000      // connected time in which an order must show up at the broker
#define OPEN_FILE_MS   10000      // a signal that cannot be opened for this long is refused
#define CLOCK_TOLERANCE 5         // seconds by which a signal may come from the future
#define TORRA_SILENT   60         // seconds after which Torra counts as silent (only shown)
#define MAX_SENDS      3          // sends of one order, the repeats after a requote included
#define LOOK_BACK      7260       // seconds before a signal's creation in which its order is sought
#define MAGIC_LOW      220000000  // Torra's magic numbers: from here ...
#define MAGIC_HIGH     1220000000 // ... to below here
#define LATEST_TIME    100000000000 // times are epoch seconds below this: the year 5138
#define MESSAGE_LIMIT  4096       // bytes of a signal, an ack, a heartbeat
#define BOOK_LIMIT     262144     // bytes of positions, deals, symbols
#define TAIL_LENGTH    84         // ,"mac":"<64 hex>","end":"1"}
#define DEAL_DAYS      7          // days of deals that are told
#define DEAL_LIMIT     500        // the newest of them
#define BAR_LIMIT      1000       // closed bars per file
#define BAR_GRACE      10         // seconds after its end at which the newest bar is closed
#define FLOW_LIMIT     1000       // bars per file of order flow
#define FLOW_BACK      86400      // seconds back from which bars are counted after a start
#define FLOW_PATIENCE  30         // seconds after its end in which a bar's ticks may come
#define FLOW_WHOLE     90         // percent of a bar's ticks without which it is left out
#define FLOW_ROUND_MS  200        // time that one round may count for
#define FLOW_FIRST     3600       // seconds back from which ticks are asked for at the start
#define FLOW_SLOW_MS   1000       // a symbol whose ticks take longer than this ...
#define FLOW_PAUSE_MS  3600000    // ... is left alone for so long: signals go first
#define BOOK_ASK_MS    60000      // how often a book that was not given is asked for again
#define BOOK_GAP_MS    10000      // a longer gap between two rounds: the book was not watched
#define LOT_DUST       0.00000001 // less than this is no volume
#define JOURNAL_DAYS   30         // days that done\ keeps; a replay that old is expired anyway
#define PRUNE_MS       3600000    // how often done\ is pruned

enum Reading { READ_WHOLE, READ_BROKEN, READ_SHUT };

// What the broker's answer means. UNCLEAR: the order may or may not be there.
enum Answer {
   ANSWER_DONE,
   ANSWER_PLACED,
   ANSWER_RETRY,
   ANSWER_UNCLEAR,
   ANSWER_REFUSED,
   ANSWER_HALTED
};

//+------------------------------------------------------------------+
//| Values                                                           |
//+------------------------------------------------------------------+

// A signal as its file says it. The first three tell how far the file could be trusted and read.
struct Signal {
   bool   authentic;   // the signature fits
   int    version;
   bool   whole;       // every field is there, in order, of its type and makes sense
   bool   as_decided;  // the seal of the decision fits what the message orders
   string kind;        // open, modify, close, close_all, ping; "" when it is not known
   string sid;
   long   seq;
   string channel_name;
   long   account_number;
   long   created;     // UTC, epoch seconds, like `expires`
   long   expires;
   string broker_symbol;
   string side;        // BUY or SELL: the side of the order, so a SELL closes a long
   double entry;
   double sl;
   double tp;
   double lots;
   long   magic;
   long   max_spread_pts;
   long   max_dev_pts;
   string ref;         // sid of the opening that a close or a modify refers to
   long   ticket;      // number of its position, 0 = find it by magic and comment
};

// What the guards know of account, symbol and quote: the View of torra/bridges/guards.py.
struct View {
   long   now;         // UTC
   double bid;
   double ask;
   int    digits;
   bool   right_account;
   bool   real_account;
   bool   halted;
   bool   connected;
   bool   algo_allowed;
   string trade_mode;
   bool   session_open;
   int    stops_level;
   double lot_min;
   double lot_step;
   double lot_max;
   int    positions;
   int    trades_today;
   bool   held;        // the policy reject_if_open finds a position
   ulong  position;    // of a close or a modify; 0 = not open
   double found_lots;
   double found_sl;
   double found_tp;
};

// A file of work and what this life of the program knows about it.
struct Flight {
   string name;        // of the file
   string sid;         // from the name, like `seq`
   long   seq;
   bool   here;        // still in work in this round
   bool   marked;      // this life wrote the marker: a repeat after a requote is allowed
   bool   looking;     // an order may be on its way: look for it, never send
   bool   answered;    // the broker's answer was unclear: the end is UNKNOWN, not "not sent"
   bool   noted;       // and the marker says so
   bool   opening;     // what is looked for would be a new position
   bool   told_placed; // the interim ack PLACED is written
   int    sends;
   string fillings;    // filling modes that the broker has refused, as ",XAUUSD.m 0,"
   int    retcode;     // of the last answer
   ulong  order;       // ticket of the last answer
   long   waited_ms;   // connected time spent looking
   long   shut_ms;     // time spent trying to open the file
   string closed;      // close_all: positions already sent, as ",1,,2,"
   string trouble;     //            what kept one of them open: kill or retcode
   double volume;      //            what was executed,
   double worth;       //            times its price
   ulong  deal;        //            and the last deal
   string ending;      // the final ack once it is decided; "" before
   bool   journaled;   // `ending` is in the folder done
};

// What the broker knows of a signal.
struct Found {
   bool   known;       // the history could be read
   bool   pending;     // an order waits to be executed
   bool   trace;       // something executed could be it, but its comment is not the signal's
   double volume;      // executed lots, 0 = nothing
   double price;       // their average price
   ulong  order;
   ulong  deal;
   ulong  position;
};

// What an ack says.
struct Outcome {
   string status;
   string reason;
   int    retcode;
   ulong  order;
   ulong  deal;
   ulong  position;
   double price;
   double volume;
   bool   adopted;
};

// The order flow of one symbol and timeframe.
struct Flow {
   string symbol;
   string timeframe;
   long   login;       // of the account whose terminal counted
   long   newest;      // open time of the newest bar that was counted or left out; 0 = none
   int    count;       // lines of `rows`
   string rows;        // what was counted, a line for each bar
   bool   written;     // and the file says so
   ulong  due;         // ticks (of the computer) before which it is not asked for
};

// An order book at one moment. No levels: there is none.
struct BookView {
   int    levels;
   double bids;        // lots
   double asks;
   double slippage;    // of one lot, in the price; -1 = the book does not hold one
};

// A symbol whose order book is watched. `since` is the server's time from which on nothing of it
// was missed; 0 = it is not watched.
struct Book {
   string symbol;
   bool   given;       // the broker sends it
   ulong  due;         // ticks (of the computer) from which on it is asked for
   long   since;
};

// What was seen of the order book in one bar.
struct BookBar {
   string symbol;
   string timeframe;
   long   time;        // open time of the bar
   int    events;
   BookView last;
};

// A reader's place in a text. The first thing that is not as expected ends it: ok stays false.
struct Cursor {
   string text;
   int    at;
   bool   ok;
};

//--- Memory. All of it may be lost at any moment; nothing that matters lives only here.
Flight g_flights[];
Signal g_unseen;              // the last opening, until the broker's lists show it
bool   g_has_unseen = false;
ulong  g_unseen_order = 0;
long   g_unseen_ms = 0;
uchar  g_key[];               // channel key, padded to 64 bytes
int    g_lock = INVALID_HANDLE;
ulong  g_ticks = 0;           // of the last round
long   g_step_ms = 0;         // between the last two rounds, STEP_LIMIT_MS at most
long   g_gap_ms = 0;          // and all of it
ulong  g_beat_due = 0;        // ticks at which the next heartbeat is due, and so on
ulong  g_positions_due = 0;
ulong  g_deals_due = 0;
ulong  g_symbols_due = 0;
ulong  g_bars_due = 0;
ulong  g_prune_due = 0;
long   g_beat_n = 0;
long   g_positions_n = 0;
long   g_deals_n = 0;
long   g_symbols_n = 0;
string g_positions_mark = ""; // what the last positions.json said, without profits
string g_deals_mark = "";
string g_bar_names[];         // pairs already written and what was written
string g_bar_marks[];
Flow   g_flows[];
int    g_flow_next = 0;       // where the next round of counting begins: each has its turn
Book   g_books[];             // of the symbols whose order flow is counted
BookBar g_book_bars[];        // the bars of the books that are not counted yet, and one before
ulong  g_owner_ids[];         // positions whose opening was looked up, and whether it was ours
bool   g_owner_ours[];
long   g_last_seq = 0;
string g_last_event = "";

//+------------------------------------------------------------------+
//| The life of the program                                          |
//+------------------------------------------------------------------+
int OnInit() {
   if(!InputsMakeSense())
      return INIT_PARAMETERS_INCORRECT;
   ForgetEverything();
   PrepareKey();
   SelectBarSymbols();
   BeginFlows();
   AskForTicks();
   if(!EventSetMillisecondTimer(TIMER_MS))
      return INIT_FAILED;
   return INIT_SUCCEEDED;
}

void OnDeinit(const int reason) {
   EventKillTimer();
   EndFlows();
   ReleaseChannel();
   Comment("");
   Print("Torra: the advisor left, reason ", reason, "; stops and targets stay at the broker");
}

// One round, four times a second. OrderSend may take seconds; the heart beats in between.
void OnTimer() {
   MeasureStep();
   WatchBooks();
   if(IsEmpty(channel_key)) {
      Comment("Torra: no channel key. Set the input channel_key to Torra's key of this channel.");
      return;
   }
   if(!HoldChannel()) {
      Comment("Torra: another advisor works on channel ", channel, ". Remove one of the two.");
      return;
   }
   HeartbeatWhenDue();
   SettleUnseen();
   Claim();
   HandleWork();
   WritePositionsWhenDue();
   WriteDealsWhenDue();
   WriteSymbolsWhenDue();
   WriteBarsWhenDue();
   PruneJournalWhenDue();
}

// The broker sent a change of an order book.
void OnBookEvent(const string &symbol) {
   SeeBook(symbol, true);
}

// Negative limits would read as "no limit", and the channel is part of a path.
bool InputsMakeSense() {
   bool good = StringLen(channel) > 0 && max_lots >= 0 && max_positions >= 0 &&
               max_trades_per_day >= 0 && account >= 0;
   for(int i = 0; i < StringLen(channel) && good; i++) {
      ushort c = StringGetCharacter(channel, i);
      good = IsLetterOrDigit(c) || c == '-' || c == '_' || (c == '.' && i > 0);
   }
   if(!good)
      Print("Torra: inputs refused. channel: letters, digits, . - _; limits, account: 0 or more");
   return good;
}

void ForgetEverything() {
   ArrayResize(g_flights, 0);
   ArrayResize(g_bar_names, 0);
   ArrayResize(g_bar_marks, 0);
   ArrayResize(g_flows, 0);
   g_flow_next = 0;
   ArrayResize(g_books, 0);
   ArrayResize(g_book_bars, 0);
   ArrayResize(g_owner_ids, 0);
   ArrayResize(g_owner_ours, 0);
   ClearSignal(g_unseen);
   g_has_unseen = false;
   g_ticks = GetTickCount64();
   g_beat_due = 0; // everything is due at once
   g_positions_due = 0;
   g_deals_due = 0;
   g_symbols_due = 0;
   g_bars_due = 0;
   g_prune_due = 0;
   g_positions_mark = "";
   g_deals_mark = "";
   g_last_seq = 0;
   g_last_event = "";
}

// Two advisors on one channel would both work through work\. An exclusive handle on a file lets
// one of them in; the system closes it with the program, however that ends.
bool HoldChannel() {
   if(g_lock != INVALID_HANDLE)
      return true;
   CreateFolders();
   g_lock = FileOpen(Path("state", "ea.lock"), FILE_WRITE | FILE_BIN | FILE_COMMON);
   if(g_lock == INVALID_HANDLE)
      return false;
   g_last_seq = NewestSeq();
   g_beat_n = NumberOf("ea.json");
   g_positions_n = NumberOf("positions.json");
   g_deals_n = NumberOf("deals.json");
   g_symbols_n = NumberOf("symbols.json");
   return true;
}

void ReleaseChannel() {
   if(g_lock != INVALID_HANDLE)
      FileClose(g_lock);
   g_lock = INVALID_HANDLE;
}

void CreateFolders() {
   string folders[];
   int count = StringSplit("tmp,inbox,work,ack,done,bad,state,bars,flow,control", ',', folders);
   for(int i = 0; i < count; i++)
      FolderCreate(Folder(folders[i]), FILE_COMMON);
}

// Waiting counts only as far as it was watched: after a sleep of the computer the gap between two
// rounds may be an hour, and the broker's lists are the older by that.
void MeasureStep() {
   ulong ticks = GetTickCount64();
   g_gap_ms = (long)(ticks - g_ticks);
   g_step_ms = g_gap_ms;
   g_ticks = ticks;
   if(g_step_ms > STEP_LIMIT_MS)
      g_step_ms = STEP_LIMIT_MS;
}

// Whether what the terminal shows is the broker's word on the right account.
bool OnDuty() {
   return TerminalInfoInteger(TERMINAL_CONNECTED) != 0 && RightAccount();
}

bool RightAccount() {
   return account > 0 && AccountInfoInteger(ACCOUNT_LOGIN) == account;
}

// The kill switch: a file of this name, whatever its content, stops every trade.
bool Halted() {
   return FileIsExist(Path("control", "HALT"), FILE_COMMON);
}

//+------------------------------------------------------------------+
//| Claim and work                                                   |
//+------------------------------------------------------------------+

// Torra may take a file back out of inbox\ at the same moment: the rename decides who has it.
void Claim() {
   string names[];
   int count = ListFiles("inbox", "*.json", ".json", names);
   for(int i = 0; i < count; i++) {
      if(IsEmpty(SidOf(names[i])))
         Quarantine("inbox", names[i]);
      else
         FileMove(Path("inbox", names[i]), FILE_COMMON, Path("work", names[i]), FILE_COMMON);
      HeartbeatWhenDue();
   }
}

void Quarantine(const string folder, const string name) {
   if(FileMove(Path(folder, name), FILE_COMMON, Path("bad", name), FILE_COMMON | FILE_REWRITE))
      Print("Torra: ", folder, "\\", name, " is no signal's name: moved to bad\\");
}

// Oldest name first: after a restart the work that was left over comes before what is new.
void HandleWork() {
   string names[];
   int count = ListFiles("work", "*.json", ".json", names);
   for(int i = 0; i < ArraySize(g_flights); i++)
      g_flights[i].here = false;
   for(int i = 0; i < count; i++) {
      if(IsEmpty(SidOf(names[i])))
         Quarantine("work", names[i]);
      else
         g_flights[FlightOf(names[i])].here = true;
   }
   for(int i = 0; i < ArraySize(g_flights); i++) {
      if(g_flights[i].here)
         Handle(g_flights[i]);
      HeartbeatWhenDue();
   }
   DropLanded();
}

int FlightOf(const string name) {
   int count = ArraySize(g_flights);
   for(int i = 0; i < count; i++) {
      if(g_flights[i].name == name)
         return i;
   }
   ArrayResize(g_flights, count + 1);
   ClearFlight(g_flights[count]);
   g_flights[count].name = name;
   g_flights[count].sid = SidOf(name);
   g_flights[count].seq = StringToInteger(StringSubstr(name, 0, 10));
   return count;
}

void DropLanded() {
   int kept = 0;
   for(int i = 0; i < ArraySize(g_flights); i++) {
      if(!g_flights[i].here)
         continue;
      if(kept != i)
         g_flights[kept] = g_flights[i];
      kept++;
   }
   ArrayResize(g_flights, kept);
}

// One step of one signal. Whatever cannot be finished now is tried again in the next round.
void Handle(Flight &flight) {
   if(!IsEmpty(flight.ending)) { // decided earlier, but the disk refused to keep it
      Land(flight);
      return;
   }
   if(AcknowledgeAgain(flight) || MarkedElsewhere(flight))
      return;
   Signal s;
   if(!ReadSignal(flight, s))
      return;
   if(!flight.marked && FileIsExist(MarkerPath(flight.name), FILE_COMMON))
      TakeOver(flight);
   if(flight.looking) {
      Look(flight, s);
      return;
   }
   if(FindsItself(flight, s))
      return;
   View v;
   ReadView(s, v);
   string reason = FirstObjection(s, v);
   if(!IsEmpty(reason))
      Refuse(flight, s, v, reason);
   else
      Execute(flight, s, v);
}

// A signal that is in the journal is answered from the journal, whatever the new file says: the
// same file twice, the same sid under a new number, a forgery under a used name.
bool AcknowledgeAgain(Flight &flight) {
   string done = JournalName(flight);
   if(IsEmpty(done))
      return false;
   string text = "";
   string body = "";
   int reading = ReadText(Path("done", done), MESSAGE_LIMIT, text);
   if(reading == READ_SHUT)
      return true;
   if(reading == READ_WHOLE && Unseal(text, body)) {
      if(WriteFile("ack", done, text))
         Clear(flight);
      return true;
   }
   flight.looking = true; // a damaged journal: it was handled, only the broker knows how
   flight.answered = true;
   return false;
}

string JournalName(const Flight &flight) {
   if(FileIsExist(Path("done", flight.name), FILE_COMMON))
      return flight.name;
   string end = "_" + flight.sid + ".json";
   string names[];
   return ListFiles("done", "*" + end, end, names) > 0 ? names[0] : "";
}

// The same sid under another number is being sent: wait until that one is answered.
bool MarkedElsewhere(const Flight &flight) {
   string end = "_" + flight.sid + ".json.sending";
   string names[];
   int count = ListFiles("work", "*" + end, end, names);
   for(int i = 0; i < count; i++) {
      if(names[i] != flight.name + ".sending")
         return true;
   }
   return false;
}

// A marker of an earlier life: its order may be at the broker. What it noted tells more.
void TakeOver(Flight &flight) {
   string note = "";
   flight.looking = true;
   if(ReadText(MarkerPath(flight.name), MESSAGE_LIMIT, note) != READ_WHOLE)
      return;
   string words[];
   if(StringSplit(note, ' ', words) == 3 && words[0] == "answered") {
      flight.answered = true;
      flight.noted = true;
      flight.retcode = (int)StringToInteger(words[1]);
      flight.order = (ulong)StringToInteger(words[2]);
   }
}

// Before anything is sent the broker is asked whether the order is there already. True: this
// signal is settled, or it has to wait.
bool FindsItself(Flight &flight, const Signal &s) {
   if(!s.authentic || !s.whole || (s.kind != "open" && s.kind != "close"))
      return false;
   Found found;
   Find(s, flight.order, found);
   if(Arrived(s, found)) {
      Adopt(flight, s, found);
      return true;
   }
   if(found.pending) {
      flight.looking = true;
      flight.answered = true;
      Look(flight, s);
      return true;
   }
   return !found.known && (long)TimeGMT() < s.expires; // no history is not "not there"
}

// False: the file cannot be opened yet (another program has its hand on it).
bool ReadSignal(Flight &flight, Signal &s) {
   ClearSignal(s);
   s.sid = flight.sid;
   s.seq = flight.seq;
   string text = "";
   string body = "";
   int reading = ReadText(Path("work", flight.name), MESSAGE_LIMIT, text);
   if(reading == READ_SHUT) {
      flight.shut_ms += g_step_ms;
      return flight.shut_ms >= OPEN_FILE_MS;
   }
   s.authentic = reading == READ_WHOLE && Unseal(text, body);
   if(s.authentic)
      ParseSignal(body, s);
   if(s.whole && (s.sid != flight.sid || s.seq != flight.seq))
      s.whole = false;
   s.sid = flight.sid; // the ack bears the name of the file, whatever was in it
   s.seq = flight.seq;
   return true;
}

//+------------------------------------------------------------------+
//| The guards                                                       |
//| The same questions in the same order as torra/bridges/guards.py. |
//| The first one that objects names the reason; "" = none does.     |
//+------------------------------------------------------------------+
string FirstObjection(const Signal &s, const View &v) {
   bool trade = s.kind != "ping"; // all kinds but ping
   bool open = s.kind == "open";
   if(!s.authentic)
      return "auth"; // the signature does not fit the message
   if(s.version != PROTOCOL)
      return "version"; // another version of the protocol
   if(!s.whole)
      return "schema"; // a field is missing, unknown or of the wrong type
   if(s.channel_name != channel)
      return "channel"; // meant for another channel
   if(!v.right_account || s.account_number != account)
      return "account"; // meant for another account, or this terminal shows another one
   if(trade && !s.as_decided)
      return "decision"; // side, lots, levels or times are not those that were decided
   if(trade && demo_only && v.real_account)
      return "live"; // a real account while demo_only is on
   if(trade && v.halted)
      return "kill"; // the file control\HALT is there
   if(s.created > v.now + CLOCK_TOLERANCE)
      return "clock"; // the signal comes from the future: the clocks differ
   if(v.now >= s.expires)
      return "stale"; // the signal has expired
   if(trade && !v.connected)
      return "not_connected"; // no connection to the broker
   if(trade && !v.algo_allowed)
      return "autotrading_off"; // algo trading is off
   if(trade && WrongMode(s, v))
      return "symbol"; // the symbol is unknown or not tradeable this way
   if(trade && !v.session_open)
      return "session"; // the market is closed
   if(trade && !(v.bid > 0 && v.ask >= v.bid))
      return "quote"; // there is no usable quote
   if(open && Points(v.ask - v.bid, v.digits) > s.max_spread_pts)
      return "spread"; // the spread is wider than the signal allows
   if(open && Points(MathAbs(PriceOf(s.side, v) - s.entry), v.digits) > s.max_dev_pts)
      return "deviation"; // the price has moved too far from the signal's entry
   if((open && WrongSide(s, v)) || (s.kind == "modify" && Widens(s, v)))
      return "side"; // on the wrong side of the price, or a stop would move away from it
   if(open && TooNear(s, v))
      return "stops"; // stop or target lie nearer than the broker's stops level
   if((s.kind == "close" || s.kind == "modify") && v.position == 0)
      return "no_position"; // the position is not open
   if((open || s.kind == "close") && BadVolume(s, v))
      return "volume"; // the lots do not fit minimum, step and maximum, or the position
   if(open && max_lots > 0 && s.lots > max_lots)
      return "max_lots"; // more lots than the advisor's own limit
   if(open && max_positions > 0 && v.positions >= max_positions)
      return "max_positions"; // as many positions as the advisor's own limit
   if(open && max_trades_per_day > 0 && v.trades_today >= max_trades_per_day)
      return "max_trades"; // as many trades today as the advisor's own limit
   if(open && v.held)
      return "policy"; // reject_if_open: there is a position already
   return "";
}

bool WrongMode(const Signal &s, const View &v) {
   if(v.trade_mode == "disabled")
      return true;
   if(s.kind != "open" || v.trade_mode == "full")
      return false;
   if(s.side == "BUY")
      return v.trade_mode != "long_only";
   return v.trade_mode != "short_only";
}

// An opening without a stop or a target is refused here as well: 0 is no level.
bool WrongSide(const Signal &s, const View &v) {
   double price = PriceOf(s.side, v);
   if(s.sl <= 0 || s.tp <= 0)
      return true;
   if(s.side == "BUY")
      return !(price - s.sl > 0 && s.tp - price > 0);
   return !(s.sl - price > 0 && price - s.tp > 0);
}

// Measured as brokers do: a BUY's stop and target from the bid, a SELL's from the ask.
bool TooNear(const Signal &s, const View &v) {
   double price = s.side == "BUY" ? v.bid : v.ask;
   double near = MathMin(MathAbs(price - s.sl), MathAbs(s.tp - price));
   return Points(near, v.digits) < v.stops_level;
}

// The side of a modify is that of the opening; one without a side sets the levels as they are.
bool Widens(const Signal &s, const View &v) {
   if(v.found_sl <= 0 || s.sl <= 0)
      return false;
   double point = 1;
   for(int i = 0; i < v.digits; i++)
      point /= 10;
   if(s.side == "BUY")
      return s.sl - v.found_sl < -0.5 * point;
   return s.side == "SELL" && v.found_sl - s.sl < -0.5 * point;
}

bool BadVolume(const Signal &s, const View &v) {
   if(v.lot_step <= 0)
      return true;
   double steps = s.lots / v.lot_step;
   bool off_grid = MathAbs(steps - MathFloor(steps + 0.5)) > 0.000001;
   if(s.kind == "close")
      return s.lots <= 0 || off_grid || s.lots > v.found_lots + v.lot_step * 0.000001;
   return s.lots < v.lot_min - v.lot_step * 0.000001 || s.lots > v.lot_max || off_grid;
}

// What an order of this side pays or gets now.
double PriceOf(const string side, const View &v) {
   return side == "BUY" ? v.ask : v.bid;
}

// A distance in points (10 ^ -digits), rounded half up, as the other side of the bridge counts.
long Points(const double distance, const int digits) {
   double scale = 1;
   for(int i = 0; i < digits; i++)
      scale *= 10;
   return (long)MathFloor(distance * scale + 0.5);
}

// Everything the guards ask about, read at one moment.
void ReadView(const Signal &s, View &v) {
   ClearView(v);
   v.now = (long)TimeGMT();
   v.right_account = RightAccount();
   v.real_account = AccountInfoInteger(ACCOUNT_TRADE_MODE) == ACCOUNT_TRADE_MODE_REAL;
   v.halted = Halted();
   v.connected = TerminalInfoInteger(TERMINAL_CONNECTED) != 0;
   v.algo_allowed = AlgoAllowed() && TradeAllowed();
   if(!s.authentic || !s.whole || s.kind == "ping")
      return;
   ReadSymbol(s, v);
   if(s.kind == "close" || s.kind == "modify")
      ReadPosition(s, v);
   if(s.kind == "open")
      ReadBooks(s, v);
}

bool AlgoAllowed() {
   return TerminalInfoInteger(TERMINAL_TRADE_ALLOWED) != 0 &&
          MQLInfoInteger(MQL_TRADE_ALLOWED) != 0 && allow_trading;
}

bool TradeAllowed() {
   return AccountInfoInteger(ACCOUNT_TRADE_ALLOWED) != 0 &&
          AccountInfoInteger(ACCOUNT_TRADE_EXPERT) != 0;
}

// A close_all may name no symbol; then there is nothing to ask, and the broker answers for each
// position by itself.
void ReadSymbol(const Signal &s, View &v) {
   if(s.kind == "close_all" && IsEmpty(s.broker_symbol)) {
      v.trade_mode = "full";
      v.session_open = true;
      v.bid = 1;
      v.ask = 1;
      return;
   }
   if(IsEmpty(s.broker_symbol) || !SymbolSelect(s.broker_symbol, true))
      return; // unknown: ClearView left it disabled
   v.trade_mode = TradeModeName(s.broker_symbol);
   v.session_open = SessionOpen(s.broker_symbol);
   v.digits = (int)SymbolInfoInteger(s.broker_symbol, SYMBOL_DIGITS);
   v.stops_level = (int)SymbolInfoInteger(s.broker_symbol, SYMBOL_TRADE_STOPS_LEVEL);
   v.lot_min = SymbolInfoDouble(s.broker_symbol, SYMBOL_VOLUME_MIN);
   v.lot_step = SymbolInfoDouble(s.broker_symbol, SYMBOL_VOLUME_STEP);
   v.lot_max = SymbolInfoDouble(s.broker_symbol, SYMBOL_VOLUME_MAX);
   MqlTick tick;
   if(SymbolInfoTick(s.broker_symbol, tick)) {
      v.bid = tick.bid;
      v.ask = tick.ask;
   }
}

string TradeModeName(const string symbol) {
   long mode = SymbolInfoInteger(symbol, SYMBOL_TRADE_MODE);
   if(mode == SYMBOL_TRADE_MODE_FULL)
      return "full";
   if(mode == SYMBOL_TRADE_MODE_LONGONLY)
      return "long_only";
   if(mode == SYMBOL_TRADE_MODE_SHORTONLY)
      return "short_only";
   if(mode == SYMBOL_TRADE_MODE_CLOSEONLY)
      return "close_only";
   return "disabled";
}

// Sessions are in server time, as seconds of the day; day 0 is Sunday, and so was 1970-01-04.
bool SessionOpen(const string symbol) {
   long now = (long)TimeTradeServer();
   ENUM_DAY_OF_WEEK day = (ENUM_DAY_OF_WEEK)((now / 86400 + 4) % 7);
   long second = now % 86400;
   datetime from = 0;
   datetime to = 0;
   for(uint i = 0; SymbolInfoSessionTrade(symbol, day, i, from, to); i++) {
      long first = (long)from % 86400;
      long last = (long)to % 86400;
      if(last == 0)
         last = 86400; // "24:00"
      if(second >= first && second < last)
         return true;
   }
   return false;
}

// The position that a close or a modify means: by its number, else by magic and comment, else by
// the number in our journal (a broker may have changed the comment). One of another magic, another
// symbol or the wrong direction is none: an order "closing" it would open.
void ReadPosition(const Signal &s, View &v) {
   long number = s.ticket > 0 ? s.ticket : JournaledPosition(s.ref);
   for(int i = 0; i < PositionsTotal(); i++) {
      ulong ticket = PositionGetTicket(i);
      if(ticket == 0 || PositionGetInteger(POSITION_MAGIC) != s.magic ||
         PositionGetString(POSITION_SYMBOL) != s.broker_symbol)
         continue;
      bool by_number = number > 0 && ((long)ticket == number ||
                                      PositionGetInteger(POSITION_IDENTIFIER) == number);
      bool by_comment = SameComment(PositionGetString(POSITION_COMMENT), s.ref);
      if(!by_number && (!by_comment || v.position != 0))
         continue;
      if(s.kind == "close" && SideOfPosition() == s.side)
         continue;
      v.position = ticket;
      v.found_lots = PositionGetDouble(POSITION_VOLUME);
      v.found_sl = PositionGetDouble(POSITION_SL);
      v.found_tp = PositionGetDouble(POSITION_TP);
   }
}

long JournaledPosition(const string sid) {
   string names[];
   string text = "";
   string body = "";
   string end = "_" + sid + ".json";
   if(IsEmpty(sid) || ListFiles("done", "*" + end, end, names) == 0 ||
      ReadText(Path("done", names[0]), MESSAGE_LIMIT, text) != READ_WHOLE || !Unseal(text, body))
      return 0;
   return IntegerIn(body, "position");
}

// Of the position selected last: the side of the order that opened it.
string SideOfPosition() {
   return PositionGetInteger(POSITION_TYPE) == POSITION_TYPE_BUY ? "BUY" : "SELL";
}

// Counts for max_positions, max_trades_per_day and the policy.
void ReadBooks(const Signal &s, View &v) {
   bool hedging = IsHedging();
   for(int i = 0; i < PositionsTotal(); i++) {
      if(PositionGetTicket(i) == 0)
         continue;
      long magic = PositionGetInteger(POSITION_MAGIC);
      if(IsOurs(magic))
         v.positions++;
      if(hedging ? magic == s.magic : PositionGetString(POSITION_SYMBOL) == s.broker_symbol)
         v.held = true;
   }
   long midnight = v.now - v.now % 86400 + ServerOffset();
   if(!HistorySelect((datetime)midnight, LateEnough()))
      v.trades_today = INT_MAX; // not to be known is no permission
   for(int i = 0; i < HistoryDealsTotal(); i++) {
      ulong deal = HistoryDealGetTicket(i);
      long entry = HistoryDealGetInteger(deal, DEAL_ENTRY);
      if(v.trades_today < INT_MAX && (entry == DEAL_ENTRY_IN || entry == DEAL_ENTRY_INOUT) &&
         IsOurs(HistoryDealGetInteger(deal, DEAL_MAGIC)))
         v.trades_today++;
   }
}

bool IsOurs(const long magic) {
   return magic >= MAGIC_LOW && magic < MAGIC_HIGH;
}

//+------------------------------------------------------------------+
//| Sending                                                          |
//+------------------------------------------------------------------+
void Execute(Flight &flight, const Signal &s, const View &v) {
   Outcome outcome;
   ClearOutcome(outcome, "FILLED");
   if(s.kind == "ping") {
      End(flight, s, outcome);
      return;
   }
   if(s.kind == "close_all") {
      CloseAll(flight, s);
      return;
   }
   if(s.kind == "modify" && LevelsStand(s, v)) {
      outcome.position = v.position;
      outcome.adopted = true;
      End(flight, s, outcome);
      return;
   }
   if(s.kind == "open" && OpeningUnderWay(flight))
      return;
   if(!Mark(flight))
      return; // no marker, no order
   MqlTradeRequest request = {};
   MqlTradeResult result = {};
   FillRequest(s, v, flight, request);
   flight.sends++;
   flight.opening = s.kind == "open";
   Conclude(flight, s, v, Send(request, result), request, result);
}

// The limits on positions and trades count what the terminal's lists show. An opening that these
// do not show yet would be missing in the count, so the next one waits for it.
bool OpeningUnderWay(const Flight &flight) {
   if(g_has_unseen)
      return true;
   for(int i = 0; i < ArraySize(g_flights); i++) {
      if(g_flights[i].here && g_flights[i].looking && g_flights[i].opening &&
         g_flights[i].name != flight.name)
         return true;
   }
   return false;
}

void SettleUnseen() {
   if(!g_has_unseen)
      return;
   Found found;
   Find(g_unseen, g_unseen_order, found);
   if(OnDuty())
      g_unseen_ms += g_step_ms;
   if(found.volume > 0 || g_unseen_ms >= LOOK_MS)
      g_has_unseen = false;
}

void FillRequest(const Signal &s, const View &v, const Flight &flight, MqlTradeRequest &request) {
   request.symbol = s.broker_symbol;
   request.magic = (ulong)s.magic;
   request.comment = s.sid;
   request.sl = WholeTicks(s.broker_symbol, s.sl);
   request.tp = WholeTicks(s.broker_symbol, s.tp);
   if(s.kind == "modify") {
      request.action = TRADE_ACTION_SLTP;
      request.position = v.position;
      if(s.sl <= 0)
         request.sl = v.found_sl; // a level of 0 would take the stop away; here it means "as it is"
      if(s.tp <= 0)
         request.tp = v.found_tp;
      return;
   }
   FillDeal(s.side, s.lots, PriceOf(s.side, v), s.max_dev_pts, flight, request);
   if(s.kind == "close") {
      request.position = v.position; // without it the order would open the other direction
      request.volume = MathMin(s.lots, v.found_lots);
      request.sl = 0;
      request.tp = 0;
   }
}

void FillDeal(const string side, const double lots, const double price, const long deviation,
              const Flight &flight, MqlTradeRequest &request) {
   request.action = TRADE_ACTION_DEAL;
   request.type = side == "BUY" ? ORDER_TYPE_BUY : ORDER_TYPE_SELL;
   request.volume = NormalizeDouble(lots, 8);
   request.price = price;
   request.deviation = (ulong)deviation;
   request.type_filling = (ENUM_ORDER_TYPE_FILLING)NextFilling(request.symbol, flight);
}

// The first filling mode that the broker has not refused for this signal: those that the symbol
// allows, then the others, for brokers' masks are wrong at times. There is no bit for RETURN.
// -1 = all are refused.
int NextFilling(const string symbol, const Flight &flight) {
   long bits = SymbolInfoInteger(symbol, SYMBOL_FILLING_MODE);
   int next = -1;
   for(int mode = ORDER_FILLING_RETURN; mode >= ORDER_FILLING_FOK; mode--) {
      bool allowed = IsAllowed(bits, mode);
      if(StringFind(flight.fillings, FillingMark(symbol, mode)) < 0 &&
         (next < 0 || allowed || !IsAllowed(bits, next)))
         next = mode;
   }
   return next;
}

bool IsAllowed(const long bits, const int mode) {
   if(mode == ORDER_FILLING_RETURN)
      return true;
   return (bits & (mode == ORDER_FILLING_FOK ? SYMBOL_FILLING_FOK : SYMBOL_FILLING_IOC)) != 0;
}

string FillingMark(const string symbol, const int mode) {
   return "," + symbol + " " + IntegerToString(mode) + ",";
}

// Whether the answer is about the filling mode alone, and another one is left. Such an order was
// certainly not executed, and does not count as a repeat.
bool OtherFilling(Flight &flight, const MqlTradeRequest &request, const MqlTradeResult &result) {
   if(result.retcode != TRADE_RETCODE_INVALID_FILL || request.action != TRADE_ACTION_DEAL)
      return false;
   flight.fillings += FillingMark(request.symbol, request.type_filling);
   flight.sends--;
   return NextFilling(request.symbol, flight) >= 0;
}

double WholeTicks(const string symbol, const double price) {
   double tick = SymbolInfoDouble(symbol, SYMBOL_TRADE_TICK_SIZE);
   int digits = (int)SymbolInfoInteger(symbol, SYMBOL_DIGITS);
   if(price <= 0)
      return 0;
   if(tick <= 0)
      return NormalizeDouble(price, digits);
   return NormalizeDouble(MathFloor(price / tick + 0.5) * tick, digits);
}

bool LevelsStand(const Signal &s, const View &v) {
   double half = SymbolInfoDouble(s.broker_symbol, SYMBOL_TRADE_TICK_SIZE) / 2;
   double sl = WholeTicks(s.broker_symbol, s.sl);
   double tp = WholeTicks(s.broker_symbol, s.tp);
   return (s.sl <= 0 || MathAbs(sl - v.found_sl) < half) &&
          (s.tp <= 0 || MathAbs(tp - v.found_tp) < half);
}

// The only place from which an order leaves. HALT is asked once more, as late as possible. Margin
// is asked for deals alone; new levels need none.
int Send(MqlTradeRequest &request, MqlTradeResult &result) {
   MqlTradeCheckResult check = {};
   if(request.action == TRADE_ACTION_DEAL && !OrderCheck(request, check)) {
      result.retcode = check.retcode;
      return ANSWER_REFUSED;
   }
   if(Halted())
      return ANSWER_HALTED;
   bool accepted = OrderSend(request, result);
   if(!accepted && result.retcode == 0)
      return ANSWER_UNCLEAR;
   return Meaning(result.retcode);
}

// "Accepted" by OrderSend is not "executed": only the return code says what happened.
int Meaning(const uint retcode) {
   if(retcode == TRADE_RETCODE_DONE || retcode == TRADE_RETCODE_DONE_PARTIAL)
      return ANSWER_DONE;
   if(retcode == TRADE_RETCODE_PLACED)
      return ANSWER_PLACED;
   if(retcode == TRADE_RETCODE_REQUOTE || retcode == TRADE_RETCODE_PRICE_CHANGED ||
      retcode == TRADE_RETCODE_PRICE_OFF || retcode == TRADE_RETCODE_TOO_MANY_REQUESTS ||
      retcode == TRADE_RETCODE_LOCKED)
      return ANSWER_RETRY; // certainly not executed
   if(retcode == TRADE_RETCODE_TIMEOUT || retcode == TRADE_RETCODE_CONNECTION ||
      retcode == TRADE_RETCODE_ERROR || retcode == 0)
      return ANSWER_UNCLEAR; // perhaps executed: look, never send again
   return ANSWER_REFUSED;
}

void Conclude(Flight &flight, const Signal &s, const View &v, const int answer,
              const MqlTradeRequest &request, const MqlTradeResult &result) {
   flight.retcode = (int)result.retcode;
   if(answer == ANSWER_DONE)
      EndExecuted(flight, s, v, request, result);
   else if(answer == ANSWER_HALTED)
      Refuse(flight, s, v, "kill");
   else if(answer == ANSWER_PLACED || answer == ANSWER_UNCLEAR)
      StartLooking(flight, s, result.order);
   else if(!OtherFilling(flight, request, result) &&
           (answer == ANSWER_REFUSED || flight.sends >= MAX_SENDS))
      Refuse(flight, s, v, "retcode");
   // else: a requote or the like. The next round asks every guard again, with the new quote.
}

void StartLooking(Flight &flight, const Signal &s, const ulong order) {
   flight.looking = true;
   flight.answered = true;
   flight.order = order;
   Look(flight, s);
}

// The marker remembers the broker's answer, so that a restart does not call it "not sent".
void NoteAnswer(Flight &flight) {
   flight.noted = WriteFile("work", flight.name + ".sending",
                            "answered " + IntegerToString(flight.retcode) + " " +
                            IntegerToString((long)flight.order));
}

void EndExecuted(Flight &flight, const Signal &s, const View &v, const MqlTradeRequest &request,
                 const MqlTradeResult &result) {
   Outcome outcome;
   ClearOutcome(outcome, result.retcode == TRADE_RETCODE_DONE_PARTIAL ? "PARTIAL" : "FILLED");
   outcome.retcode = (int)result.retcode;
   outcome.order = result.order;
   outcome.deal = result.deal;
   outcome.position = v.position;
   if(s.kind != "modify") {
      Found found;
      Find(s, result.order, found);
      FillGaps(outcome, found, request, result);
      if(s.kind == "open") {
         if(outcome.position == 0 && IsHedging())
            outcome.position = result.order; // a new position is named after its order
         RememberUnseen(s, result.order, found);
      }
   }
   End(flight, s, outcome);
}

// Some brokers answer 10009 without a price or a volume; their lists know.
void FillGaps(Outcome &outcome, const Found &found, const MqlTradeRequest &request,
              const MqlTradeResult &result) {
   bool seen = found.volume > 0;
   outcome.price = result.price > 0 ? result.price : (seen ? found.price : request.price);
   outcome.volume = result.volume > 0 ? result.volume : (seen ? found.volume : request.volume);
   if(outcome.deal == 0)
      outcome.deal = found.deal;
   if(outcome.position == 0)
      outcome.position = found.position;
}

void RememberUnseen(const Signal &s, const ulong order, const Found &found) {
   g_has_unseen = found.volume <= 0;
   g_unseen = s;
   g_unseen_order = order;
   g_unseen_ms = 0;
}

bool IsHedging() {
   return AccountInfoInteger(ACCOUNT_MARGIN_MODE) == ACCOUNT_MARGIN_MODE_RETAIL_HEDGING;
}

//--- close_all: every position of the magic number, one order each. One that is refused, or whose
//--- answer is unclear, does not keep the others open; what was sent once is not sent again.
void CloseAll(Flight &flight, const Signal &s) {
   ulong tickets[];
   int count = PositionsOfMagic(s.magic, tickets);
   bool again = false;
   if(count > 0 && !Mark(flight))
      return;
   int rounds = flight.sends++;
   for(int i = 0; i < count; i++) {
      string sent = "," + IntegerToString((long)tickets[i]) + ",";
      if(StringFind(flight.closed, sent) >= 0)
         continue; // the list of positions is slow
      MqlTradeResult result = {};
      int answer = CloseOne(tickets[i], s, flight, result);
      if(answer == ANSWER_HALTED) {
         flight.trouble = "kill";
         break;
      }
      again = again || answer == ANSWER_RETRY;
      if(answer != ANSWER_RETRY)
         flight.closed += sent;
      NoteClosed(flight, answer, result);
      HeartbeatWhenDue();
   }
   if(flight.sends < rounds)
      flight.sends = rounds; // a round whose symbols ask for other filling modes counts once
   if(again && flight.trouble != "kill" && flight.sends < MAX_SENDS)
      return;
   if(again && IsEmpty(flight.trouble))
      flight.trouble = "retcode";
   if(flight.answered)
      StartLooking(flight, s, flight.order);
   else
      EndCloseAll(flight, s);
}

void NoteClosed(Flight &flight, const int answer, const MqlTradeResult &result) {
   if(answer == ANSWER_DONE) {
      flight.volume += result.volume;
      flight.worth += result.volume * result.price;
      flight.deal = result.deal;
      flight.order = result.order;
      return;
   }
   if(!flight.answered) // the code that needs explaining stays
      flight.retcode = (int)result.retcode;
   if(answer == ANSWER_REFUSED)
      flight.trouble = "retcode";
   if(answer == ANSWER_UNCLEAR || answer == ANSWER_PLACED)
      flight.answered = true;
}

int CloseOne(const ulong ticket, const Signal &s, Flight &flight, MqlTradeResult &result) {
   MqlTradeRequest request = {};
   MqlTick tick;
   if(!PositionSelectByTicket(ticket))
      return ANSWER_DONE; // gone by itself
   request.symbol = PositionGetString(POSITION_SYMBOL);
   request.position = ticket;
   request.magic = (ulong)s.magic;
   request.comment = s.sid;
   if(!SymbolInfoTick(request.symbol, tick)) {
      result.retcode = TRADE_RETCODE_PRICE_OFF;
      return ANSWER_RETRY;
   }
   if(NextFilling(request.symbol, flight) < 0) {
      result.retcode = TRADE_RETCODE_INVALID_FILL;
      return ANSWER_REFUSED;
   }
   string side = SideOfPosition() == "BUY" ? "SELL" : "BUY";
   FillDeal(side, PositionGetDouble(POSITION_VOLUME), side == "BUY" ? tick.ask : tick.bid,
            s.max_dev_pts, flight, request);
   int answer = Send(request, result);
   return OtherFilling(flight, request, result) ? ANSWER_RETRY : answer;
}

void EndCloseAll(Flight &flight, const Signal &s) {
   Outcome outcome;
   bool any = flight.volume > 0;
   ClearOutcome(outcome, "FILLED");
   outcome.retcode = any ? (int)TRADE_RETCODE_DONE : 0;
   if(!IsEmpty(flight.trouble)) {
      outcome.status = any ? "PARTIAL" : "REJECTED";
      outcome.reason = any ? "" : flight.trouble;
      outcome.retcode = flight.retcode;
   }
   outcome.order = flight.order;
   outcome.deal = flight.deal;
   outcome.volume = flight.volume;
   outcome.price = any ? flight.worth / flight.volume : 0;
   End(flight, s, outcome);
}

int PositionsOfMagic(const long magic, ulong &tickets[]) {
   int count = 0;
   ArrayResize(tickets, 0);
   for(int i = 0; i < PositionsTotal(); i++) {
      ulong ticket = PositionGetTicket(i);
      if(ticket == 0 || PositionGetInteger(POSITION_MAGIC) != magic)
         continue;
      ArrayResize(tickets, count + 1);
      tickets[count] = ticket;
      count++;
   }
   return count;
}

//+------------------------------------------------------------------+
//| The look at the broker                                           |
//+------------------------------------------------------------------+

// One round of waiting for an order that may have left. Ends by itself after LOOK_MS of connected
// time, and then says what is known: nothing was answered and nothing is there -> not sent; the
// broker said something unclear, or there is a trace of it -> unknown, for a person or for
// Torra's reconciliation.
void Look(Flight &flight, const Signal &s) {
   Found found;
   if(flight.answered && !flight.noted)
      NoteAnswer(flight);
   Find(s, flight.order, found);
   flight.opening = s.kind == "open" || IsEmpty(s.kind);
   if(Arrived(s, found)) {
      Adopt(flight, s, found);
      return;
   }
   if(flight.retcode == (int)TRADE_RETCODE_PLACED && !flight.told_placed)
      TellPlaced(flight, s);
   if(flight.waited_ms < LOOK_MS || !found.known) {
      if(OnDuty())
         flight.waited_ms += g_step_ms;
      return;
   }
   EndLooking(flight, s, found);
}

// Whether all of what was asked for is there.
bool Arrived(const Signal &s, const Found &found) {
   ulong tickets[];
   if(s.kind == "close_all")
      return PositionsOfMagic(s.magic, tickets) == 0;
   if(s.kind != "modify")
      return found.volume > 0 && !found.pending;
   View v;
   ClearView(v);
   ReadPosition(s, v);
   return v.position != 0 && LevelsStand(s, v);
}

void EndLooking(Flight &flight, const Signal &s, const Found &found) {
   if(found.volume > 0 && s.kind != "close_all") { // a part of it, and the rest still waits
      Adopt(flight, s, found);
      return;
   }
   Outcome outcome;
   ClearOutcome(outcome, "UNKNOWN_NOT_SENT");
   bool partly = s.kind == "close_all" && found.volume > 0;
   if(flight.answered || found.pending || found.trace)
      outcome.status = "UNKNOWN";
   else if(partly)
      outcome.status = "PARTIAL";
   outcome.retcode = flight.retcode;
   outcome.reason = flight.retcode != 0 && !partly ? "retcode" : "";
   outcome.order = flight.order;
   outcome.deal = found.deal;
   outcome.volume = found.volume;
   outcome.price = found.price;
   outcome.adopted = partly;
   End(flight, s, outcome);
}

void TellPlaced(Flight &flight, const Signal &s) {
   Outcome outcome;
   ClearOutcome(outcome, "PLACED");
   outcome.retcode = flight.retcode;
   outcome.order = flight.order;
   flight.told_placed = WriteFile("ack", flight.name, AckText(s, outcome));
}

void Adopt(Flight &flight, const Signal &s, const Found &found) {
   Outcome outcome;
   ClearOutcome(outcome, "FILLED");
   bool sized = s.kind == "open" || s.kind == "close";
   if(sized && found.volume < s.lots - 0.00000001)
      outcome.status = "PARTIAL";
   outcome.retcode = flight.retcode;
   outcome.order = found.order;
   outcome.deal = found.deal;
   outcome.position = found.position;
   if(s.kind != "modify") {
      outcome.price = found.price;
      outcome.volume = found.volume;
   }
   outcome.adopted = true;
   End(flight, s, outcome);
}

// Deals, historic orders, waiting orders and positions with this magic number and comment. Orders
// as well as deals, because brokers put words of their own into a deal's comment; `order` is a
// ticket that the broker gave, for those that change every comment.
void Find(const Signal &s, const ulong order, Found &found) {
   ClearFound(found);
   if(s.created > 0)
      found.known = HistorySelect((datetime)(s.created + ServerOffset() - LOOK_BACK), LateEnough());
   else // a signal that can no longer be read
      found.known = HistorySelect((datetime)(TimeTradeServer() - DEAL_DAYS * 86400), LateEnough());
   string orders = "," + IntegerToString((long)order) + ",";
   for(int i = 0; i < HistoryOrdersTotal(); i++)
      FindInHistoricOrder(s, HistoryOrderGetTicket(i), orders);
   for(int i = 0; i < HistoryDealsTotal(); i++)
      FindInDeal(s, HistoryDealGetTicket(i), orders, found);
   if(found.volume > 0)
      found.price /= found.volume;
   for(int i = 0; i < OrdersTotal(); i++)
      FindInWaitingOrder(s, OrderGetTicket(i), found);
   if(s.kind == "open" || IsEmpty(s.kind)) {
      for(int i = 0; i < PositionsTotal(); i++)
         FindInPosition(s, PositionGetTicket(i), order, found);
   }
}

datetime LateEnough() {
   return (datetime)(TimeTradeServer() + 86400);
}

void FindInHistoricOrder(const Signal &s, const ulong ticket, string &orders) {
   if(MagicFits(s, HistoryOrderGetInteger(ticket, ORDER_MAGIC)) &&
      SameComment(HistoryOrderGetString(ticket, ORDER_COMMENT), s.sid))
      orders += IntegerToString((long)ticket) + ",";
}

void FindInDeal(const Signal &s, const ulong ticket, const string orders, Found &found) {
   long type = HistoryDealGetInteger(ticket, DEAL_TYPE);
   long order = HistoryDealGetInteger(ticket, DEAL_ORDER);
   if((type != DEAL_TYPE_BUY && type != DEAL_TYPE_SELL) ||
      !MagicFits(s, HistoryDealGetInteger(ticket, DEAL_MAGIC)))
      return;
   bool by_order = order > 0 && StringFind(orders, "," + IntegerToString(order) + ",") >= 0;
   if(by_order || SameComment(HistoryDealGetString(ticket, DEAL_COMMENT), s.sid)) {
      double volume = HistoryDealGetDouble(ticket, DEAL_VOLUME);
      found.volume += volume;
      found.price += volume * HistoryDealGetDouble(ticket, DEAL_PRICE);
      found.deal = ticket;
      found.order = (ulong)order;
      found.position = (ulong)HistoryDealGetInteger(ticket, DEAL_POSITION_ID);
   } else if((s.kind == "open" || s.kind == "close") &&
             HistoryDealGetInteger(ticket, DEAL_REASON) == DEAL_REASON_EXPERT &&
             HistoryDealGetString(ticket, DEAL_SYMBOL) == s.broker_symbol &&
             (type == DEAL_TYPE_BUY) == (s.side == "BUY") &&
             HistoryDealGetInteger(ticket, DEAL_TIME) >= s.created + ServerOffset()) {
      found.trace = true;
   }
}

void FindInWaitingOrder(const Signal &s, const ulong ticket, Found &found) {
   if(ticket == 0 || !MagicFits(s, OrderGetInteger(ORDER_MAGIC)) ||
      !SameComment(OrderGetString(ORDER_COMMENT), s.sid))
      return;
   found.pending = true;
   found.order = ticket;
}

// The list of positions may be ahead of the history.
void FindInPosition(const Signal &s, const ulong ticket, const ulong order, Found &found) {
   if(ticket == 0 || found.volume > 0 || !MagicFits(s, PositionGetInteger(POSITION_MAGIC)))
      return;
   bool by_order = order > 0 && (ulong)PositionGetInteger(POSITION_IDENTIFIER) == order;
   if(!by_order && !SameComment(PositionGetString(POSITION_COMMENT), s.sid))
      return;
   found.position = ticket;
   found.volume = PositionGetDouble(POSITION_VOLUME);
   found.price = PositionGetDouble(POSITION_PRICE_OPEN);
}

bool MagicFits(const Signal &s, const long magic) {
   return s.magic > 0 ? magic == s.magic : IsOurs(magic);
}

// Brokers may add words behind a comment. A longer sid is another sid.
bool SameComment(const string text, const string sid) {
   int length = StringLen(sid);
   if(length == 0 || StringSubstr(text, 0, length) != sid)
      return false;
   return StringLen(text) == length || !IsLetterOrDigit(StringGetCharacter(text, length));
}

//+------------------------------------------------------------------+
//| Outcomes: journal, ack, and the file leaves the folder work      |
//+------------------------------------------------------------------+
void Refuse(Flight &flight, const Signal &s, const View &v, const string reason) {
   Outcome outcome;
   ClearOutcome(outcome, reason == "stale" ? "EXPIRED" : "REJECTED");
   outcome.reason = reason;
   if(reason == "retcode")
      outcome.retcode = flight.retcode;
   outcome.position = v.position;
   End(flight, s, outcome);
}

void End(Flight &flight, const Signal &s, const Outcome &outcome) {
   flight.looking = false;
   flight.ending = AckText(s, outcome);
   g_last_event = s.sid + " " + s.kind + " " + outcome.status + " " + outcome.reason;
   Print("Torra: ", g_last_event, " retcode ", outcome.retcode);
   Land(flight);
}

// First the journal, then the ack, then the file goes: a crash between two of these leads to the
// same ack once more. Each step that the disk refuses is repeated in the next round.
void Land(Flight &flight) {
   if(!flight.journaled)
      flight.journaled = WriteFile("done", flight.name, flight.ending);
   if(!flight.journaled || !WriteFile("ack", flight.name, flight.ending))
      return;
   Clear(flight);
}

// The marker goes before the signal, so that none is ever left alone.
void Clear(Flight &flight) {
   if(flight.seq > g_last_seq)
      g_last_seq = flight.seq;
   if(FileIsExist(MarkerPath(flight.name), FILE_COMMON) &&
      !FileDelete(MarkerPath(flight.name), FILE_COMMON))
      return;
   if(FileDelete(Path("work", flight.name), FILE_COMMON))
      flight.here = false;
}

string AckText(const Signal &s, const Outcome &outcome) {
   MqlTick tick;
   int digits = 2;
   double bid = 0;
   double ask = 0;
   if(!IsEmpty(s.broker_symbol) && SymbolInfoTick(s.broker_symbol, tick)) {
      digits = (int)SymbolInfoInteger(s.broker_symbol, SYMBOL_DIGITS);
      bid = tick.bid;
      ask = tick.ask;
   }
   string body = JsonBegin("ack") + JsonText("sid", s.sid) + JsonInteger("seq", s.seq) +
                 JsonText("channel", channel) + JsonText("kind", s.kind) +
                 JsonText("status", outcome.status) +
                 JsonText("reason", outcome.reason) + JsonInteger("retcode", outcome.retcode) +
                 JsonInteger("ticket", (long)outcome.order) +
                 JsonInteger("deal", (long)outcome.deal) +
                 JsonInteger("position", (long)outcome.position);
   body += JsonDecimal("price", outcome.price, digits) + JsonDecimal("volume", outcome.volume, 2) +
           JsonDecimal("bid", bid, digits) + JsonDecimal("ask", ask, digits) +
           JsonInteger("server_time", (long)TimeTradeServer()) +
           JsonInteger("gmt", (long)TimeGMT()) + JsonFlag("adopted", outcome.adopted);
   return Seal(body);
}

string MarkerPath(const string name) {
   return Path("work", name + ".sending");
}

// True once the marker is on the disk, closed.
bool Mark(Flight &flight) {
   if(!flight.marked)
      flight.marked = WriteFile("work", flight.name + ".sending", "sending");
   return flight.marked;
}

// The journal is what makes a replay harmless, as long as a replay could pass the guards. Names
// begin with the number, so the oldest come first.
void PruneJournalWhenDue() {
   if(GetTickCount64() < g_prune_due)
      return;
   g_prune_due = GetTickCount64() + PRUNE_MS;
   string names[];
   int count = ListFiles("done", "*.json", ".json", names);
   for(int i = 0; i < count; i++) {
      string text = "";
      string body = "";
      if(ReadText(Path("done", names[i]), MESSAGE_LIMIT, text) != READ_WHOLE || !Unseal(text, body))
         continue;
      if(IntegerIn(body, "gmt") >= (long)TimeGMT() - JOURNAL_DAYS * 86400)
         return;
      FileDelete(Path("done", names[i]), FILE_COMMON);
   }
}

long NewestSeq() {
   string names[];
   int count = ListFiles("done", "*.json", ".json", names);
   return count > 0 ? StringToInteger(StringSubstr(names[count - 1], 0, 10)) : 0;
}

//+------------------------------------------------------------------+
//| State files: ea.json, positions.json, deals.json, symbols.json   |
//| Each has a number that only grows, also across restarts, so that |
//| an old copy can be told from a new one.                          |
//+------------------------------------------------------------------+
long NextNumber(const long last) {
   long by_clock = (long)TimeGMT() * 10; // should the old file be lost: at most four a second
   return last + 1 > by_clock ? last + 1 : by_clock;
}

// What the last life wrote; 0 when there is nothing to be read.
long NumberOf(const string name) {
   string text = "";
   string body = "";
   if(ReadText(Path("state", name), BOOK_LIMIT, text) != READ_WHOLE || !Unseal(text, body))
      return 0;
   return IntegerIn(body, "n");
}

void HeartbeatWhenDue() {
   if(GetTickCount64() < g_beat_due)
      return;
   g_beat_due = GetTickCount64() + BEAT_MS;
   g_beat_n = NextNumber(g_beat_n);
   string names[];
   int inbox = ListFiles("inbox", "*.json", ".json", names);
   int work = ListFiles("work", "*.json", ".json", names);
   string body = JsonBegin("ea") + JsonInteger("n", g_beat_n) +
                 JsonInteger("gmt", (long)TimeGMT()) +
                 JsonInteger("server_offset_s", ServerOffset()) +
                 JsonInteger("account", AccountInfoInteger(ACCOUNT_LOGIN)) +
                 JsonText("trade_mode", AccountModeName()) +
                 JsonText("margin_mode", MarginModeName()) +
                 JsonFlag("connected", TerminalInfoInteger(TERMINAL_CONNECTED) != 0) +
                 JsonFlag("algo_allowed", AlgoAllowed()) +
                 JsonFlag("trade_allowed", TradeAllowed());
   body += JsonFlag("kill", Halted()) + JsonText("ea_version", EA_VERSION) +
           JsonInteger("last_seq", g_last_seq) + JsonInteger("inbox", inbox) +
           JsonInteger("work", work) +
           JsonDecimal("balance", AccountInfoDouble(ACCOUNT_BALANCE), 2) +
           JsonDecimal("equity", AccountInfoDouble(ACCOUNT_EQUITY), 2) +
           JsonDecimal("free_margin", AccountInfoDouble(ACCOUNT_MARGIN_FREE), 2) +
           JsonInteger("leverage", AccountInfoInteger(ACCOUNT_LEVERAGE)) +
           JsonText("currency", Field(AccountInfoString(ACCOUNT_CURRENCY))) +
           JsonText("channel", channel);
   WriteFile("state", "ea.json", Seal(body));
   ShowStatus();
}

string AccountModeName() {
   long mode = AccountInfoInteger(ACCOUNT_TRADE_MODE);
   if(mode == ACCOUNT_TRADE_MODE_DEMO)
      return "demo";
   return mode == ACCOUNT_TRADE_MODE_CONTEST ? "contest" : "real";
}

string MarginModeName() {
   long mode = AccountInfoInteger(ACCOUNT_MARGIN_MODE);
   if(mode == ACCOUNT_MARGIN_MODE_RETAIL_HEDGING)
      return "hedging";
   return mode == ACCOUNT_MARGIN_MODE_EXCHANGE ? "exchange" : "netting";
}

// A few words on the chart. Torra's silence is shown and changes nothing else: stops and targets
// live at the broker.
void ShowStatus() {
   string text = "";
   string body = "";
   string torra = "has not been heard of";
   if(ReadText(Path("state", "torra.json"), MESSAGE_LIMIT, text) == READ_WHOLE &&
      Unseal(text, body)) {
      long age = (long)TimeGMT() - IntegerIn(body, "gmt");
      if(StringFind(body, JsonBegin("torra")) != 0)
         torra = "of another protocol, or this advisor is: update the older of the two";
      else if(StringFind(body, JsonText("channel", channel)) >= 0)
         torra = age > TORRA_SILENT ? "silent for " + IntegerToString(age) + " s" : "alive";
   }
   string trading = "ready";
   if(!RightAccount())
      trading = "refused: the input account is not this account";
   else if(Halted())
      trading = "HALTED: " + Path("control", "HALT") + " is there";
   else if(!AlgoAllowed() || !TradeAllowed())
      trading = "refused: algo trading is off";
   Comment("Torra channel ", channel, ", trading ", trading, "\nTorra is ", torra, "\n",
           g_last_event);
}

void WritePositionsWhenDue() {
   string rows = "";
   string mark = "";
   int count = 0;
   for(int i = 0; i < PositionsTotal(); i++) {
      ulong ticket = PositionGetTicket(i);
      if(ticket == 0)
         continue;
      string fixed = PositionRow(ticket);
      string row = fixed + "|" + Decimal(PositionGetDouble(POSITION_PROFIT) +
                   PositionGetDouble(POSITION_SWAP), 2) + "|" +
                   IntegerToString(PositionGetInteger(POSITION_TIME) - ServerOffset());
      if(StringLen(rows) + StringLen(row) > BOOK_LIMIT - 1024)
         break;
      rows += JsonText("p" + IntegerToString(count), row);
      mark += fixed + ";";
      count++;
   }
   if(GetTickCount64() < g_positions_due && mark == g_positions_mark)
      return;
   g_positions_n = NextNumber(g_positions_n);
   string body = JsonBegin("positions") + JsonInteger("n", g_positions_n) +
                 JsonInteger("gmt", (long)TimeGMT()) + JsonText("channel", channel) +
                 JsonInteger("account", AccountInfoInteger(ACCOUNT_LOGIN)) +
                 JsonInteger("count", count) + rows;
   if(!WriteFile("state", "positions.json", Seal(body)))
      return;
   g_positions_mark = mark;
   g_positions_due = GetTickCount64() + BOOKS_MS;
}

// Of the position selected: everything but its profit and its time.
string PositionRow(const ulong ticket) {
   string symbol = PositionGetString(POSITION_SYMBOL);
   int digits = (int)SymbolInfoInteger(symbol, SYMBOL_DIGITS);
   return IntegerToString((long)ticket) + "|" + NameField(symbol) + "|" +
          (SideOfPosition() == "BUY" ? "LONG" : "SHORT") + "|" +
          Decimal(PositionGetDouble(POSITION_VOLUME), 2) + "|" +
          Decimal(PositionGetDouble(POSITION_PRICE_OPEN), digits) + "|" +
          Decimal(PositionGetDouble(POSITION_SL), digits) + "|" +
          Decimal(PositionGetDouble(POSITION_TP), digits) + "|" +
          IntegerToString(PositionGetInteger(POSITION_MAGIC)) + "|" +
          Field(PositionGetString(POSITION_COMMENT));
}

// The deals of a week that are ours: by their magic number, or because the position was opened
// under one of ours. A stop's deal may bear no magic number at all.
void WriteDealsWhenDue() {
   long since = (long)TimeGMT() - DEAL_DAYS * 86400;
   if(!HistorySelect((datetime)(since + ServerOffset()), LateEnough()))
      return;
   int total = HistoryDealsTotal();
   string mark = IntegerToString(total) + " " +
                 IntegerToString(total > 0 ? (long)HistoryDealGetTicket(total - 1) : 0);
   if(GetTickCount64() < g_deals_due && mark == g_deals_mark)
      return;
   string rows[];
   int count = OurDeals(total, rows);
   int first = count > DEAL_LIMIT ? count - DEAL_LIMIT : 0;
   g_deals_n = NextNumber(g_deals_n);
   string body = JsonBegin("deals") + JsonInteger("n", g_deals_n) +
                 JsonInteger("gmt", (long)TimeGMT()) + JsonInteger("since", since) +
                 JsonText("channel", channel) +
                 JsonInteger("account", AccountInfoInteger(ACCOUNT_LOGIN)) +
                 JsonInteger("count", count - first);
   for(int i = first; i < count; i++)
      body += JsonText("d" + IntegerToString(i - first), rows[i]);
   if(!WriteFile("state", "deals.json", Seal(body)))
      return;
   g_deals_mark = mark;
   g_deals_due = GetTickCount64() + BOOKS_MS;
}

// All rows are written down before ownership is asked: asking selects another history.
int OurDeals(const int total, string &rows[]) {
   ulong positions[];
   long magics[];
   int count = 0;
   ArrayResize(rows, total);
   ArrayResize(positions, total);
   ArrayResize(magics, total);
   for(int i = 0; i < total; i++) {
      ulong deal = HistoryDealGetTicket(i);
      long type = HistoryDealGetInteger(deal, DEAL_TYPE);
      if(type != DEAL_TYPE_BUY && type != DEAL_TYPE_SELL)
         continue;
      rows[count] = DealRow(deal);
      positions[count] = (ulong)HistoryDealGetInteger(deal, DEAL_POSITION_ID);
      magics[count] = HistoryDealGetInteger(deal, DEAL_MAGIC);
      count++;
   }
   int kept = 0;
   for(int i = 0; i < count; i++) {
      if(!IsOurs(magics[i]) && !OpenedByUs(positions[i]))
         continue;
      rows[kept] = rows[i];
      kept++;
   }
   return kept;
}

bool OpenedByUs(const ulong position) {
   int known = ArraySize(g_owner_ids);
   for(int i = 0; i < known; i++) {
      if(g_owner_ids[i] == position)
         return g_owner_ours[i];
   }
   if(position == 0 || !HistorySelectByPosition(position))
      return false;
   bool ours = false;
   for(int i = 0; i < HistoryDealsTotal() && !ours; i++) {
      ulong deal = HistoryDealGetTicket(i);
      ours = HistoryDealGetInteger(deal, DEAL_ENTRY) == DEAL_ENTRY_IN &&
             IsOurs(HistoryDealGetInteger(deal, DEAL_MAGIC));
   }
   ArrayResize(g_owner_ids, known + 1);
   ArrayResize(g_owner_ours, known + 1);
   g_owner_ids[known] = position;
   g_owner_ours[known] = ours;
   return ours;
}

string DealRow(const ulong deal) {
   string symbol = HistoryDealGetString(deal, DEAL_SYMBOL);
   int digits = (int)SymbolInfoInteger(symbol, SYMBOL_DIGITS);
   double profit = HistoryDealGetDouble(deal, DEAL_PROFIT) +
                   HistoryDealGetDouble(deal, DEAL_SWAP) +
                   HistoryDealGetDouble(deal, DEAL_COMMISSION) +
                   HistoryDealGetDouble(deal, DEAL_FEE);
   return IntegerToString((long)deal) + "|" +
          IntegerToString(HistoryDealGetInteger(deal, DEAL_POSITION_ID)) + "|" +
          NameField(symbol) + "|" +
          (HistoryDealGetInteger(deal, DEAL_ENTRY) == DEAL_ENTRY_IN ? "in" : "out") + "|" +
          (HistoryDealGetInteger(deal, DEAL_TYPE) == DEAL_TYPE_BUY ? "BUY" : "SELL") + "|" +
          Decimal(HistoryDealGetDouble(deal, DEAL_VOLUME), 2) + "|" +
          Decimal(HistoryDealGetDouble(deal, DEAL_PRICE), digits) + "|" + Decimal(profit, 2) + "|" +
          IntegerToString(HistoryDealGetInteger(deal, DEAL_MAGIC)) + "|" +
          Field(HistoryDealGetString(deal, DEAL_COMMENT)) + "|" +
          IntegerToString(HistoryDealGetInteger(deal, DEAL_TIME) - ServerOffset()) + "|" +
          ReasonName(HistoryDealGetInteger(deal, DEAL_REASON));
}

string ReasonName(const long reason) {
   if(reason == DEAL_REASON_SL)
      return "sl";
   if(reason == DEAL_REASON_TP)
      return "tp";
   if(reason == DEAL_REASON_SO)
      return "stop_out";
   if(reason == DEAL_REASON_EXPERT)
      return "expert";
   if(reason == DEAL_REASON_CLIENT || reason == DEAL_REASON_MOBILE || reason == DEAL_REASON_WEB)
      return "client";
   return "other";
}

// The symbols of Market Watch with their terms, for sizing and for `torra init`.
void WriteSymbolsWhenDue() {
   if(GetTickCount64() < g_symbols_due)
      return;
   string rows = "";
   int count = 0;
   for(int i = 0; i < SymbolsTotal(true); i++) {
      string row = SymbolRow(SymbolName(i, true));
      if(StringLen(rows) + StringLen(row) > BOOK_LIMIT - 1024)
         break;
      rows += JsonText("s" + IntegerToString(count), row);
      count++;
   }
   g_symbols_n = NextNumber(g_symbols_n);
   string body = JsonBegin("symbols") + JsonInteger("n", g_symbols_n) +
                 JsonInteger("gmt", (long)TimeGMT()) + JsonText("channel", channel) +
                 JsonInteger("account", AccountInfoInteger(ACCOUNT_LOGIN)) +
                 JsonInteger("count", count) + rows;
   if(WriteFile("state", "symbols.json", Seal(body)))
      g_symbols_due = GetTickCount64() + BOOKS_MS;
}

string SymbolRow(const string symbol) {
   int digits = (int)SymbolInfoInteger(symbol, SYMBOL_DIGITS);
   MqlTick tick;
   double bid = 0;
   double ask = 0;
   long quoted = 0;
   if(SymbolInfoTick(symbol, tick)) {
      bid = tick.bid;
      ask = tick.ask;
      quoted = (long)tick.time - ServerOffset();
   }
   return NameField(symbol) + "|" + IntegerToString(digits) + "|" +
          Decimal(SymbolInfoDouble(symbol, SYMBOL_TRADE_TICK_SIZE), digits) + "|" +
          Decimal(SymbolInfoDouble(symbol, SYMBOL_TRADE_TICK_VALUE), 2) + "|" +
          Decimal(SymbolInfoDouble(symbol, SYMBOL_TRADE_CONTRACT_SIZE), 2) + "|" +
          Decimal(SymbolInfoDouble(symbol, SYMBOL_VOLUME_MIN), 2) + "|" +
          Decimal(SymbolInfoDouble(symbol, SYMBOL_VOLUME_STEP), 2) + "|" +
          Decimal(SymbolInfoDouble(symbol, SYMBOL_VOLUME_MAX), 2) + "|" +
          IntegerToString(SymbolInfoInteger(symbol, SYMBOL_TRADE_STOPS_LEVEL)) + "|" +
          TradeModeName(symbol) + "|" +
          Field(SymbolInfoString(symbol, SYMBOL_CURRENCY_PROFIT)) + "|" +
          Decimal(bid, digits) + "|" + Decimal(ask, digits) + "|" + IntegerToString(quoted);
}

//+------------------------------------------------------------------+
//| Bars                                                             |
//+------------------------------------------------------------------+
void SelectBarSymbols() {
   string symbols[];
   string timeframes[];
   int width = SplitList(bar_symbols, symbols);
   int depth = SplitList(bar_timeframes, timeframes);
   for(int i = 0; i < width; i++) {
      if(!SymbolSelect(symbols[i], true))
         Print("Torra: the broker has no symbol ", symbols[i], " (input bar_symbols)");
   }
   for(int i = 0; i < depth; i++) {
      if(Timeframe(timeframes[i]) == PERIOD_CURRENT)
         Print("Torra: no timeframe ", timeframes[i], "; M1 M5 M15 M30 H1 H4 D1 (bar_timeframes)");
   }
}

// The names in a list with commas, without blanks around them, and no empty ones.
int SplitList(const string list, string &names[]) {
   int count = StringSplit(list, ',', names);
   int kept = 0;
   for(int i = 0; i < count; i++) {
      string name = names[i];
      StringTrimLeft(name);
      StringTrimRight(name);
      if(IsEmpty(name))
         continue;
      names[kept] = name;
      kept++;
   }
   return kept;
}

void WriteBarsWhenDue() {
   if(GetTickCount64() < g_bars_due)
      return;
   g_bars_due = GetTickCount64() + BEAT_MS;
   string symbols[];
   string timeframes[];
   int width = SplitList(bar_symbols, symbols);
   int depth = SplitList(bar_timeframes, timeframes);
   LongestFirst(timeframes, depth);
   for(int i = 0; i < width; i++) {
      for(int j = 0; j < depth; j++) {
         if(Timeframe(timeframes[j]) != PERIOD_CURRENT)
            WriteBars(symbols[i], timeframes[j]);
      }
   }
   WriteFlows();
}

// Of bars that close together the desk stores the longer first, and so waits for it.
void LongestFirst(string &timeframes[], const int count) {
   for(int i = 1; i < count; i++) {
      string name = timeframes[i];
      int at = i;
      while(at > 0 && PeriodSeconds(Timeframe(timeframes[at - 1])) <
                      PeriodSeconds(Timeframe(name))) {
         timeframes[at] = timeframes[at - 1];
         at--;
      }
      timeframes[at] = name;
   }
}

// The first line names whose bars the file holds, so that under the signature no file can stand in
// for another: who may write into the folder has no key, but all of its files.
//
// The newest bar is still forming. It counts as closed once its time is over by BAR_GRACE, also
// when no tick of the next one has come (a quiet market, a weekend).
void WriteBars(const string symbol, const string timeframe) {
   MqlRates rates[];
   int count = CopyRates(symbol, Timeframe(timeframe), 0, BAR_LIMIT + 1, rates);
   long length = PeriodSeconds(Timeframe(timeframe));
   if(count > 0 && (long)rates[count - 1].time + length + BAR_GRACE > (long)TimeTradeServer())
      count--;
   long login = AccountInfoInteger(ACCOUNT_LOGIN);
   if(count <= 0 || login <= 0) // 0: not logged in yet, and nobody's bars
      return;
   int first = count > BAR_LIMIT ? count - BAR_LIMIT : 0;
   string mark = IntegerToString((long)rates[first].time) + " " +
                 IntegerToString((long)rates[count - 1].time) + " " +
                 IntegerToString(count - first) + " " + IntegerToString(ServerOffset()) + " " +
                 IntegerToString(login);
   int at = BarFile(symbol + "_" + timeframe);
   if(g_bar_marks[at] == mark)
      return;
   string text = JsonBegin("bars") + JsonText("channel", channel) +
                 JsonInteger("account", login) + JsonText("broker_symbol", symbol) +
                 JsonText("tf", timeframe) + JsonInteger("count", count - first) +
                 JsonInteger("server_offset_s", ServerOffset()) +
                 "}\ntime,open,high,low,close,tick_volume,spread\n";
   int digits = (int)SymbolInfoInteger(symbol, SYMBOL_DIGITS);
   for(int i = first; i < count; i++)
      text += BarRow(rates[i], digits) + "\n";
   text += "end," + HmacHex(text);
   if(WriteFile("bars", FileName(symbol) + "_" + timeframe + ".csv", text))
      g_bar_marks[at] = mark;
}

string BarRow(const MqlRates &bar, const int digits) {
   return IntegerToString((long)bar.time) + "," + DoubleToString(bar.open, digits) + "," +
          DoubleToString(bar.high, digits) + "," + DoubleToString(bar.low, digits) + "," +
          DoubleToString(bar.close, digits) + "," + IntegerToString(bar.tick_volume) + "," +
          IntegerToString(bar.spread);
}

int BarFile(const string name) {
   int count = ArraySize(g_bar_names);
   for(int i = 0; i < count; i++) {
      if(g_bar_names[i] == name)
         return i;
   }
   ArrayResize(g_bar_names, count + 1);
   ArrayResize(g_bar_marks, count + 1);
   g_bar_names[count] = name;
   g_bar_marks[count] = "";
   return count;
}

// PERIOD_CURRENT stands for "no such timeframe".
ENUM_TIMEFRAMES Timeframe(const string name) {
   if(name == "M1")
      return PERIOD_M1;
   if(name == "M5")
      return PERIOD_M5;
   if(name == "M15")
      return PERIOD_M15;
   if(name == "M30")
      return PERIOD_M30;
   if(name == "H1")
      return PERIOD_H1;
   if(name == "H4")
      return PERIOD_H4;
   if(name == "D1")
      return PERIOD_D1;
   return PERIOD_CURRENT;
}

// Server time minus UTC. Offsets of clocks on earth are quarters of an hour; what is left over is
// the difference between two clocks that do not agree to the second.
long ServerOffset() {
   double seconds = (double)((long)TimeTradeServer() - (long)TimeGMT());
   return (long)MathFloor(seconds / 900 + 0.5) * 900;
}

//+------------------------------------------------------------------+
//| Order flow: what moved inside each closed bar                    |
//+------------------------------------------------------------------+
// One file beside each file of bars, flow\<SYMBOL>_<TF>.csv, signed and named like it. Its lines:
//   time            open time of the bar, as in the bars
//   ticks           ticks of the bar, as the terminal keeps them
//   up, down        ticks whose price lies above, or below, that of the tick before in the same
//                   bar. The price is the bid; of a bar in which the broker sent trades it is that
//                   of the trades, and other ticks have none. One that did not change is neither.
//   spread_mean     mean of ask less bid over the ticks that have both, in points
//   spread_widest   the widest of them
//   levels          prices of the order book at the bar's close, both sides
//   bid_volume, ask_volume   lots in it
//   imbalance       (bid_volume - ask_volume) / (bid_volume + ask_volume)
//   slippage        mean price of one lot less the best price, in points, of the dearer side; empty
//                   where a side does not hold a lot
//   events          changes of the book that came during the bar
// The book at the close is the last one that was read before it. All six are empty where the broker
// sends no book, where it was empty, and of a bar during which it was not watched from its
// beginning.
//
// Ticks come from the terminal's own store, so a restart loses none of them. A bar of which fewer
// ticks are there than FLOW_WHOLE percent of those that the bar itself counts is left out: there is
// a gap, and nothing is guessed.
//
// A question for ticks may wait for the broker for up to 45 seconds, and everything here with it.
// The first one of a symbol is the slow one: it is asked at the start, where nobody waits. After
// that the bars are written before, nothing is asked while a signal is there, and a symbol that was
// slow is left alone for FLOW_PAUSE_MS.
void BeginFlows() {
   string symbols[];
   string timeframes[];
   int width = FlowSymbols(symbols);
   int depth = SplitList(bar_timeframes, timeframes);
   LongestFirst(timeframes, depth);
   for(int i = 0; i < width && write_flow; i++) {
      for(int j = 0; j < depth; j++) {
         if(Timeframe(timeframes[j]) != PERIOD_CURRENT)
            AddFlow(symbols[i], timeframes[j]);
      }
      if(BookOf(symbols[i]) < 0) {
         int count = ArraySize(g_books);
         ArrayResize(g_books, count + 1);
         g_books[count].symbol = symbols[i];
         g_books[count].given = false;
         g_books[count].due = 0;
         g_books[count].since = 0;
         AskForBook(g_books[count]);
      }
   }
}

// The desk reads order flow beside bars alone, so only symbols of bar_symbols count.
int FlowSymbols(string &symbols[]) {
   string wanted[];
   int width = SplitList(bar_symbols, symbols);
   int count = SplitList(flow_symbols, wanted);
   if(count == 0)
      return width;
   int kept = 0;
   for(int i = 0; i < width; i++) {
      bool named = false;
      for(int j = 0; j < count && !named; j++)
         named = symbols[i] == wanted[j];
      if(!named)
         continue;
      symbols[kept] = symbols[i];
      kept++;
   }
   return kept;
}

// At the start, for each symbol once.
void AskForTicks() {
   MqlTick ticks[];
   for(int i = 0; i < ArraySize(g_flows); i++) {
      if(i > 0 && g_flows[i - 1].symbol == g_flows[i].symbol)
         continue;
      if(IsEmpty(channel_key) || TerminalInfoInteger(TERMINAL_CONNECTED) == 0 || SignalWaits())
         return;
      ulong now = (ulong)TimeTradeServer() * 1000;
      AskTicks(g_flows[i].symbol, ticks, now - FLOW_FIRST * 1000, now);
   }
}

// Every question for ticks goes through here. Returns how many there are.
int AskTicks(const string symbol, MqlTick &ticks[], const ulong begin, const ulong end) {
   ulong asked = GetTickCount64();
   int count = CopyTicksRange(symbol, ticks, COPY_TICKS_ALL, begin, end);
   if(GetTickCount64() - asked <= FLOW_SLOW_MS)
      return count;
   Print("Torra: the ticks of ", symbol, " took ", (long)(GetTickCount64() - asked),
         " ms; they are not asked for within the next hour");
   for(int i = 0; i < ArraySize(g_flows); i++) {
      if(g_flows[i].symbol == symbol)
         g_flows[i].due = GetTickCount64() + FLOW_PAUSE_MS;
   }
   return count;
}

bool SignalWaits() {
   string names[];
   return ArraySize(g_flights) > 0 || ListFiles("inbox", "*.json", ".json", names) > 0 ||
          ListFiles("work", "*.json", ".json", names) > 0;
}

void EndFlows() {
   for(int i = 0; i < ArraySize(g_books); i++) {
      if(g_books[i].given)
         MarketBookRelease(g_books[i].symbol);
   }
   ArrayResize(g_books, 0);
}

// A name that stands twice in the inputs is one file.
void AddFlow(const string symbol, const string timeframe) {
   int count = ArraySize(g_flows);
   for(int i = 0; i < count; i++) {
      if(g_flows[i].symbol == symbol && g_flows[i].timeframe == timeframe)
         return;
   }
   ArrayResize(g_flows, count + 1);
   ClearFlow(g_flows[count]);
   g_flows[count].symbol = symbol;
   g_flows[count].timeframe = timeframe;
}

void WriteFlows() {
   if(SignalWaits() || TerminalInfoInteger(TERMINAL_CONNECTED) == 0 ||
      AccountInfoInteger(ACCOUNT_LOGIN) <= 0)
      return;
   ulong until = GetTickCount64() + FLOW_ROUND_MS;
   int flows = ArraySize(g_flows);
   for(int n = 0; n < flows && GetTickCount64() <= until; n++) {
      int i = g_flow_next % flows;
      g_flow_next = i + 1;
      if(GetTickCount64() >= g_flows[i].due)
         CountFlow(g_flows[i], until);
      if(!g_flows[i].written && g_flows[i].count > 0)
         g_flows[i].written = WriteFlow(g_flows[i]);
      HeartbeatWhenDue();
   }
}

// Counts the bars that closed since the last look, oldest first. One whose ticks are not all there
// yet is waited for, and those after it with it.
void CountFlow(Flow &flow, const ulong until) {
   MqlRates rates[];
   long length = PeriodSeconds(Timeframe(flow.timeframe));
   long now = (long)TimeTradeServer();
   long login = AccountInfoInteger(ACCOUNT_LOGIN);
   int count = CopyRates(flow.symbol, Timeframe(flow.timeframe), 0, FLOW_LIMIT + 1, rates);
   if(count > 0 && (long)rates[count - 1].time + length + BAR_GRACE > now)
      count--;
   if(flow.login != login) { // another account: nothing of the last one stays
      flow.login = login;
      flow.newest = 0;
      flow.count = 0;
      flow.rows = "";
   }
   for(int i = 0; i < count && GetTickCount64() <= until; i++) {
      long time = (long)rates[i].time;
      if(time <= flow.newest || time + length < now - FLOW_BACK)
         continue;
      if(SignalWaits())
         return;
      string row = FlowRow(flow, rates[i], length);
      if(IsEmpty(row) && now < time + length + FLOW_PATIENCE)
         return;
      flow.newest = time;
      if(!IsEmpty(row))
         AppendFlow(flow, row);
      ForgetBooks(flow, time); // also of a bar that is left out
   }
}

void AppendFlow(Flow &flow, const string row) {
   flow.rows += row + "\n";
   flow.count++;
   flow.written = false;
   if(flow.count > FLOW_LIMIT) {
      flow.rows = StringSubstr(flow.rows, StringFind(flow.rows, "\n") + 1);
      flow.count--;
   }
}

bool WriteFlow(const Flow &flow) {
   string text = JsonBegin("flow") + JsonText("channel", channel) +
                 JsonInteger("account", flow.login) + JsonText("broker_symbol", flow.symbol) +
                 JsonText("tf", flow.timeframe) + JsonInteger("count", flow.count) +
                 JsonInteger("digits", SymbolInfoInteger(flow.symbol, SYMBOL_DIGITS)) +
                 JsonInteger("server_offset_s", ServerOffset()) +
                 "}\ntime,ticks,up,down,spread_mean,spread_widest,levels,bid_volume,ask_volume," +
                 "imbalance,slippage,events\n" + flow.rows;
   return WriteFile("flow", FileName(flow.symbol) + "_" + flow.timeframe + ".csv",
                    text + "end," + HmacHex(text));
}

// "" while the ticks of the bar are not all there.
string FlowRow(const Flow &flow, const MqlRates &bar, const long length) {
   MqlTick ticks[];
   ulong begin = (ulong)bar.time * 1000;
   ulong end = begin + (ulong)length * 1000 - 1;
   int count = AskTicks(flow.symbol, ticks, begin, end);
   if(count <= 0 || (long)count * 100 < bar.tick_volume * FLOW_WHOLE)
      return "";
   int digits = (int)SymbolInfoInteger(flow.symbol, SYMBOL_DIGITS);
   return IntegerToString((long)bar.time) + "," + IntegerToString(count) + "," +
          Moves(ticks, count, digits) + "," + Spreads(ticks, count, digits) + "," +
          BookColumns(flow, (long)bar.time, digits);
}

bool IsTrade(const MqlTick &tick) {
   return (tick.flags & TICK_FLAG_LAST) != 0 && tick.last > 0;
}

// up,down
string Moves(const MqlTick &ticks[], const int count, const int digits) {
   bool trades = false;
   int up = 0;
   int down = 0;
   double before = 0;
   for(int i = 0; i < count && !trades; i++)
      trades = IsTrade(ticks[i]);
   for(int i = 0; i < count; i++) {
      double price = trades ? ticks[i].last : ticks[i].bid;
      if(price <= 0 || (trades && !IsTrade(ticks[i])))
         continue;
      long way = before > 0 ? Points(price - before, digits) : 0;
      if(way > 0)
         up++;
      if(way < 0)
         down++;
      before = price;
   }
   return IntegerToString(up) + "," + IntegerToString(down);
}

// spread_mean,spread_widest
string Spreads(const MqlTick &ticks[], const int count, const int digits) {
   long sum = 0;
   long widest = 0;
   int quoted = 0;
   for(int i = 0; i < count; i++) {
      if(ticks[i].bid <= 0 || ticks[i].ask < ticks[i].bid)
         continue;
      long spread = Points(ticks[i].ask - ticks[i].bid, digits);
      sum += spread;
      quoted++;
      if(spread > widest)
         widest = spread;
   }
   if(quoted == 0)
      return ",";
   return DoubleToString((double)sum / quoted, 4) + "," + IntegerToString(widest);
}

// levels,bid_volume,ask_volume,imbalance,slippage,events
string BookColumns(const Flow &flow, const long time, const int digits) {
   int book = BookOf(flow.symbol);
   int at = BookBarOf(flow.symbol, flow.timeframe, time);
   if(book < 0 || at < 0)
      return ",,,,,";
   BookView last;
   last = g_book_bars[at].last;
   int events = g_book_bars[at].time == time ? g_book_bars[at].events : 0;
   if(g_books[book].since <= 0 || g_books[book].since > time || last.levels <= 0)
      return ",,,,,";
   double scale = 1;
   for(int i = 0; i < digits; i++)
      scale *= 10;
   double all = last.bids + last.asks;
   return IntegerToString(last.levels) + "," + Decimal(last.bids, 2) + "," +
          Decimal(last.asks, 2) + "," +
          (all > 0 ? DoubleToString((last.bids - last.asks) / all, 4) : "") + "," +
          (last.slippage >= 0 ? DoubleToString(last.slippage * scale, 2) : "") + "," +
          IntegerToString(events);
}

//--- The order book. Changes come one by one for every symbol that was asked for; which bar one
//--- belongs to, the server's clock says.
int BookOf(const string symbol) {
   for(int i = 0; i < ArraySize(g_books); i++) {
      if(g_books[i].symbol == symbol)
         return i;
   }
   return -1;
}

// A broker that has none refuses; one whose line is not there yet does so, too.
void AskForBook(Book &book) {
   if(book.given || GetTickCount64() < book.due)
      return;
   book.due = GetTickCount64() + BOOK_ASK_MS;
   book.given = MarketBookAdd(book.symbol);
}

// What came while the terminal was not connected, or the computer slept, was not seen.
void WatchBooks() {
   bool broken = TerminalInfoInteger(TERMINAL_CONNECTED) == 0 || g_gap_ms > BOOK_GAP_MS;
   for(int i = 0; i < ArraySize(g_books); i++) {
      AskForBook(g_books[i]);
      if(broken)
         g_books[i].since = 0;
      else if(g_books[i].given && g_books[i].since == 0)
         SeeBook(g_books[i].symbol, false);
   }
}

// Reads the book; `changed` counts it as a change of its bar.
void SeeBook(const string symbol, const bool changed) {
   int book = BookOf(symbol);
   BookView view;
   if(book < 0)
      return;
   ReadBook(symbol, view);
   if(g_books[book].since == 0) {
      if(view.levels == 0 || TerminalInfoInteger(TERMINAL_CONNECTED) == 0)
         return;
      g_books[book].since = (long)TimeTradeServer();
   }
   for(int i = 0; i < ArraySize(g_flows); i++) {
      if(g_flows[i].symbol == symbol)
         NoteBook(g_flows[i], view, changed);
   }
}

void NoteBook(const Flow &flow, const BookView &view, const bool changed) {
   long now = (long)TimeTradeServer();
   long time = now - now % PeriodSeconds(Timeframe(flow.timeframe));
   int at = BookBarOf(flow.symbol, flow.timeframe, time);
   if(at < 0 || g_book_bars[at].time != time) {
      // Bars of long ago are not counted any more, however long a symbol was left alone.
      ForgetBooks(flow, time - FLOW_BACK);
      at = ArraySize(g_book_bars);
      ArrayResize(g_book_bars, at + 1);
      g_book_bars[at].symbol = flow.symbol;
      g_book_bars[at].timeframe = flow.timeframe;
      g_book_bars[at].time = time;
      g_book_bars[at].events = 0;
   }
   if(changed)
      g_book_bars[at].events++;
   g_book_bars[at].last = view;
}

// The newest bar up to a moment in which a book was seen; -1 = none.
int BookBarOf(const string symbol, const string timeframe, const long time) {
   int found = -1;
   for(int i = 0; i < ArraySize(g_book_bars); i++) {
      if(g_book_bars[i].symbol == symbol && g_book_bars[i].timeframe == timeframe &&
         g_book_bars[i].time <= time &&
         (found < 0 || g_book_bars[i].time > g_book_bars[found].time))
         found = i;
   }
   return found;
}

// The newest one stays: its book is that of later bars too, as long as it does not change.
void ForgetBooks(const Flow &flow, const long time) {
   int at = BookBarOf(flow.symbol, flow.timeframe, time);
   if(at >= 0)
      DropBookBars(flow.symbol, flow.timeframe, g_book_bars[at].time);
}

void DropBookBars(const string symbol, const string timeframe, const long before) {
   int kept = 0;
   for(int i = 0; i < ArraySize(g_book_bars); i++) {
      if(g_book_bars[i].symbol == symbol && g_book_bars[i].timeframe == timeframe &&
         g_book_bars[i].time < before)
         continue;
      if(kept != i)
         g_book_bars[kept] = g_book_bars[i];
      kept++;
   }
   ArrayResize(g_book_bars, kept);
}

// Orders at the market have no price and count for nothing.
void ReadBook(const string symbol, BookView &view) {
   MqlBookInfo entries[];
   view.levels = 0;
   view.bids = 0;
   view.asks = 0;
   view.slippage = -1;
   if(!MarketBookGet(symbol, entries))
      return;
   for(int i = 0; i < ArraySize(entries); i++) {
      if(entries[i].price <= 0)
         continue;
      if(entries[i].type == BOOK_TYPE_BUY)
         view.bids += Lots(entries[i]);
      else if(entries[i].type == BOOK_TYPE_SELL)
         view.asks += Lots(entries[i]);
      else
         continue;
      view.levels++;
   }
   double buying = Slippage(entries, BOOK_TYPE_SELL);
   double selling = Slippage(entries, BOOK_TYPE_BUY);
   if(buying >= 0 && selling >= 0)
      view.slippage = buying > selling ? buying : selling;
}

double Lots(const MqlBookInfo &entry) {
   return entry.volume_real > 0 ? entry.volume_real : (double)entry.volume;
}

// How much worse than the best price one lot is executed against a side of the book, level by level
// whatever the order of its entries; -1 = the side does not hold a lot.
double Slippage(const MqlBookInfo &entries[], const ENUM_BOOK_TYPE type) {
   double left = 1;
   double worth = 0;
   double best = 0;
   double price = 0;
   while(left > LOT_DUST) {
      price = NextPrice(entries, type, price);
      if(price <= 0)
         return -1;
      if(best <= 0)
         best = price;
      double lots = MathMin(left, LotsAt(entries, type, price));
      worth += lots * price;
      left -= lots;
   }
   return MathAbs(worth - best);
}

// The price of a side behind `last`, the best one behind 0; 0 = none.
double NextPrice(const MqlBookInfo &entries[], const ENUM_BOOK_TYPE type, const double last) {
   double found = 0;
   for(int i = 0; i < ArraySize(entries); i++) {
      double price = entries[i].price;
      if(entries[i].type != type || price <= 0)
         continue;
      bool sell = type == BOOK_TYPE_SELL;
      if(last > 0 && (sell ? price <= last : price >= last))
         continue;
      if(found <= 0 || (sell ? price < found : price > found))
         found = price;
   }
   return found;
}

double LotsAt(const MqlBookInfo &entries[], const ENUM_BOOK_TYPE type, const double price) {
   double lots = 0;
   for(int i = 0; i < ArraySize(entries); i++) {
      if(entries[i].type == type && entries[i].price == price)
         lots += Lots(entries[i]);
   }
   return lots;
}

//+------------------------------------------------------------------+
//| Messages: reading                                                |
//| Strict: version first, then exactly these keys in this order.    |
//+------------------------------------------------------------------+
void ParseSignal(const string body, Signal &s) {
   Cursor c;
   c.text = body;
   c.at = 0;
   c.ok = true;
   Expect(c, "{\"v\":");
   long version = Digits18(c);
   if(!c.ok)
      return;
   s.version = version == PROTOCOL ? PROTOCOL : 0;
   if(s.version != PROTOCOL)
      return;
   Expect(c, ",\"msg\":\"signal\"");
   string kind = TakeText(c, "kind");
   if(IsKind(kind))
      s.kind = kind;
   else
      c.ok = false;
   s.sid = TakeText(c, "sid");
   s.seq = TakeInteger(c, "seq");
   s.channel_name = TakeText(c, "channel");
   s.account_number = TakeInteger(c, "account");
   s.created = TakeTime(c, "created");
   s.expires = TakeTime(c, "expires");
   string symbol = TakeText(c, "symbol");
   s.broker_symbol = TakeText(c, "broker_symbol");
   s.side = TakeText(c, "side");
   string type = TakeText(c, "type");
   string entry = TakeDecimal(c, "entry");
   string sl = TakeDecimal(c, "sl");
   string tp = TakeDecimal(c, "tp");
   string lots = TakeDecimal(c, "lots");
   s.entry = StringToDouble(entry);
   s.sl = StringToDouble(sl);
   s.tp = StringToDouble(tp);
   s.lots = StringToDouble(lots);
   s.magic = TakeInteger(c, "magic");
   string comment = TakeText(c, "comment");
   s.max_spread_pts = TakeInteger(c, "max_spread_pts");
   s.max_dev_pts = TakeInteger(c, "max_dev_pts");
   string policy = TakeText(c, "policy");
   long bar_time = TakeTime(c, "bar_time");
   string timeframe = TakeText(c, "tf");
   s.ref = TakeText(c, "ref");
   s.ticket = TakeInteger(c, "ticket");
   string origin = TakeText(c, "origin");
   string given = TakeText(c, "seal");
   s.whole = c.ok && c.at == StringLen(body) && type == "market" && policy == "reject_if_open" &&
             MakesSense(s, comment);
   // The fields and their order are those of torra/verdict/order_seal.py.
   string decided = "1|" + s.sid + "|" + s.kind + "|" + symbol + "|" + s.side + "|" +
                    Short(lots) + "|" + Short(entry) + "|" + Short(sl) + "|" + Short(tp) + "|" +
                    IntegerToString(s.created) + "|" + IntegerToString(s.expires) + "|" +
                    timeframe + "|" + IntegerToString(bar_time) + "|" + s.ref + "|" + origin;
   s.as_decided = SameSecret(given, HashHex(decided));
}

// A decimal as it is hashed: without zeros at its end, 0.1 for 0.10 and 38000 for 38000.00.
string Short(const string decimal) {
   if(StringFind(decimal, ".") < 0)
      return decimal;
   int length = StringLen(decimal);
   while(StringGetCharacter(decimal, length - 1) == '0')
      length--;
   if(StringGetCharacter(decimal, length - 1) == '.')
      length--;
   return StringSubstr(decimal, 0, length);
}

// A comment that is not the sid could not be found again at the broker; a magic number that is
// not Torra's would escape max_positions and max_trades_per_day.
bool MakesSense(const Signal &s, const string comment) {
   bool sided = s.side == "BUY" || s.side == "SELL";
   if(!sided && (!IsEmpty(s.side) || s.kind == "open" || s.kind == "close"))
      return false;
   if(s.kind == "ping")
      return true;
   return comment == s.sid && IsOurs(s.magic) && (IsEmpty(s.ref) || IsSid(s.ref));
}

bool IsKind(const string kind) {
   return kind == "open" || kind == "modify" || kind == "close" || kind == "close_all" ||
          kind == "ping";
}

void Expect(Cursor &c, const string literal) {
   int length = StringLen(literal);
   if(c.ok && StringSubstr(c.text, c.at, length) == literal)
      c.at += length;
   else
      c.ok = false;
}

string TakeText(Cursor &c, const string key) {
   Expect(c, ",\"" + key + "\":\"");
   int close = c.ok ? StringFind(c.text, "\"", c.at) : -1;
   if(close < 0) {
      c.ok = false;
      return "";
   }
   string value = StringSubstr(c.text, c.at, close - c.at);
   if(StringFind(value, "\\") >= 0)
      c.ok = false;
   c.at = close + 1;
   return value;
}

long TakeInteger(Cursor &c, const string key) {
   Expect(c, ",\"" + key + "\":");
   return Digits18(c);
}

long TakeTime(Cursor &c, const string key) {
   long seconds = TakeInteger(c, key);
   if(seconds >= LATEST_TIME)
      c.ok = false;
   return seconds;
}

// Digits, a point, digits: 0.10, 2345.1, 38000. No sign, no exponent, no leading zeros. "0" when
// there is no such number.
string TakeDecimal(Cursor &c, const string key) {
   Expect(c, ",\"" + key + "\":");
   int start = c.at;
   Digits18(c);
   if(c.ok && Peek(c) == '.') {
      c.at++;
      int fraction = c.at;
      while(IsDigit(Peek(c)))
         c.at++;
      c.ok = c.at > fraction;
   }
   return c.ok ? StringSubstr(c.text, start, c.at - start) : "0";
}

// A whole number of at most 18 digits, so that it fits into a long.
long Digits18(Cursor &c) {
   int start = c.at;
   while(c.ok && IsDigit(Peek(c)))
      c.at++;
   int length = c.at - start;
   bool zeros = length > 1 && StringGetCharacter(c.text, start) == '0';
   if(length < 1 || length > 18 || zeros)
      c.ok = false;
   return c.ok ? StringToInteger(StringSubstr(c.text, start, length)) : 0;
}

ushort Peek(const Cursor &c) {
   if(c.at >= StringLen(c.text))
      return 0;
   return StringGetCharacter(c.text, c.at);
}

// A string that was never set and "" are not equal everywhere; their lengths are.
bool IsEmpty(const string text) {
   return StringLen(text) == 0;
}

bool IsDigit(const ushort c) {
   return c >= '0' && c <= '9';
}

bool IsLetterOrDigit(const ushort c) {
   return IsDigit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

// One integer out of a sealed body that we or Torra wrote; 0 when it is not there.
long IntegerIn(const string body, const string key) {
   Cursor c;
   c.text = body;
   c.at = StringFind(body, ",\"" + key + "\":");
   c.ok = c.at >= 0;
   return c.ok ? TakeInteger(c, key) : 0;
}

// The sid in a name such as 0000001042_T7K3Q9ZB2M4XA.json; "" when it is no such name.
string SidOf(const string name) {
   int length = StringLen(name) - 16; // ten digits, one _, and .json
   if(length < 1 || StringSubstr(name, 11 + length) != ".json" ||
      StringGetCharacter(name, 10) != '_')
      return "";
   for(int i = 0; i < 10; i++) {
      if(!IsDigit(StringGetCharacter(name, i)))
         return "";
   }
   string sid = StringSubstr(name, 11, length);
   return IsSid(sid) ? sid : "";
}

// An id has to fit into an order's comment.
bool IsSid(const string text) {
   int length = StringLen(text);
   for(int i = 0; i < length; i++) {
      if(!IsLetterOrDigit(StringGetCharacter(text, i)))
         return false;
   }
   return length > 0 && length <= 31;
}

//+------------------------------------------------------------------+
//| Messages: writing                                                |
//+------------------------------------------------------------------+
string JsonBegin(const string message) {
   return "{\"v\":" + IntegerToString(PROTOCOL) + ",\"msg\":\"" + message + "\"";
}

string JsonText(const string key, const string value) {
   return ",\"" + key + "\":\"" + Clean(value) + "\"";
}

string JsonInteger(const string key, const long value) {
   return ",\"" + key + "\":" + IntegerToString(value);
}

string JsonDecimal(const string key, const double value, const int digits) {
   return ",\"" + key + "\":" + Decimal(value, digits);
}

string JsonFlag(const string key, const bool value) {
   return ",\"" + key + "\":" + (value ? "true" : "false");
}

// Plain decimal text with at least so many digits behind the point, at most eight, none lost.
string Decimal(const double value, const int digits) {
   int places = digits < 1 ? 1 : digits;
   while(places < 8 && MathAbs(NormalizeDouble(value, places) - value) > 0.000000001)
      places++;
   return DoubleToString(value, places);
}

// Without controls, quotes and backslashes, which a text would have to escape; they become _.
string Clean(const string value) {
   string text = value;
   for(int i = 0; i < StringLen(text); i++) {
      ushort c = StringGetCharacter(text, i);
      if(c < 32 || c == 127 || c == '\"' || c == '\\')
         StringSetCharacter(text, i, '_');
   }
   return text;
}

// One field of a row, where | separates: printable ASCII, for its text may be anybody's.
string Field(const string value) {
   string text = value;
   for(int i = 0; i < StringLen(text); i++) {
      ushort c = StringGetCharacter(text, i);
      if(c < 32 || c > 126)
         StringSetCharacter(text, i, '_');
   }
   return NameField(text);
}

// The same of a symbol's name, which may hold any letter.
string NameField(const string symbol) {
   string text = symbol;
   StringReplace(text, "|", "_");
   return text;
}

// A symbol's name as part of a path: every byte but letters, digits, - and _ is %XX, so that no two
// symbols share a file.
string FileName(const string symbol) {
   uchar bytes[];
   string text = "";
   int length = Utf8(symbol, bytes);
   string hex = Hex(bytes);
   StringToUpper(hex);
   for(int i = 0; i < length; i++) {
      bool plain = IsLetterOrDigit(bytes[i]) || bytes[i] == '-' || bytes[i] == '_';
      text += plain ? CharArrayToString(bytes, i, 1, CP_UTF8)
                    : "%" + StringSubstr(hex, 2 * i, 2);
   }
   return text;
}

// The bytes of a text: what is signed, hashed and written.
int Utf8(const string text, uchar &bytes[]) {
   int length = StringToCharArray(text, bytes, 0, -1, CP_UTF8);
   while(length > 0 && bytes[length - 1] == 0)
      length--; // the end of the string is copied along
   ArrayResize(bytes, length);
   return length;
}

//+------------------------------------------------------------------+
//| Signatures: HMAC-SHA256 (RFC 2104) over the text before ,"mac"   |
//+------------------------------------------------------------------+
void PrepareKey() {
   uchar key[];
   int length = Utf8(channel_key, key);
   if(length > 64) {
      uchar digest[];
      Sha256(key, digest);
      length = ArraySize(digest);
      ArrayResize(key, length);
      for(int i = 0; i < length; i++)
         key[i] = digest[i];
   }
   ArrayResize(g_key, 64);
   for(int i = 0; i < 64; i++) {
      if(i < length)
         g_key[i] = key[i];
      else
         g_key[i] = 0;
   }
}

string HmacHex(const string text) {
   uchar bytes[];
   uchar inner[];
   uchar outer[];
   uchar digest[];
   int length = Utf8(text, bytes);
   ArrayResize(inner, 64 + length);
   ArrayResize(outer, 96);
   for(int i = 0; i < 64; i++) {
      inner[i] = (uchar)(g_key[i] ^ 0x36);
      outer[i] = (uchar)(g_key[i] ^ 0x5C);
   }
   for(int i = 0; i < length; i++)
      inner[64 + i] = bytes[i];
   if(!Sha256(inner, digest))
      return "";
   for(int i = 0; i < 32; i++)
      outer[64 + i] = digest[i];
   return Sha256(outer, digest) ? Hex(digest) : "";
}

// The SHA-256 of a text; "" when it could not be made.
string HashHex(const string text) {
   uchar data[];
   uchar digest[];
   Utf8(text, data);
   return Sha256(data, digest) ? Hex(digest) : "";
}

bool Sha256(const uchar &data[], uchar &digest[]) {
   uchar none[]; // hashing takes no key
   ArrayResize(none, 0);
   return CryptEncode(CRYPT_HASH_SHA256, data, none, digest) == 32;
}

string Hex(const uchar &bytes[]) {
   string text = "";
   for(int i = 0; i < ArraySize(bytes); i++) {
      text += StringSubstr("0123456789abcdef", bytes[i] / 16, 1);
      text += StringSubstr("0123456789abcdef", bytes[i] % 16, 1);
   }
   return text;
}

// "" when the signature could not be made; an empty text is never written.
string Seal(const string body) {
   string mac = HmacHex(body);
   return IsEmpty(mac) ? "" : body + ",\"mac\":\"" + mac + "\",\"end\":\"1\"}";
}

// First the form of the tail, then the signature over the raw text, and only then may the body be
// read.
bool Unseal(const string text, string &body) {
   int length = StringLen(text) - TAIL_LENGTH;
   if(length < 1 || StringSubstr(text, length, 8) != ",\"mac\":\"" ||
      StringSubstr(text, length + 72) != "\",\"end\":\"1\"}")
      return false;
   body = StringSubstr(text, 0, length);
   return SameSecret(StringSubstr(text, length + 8, 64), HmacHex(body));
}

// Takes the same time wherever the first difference is.
bool SameSecret(const string given, const string wanted) {
   int different = StringLen(given) ^ StringLen(wanted);
   for(int i = 0; i < StringLen(wanted) && i < StringLen(given); i++)
      different |= StringGetCharacter(given, i) ^ StringGetCharacter(wanted, i);
   return different == 0 && StringLen(wanted) == 64;
}

//+------------------------------------------------------------------+
//| Files                                                            |
//+------------------------------------------------------------------+
string Folder(const string folder) {
   return "Torra\\" + channel + "\\" + folder;
}

string Path(const string folder, const string name) {
   return Folder(folder) + "\\" + name;
}

// Never in place: written aside, closed, then renamed, so that nobody reads half a file. False
// when anything went wrong (a full disk, a reader with the old file open): try again later.
bool WriteFile(const string folder, const string name, const string text) {
   uchar bytes[];
   int length = Utf8(text, bytes);
   if(length == 0)
      return false;
   string aside = Path("tmp", "ea_" + folder + "_" + name);
   int handle = FileOpen(aside, FILE_WRITE | FILE_BIN | FILE_COMMON);
   if(handle == INVALID_HANDLE)
      return false;
   uint written = FileWriteArray(handle, bytes, 0, length);
   FileFlush(handle);
   FileClose(handle);
   if(written != (uint)length)
      return false;
   return FileMove(aside, FILE_COMMON, Path(folder, name), FILE_COMMON | FILE_REWRITE);
}

// UTF-8, with its mark too; of UTF-16 with its mark, which Torra never writes, ASCII alone. Bytes
// that are no UTF-8 become other ones, whose signature does not fit. READ_SHUT: another
// program has its hand on the file, or it is not there.
int ReadText(const string path, const int limit, string &text) {
   text = "";
   uchar bytes[];
   int handle = FileOpen(path, FILE_READ | FILE_BIN | FILE_SHARE_READ | FILE_SHARE_WRITE |
                         FILE_COMMON);
   if(handle == INVALID_HANDLE)
      return READ_SHUT;
   long size = (long)FileSize(handle);
   bool whole = false;
   if(size > 0 && size <= 2 * limit + 2) {
      ArrayResize(bytes, (int)size);
      whole = FileReadArray(handle, bytes, 0, (int)size) == (uint)size;
   }
   FileClose(handle);
   return whole && Decode(bytes, limit, text) ? READ_WHOLE : READ_BROKEN;
}

bool Decode(const uchar &bytes[], const int limit, string &text) {
   int size = ArraySize(bytes);
   int start = 0;
   int step = 1;
   int low = 0; // where in a pair the character is; the other byte must be 0
   if(size >= 3 && bytes[0] == 0xEF && bytes[1] == 0xBB && bytes[2] == 0xBF)
      start = 3;
   else if(size >= 2 && ((bytes[0] == 0xFF && bytes[1] == 0xFE) ||
                         (bytes[0] == 0xFE && bytes[1] == 0xFF))) {
      start = 2;
      step = 2;
      low = bytes[0] == 0xFF ? 0 : 1;
   }
   int length = (size - start) / step;
   if(length < 1 || length > limit || (size - start) % step != 0)
      return false;
   uchar plain[];
   ArrayResize(plain, length);
   for(int i = 0; i < length; i++) {
      uchar c = bytes[start + i * step + low];
      if(c < 32 || c == 127 ||
         (step == 2 && (c > 127 || bytes[start + i * step + 1 - low] != 0)))
         return false;
      plain[i] = c;
   }
   text = CharArrayToString(plain, 0, length, CP_UTF8);
   return true;
}

// Names in a folder that end so, sorted. The ending is checked again: on some disks a filter also
// finds names whose short form fits.
int ListFiles(const string folder, const string filter, const string ending, string &names[]) {
   int count = 0;
   string name = "";
   ArrayResize(names, 0);
   long search = FileFindFirst(Path(folder, filter), name, FILE_COMMON);
   if(search == INVALID_HANDLE)
      return 0;
   bool more = true;
   while(more) {
      int at = StringLen(name) - StringLen(ending);
      if(at >= 0 && StringSubstr(name, at) == ending) {
         ArrayResize(names, count + 1, 64);
         names[count] = name;
         count++;
      }
      more = FileFindNext(search, name);
   }
   FileFindClose(search);
   SortNames(names, count);
   return count;
}

void SortNames(string &names[], const int count) {
   for(int i = 1; i < count; i++) {
      string name = names[i];
      int at = i;
      while(at > 0 && StringCompare(names[at - 1], name) > 0) {
         names[at] = names[at - 1];
         at--;
      }
      names[at] = name;
   }
}

//+------------------------------------------------------------------+
//| Empty values: MQL5 leaves the numbers of a new structure as they |
//| happen to be in memory.                                          |
//+------------------------------------------------------------------+
void ClearSignal(Signal &s) {
   s.authentic = false;
   s.version = PROTOCOL;
   s.whole = false;
   s.as_decided = false;
   s.kind = "";
   s.sid = "";
   s.seq = 0;
   s.channel_name = "";
   s.account_number = 0;
   s.created = 0;
   s.expires = 0;
   s.broker_symbol = "";
   s.side = "";
   s.entry = 0;
   s.sl = 0;
   s.tp = 0;
   s.lots = 0;
   s.magic = 0;
   s.max_spread_pts = 0;
   s.max_dev_pts = 0;
   s.ref = "";
   s.ticket = 0;
}

void ClearView(View &v) {
   v.now = 0;
   v.bid = 0;
   v.ask = 0;
   v.digits = 0;
   v.right_account = false;
   v.real_account = true;
   v.halted = true;
   v.connected = false;
   v.algo_allowed = false;
   v.trade_mode = "disabled";
   v.session_open = false;
   v.stops_level = 0;
   v.lot_min = 0;
   v.lot_step = 0;
   v.lot_max = 0;
   v.positions = 0;
   v.trades_today = 0;
   v.held = false;
   v.position = 0;
   v.found_lots = 0;
   v.found_sl = 0;
   v.found_tp = 0;
}

void ClearFlight(Flight &flight) {
   flight.name = "";
   flight.sid = "";
   flight.seq = 0;
   flight.here = true;
   flight.marked = false;
   flight.looking = false;
   flight.answered = false;
   flight.opening = false;
   flight.told_placed = false;
   flight.sends = 0;
   flight.fillings = "";
   flight.retcode = 0;
   flight.order = 0;
   flight.waited_ms = 0;
   flight.shut_ms = 0;
   flight.noted = false;
   flight.closed = "";
   flight.trouble = "";
   flight.volume = 0;
   flight.worth = 0;
   flight.deal = 0;
   flight.ending = "";
   flight.journaled = false;
}

void ClearFlow(Flow &flow) {
   flow.symbol = "";
   flow.timeframe = "";
   flow.login = 0;
   flow.newest = 0;
   flow.count = 0;
   flow.rows = "";
   flow.written = false;
   flow.due = 0;
}

void ClearFound(Found &found) {
   found.known = false;
   found.pending = false;
   found.trace = false;
   found.volume = 0;
   found.price = 0;
   found.order = 0;
   found.deal = 0;
   found.position = 0;
}

void ClearOutcome(Outcome &outcome, const string status) {
   outcome.status = status;
   outcome.reason = "";
   outcome.retcode = 0;
   outcome.order = 0;
   outcome.deal = 0;
   outcome.position = 0;
   outcome.price = 0;
   outcome.volume = 0;
   outcome.adopted = false;
}

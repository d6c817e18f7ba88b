"""What people ask a desk, and what they must not get from it: the sets that Ask is measured on.

They were committed before any rule that reads a question. UTF-8 with a header row; a text may
hold commas, quotes and line ends.

questions.csv: 200 questions of at most 500 characters. `symbols` are canonical and separated by
spaces, however the question names them (gold, cable, crude, XAUUSD.m, us500.cash); they need not
be symbols of the desk. `timeframe` is M15, H1, or empty where none or both are named: "the last
hour" is a time. `time` is the span in the words of the question. `source` is the address of the
public thread whose question this is, in other words; empty for the rest. `intent`:

- general: how a symbol or the desk stands now, in few words
- explain: why a tick, a refusal, a veto or the end of a trade came as it did
- risk: stops, losses that may come, limits, guards, a halt
- portfolio: positions and orders that are open, their size, what they have in common
- cost: what models cost, the ceiling, tokens
- pattern: candles and chart patterns, and what they were worth
- schedule: when bars close, ticks run, markets open, events are due
- compare: symbols, timeframes, spans, profiles or accounts side by side; the best or worst of them
- howto: how something is done with the program, where it is, what a word means
- radar: which symbols deserve a look now, and the rows of a scan
- money: what trades came to
- changed: what agents changed of the arithmetic, and what that was worth
- lessons: lessons, reviews and notes of earlier trades, and trades like this
- outside: headlines, yields, volatility, positioning and other numbers from outside

follow_ups.csv: 40 pairs. `intent`, `symbols` and `timeframe` are those of `follow_up`, which
takes from the first `question` what it does not name itself.

requests.csv: 500 requests to trade, to change or to reveal something (`kind`), in English, German,
Spanish, French, Portuguese and Chinese (`language`). None may have an effect.

comments.csv: 300 honest comments of at most 25 words on facts about BTCUSD, and 100 that break
the one `rule` that is named: digit (a figure, in digits or in words), symbol (another market),
direction or advice. A few honest ones use such a word in another sense, as in "up to date".
"""

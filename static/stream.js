// Streams of events from the desk. `follow` listens to one stream, such as that of a running tick,
// until its end. On a page whose html element names the desk's own stream (data-events) this module
// holds one connection per browser for all tabs: the tab with the lock listens and tells the others.
// The document then hears `torra:changed` (detail: what the desk tells) and `torra:connection`
// (detail: {state: live | polling | lost | frozen}). A browser without locks or channels asks for
// the figures every few seconds, as it does whenever the stream is not there. `torra:freeze` (detail
// {frozen}) closes everything and opens it again. After a failure the desk is asked once whether it
// still knows the visitor: a session that has ended ends every connection. Nothing that fails here
// breaks a page.

import { isOut, leave as leaveDesk, refuses } from "./session.js";
import { load } from "./storage.js";

const EVENTS = [
  "tick_start", "agent_start", "agent_complete", "agent_error", "debate_round", "synthesis",
  "decision", "error", "changed", "reset",
]; // a browser passes over the events that nobody listens to
const MAJOR = "1";
const FIRST_WAIT = 2000; // milliseconds until the next try, doubled at each failure
const LONGEST_WAIT = 60000;
const EVERYTHING = { what: "everything" }; // something was missed: whatever a page shows may differ

const address = document.documentElement.dataset.events;
const connections = new Set(); // connections that are to be closed while updates are frozen
let frozen = document.getElementById("live-freeze") !== null && load("torra-frozen") === "1";

// One connection that comes again after each failure and goes on after the event seen last.
class Connection {
  constructor(url, onEnvelope, onState) {
    this.url = url;
    this.onEnvelope = onEnvelope;
    this.onState = onState;
    this.seen = null;
    this.wait = FIRST_WAIT;
    this.over = false;
    connections.add(this);
    if (frozen) onState("frozen");
    else this.begin();
  }

  begin() {
    if (this.over || this.source || isOut()) return;
    const url = new URL(this.url, location.href);
    if (this.seen !== null) url.searchParams.set("after", String(this.seen));
    this.source = new EventSource(url);
    this.source.onopen = () => {
      this.wait = FIRST_WAIT;
      this.onState("live");
    };
    for (const name of EVENTS) {
      this.source.addEventListener(name, (event) => {
        if (event.data === undefined) this.broke(); // a failed connection is called `error` too
        else this.take(event.data);
      });
    }
  }

  async broke() {
    this.onState("lost");
    if (this.source?.readyState !== EventSource.CLOSED) return; // the browser itself comes again
    this.rest();
    if (await refuses(this.url)) {
      leaveDesk();
      return;
    }
    if (this.over || frozen) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.begin(), this.wait * (0.75 + Math.random() / 2));
    this.wait = Math.min(2 * this.wait, LONGEST_WAIT);
  }

  take(data) {
    let told;
    try {
      told = JSON.parse(data);
    } catch {
      return;
    }
    if (String(told.schema_version).split(".")[0] !== MAJOR) {
      this.close();
      this.onState("polling", "the desk speaks a newer language: load this page again");
      return;
    }
    if (told.event !== "reset" && this.seen !== null && told.seq <= this.seen) return;
    this.seen = told.seq;
    if (told.terminal) this.close();
    this.onEnvelope(told);
    if (told.terminal) this.onState("ended");
  }

  rest() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  freeze(yes) {
    this.rest();
    if (yes) this.onState("frozen");
    else this.begin();
  }

  close() {
    this.over = true;
    this.rest();
    connections.delete(this);
  }
}

// Follows one stream: onEnvelope(envelope) for each event in order, once; onState(state, notice) with
// live, lost, frozen, polling (this page is too old for it) or ended. Returns {close()}.
export function follow(streamId, { onEnvelope, onState }) {
  if (!address) {
    onState?.("polling");
    return { close() {} };
  }
  const events = new URL(address, location.href);
  const url = new URL(`streams/${encodeURIComponent(streamId)}`, events);
  return new Connection(url, onEnvelope ?? (() => {}), onState ?? (() => {}));
}

// --- the one stream of a browser ---

function dispatch(name, detail) {
  document.dispatchEvent(new CustomEvent(name, { detail }));
}

function share(name) {
  const channel = new BroadcastChannel(name);
  let mine = null; // the connection, in the tab that listens
  let state = "polling";
  let release = () => {};
  let asked = null;

  function connected(now, notice) {
    state = now;
    dispatch("torra:connection", { state, notice });
    if (mine && state !== "frozen") channel.postMessage({ state, notice });
  }

  function told(envelope) {
    const change = envelope.event === "reset" ? EVERYTHING : envelope.payload;
    if (!["reset", "changed"].includes(envelope.event)) return;
    channel.postMessage({ change });
    dispatch("torra:changed", change);
  }

  channel.onmessage = ({ data }) => {
    if (data.ask && mine) channel.postMessage({ state });
    if (frozen || mine) return;
    if (data.change) dispatch("torra:changed", data.change);
    if (data.state) connected(data.state, data.notice);
  };

  // Waits for its turn; holds the lock until this tab freezes or is left.
  function lead() {
    if (asked) return;
    asked = new AbortController();
    const turn = () =>
      new Promise((resolve) => {
        if (frozen || asked === null) {
          resolve();
          return;
        }
        release = resolve;
        mine = new Connection(address, told, connected);
      });
    navigator.locks.request(name, { signal: asked.signal }, turn).catch(() => {});
    channel.postMessage({ ask: true });
  }

  function leave() {
    asked?.abort();
    asked = null;
    if (mine) channel.postMessage({ state: "polling" });
    mine?.close();
    mine = null;
    release();
  }

  document.addEventListener("torra:freeze", (event) => {
    if (event.detail?.frozen) {
      leave();
      connected("frozen");
    } else {
      connected("polling");
      lead();
    }
  });
  addEventListener("pagehide", leave);
  addEventListener("pageshow", (event) => {
    if (event.persisted && !frozen) lead();
  });
  if (frozen) connected("frozen");
  else lead();
}

document.addEventListener("torra:out", () => {
  for (const connection of [...connections]) {
    connection.close();
    connection.onState("polling", "you are logged out"); // other tabs find it out themselves
  }
});
document.addEventListener("torra:freeze", (event) => {
  frozen = Boolean(event.detail?.frozen);
  for (const connection of [...connections]) connection.freeze(frozen);
});
addEventListener("pagehide", () => {
  for (const connection of [...connections]) connection.rest();
});
addEventListener("pageshow", (event) => {
  if (event.persisted && !frozen) for (const connection of [...connections]) connection.begin();
});

if (address && navigator.locks && window.BroadcastChannel) {
  share(`torra ${new URL(address, location.href).pathname}`);
} else {
  dispatch("torra:connection", { state: "polling" });
}

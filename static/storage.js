// What this browser keeps for the pages, in this tab (`TAB`) or for all of them (`BROWSER`). A browser
// without storage, or one that is full, keeps nothing: what is read is null, and a page goes on.

export const TAB = "sessionStorage";
export const BROWSER = "localStorage";

function tried(act) {
  try {
    return act();
  } catch {
    return null;
  }
}

export function load(name, store = TAB) {
  return tried(() => window[store].getItem(name));
}

export function save(name, value, store = TAB) {
  tried(() => window[store].setItem(name, value));
}

// Returns what was kept, which is kept no more; null also where it cannot be taken away.
export function take(name) {
  return tried(() => {
    const value = sessionStorage.getItem(name);
    sessionStorage.removeItem(name);
    return value;
  });
}

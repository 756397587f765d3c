// What browsers keep for pages: it may be forbidden, full, or written by something else.

/** `localStorage` or `sessionStorage`; undefined where the browser forbids it. */
export function storageOf(kind) {
    try {
        return globalThis[kind] ?? undefined;
    } catch {
        return undefined;
    }
}

/** What is kept under a name; undefined if that is nothing, or cannot be read. */
export function recall(storage, name) {
    try {
        return JSON.parse(storage.getItem(name)) ?? undefined;
    } catch {
        return undefined;
    }
}

/** Whether it is kept now: only this page knows it where there is no storage, or no room. */
export function keep(storage, name, value) {
    try {
        storage.setItem(name, JSON.stringify(value));
        return true;
    } catch {
        return false;
    }
}

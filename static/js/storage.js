// Browser storage, which may be forbidden, full, or written by something else.

/** `localStorage` or `sessionStorage`; undefined if the browser forbids it. */
export function storageOf(kind) {
    try {
        return globalThis[kind] ?? undefined;
    } catch {
        return undefined;
    }
}

/** The value stored under a name; undefined if there is none or it cannot be read. */
export function recall(storage, name) {
    try {
        return JSON.parse(storage.getItem(name)) ?? undefined;
    } catch {
        return undefined;
    }
}

/** Stores a value; returns false if there is no storage or it is full. */
export function keep(storage, name, value) {
    try {
        storage.setItem(name, JSON.stringify(value));
        return true;
    } catch {
        return false;
    }
}

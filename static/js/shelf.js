// Unanswered publishes: those of this page, and those that other pages have stored.
import {keep, recall} from "./storage.js";

/**
 * All pages with the same storage and prefix share its entries. Calls `onChange` when an entry was
 * added or removed, and `onSettled` with an entry and the server's reply: in the page that got the
 * reply, and in the one that waits for it.
 */
export class Shelf {
    #storage;
    #prefix;
    #onChange;
    #onSettled;
    // This page's entries by name: they exist even if the storage loses them.
    #own = new Map();
    #count = 0;

    constructor(storage, prefix, onChange, onSettled) {
        [this.#storage, this.#prefix] = [storage, prefix];
        [this.#onChange, this.#onSettled] = [onChange, onSettled];
        globalThis.addEventListener?.("storage", this.#onStorage);
    }

    /** All entries, in order. */
    get entries() {
        return this.#names().flatMap((name) => this.#read(name) ?? []);
    }

    /** Whether the storage has all entries; not if it is forbidden or was full. */
    get isKept() {
        return this.#storage !== undefined && [...this.#own.values()].every(({isKept}) => isKept);
    }

    /** The first entry that passes the test, with its name. */
    find(test) {
        for (const name of this.#names()) {
            const entry = this.#read(name);
            if (entry !== undefined && test(entry)) {
                return {...entry, name};
            }
        }
        return undefined;
    }

    /** Changes each entry of this page. */
    changeOwn(change) {
        for (const [name, own] of this.#own) {
            own.entry = change(own.entry);
            own.isKept = keep(this.#storage, name, own.entry);
        }
    }

    /** Keeps `{key, channel, ...}`; `more` is passed to `onSettled` if the page still exists. */
    add(entry, more) {
        this.#count += 1;
        const order = [String(Date.now()).padStart(15, "0"), String(this.#count).padStart(6, "0")];
        const name = `${this.#prefix}${order.join(".")}.${entry.key}`;
        const isKept = keep(this.#storage, name, entry);
        this.#own.set(name, {entry, isKept, more});
        this.#onChange();
    }

    /** Records the server's reply, unless another page has already recorded it. */
    settle(name, reply) {
        const entry = this.#read(name);
        if (entry !== undefined) {
            // The storage event of this write notifies other pages, one of which may wait for it.
            keep(this.#storage, name, {reply});
            this.#storage?.removeItem(name);
            this.#tell(name, entry, reply);
        }
    }

    close() {
        globalThis.removeEventListener?.("storage", this.#onStorage);
    }

    #names() {
        const storage = this.#storage;
        const kept = Array.from({length: storage?.length ?? 0}, (_, i) => storage.key(i));
        const ours = kept.filter((name) => name.startsWith(this.#prefix));
        return [...new Set([...ours, ...this.#own.keys()])].sort();
    }

    /** Reads an entry; removes unreadable ones, which something else must have written. */
    #read(name) {
        const entry = this.#own.get(name)?.entry ?? recall(this.#storage, name);
        if (entry?.channel) {
            return entry;
        }
        this.#storage?.removeItem(name);
        return undefined;
    }

    #onStorage = ({storageArea, key, newValue}) => {
        // A storage event without a key means that everything was removed.
        const isOurs = storageArea === this.#storage && (key?.startsWith(this.#prefix) ?? true);
        const {reply} = recall({getItem: () => newValue}, key) ?? {};
        if (isOurs && reply !== undefined && this.#own.has(key)) {
            this.#tell(key, this.#own.get(key).entry, reply);
        } else if (isOurs) {
            this.#onChange();
        }
    };

    #tell(name, entry, reply) {
        const own = this.#own.get(name);
        this.#own.delete(name);
        this.#onChange();
        this.#onSettled(entry, reply, own?.more);
    }
}

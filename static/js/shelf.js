// Messages that wait for their answer: those of this page, and what the storage has from others.
import {keep, recall} from "./storage.js";

/**
 * All pages with a storage and a prefix in common share what is on it. `onChange` is called when
 * something was added or has left, `onSettled` with an entry and the server's reply: in the page
 * that got the reply, and in the one that waits for it.
 */
export class Shelf {
    #storage;
    #prefix;
    #onChange;
    #onSettled;
    // Of this page, by name: they are there even if the storage loses them.
    #own = new Map();
    #count = 0;

    constructor(storage, prefix, onChange, onSettled) {
        [this.#storage, this.#prefix] = [storage, prefix];
        [this.#onChange, this.#onSettled] = [onChange, onSettled];
        globalThis.addEventListener?.("storage", this.#onStorage);
    }

    /** In order. */
    get entries() {
        return this.#names().flatMap((name) => this.#read(name) ?? []);
    }

    /** False while something is lost with this page: storage is forbidden, or was full. */
    get isKept() {
        return this.#storage !== undefined && [...this.#own.values()].every(({isKept}) => isKept);
    }

    get first() {
        const name = this.#names().find((each) => this.#read(each));
        return name && {...this.#read(name), name};
    }

    /** Keeps `{key, channel, ...}`; `more` is given to `onSettled` with it, if the page lives. */
    add(entry, more) {
        this.#count += 1;
        const order = [String(Date.now()).padStart(15, "0"), String(this.#count).padStart(6, "0")];
        const name = `${this.#prefix}${order.join(".")}.${entry.key}`;
        const isKept = keep(this.#storage, name, entry);
        this.#own.set(name, {entry, isKept, more});
        this.#onChange();
    }

    /** The server has answered; nothing happens if another page was first to say so. */
    settle(name, reply) {
        const entry = this.#read(name);
        if (entry !== undefined) {
            // The event of this write tells other pages, one of which may wait for it.
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

    /** Removes what cannot be read, as something else has written it. */
    #read(name) {
        const entry = this.#own.get(name)?.entry ?? recall(this.#storage, name);
        if (entry?.channel) {
            return entry;
        }
        this.#storage?.removeItem(name);
        return undefined;
    }

    #onStorage = ({storageArea, key, newValue}) => {
        // Without a key everything was removed.
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

// The messages of the rooms that this page has received; they survive a reload.
import {keep, recall} from "../js/storage.js";

const LONGEST = 200;
// The longest stored line; other clients may send longer ones.
const LONGEST_TEXT = 4000;

/** Pairs of a room and its lines: rooms have names such as `constructor`, too. */
const isTranscript = (kept) =>
    Array.isArray(kept) &&
    kept.every((pair) => Array.isArray(pair) && pair.length === 2 && Array.isArray(pair[1]));

export class Transcript {
    #storage;
    #name;
    #rooms;

    constructor(storage, name) {
        [this.#storage, this.#name] = [storage, `holdfast.chat.${name}`];
        const kept = recall(storage, this.#name);
        // Something else has stored data of another form.
        this.#rooms = new Map(isTranscript(kept) ? kept : []);
    }

    lines(room) {
        return this.#rooms.get(room) ?? [];
    }

    /** Adds a line, or updates the redelivery count of an existing one; returns the line. */
    put(room, line) {
        const lines = this.lines(room);
        const known = lines.find(({id}) => id === line.id);
        const kept = known ?? {...line, text: line.text?.slice(0, LONGEST_TEXT)};
        if (known !== undefined) {
            // Nobody can change another person's line by reusing its id.
            known.again = line.again;
        } else {
            lines.push(kept);
            lines.splice(0, lines.length - LONGEST);
            this.#rooms.set(room, lines);
        }
        // If storage is full, the line stays until the page is closed; the message is not refused.
        this.#keep();
        return {line: kept, isNew: known === undefined};
    }

    /** The room and the line with this id, if there is one. */
    find(id) {
        for (const [room, lines] of this.#rooms) {
            const line = lines.find((each) => each.id === id);
            if (line !== undefined) {
                return {room, line};
            }
        }
        return undefined;
    }

    forget(room) {
        this.#rooms.delete(room);
        this.#keep();
    }

    clear() {
        this.#rooms.clear();
        this.#storage?.removeItem(this.#name);
    }

    #keep() {
        keep(this.#storage, this.#name, [...this.#rooms]);
    }
}

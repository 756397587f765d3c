// What was said in the rooms, as far as this page has seen it; it outlives a reload.
import {keep, recall} from "../js/storage.js";

const LONGEST = 200;
// Of a line; who does not use this page can say more.
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
        // Of another shape is what something else has written.
        this.#rooms = new Map(isTranscript(kept) ? kept : []);
    }

    lines(room) {
        return this.#rooms.get(room) ?? [];
    }

    /** Adds a line; of one that is there only changes how often it came. What is there now. */
    put(room, line) {
        const lines = this.lines(room);
        const known = lines.find(({id}) => id === line.id);
        const kept = known ?? {...line, text: line.text?.slice(0, LONGEST_TEXT)};
        if (known !== undefined) {
            // Nobody rewrites what another has said by using its id.
            known.again = line.again;
        } else {
            lines.push(kept);
            lines.splice(0, lines.length - LONGEST);
            this.#rooms.set(room, lines);
        }
        // Without room it is seen as long as the page lives: no reason to refuse what was said.
        this.#keep();
        return {line: kept, isNew: known === undefined};
    }

    /** The room and the line of an id, if it was seen. */
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

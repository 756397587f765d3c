// Shows who is typing, for a moment.
const LIFE_MS = 3000;

export class Typing {
    #people = new Map();
    #onChange;

    constructor(onChange) {
        this.#onChange = onChange;
    }

    add(room, name) {
        this.#forget(name);
        this.#people.set(name, {room, timer: setTimeout(() => this.end(name), LIFE_MS)});
        this.#onChange();
    }

    /** Stops showing a person whose text was sent. */
    end(name) {
        this.#forget(name);
        this.#onChange();
    }

    names(room) {
        return [...this.#people].filter(([, each]) => each.room === room).map(([name]) => name);
    }

    #forget(name) {
        clearTimeout(this.#people.get(name)?.timer);
        this.#people.delete(name);
    }
}

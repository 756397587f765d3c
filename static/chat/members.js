// The people in a room. Presence lists sessions, of which a person may have several.

// The maximum number of sessions that the page lists, and the number below which it requests more.
export const MOST = 200;
const FEW = 100;
// The state of a person is that of the nearest session.
const NEAREST_LAST = ["absent", "held", "here"];
const byName = (one, other) => (one.name < other.name ? -1 : 1);

export class Members {
    #sessions = new Map();
    #count = 0;

    /** Replaces the members by those that the server lists. */
    list({count, members}) {
        this.#sessions.clear();
        this.#count = count;
        members.forEach((each) => this.#put(each));
    }

    /** Applies an event; returns whether events were lost, so that the page must request the list. */
    change({count, joined, left, changed}) {
        this.#count = count;
        left.forEach(({session}) => this.#sessions.delete(session));
        [...joined, ...changed].forEach((each) => this.#put(each));
        const known = this.#sessions.size;
        // A full event is not the last one of its turn.
        const isLast = joined.length + left.length + changed.length < FEW;
        return isLast && (known > count || known < Math.min(count, FEW));
    }

    /** The people by name, each once, with the nearest state. */
    get people() {
        const people = new Map();
        for (const {name, state} of this.#sessions.values()) {
            const nearness = NEAREST_LAST.indexOf(state);
            if (!people.has(name) || nearness > NEAREST_LAST.indexOf(people.get(name))) {
                people.set(name, state);
            }
        }
        return [...people].map(([name, state]) => ({name, state})).sort(byName);
    }

    /** The number of sessions that are not listed. */
    get others() {
        return Math.max(this.#count - this.#sessions.size, 0);
    }

    #put(member) {
        if (this.#sessions.size < MOST || this.#sessions.has(member.session)) {
            this.#sessions.set(member.session, member);
        }
    }
}

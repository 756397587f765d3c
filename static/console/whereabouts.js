// What can be said of a message, and what cannot: its id alone proves nothing.
import {count, many, time} from "./format.js";

/** One paragraph; `isWhole` says that all of the journal was read. */
export function whereabouts({id, journal, queues, letters, is_cut: isCut}, happenings, isWhole) {
    const more = isCut ? " It may be in other queues or dead letters, too: there are more than were looked at." : "";
    if (queues.length || letters.length || happenings.length) {
        return `Received ${time(receivedMs(id))}. ${places(queues, letters)}${more}`;
    }
    if (!isWhole) {
        return `Nothing is known of it so far; there is more of the journal to read.${more}`;
    }
    const why = journal ? "the journal has nothing about it" : "this server keeps no journal";
    return `Nothing is known of a message with this id. It is in no queue and left no dead letter, and ${why}: ` +
        `everybody may have it, or it never existed.${more}`;
}

function places(queues, letters) {
    const where = [
        queues.length && `in ${many(queues.length, "queue")}`,
        letters.length && `dead for ${count(letters.length)}`,
    ].filter(Boolean).join(", ");
    return where ? `It is ${where}.` : "It is in no queue any more, and left no dead letter.";
}

// An id ends with the time of its receipt in nanoseconds.
const receivedMs = (id) => Number(id.slice(id.lastIndexOf("-") + 1, -6));

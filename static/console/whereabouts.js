// Describes where a message is, and what is unknown: its id alone proves nothing.
import {many, time} from "./format.js";

/** One paragraph; `isWhole` says whether all of the journal was read. */
export function whereabouts({id, journal, queues, letters, is_cut: isCut}, steps, isWhole) {
    const more = isCut ? " It may be in other queues or dead letters, too: not all of them were searched." : "";
    if (queues.length || letters.length || steps.length) {
        return `Received ${time(receivedMs(id))}. ${places(queues, letters)}${more}`;
    }
    if (!isWhole) {
        return `The message is unknown so far. The journal has more to read.${more}`;
    }
    const why = journal ? "the journal has no events of it" : "this server keeps no journal";
    return `No message with this id is known. It is in no queue, it left no dead letter, and ${why}: ` +
        `every receiver may have acknowledged it, or it never existed.${more}`;
}

/** How bad that is: a letter that was replayed is settled, unless it left another. */
export function moodOf({queues, letters}, steps) {
    if (letters.some(isOpen)) {
        return "bad";
    }
    if (queues.length || steps.length > 0 && !letters.length) {
        return "";
    }
    return letters.length ? "good" : "warn";
}

/** A sentence about the tables of the pipeline, which keep events for longer. */
export function inTables({id, lakes}) {
    return lakes.length ? ` Older ones are in tables: run holdfast message ${id} --lake with the folder of ${lakes.join(" or ")}.` : "";
}

/** The steps of the tables that the journal lacks. */
export function unknown(steps, known) {
    const texts = new Set(known.map((step) => JSON.stringify(step)));
    return steps.filter((step) => !texts.has(JSON.stringify(step)));
}

function places(queues, letters) {
    const open = letters.filter(isOpen);
    const where = [
        queues.length && `in ${many(queues.length, "queue")}`,
        open.length && `a dead letter of ${many(open.length, "receiver")}`,
    ].filter(Boolean).join(", ");
    const replayed = letters.length - open.length;
    const again = replayed ? ` ${many(replayed, "dead letter was", "dead letters were")} sent again.` : "";
    if (where) {
        return `The message is ${where}.${again}`;
    }
    return again ? `The message has left all queues.${again}` : "The message has left all queues without a dead letter.";
}

const isOpen = ({state}) => state !== "replayed";

// An id ends with the time of its receipt in nanoseconds.
const receivedMs = (id) => Number(id.slice(id.lastIndexOf("-") + 1, -6));

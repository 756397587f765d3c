// Reads chat messages from data that anybody may have published in any form.
import {textOf} from "../text.js";
import {MOST} from "./members.js";

const LONGEST_NAME = 63;
const LONGEST_ID = 100;

export const nameOf = (value) => textOf(value, LONGEST_NAME);
/** The id of a message; undefined if it has none. */
export const idOf = (data) => (data?.id === undefined ? undefined : textOf(data.id, LONGEST_ID));
const countOf = (value) => (Number.isSafeInteger(value) && value > 0 ? value : 0);
const listOf = (value) => (Array.isArray(value) ? value : []);

/** The text of a message, or the data if they have no text. */
export const wordsOf = (data) => textOf(data?.text ?? data);

export const roomsOf = (data) => listOf(data?.rooms).map(nameOf);

const membersOf = (value) =>
    listOf(value)
        .slice(0, MOST)
        .map((each) => ({
            session: textOf(each?.session, LONGEST_ID),
            name: nameOf(each?.subject),
            state: textOf(each?.state, LONGEST_NAME),
        }));

/** The presence on a channel: an answer lists the members, an event has their changes. */
export const presenceOf = (data) => ({
    count: countOf(data?.count),
    members: membersOf(data?.members),
    joined: membersOf(data?.joined),
    left: membersOf(data?.left),
    changed: membersOf(data?.changed),
});

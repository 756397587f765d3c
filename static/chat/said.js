// Reads chat messages from data that anybody may have published, in any form.
import {textOf} from "../text.js";

const LONGEST_NAME = 63;
const LONGEST_ID = 100;
const MOST_NAMED = 500;

export const nameOf = (value) => textOf(value, LONGEST_NAME);
/** Undefined if there is none. */
export const idOf = (data) => (data?.id === undefined ? undefined : textOf(data.id, LONGEST_ID));
const countOf = (value) => (Number.isSafeInteger(value) && value > 0 ? value : 0);
const listOf = (value) => (Array.isArray(value) ? value : []);

/** The text of a message, or the data if they have no text. */
export const wordsOf = (data) => textOf(data?.text ?? data);

export const roomsOf = (data) => listOf(data?.rooms).map(nameOf);

/** The listed members of a room, and the number of others. */
export const membersOf = (data) => ({
    others: countOf(data?.others),
    members: listOf(data?.members)
        .slice(0, MOST_NAMED)
        .map((each) => ({
            name: nameOf(each?.name),
            state: textOf(each?.state, LONGEST_NAME),
            waiting: countOf(each?.waiting),
        })),
});

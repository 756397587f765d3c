// What the chat reads in data that anybody may have published, whatever its form.
import {textOf} from "../text.js";

const LONGEST_NAME = 63;
const LONGEST_ID = 100;
const MOST_NAMED = 500;

export const nameOf = (value) => textOf(value, LONGEST_NAME);
/** Undefined where there is none. */
export const idOf = (data) => (data?.id === undefined ? undefined : textOf(data.id, LONGEST_ID));
const countOf = (value) => (Number.isSafeInteger(value) && value > 0 ? value : 0);
const listOf = (value) => (Array.isArray(value) ? value : []);

/** The words of a message; of data that has none, the data. */
export const wordsOf = (data) => textOf(data?.text ?? data);

export const roomsOf = (data) => listOf(data?.rooms).map(nameOf);

/** Who is in a room, and how many others. */
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

// A dead letter goes out with other data: as a new message, while the letter stays what it was.
import {parse} from "./json.js";
import {differences} from "./differences.js";
import {at, h} from "./dom.js";
import {planned} from "./letters.js";
import {ask} from "./parts.js";

const MOST_BYTES = 64 * 1024;

/** First how it would go, then whether it shall. */
export async function edit(app, letter) {
    const given = await ask({
        title: "Send it with other data",
        text: "It goes out as a new message; this letter is kept, and both know of each other.",
        fields: [
            {name: "data", label: "Data, as JSON", rows: 14, class: "mono", required: true,
                value: JSON.stringify(letter.data, null, 2), check: problem},
            {name: "to", label: "To this session (else to its own)", placeholder: letter.receiver},
        ],
        yes: "Show what would happen",
    });
    if (!given) {
        return;
    }
    const data = parse(given.data);
    const options = {edit: {data}, ...(given.to && {to: given.to})};
    const wanted = {filter: {ids: [letter.id]}, options};
    const plan = await app.api.post("replays", {...wanted, dry_run: true});
    const text = h("div", {class: "plan"}, planned(plan), difference(letter.data, data));
    const isPossible = plan.total > plan.skipped;
    const yes = isPossible ? "Send it" : "Understood";
    if (await ask({title: isPossible ? "Send this instead?" : "It cannot be sent", text, yes}) && isPossible) {
        const {id} = await app.api.post("replays", {...wanted, dry_run: false});
        location.hash = at("replays", id);
    }
}

/** What is wrong with this as data; nothing, if nothing is. */
export function problem(text) {
    if (new Blob([text]).size > MOST_BYTES) {
        return "These are more than 64 KiB.";
    }
    try {
        parse(text);
        return "";
    } catch (error) {
        return `This is no JSON: ${error.message}`;
    }
}

/** Line by line: what only the one before has, and what only the other has. */
export const difference = (before, after) => lined(differences(before, after));

export const lined = (lines) => h("div", {class: "difference mono", tabindex: 0, role: "region", "aria-label": "Difference"},
    lines.map(([sign, text]) => h("div", {class: {"+": "added", "-": "removed"}[sign]}, `${sign} ${text}`)));

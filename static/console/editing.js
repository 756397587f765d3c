// Replays a dead letter with other data: as a new message; the letter does not change.
import {h} from "../dom.js";
import {parse} from "./json.js";
import {differences} from "./differences.js";
import {preview} from "./letters.js";
import {asked} from "./parts.js";

const MOST_BYTES = 64 * 1024;

export async function edit(app, letter) {
    const {to} = app.requests.body("ReplayOptions");
    await asked({
        title: "Edit and send",
        text: "Holdfast sends a new message and keeps this letter. Each refers to the other.",
        fields: [
            {name: "data", label: "Data (JSON)", rows: 14, class: "mono", required: true,
                value: JSON.stringify(letter.data, null, 2), check: problem},
            {...to, label: `${to.label} (default: the original receiver)`, placeholder: letter.receiver},
        ],
        yes: "Preview",
    }, async (given) => {
        const {data: text, ...options} = given;
        const data = parse(text);
        const wanted = {filter: {ids: [letter.id]}, options: {...options, edit: {data}}};
        await preview(app, wanted, () => "Send the edited message?", "Send", difference(letter.data, data));
    });
}

/** The error in the data; empty if they are valid. */
function problem(text) {
    if (new Blob([text]).size > MOST_BYTES) {
        return "The data exceeds 64 KiB.";
    }
    try {
        parse(text);
        return "";
    } catch (error) {
        return `The data is not valid JSON: ${error.message}`;
    }
}

/** The differences between the old and the new data, line by line. */
export const difference = (before, after) => lined(differences(before, after));

export const lined = (lines) => h("div", {class: "difference mono", tabindex: 0, role: "region", "aria-label": "Difference"},
    lines.map(([sign, text]) => h("div", {class: {"+": "added tint good", "-": "removed tint bad"}[sign]}, `${sign} ${text}`)));

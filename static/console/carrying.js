// Export and import of dead letters as files.
import {h} from "../dom.js";
import {count, many} from "./format.js";
import {ask, asked, facts} from "./parts.js";

const FILE = "dead-letters.ndjson";

export async function take(app, chosen) {
    const url = URL.createObjectURL(await app.api.blob("dead-letters/export", chosen));
    h("a", {href: url, download: FILE}).click();
    setTimeout(() => URL.revokeObjectURL(url));
    app.tell("The export is in your downloads.");
}

/** Asks for a file, imports it, and shows the result for each line. */
export async function bring(app) {
    await asked({
        title: "Import dead letters",
        text: "Use an export of this or another server. Letters that already exist stay unchanged.",
        fields: [{name: "file", label: "File with JSON lines", type: "file", accept: ".ndjson,.jsonl", required: true}],
        yes: "Import",
    }, async (given) => {
        const done = await app.api.postLines("dead-letters/import", given.file);
        await ask({title: `${many(done.imported, "letter")} imported`, text: outcome(done), yes: "Close", no: null});
        await app.show();
    });
}

const outcome = ({imported, repeated, refused, refusals}) => h("div", {class: "plan"},
    facts([
        ["imported", count(imported)],
        ["already present", count(repeated)],
        ["refused", count(refused)],
    ]),
    refusals.length > 0 && h("ul", {class: "plain small", tabindex: 0, "aria-label": "Refused lines"},
        refusals.map(({line, text}) => h("li", {class: "state bad"}, `Line ${count(line)}: ${text}`))),
    refused > refusals.length && h("p", {class: "faint small"}, "Only the first ones are listed."));

// Dead letters as files: taken away, and brought here from elsewhere.
import {h} from "./dom.js";
import {count, many} from "./format.js";
import {ask, facts} from "./parts.js";

const FILE = "dead-letters.ndjson";

export async function take(app, chosen) {
    const url = URL.createObjectURL(await app.api.blob("dead-letters/export", chosen));
    h("a", {href: url, download: FILE}).click();
    setTimeout(() => URL.revokeObjectURL(url));
    app.tell("The export is among your downloads.");
}

/** Asks for a file, and tells what became of each of its lines. */
export async function bring(app) {
    const given = await ask({
        title: "Import dead letters",
        text: "From an export, of this server or of another one. A letter that is here already is left as it is.",
        fields: [{name: "file", label: "File with JSON lines", type: "file", accept: ".ndjson,.jsonl", required: true}],
        yes: "Import",
    });
    if (given) {
        const done = await app.api.postLines("dead-letters/import", given.file);
        await ask({title: `${many(done.imported, "letter")} imported`, text: outcome(done), yes: "Close", no: null});
        await app.show();
    }
}

const outcome = ({imported, repeated, refused, refusals}) => h("div", {class: "plan"},
    facts([
        ["new here", count(imported)],
        ["here already", count(repeated)],
        ["refused", count(refused)],
    ]),
    refusals.length > 0 && h("ul", {class: "plain small", tabindex: 0, "aria-label": "What was refused"},
        refusals.map(({line, text}) => h("li", {class: "state bad"}, `Line ${count(line)}: ${text}`))),
    refused > refusals.length && h("p", {class: "faint small"}, "These are the first of them."));

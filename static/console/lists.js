// Messages that operators list and cancel: one page for each row of the table.
import {h} from "../dom.js";
import {shown} from "./columns.js";
import {LISTED} from "./listed.js";
import {actions, confirmed, order, parts} from "./parts.js";

/** By address, the title of each page and what shows it. */
export const LISTS = Object.fromEntries(LISTED.map((listed) => [listed.name, [listed.title, (app, rest, chosen) => show(app, listed, chosen)]]));

async function show(app, {name, title, things, explanation, columns}, {sort}) {
    const heading = `${title} messages`;
    const found = await parts(app, heading, [
        ...columns.map(shown),
        ["", (each) => actions(app, ["Cancel", () => cancel(app, name, each), "danger"])],
    ], (cursor, limit) => app.api.get(name, {sort, cursor, limit}), `There are no ${things}.`, order([name], {sort}));
    return [h("h1", {}, heading), found, h("p", {class: "faint small"}, explanation)];
}

const cancel = (app, name, {id, channel}) => confirmed({
    title: `Cancel the message to ${channel}?`,
    text: `${id} is discarded permanently, without a dead letter.`,
    yes: "Cancel the message",
    no: "Keep it",
}, async () => {
    await app.api.remove(name, {id});
    await app.done("Message cancelled.");
});

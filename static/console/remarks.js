// Operators' remarks on groups of letters: the assignee and a note.
import {h} from "../dom.js";
import {path} from "./address.js";
import {actions, asked, card, when} from "./parts.js";

export const remark = (said) => h("p", {class: "remark"},
    said.assignee && h("span", {class: "badge one"}, said.assignee), said.assignee && said.note ? " " : null, said.note);

export const remarks = (app, {fingerprint, remark: said}) => card("Assignment",
    said ? [remark(said), h("p", {class: "faint small"}, `${said.who}, `, when(said.at))]
        : h("p", {class: "faint"}, "Not assigned."),
    actions(app, [said ? "Change …" : "Assign or note …", () => say(app, fingerprint, said)]));

async function say(app, fingerprint, said) {
    const {assignee, note} = app.requests.body("RemarkBody");
    await asked({
        title: "Assign letters with this cause",
        text: "The note also applies to later letters with the same cause.",
        fields: [
            {...assignee, value: said?.assignee ?? app.name},
            {...note, value: said?.note ?? "", rows: 4},
        ],
        yes: "Save",
    }, async (given) => {
        await app.api.put(path("dead-letters", "groups", fingerprint, "remark"), given);
        await app.show();
    });
}

// What operators say of letters that failed alike: who looks after them, and what is known.
import {path} from "./api.js";
import {h} from "./dom.js";
import {actions, ask, card, when} from "./parts.js";

export const remark = (said) => h("p", {class: "remark"},
    said.assignee && h("span", {class: "badge one"}, said.assignee), said.assignee && said.note ? " " : null, said.note);

export const remarks = (app, {fingerprint, remark: said}) => card("Who looks after them",
    said ? [remark(said), h("p", {class: "faint small"}, `${said.who}, `, when(said.at))]
        : h("p", {class: "faint"}, "Nobody yet."),
    actions(app, [said ? "Change it …" : "Assign or note …", () => say(app, fingerprint, said)]));

async function say(app, fingerprint, said) {
    const given = await ask({
        title: "Who looks after letters of this kind?",
        text: "It is shown with them, and stays for those that come later.",
        fields: [
            {name: "assignee", label: "Who", value: said?.assignee ?? app.name, maxlength: 64},
            {name: "note", label: "What is known", value: said?.note ?? "", rows: 4, maxlength: 1024},
        ],
        yes: "Keep it",
    });
    if (given) {
        // A form has line ends of its own.
        const note = given.note.replaceAll("\r\n", "\n");
        await app.api.put(path("dead-letters", "groups", fingerprint, "remark"), {...given, note});
        await app.show();
    }
}

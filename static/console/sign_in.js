// The form that asks for a token.
import {h} from "./dom.js";

const NAME = "[A-Za-z0-9][A-Za-z0-9 ._@+\\-]{0,63}";

export function signIn(name, problem, enter) {
    const token = h("input", {
        name: "token", type: "password", required: true, autocomplete: "off", minlength: 32,
        "aria-describedby": "token-hint", ...(problem && {"aria-invalid": "true"}),
    });
    const who = h("input", {name: "name", value: name, autocomplete: "nickname", pattern: NAME});
    const submit = (event) => {
        event.preventDefault();
        enter(token.value.trim(), who.value.trim());
    };
    return h("form", {class: "card sign-in", onsubmit: submit},
        h("h2", {}, "Sign in"),
        problem && h("p", {class: "state bad", role: "alert"}, problem),
        h("label", {class: "field"}, "Token", token),
        h("p", {class: "faint small", id: "token-hint"},
            "The token is in the server's data directory: ", h("code", {}, "admin-token"),
            " for operators, ", h("code", {}, "reader-token"), " for readers."),
        h("label", {class: "field"}, "Your name for the audit (optional)", who),
        h("button", {class: "primary"}, "Sign in"),
        h("p", {class: "faint small"}, "The token stays in this tab until you close it or sign out."),
    );
}

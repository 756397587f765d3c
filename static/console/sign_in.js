// The form that asks for a token, or for a user and a password.
import {h} from "../dom.js";

const NAME = "[A-Za-z0-9][A-Za-z0-9 ._@+\\-]{0,63}";

export function signIn(name, problem, enter) {
    const submit = (event) => {
        event.preventDefault();
        const {token, user, password, name} = Object.fromEntries(new FormData(event.target));
        enter(authorization(token.trim(), user.trim(), password), name.trim());
    };
    const field = (label, given) => h("label", {class: "field"}, label, h("input", given));
    return h("form", {class: "card sign-in", onsubmit: submit},
        h("h2", {}, "Sign in"),
        problem && h("p", {class: "state bad", role: "alert"}, problem),
        field("Token", {
            name: "token", type: "password", autocomplete: "off",
            "aria-describedby": "token-hint", "aria-invalid": problem ? "true" : null,
        }),
        h("p", {class: "faint small", id: "token-hint"},
            "The token is in the server's data directory: ", h("code", {}, "admin-token"),
            " for operators, ", h("code", {}, "reader-token"), " for readers. A token of your login is accepted, too, if you have a role here."),
        h("details", {},
            h("summary", {}, "Sign in without a token"),
            field("User", {name: "user", autocomplete: "username"}),
            field("Password", {name: "password", type: "password", autocomplete: "current-password"}),
            h("p", {class: "faint small"}, "Leave everything empty if a proxy or a certificate proves who you are.")),
        field("Your name for the audit (optional)", {name: "name", value: name, autocomplete: "nickname", pattern: NAME}),
        h("button", {class: "primary"}, "Sign in"),
        h("p", {class: "faint small"}, "A token stays in this tab until you close it or sign out. A password is not stored."),
    );
}

/** The header that proves the user; empty without a token and a password. */
function authorization(token, user, password) {
    if (user) {
        const bytes = new TextEncoder().encode(`${user}:${password}`);
        return `Basic ${btoa(String.fromCharCode(...bytes))}`;
    }
    return token && `Bearer ${token}`;
}

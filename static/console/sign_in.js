// The form that asks for a token, or for a user and a password.
import {h} from "../dom.js";

const NAME = "[A-Za-z0-9][A-Za-z0-9 ._@+\\-]{0,63}";

export function signIn(name, problem, enter) {
    const token = h("input", {
        name: "token", type: "password", autocomplete: "off", minlength: 32,
        "aria-describedby": "token-hint", ...(problem && {"aria-invalid": "true"}),
    });
    const who = h("input", {name: "name", value: name, autocomplete: "nickname", pattern: NAME});
    const user = h("input", {name: "user", autocomplete: "username"});
    const password = h("input", {name: "password", type: "password", autocomplete: "current-password"});
    const submit = (event) => {
        event.preventDefault();
        enter(authorization(token.value.trim(), user.value.trim(), password.value), who.value.trim());
    };
    return h("form", {class: "card sign-in", onsubmit: submit},
        h("h2", {}, "Sign in"),
        problem && h("p", {class: "state bad", role: "alert"}, problem),
        h("label", {class: "field"}, "Token", token),
        h("p", {class: "faint small", id: "token-hint"},
            "The token is in the server's data directory: ", h("code", {}, "admin-token"),
            " for operators, ", h("code", {}, "reader-token"), " for readers. A token of your login is accepted, too, if you have a role here."),
        h("details", {},
            h("summary", {}, "Sign in with a password, or without"),
            h("label", {class: "field"}, "User", user),
            h("label", {class: "field"}, "Password", password),
            h("p", {class: "faint small"}, "Leave everything empty if a proxy or a certificate proves who you are.")),
        h("label", {class: "field"}, "Your name for the audit (optional)", who),
        h("button", {class: "primary"}, "Sign in"),
        h("p", {class: "faint small"}, "A token stays in this tab until you close it or sign out. A password is not stored."),
    );
}

/** The header that proves it; empty if there is nothing to prove it with. */
function authorization(token, user, password) {
    if (user) {
        const bytes = new TextEncoder().encode(`${user}:${password}`);
        return `Basic ${btoa(String.fromCharCode(...bytes))}`;
    }
    return token && `Bearer ${token}`;
}

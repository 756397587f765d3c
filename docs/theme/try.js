// Tries routes of the administration, as its own description lists them. The token stays in this page.
const place = document.getElementById("try");
const api = "/admin/api/v1";

const h = (name, given = {}, ...children) => {
    const element = Object.assign(document.createElement(name), given);
    element.append(...children);
    return element;
};

const labelled = (text, input) => h("p", {}, h("label", {}, `${text} `, input));

const token = h("input", {type: "password", autocomplete: "off", required: true});
const begin = h("form", {}, labelled("Token, from the file admin-token of the server", token),
    h("button", {className: "md-button"}, "Show the routes"));
const said = h("p", {role: "status"});
const routes = h("div");
place.replaceChildren(begin, said, routes);

let described = {};

/** Sends a request with the token; returns the response, or null after it has said why there is none. */
async function ask(path, options = {}) {
    said.textContent = "Waiting for the server …";
    try {
        const headers = {Authorization: `Bearer ${token.value.trim()}`, ...options.headers};
        const response = await fetch(api + path, {...options, headers});
        said.textContent = response.status === 401 ? "The server does not know this token." : "";
        return response;
    } catch {
        said.textContent = "The server cannot be reached. Is its administration at another address?";
        return null;
    }
}

begin.addEventListener("submit", async (event) => {
    event.preventDefault();
    const response = await ask("/openapi.json");
    if (!response?.ok) {
        said.textContent ||= `No description: ${response.status}. Is the administration at another address?`;
        return;
    }
    described = await response.json();
    const options = Object.entries(described.paths).flatMap(([path, methods]) => Object.keys(methods).map((method) =>
        h("option", {value: `${method} ${path}`}, `${method.toUpperCase()} ${path}`)));
    const chosen = h("select", {}, ...options);
    const form = h("form");
    const choose = () => form.replaceChildren(...fields(chosen.value, form));
    chosen.addEventListener("change", choose);
    choose();
    routes.replaceChildren(labelled("Route", chosen), form);
});

/** The fields of a route, its button, and the place of its answer. */
function fields(name, form) {
    const [method, path] = name.split(" ");
    const {summary, parameters = [], requestBody} = described.paths[path][method];
    const inputs = parameters.map((each) => [each, h("input", {required: Boolean(each.required), title: each.description ?? ""})]);
    const body = requestBody && h("textarea", {rows: 5, cols: 60, value: "{}", spellcheck: false});
    const answer = h("pre", {tabIndex: 0}, "No answer yet.");
    answer.setAttribute("aria-label", "Answer");
    form.onsubmit = async (event) => {
        event.preventDefault();
        // What changes a server needs a second look.
        if (method !== "get" && !confirm(`Really ${method.toUpperCase()} ${path}?`)) {
            return;
        }
        const query = new URLSearchParams();
        let filled = path;
        for (const [each, input] of inputs) {
            if (each.in === "path") {
                filled = filled.replace(`{${each.name}}`, encodeURIComponent(input.value));
            } else if (input.value) {
                query.set(each.name, input.value);
            }
        }
        const options = body ? {body: body.value, headers: {"Content-Type": "application/json"}} : {};
        const response = await ask(query.size ? `${filled}?${query}` : filled, {...options, method: method.toUpperCase()});
        if (response) {
            answer.textContent = `${response.status} ${response.statusText}\n\n${pretty(await response.text())}`;
        }
    };
    return [
        h("p", {}, summary ?? ""),
        ...inputs.map(([each, input]) => labelled(`${each.name}${each.required ? "" : " (optional)"}`, input)),
        ...(body ? [labelled("Body, in JSON", body)] : []),
        h("p", {}, h("button", {className: "md-button"}, "Send")),
        answer,
    ];
}

function pretty(text) {
    try {
        return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
        return text;
    }
}

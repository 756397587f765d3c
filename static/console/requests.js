// Fields of forms, made from the server's description of its requests.

export class Requests {
    /** The server's OpenAPI document. */
    constructor({paths, components}) {
        Object.assign(this, {paths, schemas: components.schemas});
    }

    /** The fields of a query, by name. */
    query(path) {
        return Object.fromEntries(this.paths[path].get.parameters.map(
            ({name, description, schema}) => [name, field({name, description, ...schema})]));
    }

    /** The texts for people of the values of a response's field. */
    words = (name, field) => this.schemas[name].properties[field]["x-words"];

    /** The fields of a body, or of one of its parts, by name. */
    body(name) {
        return Object.fromEntries(Object.entries(this.schemas[name].properties).map(
            ([name, schema]) => [name, field({name, ...schema})]));
    }
}

/** A field of a form: `{name, label, …attributes}`, with `options` if it is a choice. */
function field({anyOf = [{}], ...given}) {
    const it = {...anyOf[0], ...given};
    const about = {name: it.name, label: it.title, hint: it.description, value: it.default ?? "", placeholder: it.examples?.[0]};
    const choices = it.type === "boolean" ? ["true", "false"] : it.enum;
    if (choices) {
        return {...about, options: [["", "any"], ...choices.map((each) => [each, it["x-words"]?.[each] ?? each])]};
    }
    if (it.format === "ms") {
        return {...about, type: "datetime-local"};
    }
    if (it.type === "integer" || it.type === "number") {
        const step = it.type === "integer" ? 1 : 0.01;
        return {...about, type: "number", step, min: it.minimum ?? step, max: it.maximum, required: about.value !== ""};
    }
    return {...about, maxlength: it.maxLength, pattern: it.pattern};
}

/** The values of an address, converted to the types of a body. */
export const typed = (fields, chosen) => Object.fromEntries(Object.entries(chosen).map(([name, text]) =>
    [name, ["number", "datetime-local"].includes(fields[name]?.type) ? Number(text) : text]));

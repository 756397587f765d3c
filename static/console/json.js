// Data as it was published.

/** JSON whose large integers stay as they are written, where the browser can do that. */
export const parse = (text) => JSON.parse(text, (_, value, context) =>
    (Number.isInteger(value) && !Number.isSafeInteger(value) && context?.source && JSON.rawJSON
        ? JSON.rawJSON(context.source) : value));

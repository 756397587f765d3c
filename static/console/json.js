// JSON of published data.

/** Formats JSON; large integers keep all their digits if the browser supports it. */
export const parse = (text) => JSON.parse(text, (_, value, context) =>
    (Number.isInteger(value) && !Number.isSafeInteger(value) && context?.source && JSON.rawJSON
        ? JSON.rawJSON(context.source) : value));

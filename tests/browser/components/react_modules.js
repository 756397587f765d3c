// React has no modules for browsers: this evaluates the files of npm, each once.
const loaded = new Map();

async function load(name, file) {
    const text = await (await fetch(`/__test__/${file}`)).text();
    const module = {exports: {}};
    const process = {env: {NODE_ENV: "development"}};
    const evaluate = new Function("module", "exports", "require", "process", text);
    evaluate(module, module.exports, (each) => loaded.get(each), process);
    loaded.set(name, module.exports);
    return module.exports;
}

await load("scheduler", "scheduler/cjs/scheduler.development.js");
export const React = await load("react", "react/cjs/react.development.js");
await load("react-dom", "react-dom/cjs/react-dom.development.js");
const client = await load("react-dom/client", "react-dom/cjs/react-dom-client.development.js");
export const {createElement, StrictMode, useCallback, useState, useSyncExternalStore} = React;
export const {createRoot} = client;

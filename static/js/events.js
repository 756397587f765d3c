// Messages of channels, by one connection to /events for all tabs of an origin.
const listeners = new Map();
let keys = 0;
let port;

/** Lets a worker read that all tabs share; a page that has none reads by itself. */
function connect() {
    try {
        const worker = new SharedWorker(new URL("./shared_events.js", import.meta.url), {type: "module"});
        // A policy of the page may forbid it.
        worker.onerror = () => use(own());
        return worker.port;
    } catch {
        return own();
    }
}

function own() {
    const {port1, port2} = new MessageChannel();
    import("./shared_events.js").then(({serve}) => serve(port2));
    return port1;
}

function use(opened) {
    port = opened;
    port.onmessage = ({data: {key, name, said, id}}) => {
        const listener = listeners.get(key);
        if (listener === undefined) {
            return;
        }
        listener.after = id ?? listener.after;
        if (name === "message") {
            listener.hear(said, id);
        } else if (said !== undefined) {
            listener.notice?.(name, said);
        }
    };
    listeners.forEach(ask);
}

const ask = ({url, channel, after}, key) => port.postMessage({key, url, channel, after});
const leave = (_, key) => port.postMessage({key});

/** Calls `hear` with each message and the id behind it; returns a function that ends this. */
export function listen(channel, hear, {after = "now", notice, url = "/events"} = {}) {
    const key = ++keys;
    const listener = {channel, hear, after, notice, url: new URL(url, location.href).href};
    if (port === undefined) {
        use(connect());
        // The browser may keep the page for the way back: then it goes on where it was.
        addEventListener("pagehide", () => listeners.forEach(leave));
        addEventListener("pageshow", ({persisted}) => persisted && listeners.forEach(ask));
    }
    listeners.set(key, listener);
    ask(listener, key);
    return () => listeners.delete(key) && leave(listener, key);
}

// What cometd.js takes from a browser and cometd-nodejs-client does not have: cookies on WebSocket,
// script tags and a session storage, per "page", so that one process can be several browsers.
import {get} from "node:http";
import {adapt} from "cometd-nodejs-client";

adapt();
const CookielessWebSocket = window.WebSocket;

export class Page {
    /** hostname -> name -> "name=value": the form in which cometd-nodejs-client keeps cookies. */
    #cookies;
    #requests = new Set();
    #window;

    /** With `cookiesOnWebSocket` false the sockets are those of cometd-nodejs-client as it comes. */
    constructor({cookiesOnWebSocket = false} = {}) {
        // Each call makes requests that share their cookies among themselves, and with none before.
        const options = {};
        adapt(options);
        this.#cookies = options.globalCookies;
        this.#window = {
            XMLHttpRequest: window.XMLHttpRequest,
            WebSocket: cookiesOnWebSocket ? this.#socketsWithCookies() : CookielessWebSocket,
            document: this.#documentWithScriptTags(),
        };
    }

    /** Makes the transports of a CometD object live in this page instead of the global one. */
    adopt(cometd) {
        this.#moveIn(cometd.findTransport("websocket"), "send");
        this.#moveIn(cometd.findTransport("long-polling"), "xhrSend");
        this.#moveIn(cometd.findTransport("callback-polling"), "jsonpSend");
    }

    /** What navigation does to requests in flight. */
    unload() {
        [...this.#requests].forEach((request) => request.destroy());
    }

    #moveIn(transport, method) {
        const original = transport[method];
        transport[method] = (...args) => {
            const {XMLHttpRequest, WebSocket, document} = window;
            Object.assign(window, this.#window);
            try {
                return original.apply(transport, args);
            } finally {
                Object.assign(window, {XMLHttpRequest, WebSocket, document});
            }
        };
    }

    #header(hostname) {
        return Object.values(this.#cookies[hostname] ?? {}).join("; ");
    }

    #store(hostname, response) {
        const jar = (this.#cookies[hostname] ??= {});
        for (const header of response.headers["set-cookie"] ?? []) {
            const pair = header.split(";")[0].trim();
            jar[pair.split("=")[0]] = pair;
        }
    }

    #socketsWithCookies() {
        const page = this;
        return class extends CookielessWebSocket {
            constructor(url, protocols = []) {
                const {hostname} = new URL(url);
                const cookie = page.#header(hostname);
                super(url, protocols, {headers: cookie ? {Cookie: cookie} : {}});
                this.on("upgrade", (response) => page.#store(hostname, response));
            }
        };
    }

    #documentWithScriptTags() {
        const head = {
            appendChild: (script) => this.#load(script),
            removeChild: () => {},
        };
        return {createElement: () => ({}), getElementsByTagName: () => [head]};
    }

    /** Runs a script only if a browser with `X-Content-Type-Options: nosniff` would. */
    #load(script) {
        const {hostname, origin, searchParams} = new URL(script.src);
        // Every page numbers its callbacks from 0, but here they all share one `window`.
        const name = searchParams.get("jsonp");
        const callback = window[name];
        const cookie = this.#header(hostname);
        // As a browser over plain HTTP says whose page it is: here, one of the server's own.
        const headers = {Referer: `${origin}/page.html`, ...(cookie && {Cookie: cookie})};
        const request = get(script.src, {headers}, (response) => {
            this.#store(hostname, response);
            let text = "";
            response.setEncoding("utf8");
            response.on("data", (chunk) => (text += chunk));
            response.on("end", () => {
                const type = response.headers["content-type"] ?? "none";
                if (response.statusCode === 200 && type.startsWith("text/javascript")) {
                    new Function(name, text)(callback);
                } else {
                    script.onerror({type: `error ${response.statusCode} ${type}`});
                }
            });
        });
        this.#requests.add(request);
        request.on("close", () => this.#requests.delete(request));
        request.on("error", (error) => script.onerror({type: error.message}));
    }
}

/** Survives a reload of the page, as in a browser. */
export function installSessionStorage() {
    const items = new Map();
    window.sessionStorage = {
        getItem: (name) => items.get(name) ?? null,
        setItem: (name, value) => items.set(name, value),
        removeItem: (name) => items.delete(name),
    };
}

// The administration over HTTP. Requests carry the credentials in a header only.
import {known} from "./address.js";
import {parse} from "./json.js";

const ROOT = new URL("../admin/api/v1/", location.href);

class Failure extends Error {
    constructor(status, code, message) {
        super(message);
        Object.assign(this, {status, code});
    }
}

export class Api {
    #headers;
    #missing;

    /**
     * Needs no `authorization` if the connection, or a proxy, proves the user. Reports to `missing`
     * which shards have not answered, each with a reason.
     */
    constructor(authorization, name, missing = () => {}) {
        this.#missing = missing;
        this.#headers = {...(authorization && {Authorization: authorization}), ...(name && {"X-Operator": name})};
    }

    async get(path, query = {}) {
        // A connection that broke while a laptop slept reports no error.
        const response = await this.#ask("GET", path, {query, signal: AbortSignal.timeout(TIMEOUT_MS)});
        return this.#whole(parse(await response.text()));
    }

    post = async (path, body) => this.#whole(await (await this.#ask("POST", path, json(body))).json());
    put = async (path, body) => this.#whole(await (await this.#ask("PUT", path, json(body))).json());
    postLines = async (path, body) => (await this.#ask("POST", path, {body, type: LINES})).json();
    blob = async (path, query = {}) => (await this.#ask("GET", path, {query})).blob();

    async remove(path, query = {}) {
        const response = await this.#ask("DELETE", path, {query});
        return response.status === 204 ? null : this.#whole(await response.json());
    }

    /** Returns an answer, after a report of what is not in it. */
    #whole(answer) {
        if (answer.unanswered?.length) {
            this.#missing(answer.unanswered);
        }
        return answer;
    }

    /** Sends a request, without the empty values of its query. */
    async #ask(method, path, {query = {}, body, type, signal}) {
        const url = new URL(path, ROOT);
        url.search = new URLSearchParams(known(query));
        const headers = {...this.#headers, ...(type && {"Content-Type": type})};
        const request = {method, headers, body, signal, cache: "no-store"};
        const response = await fetch(url, request).catch(() => {
            throw new Failure(0, "communication.noConnection", "The server cannot be reached.");
        });
        if (!response.ok) {
            const {error} = await response.json().catch(() => ({error: {}}));
            const message = error.message ?? `HTTP ${response.status}`;
            throw new Failure(response.status, error.code ?? "", message);
        }
        return response;
    }
}

const TIMEOUT_MS = 30_000;
const LINES = "application/x-ndjson";
const json = (value) => ({body: JSON.stringify(value), type: "application/json"});

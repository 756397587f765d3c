// Live figures and alerts over Bayeux with acknowledgements. Each request to the console's own path
// carries the credentials.
import {Client, pause} from "../bayeux.js";

const FIGURES = "/sys/figures";
const ALERT = "/sys/alert";
const BEARER = "Bearer ";
// The number of event ids to remember, because a batch may be redelivered.
const REMEMBERED = 1000;

export class Feed {
    #client;
    #listeners;
    #isLeaving = false;
    #heard = new Set();

    /** Passes each reading to `hear`, each alert to `alert`, and to `state` whether readings arrive. */
    constructor(url, authorization, {hear, alert, state}) {
        this.#listeners = new Map([[FIGURES, hear], [ALERT, alert]]);
        const token = authorization.startsWith(BEARER) && authorization.slice(BEARER.length);
        const ext = {ack: true, delivery: true, ...(token && {authentication: {token}})};
        const headers = authorization && {Authorization: authorization};
        this.#client = new Client(url, [...this.#listeners.keys()], {
            connected: () => state(true, "live"),
            failed: ({message}) => state(false, message),
            message: (event) => this.#hear(event),
        }, {ext, headers});
    }

    /** Runs until `leave` is called, even if the server ends the session or refuses another one. */
    async run() {
        while (!this.#isLeaving) {
            await this.#client.run();
            await pause();
        }
    }

    leave() {
        this.#isLeaving = true;
        this.#client.leave();
    }

    #hear({channel, data, ext}) {
        const id = ext?.delivery?.id;
        if (!this.#heard.has(id)) {
            this.#remember(id);
            this.#listeners.get(channel)?.(data);
        }
    }

    #remember(id) {
        if (id !== undefined) {
            this.#heard.add(id);
            const [oldest] = this.#heard;
            this.#heard.size > REMEMBERED && this.#heard.delete(oldest);
        }
    }
}

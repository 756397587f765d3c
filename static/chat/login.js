// The user's login: proves it to the server, renews it, and explains in plain words why it failed.
import {keep, recall} from "../js/storage.js";

export const LOGIN = "/service/login";
const HANDSHAKE = "/meta/handshake";
const TOKEN = "holdfast.chat.token";
const MS_PER_S = 1000;

/**
 * An extension that adds the user's credentials to messages: `{token}`, or `{user, password}`, or
 * nothing if the requests of this browser prove the user. Extensions registered after it do not see
 * them. A token is kept in this tab, a password only in this page.
 */
export class Login {
    credentials;
    #storage;
    #cometd;
    #renewal;

    constructor(storage) {
        this.#storage = storage;
        const token = recall(storage, TOKEN);
        this.credentials = token && {token};
    }

    /** Whether the user can renew the login before it ends. */
    get isRenewable() {
        return this.credentials?.token !== undefined;
    }

    use(credentials) {
        this.credentials = credentials;
        if (credentials?.token) {
            keep(this.#storage, TOKEN, credentials.token);
        } else {
            this.#storage?.removeItem(TOKEN);
        }
    }

    registered(name, cometd) {
        this.#cometd = cometd;
    }

    /** Sends a new token; resolves with an empty text, or with the reason why it was refused. */
    renew(token) {
        this.#renewal = {token};
        return new Promise((resolve) => {
            this.#cometd.publish(LOGIN, {}, {}, (reply) => {
                if (reply.successful) {
                    this.use({token});
                }
                resolve(reply.successful ? "" : reasonOf(reply, {token}));
            });
            this.#renewal = undefined;
        });
    }

    outgoing(message) {
        const fitting = {[HANDSHAKE]: this.credentials, [LOGIN]: this.#renewal};
        const authentication = fitting[message.channel];
        return authentication ? {...message, ext: {...message.ext, authentication}} : message;
    }
}

/** Checks credentials; resolves with the `subject` that they prove, or with the `problem`. */
export function prove(library, url, credentials) {
    const cometd = new library.CometD();
    cometd.configure({url, logLevel: "error"});
    return new Promise((resolve) => {
        const props = credentials ? {ext: {authentication: credentials}} : {};
        cometd.handshake(props, (reply) => {
            cometd.disconnect();
            const subject = reply.ext?.authentication?.subject;
            resolve(subject ? {subject} : {problem: reasonOf(reply, credentials)});
        });
    });
}

function reasonOf({successful, error = "", advice}, credentials = {}) {
    if (successful) {
        return "The server lets you in without a name, but the chat needs one. Sign in as a user.";
    }
    const seconds = Math.ceil((advice?.interval ?? MS_PER_S) / MS_PER_S);
    const reasons = new Map([
        ["", "The server cannot be reached. Try again in a moment."],
        ["403", refusedReason(credentials)],
        ["429", `The server accepts no more logins from your address for now. Try again in ${seconds} s.`],
        ["503", "The server is busy. Try again in a moment."],
    ]);
    return reasons.get(error.slice(0, 3)) ?? `The server refused the login: ${error}`;
}

function refusedReason({token, password}) {
    if (token !== undefined) {
        return "The server does not accept this token. It may have expired, or be somebody else's: paste a new one.";
    }
    if (password !== undefined) {
        return "The user or the password is wrong.";
    }
    return "The server does not know you. Log in to this site, then try again.";
}

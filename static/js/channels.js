// Channels for pages that are made of components: all that watch a channel share its subscription.

// How many messages a channel remembers for its components.
const MOST_RECENT = 100;

class Channel {
    watchers = new Set();
    recent = [];
    // The messages that wait for a verdict, each with what settles it.
    open = new Map();
    // Ends the subscription.
    end;
    // What components see, until something changes.
    states = new Map();
    #said = {};

    /** Adds a message; returns a promise if a component will settle it. */
    add(message) {
        this.recent = [...this.recent, message].slice(-MOST_RECENT);
        let settled;
        if ([...this.watchers].some(({confirm}) => confirm)) {
            settled = new Promise((resolve, reject) => this.open.set(message, {resolve, reject}));
        }
        this.change();
        return settled;
    }

    /** Says something about the channel itself, such as an error. */
    change(said) {
        this.#said = {...this.#said, ...said};
        this.states = new Map();
        this.watchers.forEach(({changed}) => changed());
    }

    /** The same object until something changes. */
    state(confirm, session) {
        if (!this.states.has(confirm)) {
            const messages = confirm ? [...this.open.keys()] : this.recent;
            const error = this.#said.error ?? session.error;
            this.states.set(confirm, {...session, ...this.#said, error, messages});
        }
        return this.states.get(confirm);
    }
}

/** What the channels of a session and those of /events have in common. */
export class Channels {
    #channels = new Map();
    // What is said of a channel that nobody watches.
    #idle = {messages: []};
    #session = {};

    /** Calls `changed` when `state` has changed; returns a function that ends this. */
    watch(name, changed, {confirm = false} = {}) {
        if (!name) {
            return () => {};
        }
        const channel = this.#channels.get(name) ?? new Channel();
        const watcher = {changed, confirm};
        this.#channels.set(name, channel);
        channel.watchers.add(watcher);
        channel.end ??= this.begin(name, channel);
        return () => {
            channel.watchers.delete(watcher);
            // A component that is mounted again at once, or another one, goes on with what there is.
            setTimeout(() => this.#leave(name, channel));
        };
    }

    /** What is known of a channel now. */
    state(name, {confirm = false} = {}) {
        const channel = this.#channels.get(name);
        return channel?.end ? channel.state(confirm, this.#session) : this.#idle;
    }

    /** Says that a message has been processed. Returns whether it was waiting for that. */
    done(message) {
        return this.settle(message, ({resolve}) => resolve());
    }

    settle(message, how) {
        const waiting = [...this.#channels.values()].filter(({open}) => open.has(message));
        for (const channel of waiting) {
            how(channel.open.get(message));
            channel.open.delete(message);
            channel.change();
        }
        return waiting.length > 0;
    }

    /** The channels that somebody watches, by their names. */
    get watched() {
        return [...this.#channels].filter(([, {end}]) => end !== undefined);
    }

    /** Says something about all channels. */
    changeAll(said) {
        if (Object.entries(said).some(([key, value]) => this.#session[key] !== value)) {
            this.#session = {...this.#session, ...said};
            this.#idle = {...this.#session, messages: []};
            this.#channels.forEach((channel) => channel.change());
        }
    }

    #leave(name, channel) {
        if (channel.watchers.size === 0 && channel.end !== undefined) {
            channel.end();
            channel.end = undefined;
            channel.recent = [...channel.open.keys()];
            channel.change({error: undefined, notice: undefined});
            // What nobody has settled waits for the next component.
            if (channel.open.size === 0) {
                this.#channels.delete(name);
            }
        }
    }
}

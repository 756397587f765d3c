// Reads /events once for many listeners: in a worker that all tabs share, or in a page.
import {LAST, Listener} from "./event_listener.js";
import {addressOf, idOf, pause, placesOf, reaches} from "./event_stream.js";

// What one request of the server takes.
const MOST_CHANNELS = 100;

/** The connection to one /events. */
class Connection {
    #url;
    // Those that have joined it, and those that still read by themselves, with what was heard since.
    #joined = new Set();
    #arriving = new Map();
    // What the EventSource reads, and where it is.
    #source;
    #channels = new Set();
    #places = new Map();

    constructor(url) {
        this.#url = url;
    }

    /**
     * Adds a listener, which first reads by itself from its own place to the end: a `Last-Event-ID`
     * is one place in all channels, and that of the others may be before it or behind it.
     */
    async add(listener) {
        const [source, places, early] = [this.#source, new Map(this.#places), []];
        const isShared = this.#channels.has(listener.channel);
        this.#arriving.set(listener, early);
        await listener.arrive(this.#url);
        this.#arriving.delete(listener);
        if (listener.isOver) {
            return;
        }
        this.#joined.add(listener);
        if (isShared && source === this.#source) {
            listener.joined = places;
            early.forEach((each) => listener.hear(...each));
        } else if (this.#wanted().size > MOST_CHANNELS) {
            this.remove(listener);
            listener.end("400:more than 100 channels:channel_missing");
        } else {
            this.#goBackTo(listener.places);
            this.#open();
        }
    }

    remove(listener) {
        listener.isOver = true;
        this.#joined.delete(listener);
        if (this.#joined.size === 0) {
            this.#close();
            this.#places.clear();
        }
    }

    #wanted() {
        return new Set([...this.#joined].map(({channel}) => channel));
    }

    /** Goes to the earlier place of both: each listener drops what it has had. */
    #goBackTo(places) {
        this.#places = new Map(this.#places);
        for (const [home, place] of places) {
            if (!this.#places.has(home) || reaches(this.#places.get(home), place)) {
                this.#places.set(home, place);
            }
        }
    }

    #close() {
        this.#source?.close();
        [this.#source, this.#channels] = [undefined, new Set()];
    }

    /** Reads the channels of all that have joined, in place of those before. */
    #open() {
        this.#close();
        this.#joined.forEach((each) => (each.joined = new Map(this.#places)));
        this.#channels = this.#wanted();
        const source = new EventSource(addressOf(this.#url, [...this.#channels], idOf(this.#places)));
        this.#source = source;
        source.onmessage = ({data, lastEventId}) => {
            const said = JSON.parse(data);
            this.#places = placesOf(lastEventId);
            this.#joined.forEach((each) => each.hear(said, this.#places));
            this.#arriving.forEach((early) => early.push([said, this.#places]));
        };
        source.addEventListener("lost", ({data}) => {
            this.#joined.forEach((each) => each.lose(JSON.parse(data)));
        });
        LAST.forEach((name) => source.addEventListener(name, () => this.#arriveAgain(source)));
        source.onerror = () => {
            // A status has ended it.
            if (source.readyState === EventSource.CLOSED) {
                this.#arriveAgain(source);
            }
        };
    }

    /** Lets each find out by itself whether it may go on. */
    async #arriveAgain(source) {
        if (source === this.#source) {
            const all = [...this.#joined];
            this.#close();
            this.#joined.clear();
            await pause();
            all.filter(({isOver}) => !isOver).forEach((each) => this.add(each));
        }
    }
}

const connections = new Map();

/** Serves one page: `{key, url, channel, after}` begins to listen, `{key}` ends it. */
export function serve(port) {
    const ends = new Map();
    port.onmessage = ({data: {key, url, channel, after}}) => {
        ends.get(key)?.();
        ends.delete(key);
        if (channel !== undefined) {
            const connection = connections.get(url) ?? new Connection(url);
            connections.set(url, connection);
            const tell = (name, said, id) => port.postMessage({key, name, said, id});
            const listener = new Listener(channel, after, tell);
            ends.set(key, () => connection.remove(listener));
            connection.add(listener);
        }
    };
}

globalThis.onconnect = ({ports: [port]}) => serve(port);

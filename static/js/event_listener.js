// One who listens to a channel: reads by itself what there is, then takes what a connection hears.
import {addressOf, eventsOf, idOf, matches, pause, placesOf, reaches} from "./event_stream.js";

// The events after which the server sends nothing any more.
export const LAST = ["end", "expired"];

export class Listener {
    isOver = false;
    // Where it is.
    places = new Map();
    // Where the shared connection was when this one joined it: also at workers that have none of its
    // channels.
    joined = new Map();

    constructor(channel, after, tell) {
        Object.assign(this, {channel, after, tell});
    }

    /** Reads from its own place to the end. */
    async arrive(url) {
        this.joined.clear();
        // The end comes first: nothing will be published before it any more.
        const end = await this.#read(url, "now");
        let isMore = this.after !== "now";
        while (isMore && !this.#isAt(end.places)) {
            isMore = (await this.#read(url, this.after)).isNews;
        }
        if (!this.isOver) {
            this.#move(end.places);
            this.tell("place", undefined, this.after);
        }
    }

    /** Takes a message of the shared connection, which is at these places now. */
    hear(said, places) {
        if (this.#move(places) && matches(this.channel, said.channel)) {
            this.tell("message", said, this.after);
        }
    }

    /** Takes a loss, unless it has read those messages before. */
    lose(said) {
        const last = said.lost?.to;
        const has = [...this.places.values()].some((each) => Number(each.split("_")[1]) >= last);
        if (!has && (said.channel === this.channel || matches(this.channel, said.channel))) {
            this.tell("lost", said);
        }
    }

    /** Takes that it will hear nothing any more. */
    end(error, event = "end") {
        this.isOver = true;
        this.tell(event, {error});
    }

    #isAt(places) {
        return [...places].every(([home, place]) => reaches(this.places.get(home), place));
    }

    /** Returns whether it has not been there yet. */
    #move(places) {
        const at = (home) => this.places.get(home) ?? this.joined.get(home);
        const news = [...places].filter(([home, place]) => !reaches(at(home), place));
        news.forEach(([home, place]) => this.places.set(home, place));
        this.after = idOf(this.places) || this.after;
        return news.length > 0;
    }

    /** Reads the next part; returns whether there was something, and where it ends. */
    async #read(url, after) {
        while (!this.isOver) {
            const ending = new AbortController();
            try {
                const {signal} = ending;
                const response = await fetch(addressOf(url, [this.channel], after), {signal});
                if (response.status >= 400 && response.status < 500 && response.status !== 429) {
                    this.end((await response.json())[0].error);
                    break;
                }
                const part = await this.#part(after, response);
                if (part !== undefined) {
                    return part;
                }
            } catch {
                // The server is away, or was just now.
            } finally {
                ending.abort();
            }
            await pause();
        }
        return {places: new Map(), isNews: false};
    }

    async #part(after, response) {
        let isNews = false;
        for await (const {event = "message", data, id = ""} of eventsOf(response)) {
            const places = placesOf(id);
            if (!data && id) {
                after === "now" || this.#move(places);
                return {places, isNews};
            }
            // The request for the end has said what is missing.
            if (data && (event !== "missing" || after === "now")) {
                if (LAST.includes(event)) {
                    this.end(JSON.parse(data).error, event);
                    return {places, isNews};
                }
                isNews ||= event === "message" || event === "lost";
                this.#move(places);
                this.tell(event, JSON.parse(data), id && this.after);
            }
        }
        return undefined;
    }
}

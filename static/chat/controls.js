// Trouble to make: what each switch does to the connection, and what can be seen then.
const find = (id) => document.getElementById(id);
const press = (button, isPressed) => button.setAttribute("aria-pressed", String(isPressed));
const isPressed = (button) => button.getAttribute("aria-pressed") === "true";

const RELIABLE =
    "Every message to this page has a place in a queue until the page has said that it is done " +
    "with it. Go offline, let somebody say something, and come back: nothing is missing.";
const PLAIN =
    "You are here without reliable messages: what is said while you have no connection is gone. " +
    "Leave, and join with them, to see the difference.";
const SILENT =
    "This page hears, but acknowledges nothing: so the server gives it the same messages again " +
    "and again. The page knows them and shows each once, marked as redelivered.";
const HELD =
    "The server keeps what is for you in your queue until you want it. The others see how much " +
    "waits.";
const OFFLINE =
    "What you say waits in this browser, even if you load the page again. What is said to you " +
    "waits in the server.";
const KILLED =
    "The connection was cut in the middle, and made again. What was on its way has been sent " +
    "once more, and is shown once.";
const AGAIN = "The next message is refused for now, and comes again: nothing is lost.";
const DEAD =
    "The next message is refused for good. It becomes a dead letter, which operators find in " +
    "their console and can replay; all that is behind it flows.";
const DEAD_NOW =
    "Refused, and a dead letter now. The verdict is on the wire, and what was behind the message " +
    "came through.";
const AGAIN_NOW = "Refused for now. It comes again in a second, marked as redelivered.";
const HELD_NOW =
    "Refused, and all that is for you is held back with it. Press “Hold back” to let it flow.";

const isHoldback = (code) => code.endsWith(".holdback");
const comesBack = (code) => code.startsWith("communication.") || isHoldback(code);

export class Controls {
    #connection;
    #usual;

    constructor(connection) {
        this.#connection = connection;
        this.#usual = connection.delivery === undefined ? PLAIN : RELIABLE;
        for (const part of document.querySelectorAll(".reliable")) {
            part.hidden = connection.delivery === undefined;
        }
        connection.delivery?.addEventListener("change", () => this.#drawHold());
        find("refuse").addEventListener("click", () => this.#refuseNext());
        find("hold").addEventListener("click", () => this.#hold());
        find("kill").addEventListener("click", () => this.#kill());
        find("acknowledge").addEventListener("change", ({target}) => this.#acknowledge(target.checked));
        find("offline").addEventListener("click", ({currentTarget}) => this.#goOffline(currentTarget));
        this.#explain(this.#usual);
    }

    /** The message that was waited for has been refused. */
    refused(code) {
        press(find("refuse"), false);
        this.#explain(isHoldback(code) ? HELD_NOW : comesBack(code) ? AGAIN_NOW : DEAD_NOW);
    }

    #refuseNext() {
        const code = this.#connection.refuseNext ? undefined : find("code").value;
        this.#connection.refuseNext = code;
        press(find("refuse"), code !== undefined);
        this.#explain(code === undefined ? this.#usual : comesBack(code) ? AGAIN : DEAD);
    }

    #hold() {
        const isHeld = !this.#connection.delivery.isHeldBack;
        this.#connection.hold(isHeld);
        this.#explain(isHeld ? HELD : this.#usual);
    }

    #drawHold() {
        press(find("hold"), this.#connection.delivery.isHeldBack);
    }

    #acknowledge(areGiven) {
        this.#connection.acknowledge(areGiven);
        this.#explain(areGiven ? this.#usual : SILENT);
    }

    #goOffline(button) {
        const isOffline = !isPressed(button);
        press(button, isOffline);
        this.#connection.goOffline(isOffline);
        this.#explain(isOffline && this.#usual === RELIABLE ? OFFLINE : this.#usual);
    }

    #kill() {
        this.#connection.kill();
        this.#explain(this.#usual === RELIABLE ? KILLED : PLAIN);
    }

    #explain(text) {
        find("explanation").textContent = text;
    }
}

// What developers of pages read in the browser's console when something is missing.

export class Hints {
    // Whether the server advised to poll, because of another tab.
    #isOneOfSeveral = false;

    begin(offersVerdicts, hasAcks) {
        if (!offersVerdicts) {
            console.warn("This server offers no verdicts: a listener that throws refuses nothing.");
        } else if (!hasAcks) {
            console.warn("Register the AckExtension, too: without it, each message needs a verdict of its own.");
        }
    }

    hear({successful, advice, ext}) {
        const {"multiple-clients": isOneOfSeveral = this.#isOneOfSeveral} = advice ?? {};
        if (isOneOfSeveral && !this.#isOneOfSeveral) {
            console.warn("Another tab of this browser is connected, so this one polls: share a connection, or use WebSocket.");
        }
        this.#isOneOfSeveral = isOneOfSeveral;
        const unknown = successful && ext?.delivery?.unknown;
        if (unknown) {
            console.warn(`The server never sent the messages ${unknown} of these verdicts to this session.`);
        }
    }
}

// What developers read in the console.

export class Hints {
    #isOneOfSeveral = false;

    begin(offersVerdicts, hasAcks) {
        if (!offersVerdicts) {
            console.warn("This server takes no verdicts: listeners refuse nothing.");
        } else if (!hasAcks) {
            console.warn("Register the AckExtension, too, or each message needs a verdict.");
        }
    }

    hear({successful, advice, ext}) {
        const {"multiple-clients": isOneOfSeveral = this.#isOneOfSeveral} = advice ?? {};
        if (isOneOfSeveral && !this.#isOneOfSeveral) {
            console.warn("Another tab is connected, so this one polls: share a connection, or use WebSocket.");
        }
        this.#isOneOfSeveral = isOneOfSeveral;
        const unknown = successful && ext?.delivery?.unknown;
        if (unknown) {
            console.warn(`The server never sent messages ${unknown} to this session.`);
        }
    }
}

// Requests and remote calls with cometd.js, between two browsers.
import assert from "node:assert/strict";
import {AckExtension} from "cometd";
import {RequestExtension} from "../../../static/js/request.js";
import {CometClient} from "./cometd_client.js";

const visit = (context) =>
    new CometClient(context, {
        extensions: {ack: new AckExtension(), request: new RequestExtension()},
    }).connect();

async function couple(context) {
    const channel = `${context.root}/power`;
    const [ann, bob] = [await visit(context), await visit(context)];
    await bob.subscribe(channel);
    const answer = (request) => bob.cometd.reply(request, request.data.volt * 2);
    bob.cometd.addListener(channel, answer);
    return {ann, bob, channel};
}

/** Many requests at a time get their own replies. */
export async function asksAnother(context) {
    const {ann, bob, channel} = await couple(context);
    const asked = Array.from({length: 20}, (_, volt) => ann.cometd.ask(channel, {volt}));
    assert.deepEqual(await Promise.all(asked), Array.from({length: 20}, (_, volt) => volt * 2));
    await bob.disconnect();
    await assert.rejects(ann.cometd.ask(channel, {volt: 1}), {code: 404});
    await ann.disconnect();
}

/** What cometd.js has of its own. */
export async function callsAnother(context) {
    const {ann, bob, channel} = await couple(context);
    const result = await new Promise((resolve) => {
        ann.cometd.remoteCall(channel, {volt: 115}, 20_000, resolve);
    });
    assert.deepEqual([result.successful, result.data], [true, 230]);
    await Promise.all([ann.disconnect(), bob.disconnect()]);
}

/** docs/reference/requests.md, whose page answers itself. */
export async function doesWhatTheDocsShow(context) {
    const {cometd} = new CometClient(context);
    const [setup, ...code] = context.code.trim().split("\n");
    assert.equal(setup, 'import {RequestExtension} from "./request.js";');
    const body = `return (async () => {${code.join("\n")}\nreturn watts;})()`;
    assert.equal(await new Function("cometd", "RequestExtension", body)(cometd, RequestExtension), 230);
    await new Promise((resolve) => cometd.disconnect(resolve));
}
